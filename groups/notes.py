"""What a reader says beside its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Note:
    """Something that the reader must know: a stable code, and the facts of its sentence."""

    code: str
    facts: Mapping[str, object] = field(default_factory=dict)
