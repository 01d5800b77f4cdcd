"""A collective as the messages it is made of, step by step, and what they leave on every member.

A buffer is cut into chunks; every member has a slot for each, empty or not. In one step all
messages travel at once: a :class:`Transfer` takes what the sender has in a slot into a slot of the
receiver, where it is added or stored. :func:`run` plays the steps, on arrays or on anything that
can be added, such as sets of who contributed. The algorithms themselves: `algorithms`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..errors import refusal

Item = TypeVar("Item")
Slots = list[list[Item | None]]
"""What each member has in each slot, by place and slot; None: nothing."""


@dataclass(frozen=True)
class Transfer:
    """One message. Members are places in the group; ``chunk`` and ``into`` are slots."""

    sender: int
    receiver: int
    chunk: int
    into: int
    adds: bool = False  # the receiver adds it to what it has; else it is stored
    gives: bool = False  # the sender has it no more


Step = tuple[Transfer, ...]


@dataclass(frozen=True)
class Algorithm:
    """The steps of one collective in a group of so many members."""

    name: str  # as in `algorithms`
    op: str  # the collective that it does, as in training.collectives.cost; S is its whole buffer
    members: int
    chunks: int  # equal parts of S; a message is one of them
    steps: tuple[Step, ...]
    slots: int = 0  # of each member; more than chunks where what is received stands apart
    root: int = 0  # its place, where there is one

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", self.slots or self.chunks)

    def loads(self) -> list[float]:
        """The share of S that the busiest port, in or out, passes in each step.

        Over the bandwidth it is the time of the step, if all ports are alike and none waits.
        """
        return [max(ports(step).values(), default=0) / self.chunks for step in self.steps]


Port = tuple[str, int]
"""("out" or "in", place): the two directions of a member's link work at the same time."""


def ports(step: Step) -> Counter[Port]:
    """Messages that go out of each member in a step, and those that come in.

    >>> both = ports((Transfer(0, 1, 0, 0), Transfer(0, 2, 0, 0)))
    >>> both["out", 0], both["in", 1], both["in", 0]
    (2, 1, 0)
    """
    return Counter(port for move in step for port in (("out", move.sender), ("in", move.receiver)))


def run(
    steps: Sequence[Step], slots: Slots[Item], add: Callable[[Item, Item], Item] = operator.add
) -> list[Slots[Item]]:
    """What every member has before the first step and after each: one state more than steps.

    >>> ring = [(Transfer(0, 1, 0, 0, adds=True), Transfer(1, 0, 1, 1, adds=True))]
    >>> run(ring, [[1, 2], [10, 20]])[-1]
    [[1, 22], [11, 20]]

    Errors: LayoutError for a message out of an empty slot, which no algorithm should have.
    """
    states = [slots]
    for number, step in enumerate(steps):
        before = states[-1]
        after = [list(own) for own in before]
        messages: list[Item] = []
        for move in step:
            message = before[move.sender][move.chunk]
            if message is None:
                raise refusal("nothing-to-send", place=move.sender, slot=move.chunk, step=number)
            messages.append(message)
            if move.gives:
                after[move.sender][move.chunk] = None
        for move, message in zip(step, messages):
            kept = after[move.receiver][move.into]
            stored = message if kept is None or not move.adds else add(kept, message)
            after[move.receiver][move.into] = stored
        states.append(after)
    return states
