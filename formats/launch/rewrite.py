"""Rewrites the sizes of a launch text in place; everything else stays as it is.

>>> from formats.launch import parse
>>> text = "NNODES=${SLURM_NNODES:-1}\\ntorchrun --nnodes $NNODES pretrain_gpt.py --seed 1"
>>> back = rewrite(parse(text), {"nodes": 4})
>>> print(back.text)
NNODES=${SLURM_NNODES:-4}
torchrun --nnodes $NNODES pretrain_gpt.py --seed 1
>>> back.lines, back.left
((1,), {})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from groups.budget import within
from groups.errors import LayoutError
from groups.layout import Job

from ..values import Document
from .items import Item, Parsed
from .meaning import fewest_nodes, meaning_of
from .sayings import read

SIZES = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp")


@dataclass(frozen=True)
class Rewritten:
    """The rewritten text, the numbers of changed lines (from 1), and sizes that no word sets."""

    text: str
    lines: tuple[int, ...]
    left: dict[str, int]


def rewrite(parsed: Parsed, sizes: Mapping[str, int]) -> Rewritten:
    """The text with these sizes (of SIZES), as far as parsing it gives them back.

    A word that sets another size too, such as a shared variable, is not changed.
    """
    text, lines, left = parsed.text, set[int](), {}
    for name, value in sizes.items():
        if {**parsed.assumed, **parsed.values}.get(name) == value:
            continue
        changed = _changed(text, parsed, name, value)
        if changed is None:
            left[name] = value
            continue
        text, parsed, line = changed
        lines.add(line)
    return Rewritten(text, tuple(sorted(lines)), left)


def _changed(text: str, parsed: Parsed, name: str, value: int) -> tuple[str, Parsed, int] | None:
    """The text with one size changed, its new meaning, and the line; None if no word sets that
    size."""
    before = {**parsed.assumed, **parsed.values}
    for item in _words(parsed, name):
        start, end = item.written or (0, 0)
        changed = f"{text[:start]}{value}{text[end:]}"
        with within():
            after = meaning_of(read(changed), parsed.run)
        values = {**after.assumed, **after.values}
        others = (one for one in SIZES if one not in (name, "nodes"))
        if values.get(name) == value and all(values.get(n) == before.get(n) for n in others):
            return changed, after, text.count("\n", 0, start) + 1
    return None


def _words(parsed: Parsed, name: str) -> Iterator[Item]:
    """Words that may set a size and whose value stands literally in the text, the likeliest
    first."""
    written = [item for item in parsed.understood if item.written]
    yield from (item for item in written if item.sets == name)
    if name == "nodes":
        yield from (item for item in written if item.sets == "gpus")


def nodes_that_hold(job: Job) -> list[int]:
    """The fewest nodes that a job runs on, then twice and four times as many.

    >>> nodes_that_hold(Job(nodes=1, pp=4, ep=8))
    [4, 8, 16]
    """
    sizes: Document = vars(job)
    fewest, found = fewest_nodes(sizes), []
    for count in (fewest << times for times in range(3)):
        try:
            Job(**{**sizes, "nodes": count}).layout()
        except LayoutError:
            continue
        found.append(count)
    return found
