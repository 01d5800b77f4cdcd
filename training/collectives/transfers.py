"""Runs an algorithm: the slots of every member, and the messages between them, step by step.

A buffer is cut into chunks; every member has a slot for each, empty or not. In one step all
messages travel at once: a :class:`Transfer` takes what the sender has in a slot into a slot of the
receiver, where it is added or stored. :func:`run` plays the steps, on arrays or on anything that
can be added, such as sets of who contributed.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .functions import pieces_of

Item = TypeVar("Item")
Slots = list[list[Item | None]]
"""The content of each slot of each member, by place and slot; None: empty."""


@dataclass(frozen=True)
class Transfer:
    """One message. Members are places in the group; ``chunk`` and ``into`` are slots."""

    sender: int
    receiver: int
    chunk: int
    into: int
    adds: bool = False  # the receiver adds it to its slot; else it replaces the slot
    gives: bool = False  # the sender no longer has the chunk


Step = tuple[Transfer, ...]
Steps = tuple[Step, ...]


@dataclass(frozen=True)
class Algorithm:
    """The steps of one collective in a group of a fixed size."""

    name: str
    op: str  # the collective, as in training.collectives.cost; S is its whole buffer
    members: int
    chunks: int  # equal parts of S; a message has one of them
    steps: tuple[Step, ...]
    root: int = 0  # place of the root, if any

    @property
    def slots(self) -> int:
        """The number of slots of each member: an all-to-all has separate slots for sending and
        receiving."""
        return (2 if self.op == "all_to_all" else 1) * self.chunks

    def loads(self) -> list[float]:
        """The share of the buffer that the busiest port, in or out, transfers in each step.

        Divided by the bandwidth it is the time of the step, if all ports are equal and none waits.
        """
        return [max(ports(step).values(), default=0) / self.chunks for step in self.steps]


def ports(step: Step) -> Counter[tuple[str, int]]:
    """The number of messages out of and into each member in one step.

    >>> both = ports((Transfer(0, 1, 0, 0), Transfer(0, 2, 0, 0)))
    >>> both["out", 0], both["in", 1], both["in", 0]
    (2, 1, 0)
    """
    return Counter(port for move in step for port in (("out", move.sender), ("in", move.receiver)))


def run(
    steps: Sequence[Step], slots: Slots[Item], add: Callable[[Item, Item], Item] = operator.add
) -> list[Slots[Item]]:
    """The slots before the first step and after each: one state more than there are steps.

    >>> ring = [(Transfer(0, 1, 0, 0, adds=True), Transfer(1, 0, 1, 1, adds=True))]
    >>> run(ring, [[1, 2], [10, 20]])[-1]
    [[1, 22], [11, 20]]
    """
    states = [slots]
    for step in steps:
        before = states[-1]
        after = [list(own) for own in before]
        for move in step:
            if move.gives:
                after[move.sender][move.chunk] = None
        for move in step:
            message, kept = before[move.sender][move.chunk], after[move.receiver][move.into]
            assert message is not None  # no algorithm sends out of an empty slot
            stored = add(kept, message) if move.adds and kept is not None else message
            after[move.receiver][move.into] = stored
        states.append(after)
    return states


def loaded(algorithm: Algorithm, tensors: Sequence[np.ndarray]) -> Slots[np.ndarray]:
    """The slots before the first step; the tensors are cut along dim 0.

    >>> from training.collectives.algorithms import algorithm_of
    >>> loaded(algorithm_of("ring_all_gather", 2), [np.array([1]), np.array([2])])
    [[array([1]), None], [None, array([2])]]
    """
    slots: Slots[np.ndarray] = [[None] * algorithm.slots for _ in range(algorithm.members)]
    for place, tensor in enumerate(tensors):
        if algorithm.op in ("all_gather", "gather"):
            slots[place][place] = tensor
        elif algorithm.op in ("broadcast", "scatter", "send_recv") and place != algorithm.root:
            continue
        else:
            slots[place][: algorithm.chunks] = pieces_of(tensor, algorithm.chunks)
        if algorithm.op == "all_to_all":
            slots[place][algorithm.members + place] = slots[place][place]
    return slots
