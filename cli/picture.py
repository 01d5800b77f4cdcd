"""A picture as a file: of the groups of a layout, or of a GPU's memory over a step."""

from __future__ import annotations

from collections.abc import Iterator

from groups.bundles import FORMS, drawn, save
from groups.errors import quoted

from .inputs import CommandLine, number_of
from .messages import CommandError
from .state import ranked_context

MEMORY = "memory"
"""What names, in place of groups, the memory of a GPU over a step."""


def picture(inputs: CommandLine) -> Iterator[str]:
    """The groups of one GPU on the picture of the job, and each kind with all its groups, or with
    MEMORY what the GPU holds over a step: into the file of --out, or as SVG.

    Errors: LayoutError for an unknown kind, GPU, form or theme, and for a step whose memory is
    refused; CommandError for a file that cannot be written, and MEMORY among names.
    """
    options, names = inputs.options, inputs.names or ()
    shown: object
    if MEMORY in names:
        if len(names) > 1:
            raise CommandError(f"picture {MEMORY} takes no other name")
        shown = _over_step(inputs)
    else:
        shown = inputs.layout().show(*names, rank=number_of(options.rank or "0"))
    theme = options.theme or "light"
    if options.out is None:
        yield drawn(shown, FORMS[0], theme).decode()
        return
    try:
        save(shown, options.out, theme)
    except OSError as error:
        raise CommandError(f"cannot write {quoted(options.out)}: {error.strerror}") from None
    yield f"{options.out}: {shown}\n"


def _over_step(inputs: CommandLine) -> object:
    """The memory of the GPU of --rank over a step."""
    from render.pictures import Sheet
    from render.scenes.over_step import over_step_chart
    from request.answers.over_step import held_over_step, over_step_words
    from request.trained_endpoint import job_facts

    with ranked_context(inputs) as context:
        held, facts = held_over_step(context), job_facts(context.trained)
        words, capacity = over_step_words(context, held), context.trained.capacity
        batch = context.trained.batch.global_batch
    caption = f"{facts['model']}, global batch {batch:,}, {context.layout.mesh}"
    chart = over_step_chart(held, capacity, words).with_axis()
    return Sheet(((words["title"], chart),), caption)
