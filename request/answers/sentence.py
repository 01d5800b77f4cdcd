"""One sentence about a GPU: what it shares, and with whom.

    It <clause of each kind>. <what of them leaves the node>

The page's script says the same of the GPU under the pointer, from views/groups/words.toml
by the same rule (`sentenceOf` in client/picture/card.js): a test holds one against the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from descriptions import GAP, JOB
from groups.grouping import Grouping
from groups.layout import Layout

FEW = 4
"""The most other GPUs of a group that the sentence lists."""


def spoken(layout: Layout) -> list[tuple[str, Grouping]]:
    """The groups of the sentence, each with its purpose, the nearest first.

    Gradients are averaged over cp too, where there is one.
    """
    roles = layout.roles
    names = _OF[layout.made_by.does](layout)
    found = [(word, roles[role]) for word, role in names if role in roles]
    return [(word, grouping) for word, grouping in found if grouping.size > 1]


def _of_job(layout: Layout) -> list[tuple[str, str]]:
    data = "dp" if layout.mesh.size("cp") == 1 else "dp-cp"
    names = [("tp", "tp"), ("gtp", "gtp"), ("cp", "cp"), ("pp", "pp"), ("dp", data)]
    if layout.has_experts:
        names.insert(3, ("ep", "ep"))
    return names


def _of_server(layout: Layout) -> list[tuple[str, str]]:
    """The groups that share attention, that hold other requests, and that hold experts."""
    names = [("tp", "tp"), ("cp", "cp"), ("cache", "dcp"), ("requests", "dp"), ("pp", "pp")]
    if layout.has_experts:
        names[0] = ("attention", "tp")
        names += [("slices", "etp"), ("ep", "ep")]
    return names


_OF = {"train": _of_job, "serve": _of_server}
"""The words of the sentence, each with Megatron's name of the groups that it is about, by what a
framework does."""


def question(rank: int, language: str) -> str:
    return JOB["question"][language].format(rank=rank)


def sentence_of(layout: Layout, rank: int, language: str) -> str:
    """The sentence about one GPU.

    >>> from request.resolve import resolve
    >>> from request.state import State
    >>> sentence_of(resolve(State(tp=2, pp=2, nodes=2)), 5, "en")[:44]
    'It shares each layer with GPU 4, passes acti'
    """
    clauses, leaving = [], []
    groups = spoken(layout)
    for role, grouping in groups:
        ranks = grouping.members(rank)
        nodes = len({peer // layout.gpus_per_node for peer in ranks.tolist()})
        clauses.append(_clause(role, ranks, rank, nodes, language).strip())
        if nodes > 1:
            leaving.append(JOB[f"name_{role}"][language])
    if not clauses:
        return JOB["says"][language].format(clauses=JOB["says_alone"][language])
    last = "last_of_two" if len(clauses) == 2 else "last"
    sentence = JOB["says"][language].format(clauses=listed(clauses, language, last, "then"))
    gap = GAP[language]
    return f"{sentence}{gap}{_leaving(leaving, len(groups), language)}"


def _clause(role: str, ranks: np.ndarray, rank: int, nodes: int, language: str) -> str:
    if role != "pp":
        return JOB[f"says_{role}"][language].format(gpus=_others(ranks, rank, nodes, language))
    at = int(np.searchsorted(ranks, rank))
    place = "first" if at == 0 else "last" if at == len(ranks) - 1 else "middle"
    beside = ranks[at - 1], ranks[(at + 1) % len(ranks)]
    before, after = (JOB["one"][language].format(rank=peer) for peer in beside)
    return JOB[f"says_{place}"][language].format(before=before, after=after)


def _others(ranks: np.ndarray, rank: int, nodes: int, language: str) -> str:
    """The other GPUs of a group: their numbers, or how many."""
    count = len(ranks) - 1
    if count > FEW:
        words = "many_nodes" if nodes > 1 else "many"
        return JOB[words][language].format(count=f"{count:,}", nodes=f"{nodes:,}")
    others = [str(peer) for peer in ranks.tolist() if peer != rank]
    if count == 1:
        return JOB["one"][language].format(rank=others[0])
    return JOB["few"][language].format(ranks=listed(others, language))


def listed(words: Sequence[str], language: str, last: str = "and", between: str = "comma") -> str:
    """Words joined as a list of the language.

    >>> listed(["1", "3", "7"], "en"), listed(["1"], "en")
    ('1, 3 and 7', '1')
    """
    *first, end = words
    return JOB[between][language].join(first) + JOB[last][language] + end if first else end


def _leaving(names: Sequence[str], groups: int, language: str) -> str:
    if not names:
        return JOB["says_none"][language]
    if len(names) == 1 and groups > 1:
        return JOB["says_only"][language].format(name=names[0])
    if len(names) == groups:
        return JOB["says_all"][language]
    return JOB["says_some"][language].format(names=listed(names, language, "and_names"))
