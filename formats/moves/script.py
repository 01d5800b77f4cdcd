"""A script that makes the shards of both layouts with known numbers, moves them by a plan and
checks every element. It is template.py with the plan written into it, and needs torch; this module
does not, and does not import the template."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from groups.budget import spend
from training.errors import refusal
from training.moves import Moves
from training.moves.sharded import ShardedModel
from training.moves.tensors import Tensor, full_name, tensors_of

BEGIN = "# -- what this script was written for --\n"
END = "# -- the same for every plan from here on --\n"


def moves_script(moves: Moves) -> str:
    """The text of a Python script that checks what moves under torchrun.

    >>> from groups.layout import Job
    >>> from training.model import Model
    >>> from training.moves import weight_moves
    >>> model = Model(layers=1, hidden=4, heads=2, vocabulary=8, sequence=4, rms_norm=True)
    >>> source, target = (Job(gpus_per_node=2, tp=tp).layout() for tp in (2, 1))
    >>> text = moves_script(weight_moves(model, source, target))
    >>> print(text[text.index("TENSORS = ") :].splitlines()[1])
        Whole("embedding.word_embeddings.weight", (8, 8), 4, 1, (2, 1)),

    Errors: LayoutError for more than one request may cost, and where data parallelism cuts weights.
    """
    if moves.is_fsdp:
        raise refusal("script-without-fsdp", "zero", {"zero": "1"})
    template = Path(__file__).with_name("template.py").read_text(encoding="utf-8")
    example, after = template.partition(BEGIN)[0], template.partition(END)[2]
    shebang, _, head = example.split("\n", 2)
    world = moves.ranks
    title = f"{moves.source.layout} to {moves.target.layout}"
    nodes = int(moves.nodes[-1]) + 1
    launch = f"--nnodes {nodes} --nproc-per-node {-(-world // nodes)}"
    head = head.replace("--nnodes 1 --nproc-per-node 2", launch)
    facts = [f"TITLE = {json.dumps(title)}", f"WORLD_SIZE = {world}", *_plan(moves)]
    return (
        f"{shebang}\n# Written for {title}.\n{head}{BEGIN}" + "\n".join(facts) + f"\n{END}{after}"
    )


def _plan(moves: Moves) -> Iterator[str]:
    """Lines: the tensors, which part of them ranks hold, who sends what."""
    receivers: dict[str, dict[int, list[tuple[int, ...]]]] = {}
    tensors = dict(_named(moves))
    for row in moves.rows():
        spend(20, "tensors", control="nodes")
        whole = (0, 0, tensors[row.tensor].shape[0])
        parts = [part if row.axis is not None else (part[0], *whole) for part in row.parts]
        if row.axis is None and tensors[row.tensor].axis is not None:
            parts = [(row.parts[0][0], 0, 0, moves.source.length(tensors[row.tensor]))]
        receivers.setdefault(row.tensor, {})[row.target] = parts
    yield "TENSORS = ["
    yield from (f"    {_whole(name, tensors[name], moves)}," for name in receivers)
    yield "]"
    yield "PARTS = ["
    for side in (moves.source, moves.target):
        yield f"    {dict(_parts(side))},"
    yield "]"
    yield "PLAN = ["
    for of in receivers.values():
        yield "    {"
        yield from (f"        {rank}: {parts}," for rank, parts in of.items())
        yield "    },"
    yield "]"


def _named(moves: Moves) -> Iterator[tuple[str, Tensor]]:
    for place in moves.target.homes:
        for tensor in tensors_of(moves.model, place):
            for expert in range(moves.model.experts) if tensor.expert else (None,):
                yield full_name(place, tensor, expert), tensor


def _whole(name: str, tensor: Tensor, moves: Moves) -> str:
    sides = moves.source, moves.target
    lengths = tuple(side.length(tensor) for side in sides)
    across = tensor.elements // tensor.shape[tensor.axis or 0]
    parts = tuple(side.parts(tensor) for side in sides)
    expert = ", True" if tensor.expert else ""
    return f"Whole({json.dumps(name)}, {lengths}, {across}, {tensor.blocks}, {parts}{expert})"


def _parts(side: ShardedModel) -> Iterator[tuple[int, tuple[int, int]]]:
    for at in range(side.ranks):
        yield side.first_rank + at, (int(side.tp_at[at]), int(side.etp_at[at]))
