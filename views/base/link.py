"""The whole state of the page as one text: an address, and what the page sends to be drawn.

In an address only what differs from the page's first state is written, by the names of `Controls`
and `Asked`:

>>> to_query(Controls(tp=4, ep=2), Asked(view="nodes"), "zh")
'v=2&tp=4&ep=2&show=nodes&lang=zh'
>>> from_query("v=2&tp=4&ep=2&show=nodes&lang=zh").controls.tp
4

A value that the page refuses is a state too, and comes back as it was typed; what is not such a
state at all (an unknown name, another version, a choice that there is not) is a bad link.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote

from descriptions import DP_KINDS, LANGUAGES, TYPES, VIEWS
from groups import LayoutError
from groups.conventions import CONVENTIONS
from groups.errors import quoted
from groups.job import OWN
from groups.presets import PRESETS

from .inputs import Asked, filled, flat
from .model import ModelAsked, with_model
from .state import Controls, as_text, language_of, typed

VERSION = "2"
FIRST_TYPE = "dp+tp+pp"
"""What a link of version 1 shows that names no type; one of version 2 follows the layout."""

SHORT = {"view": "show"}
"""Names in a link that differ from the field's: Gradio has a use of its own for ``view``."""

LONG = {short: name for name, short in SHORT.items()}

ALIASES = {
    "memory_schedule": ("schedule", ("memory", "traffic", "search", "compare")),
    "chunks": ("vpp", ("pipeline",)),
}
"""Names that links had for what is one field now; where both stand in a link, the old name counts
in the views that read it."""

OMITTED = ("paste", "run", "evidence", "digest", "hosts", "racks", "measures")
"""What a link does not hold: text that somebody pasted may be long, or not meant for others."""

LONGEST_QUERY = 8_000
LONGEST_VALUE = 2_000

CHOICES = {
    "group_type": set(TYPES),
    "framework": {*CONVENTIONS, OWN},
    "dp_kind": set(DP_KINDS),
    "preset": {*PRESETS, ""},
    "view": set(VIEWS),
    "lang": set(LANGUAGES),
}
CHECKED = ("hybrid", "account")
NUMBERS = ("nodes", "tp", "pp", "cp", "ep", "instances")


@dataclass(frozen=True)
class Linked:
    """What the page shows; no language if a link leaves that to the reader's browser."""

    controls: Controls
    asked: Asked
    language: str | None

    @property
    def known(self) -> Controls:
        """The controls with the layers and experts of the model that is chosen."""
        return with_model(self.controls, self.asked.memory)

    def query(self, controls: Controls, changes: Mapping[str, Any]) -> str:
        """The address of the same page with other controls, and with some inputs changed."""
        return to_query(controls, filled(self.asked, changes), self.language or "en")


# -- an address ----------------------------------------------------------------------------------


def to_query(controls: Controls, asked: Asked, language: str) -> str:
    """The state as a query; empty for the page as it starts. What is too long is left out."""
    parts = []
    starts = _starts()
    for name, value in (*flat(controls), *flat(asked)):
        text = value if isinstance(value, str) else as_text(value)
        if text != starts[name] and name not in OMITTED and len(text) <= LONGEST_VALUE:
            parts.append((SHORT.get(name, name), text))
    if language != "en":
        parts.append(("lang", language))
    if not parts:
        return ""
    # Half of a surrogate pair, which a program may send, is no text that an address can hold.
    query = "&".join(
        f"{name}={quote(text, safe=':,|*()', errors='replace')}" for name, text in parts
    )
    return f"v={VERSION}&{query}" if len(query) <= LONGEST_QUERY else ""


@cache
def _starts() -> dict[str, str]:
    """The text of every field as the page starts."""
    return {name: as_text(value) for name, value in (*flat(Controls()), *flat(Asked()))}


MODEL_FIELDS = (
    *vars(ModelAsked()),
    *("precision", "zero", "recompute", "sequence_parallel", "spread"),
)
"""Fields of the model and its training, which a published layout says too."""


def from_query(query: object) -> Linked:
    """The state that a query is about.

    Errors: LayoutError with the code bad-link, which names the part that is wrong.
    """
    text = query.removeprefix("?") if isinstance(query, str) else None
    if text is None or len(text) > 3 * LONGEST_QUERY:
        raise _bad(query)
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=128
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
    version = given.pop("v", None) if given else VERSION
    if version == "1":
        given.setdefault("group_type", FIRST_TYPE)
    elif version != VERSION:
        raise _bad(text)
    given = {LONG.get(name, name): value for name, value in given.items()}
    for old, (name, views) in ALIASES.items():
        value = given.pop(old, None)
        if value is not None and (name not in given or given.get("view") in views):
            given[name] = value
    language = given.pop("lang", None)
    if language is not None and language not in LANGUAGES:
        raise _bad(f"lang={language}")
    known = {*_starts()} - set(OMITTED)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise _bad(unknown[0])
    values = {name: _value(name, text) for name, text in given.items()}
    return Linked(filled(Controls(), values), filled(Asked(), values), language)


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


def names_of(value: str | list[Any]) -> tuple[Any, ...]:
    """Names of groups: a list, or a text with commas or spaces between them.

    >>> names_of("embd, tp-ep-pp")
    ('embd', 'tp-ep-pp')
    """
    return tuple(value.replace(",", " ").split() if isinstance(value, str) else value)


def fields_of_links() -> list[tuple[str, str, str, bool]]:
    """Of each field: its name, its name in links (empty: in none), its start, whether it is of
    the job, which a published layout says whole."""
    of_job = {*vars(Controls()), *MODEL_FIELDS} - {"more", "dp_kind"}
    return [
        (name, "" if name in OMITTED else SHORT.get(name, name), start, name in of_job)
        for name, start in _starts().items()
    ]


def aliases_of_links() -> list[tuple[str, str, list[str]]]:
    """Of each old name: that of its field now, and the views in which it counts before that."""
    return [(old, name, list(views)) for old, (name, views) in ALIASES.items()]


def _bad(part: object) -> LayoutError:
    return LayoutError(
        "bad-link",
        f"the link holds {quoted(part)}, which this page cannot read",
        control="link",
        facts={"value": quoted(part)},
    )


# -- what the page sends -------------------------------------------------------------------------


def to_sent(controls: Controls, asked: Asked, language: str) -> str:
    """The state as the page holds it between two drawings.

    >>> from_sent(to_sent(Controls(tp=4), Asked(), "zh")).controls == Controls(tp=4)
    True
    """
    return json.dumps({**dict(flat(controls)), **dict(flat(asked)), "lang": language})


def from_sent(sent: object) -> Linked:
    """The state that a page sent; a name it lacks is as at the start, and other names are ignored.

    Any value may arrive here: whether it makes sense is asked where it is used.
    """
    values = parsed(sent)
    for name in CHECKED:
        if name in values:
            values[name] = values[name] in (True, "1")
    for name in NUMBERS:
        if name in values:
            values[name] = typed(values[name])
    if isinstance(values.get("more"), (list, str)):
        values["more"] = names_of(values["more"])
    language = language_of(values.get("lang"))
    return Linked(filled(Controls(), values), filled(Asked(), values), language)


def link_of(sent: object) -> str | None:
    """The link that a page has just opened, whole, to be checked; None if it opened none."""
    link = parsed(sent).get("link")
    return link if isinstance(link, str) and link else None


def parsed(sent: object) -> dict[str, Any]:
    try:
        values = json.loads(sent) if isinstance(sent, str) else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
