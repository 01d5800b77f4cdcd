"""The refusals of this room: the sentences of refusals.toml, beside those of groups."""

from __future__ import annotations

from pathlib import Path

from groups.errors import refusals

refusal = refusals(Path(__file__).with_name("refusals.toml"))
