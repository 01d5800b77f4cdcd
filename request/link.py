"""The state of the page as one text: a link, and the requests of the page.

In an address only what differs from the page's first state is written, by the names of
`inputs.FIELDS`:

>>> to_query(State(tp=4, ep=2, view="nodes", lang="zh"))
'v=2&tp=4&ep=2&show=nodes&lang=zh'
>>> from_query("v=2&tp=4&ep=2&show=nodes&lang=zh").tp
'4'

A link without a version was typed by a person, in the names of today. A published layout that it
names is opened with what the link says besides; so is one that a link of the page's names and says
nothing else of: the page writes what the layout is made of.

>>> typed = from_query("preset=deepseek-v3&pp=8")
>>> typed.ep, typed.pp, from_query("v=2&preset=deepseek-v3").pp
('64', '8', '16')

A value that the page refuses is a state too, and comes back as it was typed; what is not such a
state at all (an unknown name, another version, a choice that there is not) is a bad link. The page
itself opens one whose names have changed or are mistyped as far as there is what it names:

>>> state, unknown = as_far_as_known("preset=llama3-405b&show=memory")
>>> state.view, str(unknown[0]).split("; try ")[1]
('memory', 'preset llama3-405b-1, preset llama3-405b-2 or preset llama3-405b-3')
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from urllib.parse import parse_qsl, quote

from groups import LayoutError
from groups.errors import nearest_names, quoted
from groups.presets import PUBLISHED
from training.clusters import machine_id

from .errors import refusal
from .inputs import FIELDS, STARTS
from .roles.opened import is_plan, preset_state
from .state import State, language_of
from .trained import published
from .version_1 import as_version_2

VERSION = "2"
LONG = {field.link: name for name, field in FIELDS.items() if field.link}
"""The field of each name in links."""

SAFE = ":,|*();@="
"""Punctuation that the values of a link keep unescaped."""

LONGEST_QUERY = 8_000
LONGEST_VALUE = 2_000


# -- an address ----------------------------------------------------------------------------------


def to_query(state: State) -> str:
    """The state as a query; empty for the initial state. Values that are too long are left out."""
    parts = {}
    kept = ("view",) if state.roles else ()  # a link with roles shows them where it says no view
    changed = {
        name: text for name, text in vars(state).items() if text != STARTS[name] or name in kept
    }
    for name, text in changed.items():
        if FIELDS[name].link and (name, text) != ("lang", "en") and len(text) <= LONGEST_VALUE:
            # Half of a surrogate pair, which a program may send, is no text of an address.
            is_plain = text.isascii() and text.isalnum()
            quoted_text = text if is_plain else quote(text, safe=SAFE, errors="replace")
            parts[name] = f"{FIELDS[name].link}={quoted_text}"
    if "preset" in parts and not _has_layout(parts):  # a name alone opens all that it names
        parts = {"nodes": f"nodes={STARTS['nodes']}", **parts}
    query = "&".join(parts.values())
    return f"v={VERSION}&{query}" if 0 < len(query) <= LONGEST_QUERY else ""


def short_query(state: State) -> str:
    """The shortest query for the state: a published layout's name, and what differs from it.

    >>> short_query(State(**published("llama3-405b-1") | {"preset": "llama3-405b-1", "zero": 1}))
    'preset=llama3-405b-1&zero=1'
    >>> short_query(State(tp=4))
    'v=2&tp=4'
    """
    whole, name = to_query(state), state.preset
    if not whole or name not in PUBLISHED:
        return whole
    starts = {**STARTS, **published(name)}
    others = {field: text for field, text in state_texts(state).items() if text != starts[field]}
    parts = [f"preset={name}"]
    for field, text in others.items():
        if field != "preset" and len(text) <= LONGEST_VALUE:
            parts.append(f"{FIELDS[field].link}={quote(text, safe=SAFE, errors='replace')}")
    short = "&".join(parts)
    opens_same = len(short) < len(whole) and state_texts(from_query(short)) == state_texts(state)
    return short if opens_same else whole


def from_query(query: object) -> State:
    """The state of a query. Errors: bad-link, which names the faulty part."""
    return _state(_parts(query))


NAMES: dict[str, Collection[str]] = {
    **{field.link: names for field in FIELDS.values() if (names := field.row.closed)},
    **{name: ("", *FIELDS[name].choices) for name in ("model", "cluster")},
}
"""The names that a field of a link may have, by field."""


def as_far_as_known(query: object) -> tuple[State, list[LayoutError]]:
    """The state of a query without its unknown names, and a refusal for each of those with the
    nearest known names. Errors: bad-link."""
    parts = _parts(query)
    unknown = {
        link: text
        for link, text in parts.items()
        if link in NAMES and len(text) <= LONGEST_VALUE and not _is_known(link, text)
    }
    known = {link: text for link, text in parts.items() if link not in unknown}
    refused = []
    for link, text in unknown.items():
        name = LONG[link]
        # Beside a layout the name of a published one opens nothing.
        named = (LONG.get(other) for other in known if "v" in known)
        opens = name != "preset" or not _has_layout(filter(None, named))
        near = nearest_names(text, NAMES[link]) if opens else []
        fixes = ({name: choice} for choice in near)
        refused.append(refusal("unknown-name", name, *fixes, control=name, value=quoted(text)))
    return _state(known), refused


MOST_FIELDS = 256
"""Parts of a query: more than there are fields."""


def _is_known(link: str, text: str) -> bool:
    """Whether a field of a link may have this name; a machine goes by several."""
    return text.lower() in NAMES[link] or (link == "cluster" and machine_id(text) in NAMES[link])


def with_name(query: str, link: str, text: str) -> str:
    """The query with another value of one field.

    >>> with_name("preset=llama3-405b&pp=8", "preset", "llama3-405b-1")
    'preset=llama3-405b-1&pp=8'
    """
    parts = {**_parts(query), link: text}
    return "&".join(f"{name}={quote(value, safe=SAFE)}" for name, value in parts.items())


def _parts(query: object) -> dict[str, str]:
    """The texts of a query by their names in links. Errors: bad-link."""
    text = query.removeprefix("?") if isinstance(query, str) else None
    if text is None or len(text) > 3 * LONGEST_QUERY:
        raise _bad(query)
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise _bad(text) from None
    parts: dict[str, str] = {}
    for name, value in pairs:
        if name.startswith("__"):  # Gradio's own, such as its theme
            continue
        if name in parts or (name in FIELDS and FIELDS[name].link not in ("", name)):
            raise _bad(f"{name}={value}")
        parts[name] = value
    if parts.get("v") not in (None, "1", VERSION):
        raise _bad(text)
    return parts


def _state(parts: Mapping[str, str]) -> State:
    """The state of the fields of a link. Errors: bad-link."""
    texts = dict(parts)
    version = texts.pop("v", None)
    if version == "1":
        texts = as_version_2(texts)
    fields = dict(_field(link, text) for link, text in texts.items())
    is_whole = version is None or (version == VERSION and not _has_layout(fields))
    if fields.get("roles"):
        fields = {"view": "roles", **fields}
    if is_whole and (preset := fields.get("preset")):
        whole = vars(preset_state(preset)) if is_plan(preset) else published(preset)
        fields = {**whole, **fields}
    return State(**fields)


def changes_from(text: str) -> dict[str, str]:
    """The fields of a text of settings, named as in links and separated by semicolons. Errors:
    bad-link.

    >>> changes_from("tp=8;zero=3")
    {'tp': '8', 'zero': '3'}
    """
    parts = (part.partition("=") for part in text.split(";") if part)
    return dict(_field(name, value) for name, _, value in parts)


def _has_layout(names: Iterable[str]) -> bool:
    """Whether these fields are more than the name of a published layout."""
    return any(FIELDS[name].is_published for name in names)


def _field(link: str, text: str) -> tuple[str, str]:
    """A field and its value, from its name and its text in a link."""
    if link not in LONG:
        raise _bad(link)
    row = FIELDS[LONG[link]].row
    if len(text) > LONGEST_VALUE or (row.closed and text.lower() not in row.closed):
        raise _bad(f"{link}={text}")
    return LONG[link], row.text(text)


def script_fields() -> list[tuple[str, str, str, bool]]:
    """What the page's script needs to write links: for each field its name, its name in links
    (empty: in none), its initial text, and whether a published layout sets it."""
    return [
        (name, field.link, STARTS[name], field.is_published)
        for name, field in FIELDS.items()
        if name != "lang"
    ]


def _bad(part: object) -> LayoutError:
    return refusal("bad-link", "link", value=quoted(part))


# -- what the page sends -------------------------------------------------------------------------


def from_values(values: Mapping[str, object]) -> State:
    """The state of the values that a page sends; unknown names are ignored. Missing ones come from
    the link that the page has just opened, else they have their initial values.

    Any value may arrive here: whether it makes sense is asked where it is used.
    """
    fields = {name: value for name, value in values.items() if name in FIELDS}
    link, linked = link_of(values), dict[str, str]()
    with suppress(LayoutError):  # a bad one is told when the page is drawn
        linked = {} if link is None else vars(as_far_as_known(link)[0])
    return State(**{**linked, **fields, "lang": language_of(fields.get("lang"))})


def link_of(values: Mapping[str, object]) -> str | None:
    """The link that a page has just opened; None if it opened none."""
    link = values.get("link")
    return link if isinstance(link, str) and link else None


def state_texts(state: State) -> dict[str, str]:
    """A state as the page's script keeps it, without the fields that no link holds."""
    return {name: text for name, text in vars(state).items() if FIELDS[name].link}


def whole_json(text: str) -> object:
    """The value of a JSON text. Half of a character, which no file and no log can hold, becomes the
    sign for one that cannot be read.

    >>> whole_json('["\\\\ud83d\\\\ude00", "\\\\ud800"]') == [chr(0x1F600), chr(0xFFFD)]
    True

    Errors: ValueError and RecursionError, as `json.loads`.
    """
    value = json.loads(text)
    if "\\ud" not in text.lower() and text.isascii():
        return value
    plain = json.dumps(value, ensure_ascii=False)
    return json.loads(HALVES.sub(chr(0xFFFD), plain)) if HALVES.search(plain) else value


HALVES = re.compile("[\ud800-\udfff]")


def parsed(sent: object, read: Callable[[str], object] = json.loads) -> dict[str, object]:
    """What the page sends; empty for what is no object."""
    try:
        values = read(sent) if isinstance(sent, str) else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
