"""What kernels of their time cost: heads that tensor cores do not load whole."""

from __future__ import annotations

import pytest

from training.estimate import estimate
from training.model import Model

OLD = {
    "cluster": "dgx-a100",
    "gpus": 64,
    "tp": 4,
    "pp": 4,
    "global_batch": 64,
    "sequence": 2048,
    "recompute": "full",
    "flash": False,
    "sequence_parallel": False,
}


def gpt(heads: int) -> Model:
    return Model(layers=8, hidden=14400, heads=heads, vocabulary=50304, sequence=2048)


def test_heads_of_no_multiple_of_eight_are_slow_unless_one_kernel_fills_them_up():
    """Of 14,400 in 96 heads a row has 300 bytes; in 100 heads 288, which are 18 times 16."""
    even, odd = (estimate(gpt(heads), **OLD) for heads in (100, 96))
    assert odd.parts["compute"] > 1.2 * even.parts["compute"]
    fused = [estimate(gpt(heads), **{**OLD, "flash": True}) for heads in (100, 96)]
    assert fused[1].seconds == pytest.approx(fused[0].seconds, rel=0.02)
