"""What of the Collectives view goes into files."""

from __future__ import annotations

from descriptions import OPERATION_TEXTS, PAGE, SAVED, counted

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
    language, op = context.language, op_name(watched.op)
    if watched.direction != "forward":
        op += f" ({PAGE['collectives_backward'][language]})"
    ranks = counted(watched.size, "rank", language)
    if watched.size != len(watched.members):
        words = SAVED["collective_first"][language]
        ranks = words.format(shown=len(watched.members), ranks=ranks)
    pictures: Pictures = []
    for group in exchanges(watched, counting):
        nodes = counted(group.nodes(context.layout), "node", language)
        facts = {"op": op, "kind": watched.grouping.name, "index": group.index}
        title = SAVED["collective"][language].format(**facts, ranks=ranks, nodes=nodes)
        pictures.append((title, group.exchange))
    return pictures


def collectives_summary(context: Context) -> str:
    """What the operation does."""
    watched, _, _ = resolve_inputs(context.layout, context.state)
    return OPERATION_TEXTS[watched.op].does[context.language]
