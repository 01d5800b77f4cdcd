"""Values from outside, or for outside, by name; only their reader knows the types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Any]
"""Options of a launch, sizes of a layout, the fields of an answer: read-only."""

Document = dict[str, Any]
"""The same, mutable; an object of JSON."""
