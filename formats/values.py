"""What comes from outside, or goes there: values by name, of which only their reader knows the
types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Any]
"""Options of a launch, sizes of a layout, the fields of an answer: to be read."""

Document = dict[str, Any]
"""The same, to be made or changed; an object of JSON."""
