# ruff: noqa: RUF001
"""The sentences about hangs: what a log shows, where the waiting begins, what cannot be told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .shapes import words

HANG = words("hang", "HANG")
"""By the code of a `Note` of `formats.logs.account`."""

HANG_NOTES = words("hang", "HANG_NOTES")
"""By the code of a note of a log: what the reader must know."""

OPERATION = words("run", "RUN")["operation"]
"""What an operation is called that no line names."""

SEMICOLON = words("page", "PAGE")["semicolon"]


def hang_sentence(code: str, facts: Mapping[str, Any], language: str) -> str:
    """The sentence of a note, with its facts.

    >>> facts = {"rank": 37, "host": "gpu-04", "device": 5, "op": "all_reduce", "seq": 4812,
    ...          "kind": "tp"}
    >>> hang_sentence("never-entered", facts, "en")
    'GPU 37 (host gpu-04, device 5) never entered all_reduce 4,812 of its tp group.'
    >>> hang_sentence("never-entered", {"rank": 37, "op": "", "seq": 4812, "kind": "tp"}, "en")
    'GPU 37 never entered operation 4,812 of its tp group.'
    >>> hang_sentence("waits-here", {"count": 7}, "zh")
    '另有 7 个 GPU 在那里等待。'

    Errors: KeyError for a code without a sentence.
    """
    text = HANG[code] if code in HANG else HANG_NOTES[code]
    told = {name: _told(value, language) for name, value in facts.items()}
    told["op"] = told.get("op") or OPERATION[language]
    return close_up(text[language].format(**{"place": _place(facts, language), **told}))


def close_up(text: str) -> str:
    """Chinese words in place of a Latin one stand without spaces.

    >>> close_up("第 7 次 操作 时"), close_up("第 7 次 all_reduce 时")
    ('第 7 次操作时', '第 7 次 all_reduce 时')
    """
    return re.sub(" ?操作 ?", "操作", text).replace("） ", "）")


def _place(facts: Mapping[str, Any], language: str) -> str:
    known = [name for name in ("host", "node", "device") if facts.get(name) is not None]
    if "host" in known:
        known = [name for name in known if name != "node"]
    code = "place-" + "-".join(known) if known != ["node", "device"] else "place-node"
    return HANG[code][language].format(**facts) if known else ""


def _told(value: Any, language: str) -> str:
    """Numbers with commas, lists of ranks in one line, parties with who called what."""
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, tuple):
        return str(value)
    if any(isinstance(item, tuple) for item in value):
        parties = (f"{_told(ranks, language)} {op} {sizes}" for ranks, op, sizes in value)
        return SEMICOLON[language].join(parties)
    listed = ", ".join(str(item) for item in value[:16])
    return listed + (f" … ({len(value):,})" if len(value) > 16 else "")
