"""The whole state of the page as an address, and back.

Only what differs from the page's first state is written, by the names of `Controls` and `Asked`:

>>> to_query(Controls(tp=4, ep=2), Asked(view="nodes"), "zh")
'v=1&tp=4&ep=2&show=nodes&lang=zh'
>>> from_query("v=1&tp=4&ep=2&show=nodes&lang=zh").controls.tp
4

A value that the page refuses is a state too, and comes back as it was typed; what is not such a
state at all (an unknown name, another version, a choice that there is not) is a bad link.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl, quote

from descriptions import DP_KINDS, LANGUAGES, TYPES, VIEWS
from groups import LayoutError
from groups.conventions import CONVENTIONS
from groups.errors import quoted
from groups.job import OWN

from .state import Asked, Controls, typed

VERSION = "1"

SHORT = {"view": "show"}
"""Names in a link that differ from the field's: Gradio has a use of its own for ``view``."""

LONG = {short: name for name, short in SHORT.items()}

OMITTED = ("paste",)
"""What a link does not hold: text that somebody pasted may be long, or not meant for others."""

LONGEST_QUERY = 8_000
LONGEST_VALUE = 2_000

CHOICES = {
    "group_type": set(TYPES),
    "framework": {*CONVENTIONS, OWN},
    "dp_kind": set(DP_KINDS),
    "view": set(VIEWS),
    "lang": set(LANGUAGES),
}
CHECKED = ("hybrid", "account")
NUMBERS = ("nodes", "tp", "pp", "cp", "ep", "instances")


@dataclass(frozen=True)
class Linked:
    """What a link shows; no language if it leaves that to the reader's browser."""

    controls: Controls
    asked: Asked
    language: str | None


def to_query(controls: Controls, asked: Asked, language: str) -> str:
    """The state as a query; empty for the page as it starts. What is too long is left out."""
    parts = []
    for state, start in ((controls, Controls()), (asked, Asked())):
        for field in fields(start):
            text = _text(getattr(state, field.name))
            is_new = text != _text(getattr(start, field.name))
            if is_new and field.name not in OMITTED and len(text) <= LONGEST_VALUE:
                parts.append((SHORT.get(field.name, field.name), text))
    if language != "en":
        parts.append(("lang", language))
    if not parts:
        return ""
    # Half of a surrogate pair, which a program may send, is no text that an address can hold.
    query = "&".join(
        f"{name}={quote(text, safe=':,|*()', errors='replace')}" for name, text in parts
    )
    return f"v={VERSION}&{query}" if len(query) <= LONGEST_QUERY else ""


def from_query(query: object) -> Linked:
    """The state that a query is about.

    Errors: LayoutError with the code bad-link, which names the part that is wrong.
    """
    text = query.removeprefix("?") if isinstance(query, str) else None
    if text is None or len(text) > 3 * LONGEST_QUERY:
        raise _bad(query)
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=64
        )
    except ValueError:
        raise _bad(text) from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name.startswith("__"):  # Gradio's own, such as its theme
            continue
        if name in given or name in SHORT:
            raise _bad(f"{name}={value}")
        given[name] = value
    if given and given.pop("v", None) != VERSION:
        raise _bad(text)
    given = {LONG.get(name, name): value for name, value in given.items()}
    language = given.pop("lang", None)
    if language is not None and language not in LANGUAGES:
        raise _bad(f"lang={language}")
    states = []
    for start in (Controls(), Asked()):
        known = (field.name for field in fields(start) if field.name not in OMITTED)
        names = [name for name in known if name in given]
        states.append(replace(start, **{name: _value(name, given.pop(name)) for name in names}))
    if given:
        raise _bad(next(iter(given)))
    return Linked(states[0], states[1], language)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    try:
        return "" if value is None else str(value)
    except ValueError:  # a number of more digits than Python writes
        return quoted(value)


def _value(name: str, text: str) -> Any:
    if len(text) > LONGEST_VALUE or (name in CHOICES and text not in CHOICES[name]):
        raise _bad(f"{SHORT.get(name, name)}={text}")
    if name in CHECKED:
        if text not in ("0", "1"):
            raise _bad(f"{name}={text}")
        return text == "1"
    if name == "more":
        return tuple(part for part in text.split(",") if part)
    return typed(text) if name in NUMBERS else text


def _bad(part: object) -> LayoutError:
    return LayoutError(
        "bad-link",
        f"the link holds {quoted(part)}, which this page cannot read",
        control="link",
        facts={"value": quoted(part)},
    )
