"""A pipeline schedule as data: the ops of each rank, in order.

An op is written ``<stage><kind><micro-batch>``, as in ``3F5``: the forward of micro-batch 5
through stage 3. Everything counts from 0, and stages run through the whole model.

    F   forward
    B   backward, whole
    I   backward for the input: what the stage before waits for
    W   backward for the weights: what only the optimizer waits for

A micro-batch goes back through a stage as one B, or as I and later W. ``3F6&0B0`` is a pair: two
ops whose kernels overlap. Within a program a place of the order, an op or a pair, is one number:

    op     kind + 4 * (micro-batch + m * stage)
    pair   first op + (second op + 1) * number of ops        alone: second op + 1 = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groups.errors import LayoutError, quoted

from ..errors import refusal

KINDS = "FBIW"
"""Forward, backward, and the two halves of a backward; an op's kind is its index here."""

F, B, I, W = range(4)  # noqa: E741 - the letters of every paper on the subject

WAITS = {
    F: ((F, -1),),
    B: ((B, 1), (I, 1), (F, 0)),
    I: ((B, 1), (I, 1), (F, 0)),
    W: ((I, 0),),
}
"""The dependencies of an op of each kind: the first of these (kind, stages away) that is run."""

MOST_OPS = 2_000_000
"""The most ops of one schedule: 64 stages times 512 micro-batches have 65,536 of each kind."""


@dataclass(frozen=True, eq=False)
class PipelinePlan:
    """The ops of every rank of a pipeline, in order, without times.

    stages: number of stages, each a chunk of the model; m: number of micro-batches. places: an
    int64 array for each rank.

    >>> plan = PipelinePlan(stages=1, m=2, places=(np.array([F, F + 4, B, B + 4]),))
    >>> plan.order(), plan.num_ops
    ([['0F0', '0F1', '0B0', '0B1']], 8)
    """

    stages: int
    m: int
    places: tuple[np.ndarray, ...]

    @property
    def p(self) -> int:
        """The number of pipeline ranks."""
        return len(self.places)

    @property
    def share(self) -> float:
        """The fraction of a rank's layers in one stage, for one copy of the model."""
        return self.p / self.stages

    @property
    def num_ops(self) -> int:
        """The number of different op numbers."""
        return 4 * self.m * self.stages

    @cached_property
    def flat(self) -> np.ndarray:
        """The places of all ranks in sequence."""
        return np.concatenate(self.places)

    @cached_property
    def starts(self) -> np.ndarray:
        """The index in `flat` at which each rank starts, and the end: int64, shape (p + 1,)."""
        return np.concatenate(([0], np.cumsum([len(row) for row in self.places])))

    @cached_property
    def rank_of_place(self) -> np.ndarray:
        return np.repeat(np.arange(self.p, dtype=np.int32), np.diff(self.starts))

    @cached_property
    def first(self) -> np.ndarray:
        """The op of each place of `flat`; of a pair, the first one."""
        return (self.flat % self.num_ops).astype(np.int32)

    @cached_property
    def second(self) -> np.ndarray:
        """The second op of each place with a pair, -1 elsewhere."""
        return (self.flat // self.num_ops - 1).astype(np.int32)

    @cached_property
    def paired(self) -> np.ndarray:
        """The places with pairs."""
        return np.flatnonzero(self.second >= 0)

    @cached_property
    def ops(self) -> tuple[np.ndarray, np.ndarray]:
        """All ops in order, a pair as two, and the place of each."""
        place = np.arange(len(self.flat), dtype=np.int32)
        if not len(self.paired):
            return self.first, place
        ops = np.insert(self.first, self.paired + 1, self.second[self.paired])
        return ops, np.insert(place, self.paired + 1, self.paired)

    @cached_property
    def where(self) -> np.ndarray:
        """The place of each op, by number; -1 for an op that is not run."""
        ops, place = self.ops
        where = np.full(self.num_ops, -1, dtype=np.int32)
        where[ops] = place
        return where

    @cached_property
    def needed(self) -> np.ndarray:
        """The place of the op on another stage that each op waits for, by number; -1 for none."""
        where = self.where.reshape(self.stages, self.m, 4)
        needed = np.full_like(where, -1)
        for kind, inputs in WAITS.items():
            for other, away in inputs:
                if away:
                    stages, others = slice(-away, None), slice(away)
                    if away > 0:
                        stages, others = slice(-away), slice(away, None)
                    inputs_of_kind = needed[stages, :, kind]
                    np.maximum(inputs_of_kind, where[others, :, other], out=inputs_of_kind)
        return needed.ravel()

    def split(self, ops: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Kind, micro-batch and stage of ops, from their numbers."""
        rest = ops >> 2
        stage = rest // self.m
        return ops & 3, rest - stage * self.m, stage

    def order(self) -> list[list[str]]:
        """The ops of each rank as text."""
        return [[self.text(place) for place in row.tolist()] for row in self.places]

    def text(self, place: int) -> str:
        """The text of one place: an op or a pair."""
        second, first = divmod(place, self.num_ops)
        return self._op(first) if not second else f"{self._op(first)}&{self._op(second - 1)}"

    def _op(self, op: int) -> str:
        rest, kind = divmod(op, 4)
        stage, micro_batch = divmod(rest, self.m)
        return f"{stage}{KINDS[kind]}{micro_batch}"


@dataclass(frozen=True)
class Shape:
    """p ranks, m micro-batches, v chunks of the model on each rank, micro-batches in groups of n.

    Ops are numbers as in `plan`; stage and micro-batch may be numbers or arrays.

    >>> Shape(p=2, m=4, v=1, n=2).op(F, 1, 3)
    28
    """

    p: int
    m: int
    v: int
    n: int

    def op(self, kind, stage, micro_batch):  # type: ignore[no-untyped-def]
        return kind + 4 * (micro_batch + self.m * stage)

    def pair(self, first, second):  # type: ignore[no-untyped-def]
        """The place of two ops whose kernels overlap."""
        return first + (second + 1) * 4 * self.m * self.stages

    @property
    def stages(self) -> int:
        """The number of stages of the model."""
        return self.p * self.v

    @property
    def ranks(self) -> range:
        return range(self.p)

    @property
    def all(self) -> np.ndarray:
        """The micro-batches: int64, shape (m,)."""
        return np.arange(self.m)


def too_many_ops(count: int) -> LayoutError:
    """The refusal of a schedule that is too long to compute."""
    shown = count if count < 10**15 else quoted(count)
    return refusal("too-many-ops", "m", count=shown, limit=MOST_OPS)
