"""Kinds of process group: what one such group carries, when, and over which links."""

from __future__ import annotations

import re

from .shapes import Kind, catalogue

KINDS: dict[str, Kind] = {
    name: Kind(title, name.upper(), body, lead[0] if lead else None)
    for name, (title, *lead, body) in catalogue("kinds")["KINDS"].items()
}
"""By the name of the group; of numbered ones (hcp-l0, hybrid-dp-cp-2) by the family's name."""

NUMBERED = re.compile(r"(hcp)-l\d+|(hybrid-dp-cp)-\d+", re.ASCII)


def kind_of(name: str) -> Kind:
    """The kind of a group by its own name, which may carry a number.

    >>> kind_of("dp-cp").short, kind_of("hcp-l1").short, kind_of("hybrid-dp-cp-4").short
    ('DP-CP', 'HCP', 'HYBRID-DP-CP')

    Errors: KeyError for a name that no kind has.
    """
    numbered = NUMBERED.fullmatch(name)
    return KINDS[numbered[1] or numbered[2] if numbered else name]
