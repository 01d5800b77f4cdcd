"""What an optimizer's step allocates beside what is held between two steps.

    Adam, foreach      the square root of all second moments at once: as many bytes as these have
    SGD, foreach       a copy of all gradients, to which weight decay is added
    Adam, fused        nothing: each element is read, updated and written by one kernel
    Muon               of one matrix of r x c at a time, r <= c: its update in 32 bits, and in 16
                       the iterate, the next one and two products of r x r (Newton-Schulz)

Sources: torch 2.13.0 torch/optim/adam.py:762 and 790, sgd.py:429, _muon.py:55-66 and 334, which is
which optimizer.py:161-186 (foreach wherever tensors lie on GPUs and fused is not asked for).
torchtitan asks for fused (b5bcd76 torchtitan/components/optimizer.py), Megatron and DeepSpeed have
fused kernels of their own. What Lion's and 8-bit Adam's many implementations allocate is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..model import Model
from ..recipe import Training
from ..sharding.units import parameters_of
from ..split import Split

TORCH = ("ddp", "fsdp2")
"""Engines whose optimizer is torch's own."""


class OptimizerStep(NamedTuple):
    """Bytes that an optimizer's step allocates, and why: "foreach", "foreach_sgd", "fused",
    "matrix" or "unknown", which has None."""

    why: str
    bytes: float | None


def optimizer_step(
    model: Model, split: Split, training: Training, parts: Mapping[str, float]
) -> OptimizerStep:
    """What the step of a rank allocates that holds these parts, in bytes.

    >>> from training.models import MODELS
    >>> llama, split = MODELS["llama3-8b"].model, Split(dp=8)
    >>> optimizer_step(llama, split, Training(engine="fsdp2", zero=3), {"optimizer": 800.0})
    OptimizerStep(why='foreach', bytes=400.0)
    >>> optimizer_step(llama, split, Training(optimizer="muon"), {}).bytes / 2**20
    512.0
    """
    held = parts.get("optimizer", 0.0)
    if training.optimizer == "muon":
        return OptimizerStep("matrix", max(map(_newton_schulz, _matrices(model, split.tp))))
    if training.optimizer not in ("adam", "sgd"):
        return OptimizerStep("unknown", None)
    if training.engine not in TORCH or training.units == "torchtitan":
        return OptimizerStep("fused", 0.0)
    if training.optimizer == "sgd":
        return OptimizerStep("foreach_sgd", held)
    return OptimizerStep("foreach", held / 2)


def _matrices(model: Model, tp: int) -> set[tuple[int, int]]:
    """The shapes of the matrices of layers as tensor parallelism leaves them."""
    found = set()
    for kind in set(model.numbers):
        for each in parameters_of(model, model.numbers.index(kind)):
            shape = list(each.shape)
            if each.axis is not None:
                shape[each.axis] = -(-shape[each.axis] // tp)
            if len(shape) > 1:
                found.add((shape[-2], shape[-1]))
    return found


def _newton_schulz(shape: tuple[int, int]) -> float:
    """Bytes while one matrix is made orthogonal.

    >>> _newton_schulz((4096, 14336)) == 8 * 4096 * 14336 + 4 * 4096**2
    True
    """
    rows, columns = sorted(shape)
    return 8.0 * rows * columns + 4.0 * rows * rows
