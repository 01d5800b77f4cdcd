"""The walk-through that the page shows has the published numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from views.collectives import walkthrough

SEED = json.loads((Path(__file__).parent / "data" / "seed_cases.json").read_text(encoding="utf-8"))
REDUCE, SPLIT, GATHER, F, G, SCATTER, GATHER_FROM = walkthrough.examples()
EVEN, ODD, FIRST, LAST = range(0, 8, 2), range(1, 8, 2), [0, 1], [6, 7]

SHOWN = {
    "_reduce(tensor([rank])) in group [0,1]": (REDUCE.after, FIRST),
    "_reduce(tensor([rank])) in group [6,7]": (REDUCE.after, LAST),
    "_gather(tensor([rank])) in group [0,1]": (GATHER.after, FIRST),
    "_split(tensor([0,1])), even ranks": (SPLIT.after, EVEN),
    "_split(tensor([0,1])), odd ranks": (SPLIT.after, ODD),
    "grad of rank*x without copy is the rank": (F.gradients, range(8)),
    "grad of rank*copy(x) in group [6,7]": (F.back, LAST),
    "loss = 2*reduce(rank*x), x = rank, in group [6,7]": (G.value, LAST),
    "its grads on ranks 6 and 7": (G.back, LAST),
    "scatter(tensor([1,2])), ranks 6 and 7": (SCATTER.after, LAST),
    "grad of rank*scatter(x) in group [6,7] is gathered": (SCATTER.back, LAST),
    "gather(tensor([rank])) in group [6,7]": (GATHER_FROM.after, LAST),
    "grad of sum(rank*gather(x)) is split, not summed: ranks 6 and 7": (GATHER_FROM.back, LAST),
}


def test_the_groups_are_the_published_ones():
    assert SEED["checks"][0]["what"] == "tp groups"
    assert walkthrough.groups().tolist() == SEED["checks"][0]["published"]


@pytest.mark.parametrize("check", SEED["checks"][1:], ids=lambda check: check["what"])
def test_every_published_number_is_among_those_shown(check):
    tensors, ranks = SHOWN[check["what"]]
    assert [tensors[rank].tolist() for rank in ranks] == check["published"]
