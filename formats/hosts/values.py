"""What readers of machines share: machines from rows, and the refusals of lines and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from diagnosis.machines.hosts import Hosts, host_twice
from groups.errors import LayoutError, quoted
from groups.notes import Note

from ..errors import refusal

LONGEST_TEXT = 4_000_000
"""The longest text in characters: MAX_HOSTS lines of thirty."""

# -- refusals --------------------------------------------------------------------------------------


def bad_line(line: str, number: int, form: str, reason: LayoutError) -> LayoutError:
    """The refusal of a line that does not have the form of its text."""
    facts = {"because": reason.code, "reason": reason.what, **reason.facts}
    facts |= {"line": number, "value": quoted(line.strip()), "form": form}
    return refusal("bad-host-line", "hosts", why=reason.what, **facts)


def bad_document(reason: LayoutError) -> LayoutError:
    facts = {"because": reason.code, "reason": reason.what, **reason.facts}
    return refusal("bad-host-document", "hosts", **facts)


# -- machines from rows ----------------------------------------------------------------------------


def hosts_in_places(
    form: str,
    rows: Iterable[tuple[str, Mapping[str, str]]],
    *remarks: Note,
    slots: Mapping[str, int | None] = MappingProxyType({}),
) -> Hosts:
    """Machines with the places of each by kind; closest levels first.

    Errors: as `Hosts`; LayoutError for a machine that has two rows.
    """
    names: dict[str, None] = {}
    levels: dict[str, dict[str, str]] = {}
    for name, places in rows:
        if name in names:
            raise host_twice(name, "keep one entry for each host")
        names[name] = None
        for kind, place in places.items():
            levels.setdefault(kind, {})[name] = place
    ordered = {kind: levels[kind] for kind in sorted(levels, key=_distance)}
    return Hosts(form, tuple(names), levels=ordered, slots=slots, remarks=remarks)


def _distance(kind: str) -> tuple[int, str]:
    """The distance of a level from the machine: an NVLink domain, a rack, a switch, those above."""
    base, _, height = ("", "", "9") if kind == "cluster" else kind.partition("-")
    near = ("partition", "domain", "subblock", "rack", "block", "switch")
    far = 10 * int(height) if height else 0
    return (near.index(base) if base in near else len(near)) + far, kind


def upwards(kind: str, places: Iterable[str]) -> dict[str, str]:
    """The closest place and those above it.

    >>> upwards("switch", ["leaf", "spine"])
    {'switch': 'leaf', 'switch-1': 'spine'}
    """
    return {f"{kind}-{height}" if height else kind: place for height, place in enumerate(places)}
