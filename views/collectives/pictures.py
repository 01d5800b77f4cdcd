"""What of the Collectives view goes into files."""

from __future__ import annotations

from descriptions import counted

from ..base.context import Context
from ..base.view import Pictures
from .exchange import exchanges
from .inputs import resolve_inputs
from .view import op_name


def collectives_pictures(context: Context) -> Pictures:
    """The tensors before and after, of the group that is watched and of others if that is asked.

    Errors: LayoutError for the first input that the view refuses.
    """
    watched, counting, problems = resolve_inputs(context.layout, context.state)
    if problems:
        raise problems[0]
    way = "" if watched.direction == "forward" else f", {watched.direction}"
    some = "" if watched.size == len(watched.members) else f"first {len(watched.members)} of "
    ranks = f"{some}{counted(watched.size, 'rank', 'en')}"
    return [
        (
            f"{op_name(watched.op)}{way}: {watched.grouping.name} group {shown.index}, {ranks} on "
            f"{counted(shown.nodes(context.layout), 'node', 'en')}",
            shown.exchange,
        )
        for shown in exchanges(watched, counting)
    ]
