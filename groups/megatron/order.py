"""The order of Megatron's axes, as text: read, completed with the axes left out, or mended.

An order joins names by dashes, fastest first. It may leave out an axis whose size is 1. Refusals
quote NVIDIA/Megatron-LM, megatron/core/parallel_state.py, RankGenerator.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import LayoutError, quoted, refusal
from ..mesh import split_names

ORDER = "tp-cp-ep-dp-pp"
"""Megatron's default order, fastest first; --use-tp-pp-dp-mapping makes it tp-cp-ep-pp-dp."""

APPENDED = ("tp", "pp", "dp", "ep", "cp")
"""Axes that an order may leave out if their size is 1, in the order in which they are appended."""

GTP = "gtp_remat"
"""The axis over which weights are gathered before use: after tp in the dense, after ep in the
expert grid, unless the order names it. There only if a size of it is above 1."""


def completed(order: str, sizes: Mapping[str, int]) -> list[str]:
    """All axes: those of the order, then the left-out ones, which must have size 1."""
    try:
        names = split_names(order, "order")
    except LayoutError as error:
        larger = [name for name in APPENDED if sizes.get(name, 1) > 1]
        unnamed = _not_specified(larger[0], sizes[larger[0]], "") if larger else ""
        quote = _key_error(order) if order else unnamed  # of an order that is empty
        raise error.replace(alternatives=[{"order": mended(order)}], quote=quote) from None
    for name in names:
        if name not in (*APPENDED, GTP):
            axes = ", ".join(APPENDED)
            sentence = f"{name} is not an axis of Megatron's: an order joins {axes}"
            said = {"sentence": sentence, "quote": f"KeyError: '{name}'"}
            facts = {"value": quoted(name), "mesh": "-".join(APPENDED)}
            raise refusal("unknown-axis", "order", {"order": mended(order)}, **said, **facts)
    for name in APPENDED:
        size = max(sizes["tp"], sizes["etp"]) if name == "tp" else sizes.get(name, 1)
        if name not in names and size > 1:
            raise left_out(name, size, order)
    return names + [name for name in APPENDED if name not in names]


def left_out(name: str, size: int, order: str) -> LayoutError:
    """An axis of more than one coordinate that the order does not name."""
    quote, fix = _not_specified(name, size, order), {"order": mended(order)}
    return refusal("axis-not-in-order", "order", fix, quote=quote, axis=name, order=quoted(order))


def _not_specified(name: str, size: int, order: str) -> str:
    return (
        f"The size of ({name}) is ({quoted(size)}), but you haven'tspecified the order ({order})."
    )


def mended(order: object) -> str:
    """The nearest order that names every axis once: what it says, then what it leaves out.

    pp goes last, where both grids always agree on the pipelines.

    >>> mended("dp-tp"), mended("TP tp-xx-pp-ep"), mended(3)
    ('dp-tp-cp-ep-pp', 'tp-ep-cp-dp-pp', 'tp-cp-ep-dp-pp')
    """
    text = order.lower() if isinstance(order, str) else ""
    said = "".join(c if c.isalpha() else " " for c in text[:200]).split()
    names = [name for name in dict.fromkeys(said) if name in APPENDED]
    names += [name for name in ORDER.split("-") if name not in names]
    return "-".join([*(name for name in names if name != "pp"), "pp"])


def _key_error(order: object) -> str:
    """What Megatron says of an order that is not names joined by dashes."""
    if not isinstance(order, str) or not order:
        return ""
    names = order.lower().split("-")
    strange = [name for name in names if name not in (*APPENDED, GTP)]
    return f"KeyError: '{strange[0]}'" if strange and len(strange[0]) <= 40 else ""


def with_gtp(names: list[str], sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The order of the dense and of the expert grid: with gtp_remat in its place, if it is used."""
    if sizes["gtp"] == sizes["egtp"] == 1:
        unused = [name for name in names if name != GTP]
        return unused, unused
    if GTP in names:
        return names, names

    def after(axis: str) -> list[str]:
        at = names.index(axis) + 1
        return [*names[:at], GTP, *names[at:]]

    return after("tp"), after("ep")
