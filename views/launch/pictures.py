"""What of the Launch view goes into files: the layout as a command, beside the job."""

from __future__ import annotations

from descriptions import SAVED, TARGET_NAMES
from formats.launch import TARGETS, emit
from groups import LayoutError

from ..base.context import Context
from ..base.view import Pictures
from ..groups.pictures import job_pictures
from .view import model_of_command


def launch_pictures(context: Context) -> Pictures:
    """The command of the framework on screen, or the first that can say the layout; the job.

    Errors: LayoutError of the first framework where none can say it.
    """
    from render.files.tables import CodeChart

    layout, language = context.layout, context.language
    model = model_of_command(context.state)
    refusals = []
    for name in sorted(TARGETS, key=lambda one: one != layout.framework):
        try:
            code = CodeChart(emit(layout.job, model, name), SAVED["more_lines"][language])
        except LayoutError as error:
            refusals.append(error)
        else:
            (_, job), *_ = job_pictures(context)
            return [(TARGET_NAMES[name][language], code), ("", job)]
    raise refusals[0]
