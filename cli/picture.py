"""A picture of the groups of a layout, as a file."""

from __future__ import annotations

from collections.abc import Iterator

from groups.bundles import FORMS, drawn, save
from groups.errors import quoted

from .inputs import CommandLine, number_of
from .messages import CommandError


def picture(inputs: CommandLine) -> Iterator[str]:
    """The groups of one GPU on the picture of the job, and each kind with all its groups: into the
    file of --out, or as SVG.

    Errors: LayoutError for an unknown kind, GPU, form or theme; CommandError for a file that cannot
    be written.
    """
    options, layout = inputs.options, inputs.layout()
    shown = layout.show(*(inputs.names or ()), rank=number_of(options.rank or "0"))
    theme = options.theme or "light"
    if options.out is None:
        yield drawn(shown, FORMS[0], theme).decode()
        return
    try:
        save(shown, options.out, theme)
    except OSError as error:
        raise CommandError(f"cannot write {quoted(options.out)}: {error.strerror}") from None
    yield f"{options.out}: {shown}\n"
