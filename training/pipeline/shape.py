"""The sizes of a pipeline, and its ops as numbers: what every schedule is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .plan import F  # noqa: F401 - of the example


@dataclass(frozen=True)
class Shape:
    """p ranks, m micro-batches, v chunks of the model on each rank, micro-batches in groups of n.

    Ops are numbers as in `plan`; stage and micro-batch may be numbers or arrays.

    >>> Shape(p=2, m=4, v=1, n=2, stages=2).op(F, 1, 3)
    28
    """

    p: int
    m: int
    v: int
    n: int
    stages: int

    def op(self, kind, stage, micro_batch):  # type: ignore[no-untyped-def]
        return kind + 4 * (micro_batch + self.m * stage)

    def pair(self, first, second):  # type: ignore[no-untyped-def]
        """Two ops whose kernels overlap, in one place of the order."""
        return first + (second + 1) * 4 * self.m * self.stages

    @property
    def ranks(self) -> range:
        return range(self.p)

    @property
    def all(self) -> np.ndarray:
        """The micro-batches: int64, shape (m,)."""
        return np.arange(self.m)
