"""States in host memory: which ones leave the GPU, and the bytes transferred in a step.

Of P parameters that a rank updates (its share under ZeRO), with w, g and K bytes for the weight,
the gradient and the optimizer's state of each, and m micro-batches:

    optimizer    K P, with ZeRO-2 and 3 also g P, are the host's, whose CPUs update (ZeRO-Offload,
                 arXiv:2101.06840; Megatron's --optimizer-cpu-offload keeps the gradients)
    parameters   w P too: a layer's weights come up when they are used (ZeRO-3; ZeRO-Infinity,
                 arXiv:2104.07857)
    chunks       gradients take the place of weights, so w P + K P in chunks, of which the GPU holds
                 as many as it has room for, weights before the optimizer's state (PatrickStar,
                 arXiv:2108.05818: 14 bytes a parameter)

    down    g P, with ZeRO-2 and 3 after every micro-batch
    up      w P after the update; before, what was summed of the gradients, g P (m - 1), which the
            GPU adds to (DeepSpeed edaa722, stage_1_and_2.py, async_accumulate_grad_in_cpu_via_gpu)
    weights of the host come up in each forward and backward, and again to be recomputed: 2 or 3
            times w P m, and not after the update

In 16 bits and with one micro-batch that is ZeRO-Offload's 4 bytes a parameter, and ZeRO-Infinity's
8 with recomputation.

>>> moved(("optimizer", 2), {"weights": 2.0, "gradients": 2.0, "optimizer": 12.0})
{'gradients': 2.0, 'optimizer': 12.0}
>>> moved(("chunks", 3), {"weights": 2.0, "gradients": 2.0, "optimizer": 12.0}, room=5)
{'optimizer': 9.0}
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..recipe import Precision, Training

UPDATE = 0.19e-9
"""Seconds in which the CPUs of a node update one parameter with Adam: 15.3 billion in 2.9 s, with
transfers overlapped (Megatron-Bridge 067f987 skills/nemo-mbridge-perf-cpu-offloading/card.yaml,
Qwen3-30B-A3B on two nodes of H100)."""

REACHED = 0.88
"""Share of the link's bandwidth that copies reach (stas00/ml-engineering 744d01e
network/README.md: 55.4 of 63 GB/s on 8 x H200)."""

Number = float
"""A float, or an array of floats: the search evaluates the same formulas on arrays."""


def leaves(offload: str, zero: int) -> tuple[str, ...]:
    """The model states that need not be in GPU memory.

    >>> leaves("optimizer", 2), leaves("parameters", 3), leaves("none", 3)
    (('gradients', 'optimizer'), ('weights', 'gradients', 'optimizer'), ())
    """
    if offload == "none":
        return ()
    weights = ("weights",) if offload in ("parameters", "chunks") else ()
    return (*weights, *(("gradients",) if zero >= 2 else ()), "optimizer")


def moved(
    how: tuple[str, int], states: dict[str, float], room: float = math.inf
) -> dict[str, float]:
    """Bytes of a rank's states in host memory, by state. room: bytes of GPU memory for chunks."""
    if how[0] != "chunks":
        return {name: states[name] for name in leaves(*how)}
    above = max(0.0, states["weights"] + states["optimizer"] - max(0.0, room))
    optimizer = min(above, states["optimizer"])
    sizes = {"weights": above - optimizer, "optimizer": optimizer}
    return {name: size for name, size in sizes.items() if size}


@dataclass(frozen=True)
class Crossing:
    """Bytes that one rank sends to its host and receives from it in a step.

    ``during``: bytes while micro-batches run, which their computation may hide; ``after``: bytes
    around the update. ``updated``: number of parameters that the host updates.
    """

    down_during: Number
    up_during: Number
    down_after: Number
    up_after: Number
    updated: Number

    @property
    def down(self) -> Number:
        return self.down_during + self.down_after

    @property
    def up(self) -> Number:
        return self.up_during + self.up_after

    def seconds(self, link: float) -> tuple[Number, Number]:
        """Seconds during the micro-batches and after them; both directions run at once, each at
        ``link`` bytes per second."""
        down, up = self.down_during, self.up_during
        longer = (down + up + abs(down - up)) / 2.0
        return longer / (link * REACHED), (self.down_after + self.up_after) / (link * REACHED)


def crossing(
    training: Training,
    precision: Precision,
    parameters: Number,
    on_host: tuple[Number, Number],
    times: tuple[Number, Number],
) -> Crossing:
    """The bytes transferred for ``parameters`` parameters.

    on_host: the shares of the optimizer's state and of the weights in host memory; times: the
    number of micro-batches, and the passes of each over the weights (Training.weight_passes).

    >>> from training.recipe import PRECISIONS, Training
    >>> how = Training(zero=2, precision="fp16-fp16", offload="optimizer")
    >>> bytes_moved = crossing(how, PRECISIONS["fp16-fp16"], 10e9, (1, 0), (1, 2))
    >>> bytes_moved.down / 1e9, bytes_moved.up / 1e9  # ZeRO-Offload: 4 bytes a parameter
    (20.0, 20.0)
    """
    (optimizer, weights), (m, passes) = on_host, times
    updated = parameters * optimizer
    gradient = precision.weight if training.offload == "chunks" else precision.gradient
    sums = gradient * updated
    each_time = training.zero >= 2
    loads = passes * m * precision.weight * parameters * weights
    return Crossing(
        down_during=m * sums if each_time else 0.0,
        up_during=(m - 1) * sums * each_time + loads,
        down_after=0.0 if each_time else sums,
        up_after=precision.weight * parameters * (optimizer - weights),
        updated=updated,
    )
