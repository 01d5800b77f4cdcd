"""Where ranks stand: those outside of the collective in which the others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .model import Standing


def outside(stacks: Sequence[Standing]) -> tuple[int, ...]:
    """Ranks that are in no collective, if at least as many others are in one."""
    out = tuple(one.rank for one in stacks if not one.op)
    return out if out and len(stacks) - len(out) >= len(out) else ()


def common_op(stacks: Sequence[Standing]) -> str:
    """The collective that most ranks are in."""
    ops = Counter(one.op for one in stacks if one.op)
    return ops.most_common(1)[0][0] if ops else ""
