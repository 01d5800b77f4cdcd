"""Types of groups, the choices of the dropdown, with pages to read; and kinds of groups."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .shapes import GroupType, Kind, Link, words

LINKS: Mapping[str, Link] = words("types", "LINKS", Link)
TYPES: Mapping[str, GroupType] = words("types", "TYPES", GroupType)
KINDS: Mapping[str, Kind] = words("kinds", "KINDS", Kind)
"""Kinds by the name of the group; numbered ones (hcp-l0, hybrid-dp-cp-2) by the family's name."""

NUMBERED = re.compile(r"(hcp)-l\d+|(hybrid-dp-cp)-\d+", re.ASCII)


def kind_of(name: str) -> Kind:
    """The kind of a group by its own name, which may have a number: hcp-l1 is an hcp. Errors:
    KeyError."""
    numbered = NUMBERED.fullmatch(name)
    return KINDS[numbered[1] or numbered[2] if numbered else name]
