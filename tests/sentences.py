"""Every text of the page, wherever it stands, with a readable path to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import descriptions
from descriptions import Text

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def texts_in(value: object, where: str) -> Iterator[tuple[str, Text]]:
    """Every Text reachable from `value`, with a readable path to it."""
    if isinstance(value, Text):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_in(item, f"{where}[{key}]")
    elif isinstance(value, tuple):
        named = getattr(value, "_fields", None)
        for index, item in enumerate(value):
            yield from texts_in(item, f"{where}.{named[index]}" if named else f"{where}[{index}]")


ROOTS = ("TYPES", "KINDS", "HOW_TO_READ")
TEXTS = {where: text for r in ROOTS for where, text in texts_in(getattr(descriptions, r), r)}
BODIES = {where: text for where, text in TEXTS.items() if ".title" not in where}


KINDS_OF_TYPE = {
    "auto": (),
    "dp": ("dp",),
    "tp": ("tp",),
    "pp": ("pp",),
    "cp": ("cp",),
    "dp+tp": ("dp", "tp"),
    "dp+pp": ("dp", "pp"),
    "dp+tp+pp": ("dp", "tp", "pp"),
    "cp+dp": ("cp", "dp"),
    "cp+dp+tp": ("cp", "dp", "tp"),
    "cp+dp+pp": ("cp", "dp", "pp"),
    "cp+dp+tp+pp": ("cp", "dp", "tp", "pp"),
    "cp+tp": ("cp", "tp"),
    "cp+pp": ("cp", "pp"),
    "cp+tp+pp": ("cp", "tp", "pp"),
    "ep": ("ep",),
    "ep+edp": ("ep", "etp", "edp"),
    "moe": ("tp", "cp", "dp", "pp", "etp", "ep", "edp"),
    "model": ("mp", "embd", "pos-embd"),
    "framework": (),
    "chosen": (),
}
