"""The whole state of the page as one text: an address, and what the page sends to be drawn.

In an address only what differs from the page's first state is written, by the names of
`state.FIELDS`:

>>> to_query(State(tp=4, ep=2, view="nodes", lang="zh"))
'v=2&tp=4&ep=2&show=nodes&lang=zh'
>>> from_query("v=2&tp=4&ep=2&show=nodes&lang=zh").tp
4

A link without a version was typed by a person, in the names of today. A published layout that it
names is opened with what the link says besides; so is one that a link of the page's names and says
nothing else of: the page writes what the layout is made of.

>>> typed = from_query("preset=deepseek-v3&pp=8")
>>> typed.ep, typed.pp, from_query("v=2&preset=deepseek-v3").pp
(64, 8, 16)

A value that the page refuses is a state too, and comes back as it was typed; what is not such a
state at all (an unknown name, another version, a choice that there is not) is a bad link. The page
itself opens one whose names have changed or are mistyped as far as there is what it names:

>>> state, unknown = as_far_as_known("preset=llama3-405b&show=memory")
>>> state.view, str(unknown[0]).split("; try ")[1]
('memory', 'preset llama3-405b-1, preset llama3-405b-2 or preset llama3-405b-3')
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote

from groups import LayoutError
from groups.errors import nearest_names, quoted
from groups.presets import PUBLISHED
from training.clusters import CLUSTERS
from training.models import MODELS
from training.pipeline import SCHEDULES

from .problems import refusal
from .resolve import from_preset
from .state import FIELDS, State, as_text, language_of, parse_number
from .trained import UNKNOWN, fields_of_preset

VERSION = "2"
FIRST_TYPE = "dp+tp+pp"
"""What a link of version 1 shows that names no type; one of version 2 follows the layout."""

LONG = {row.link: name for name, row in FIELDS.items() if row.link}
"""The field of a name in a link."""

_START = State()
STARTS = {name: as_text(value) for name, value in vars(_START).items()}
"""The text of every field as the page starts."""

COUNTING = ("memory", "traffic", "search", "compare")
"""Views that in version 1 had a schedule of their own, and the pipeline one of its."""

LONGEST_QUERY = 8_000
LONGEST_VALUE = 2_000


# -- an address ----------------------------------------------------------------------------------


def to_query(state: State) -> str:
    """The state as a query; empty for the page as it starts. What is too long is left out."""
    parts, start = {}, vars(_START)
    changed = {name: value for name, value in vars(state).items() if value is not start[name]}
    for name, value in changed.items():
        text = as_text(value)
        is_start = text == STARTS[name] or (name, text) == ("lang", "en")
        if FIELDS[name].link and not is_start and len(text) <= LONGEST_VALUE:
            # Half of a surrogate pair, which a program may send, is no text of an address.
            is_plain = text.isascii() and text.isalnum()
            said = text if is_plain else quote(text, safe=":,|*()", errors="replace")
            parts[name] = f"{FIELDS[name].link}={said}"
    if "preset" in parts and not _has_layout(parts):  # a name alone opens all that it names
        parts = {"nodes": f"nodes={STARTS['nodes']}", **parts}
    query = "&".join(parts.values())
    return f"v={VERSION}&{query}" if 0 < len(query) <= LONGEST_QUERY else ""


def short_query(state: State) -> str:
    """The shortest query that opens the same: of a published layout its name, and what differs.

    >>> short_query(State(**{**published("llama3-405b-1"), "preset": "llama3-405b-1", "zero": "1"}))
    'preset=llama3-405b-1&zero=1'
    >>> short_query(State(tp=4))
    'v=2&tp=4'
    """
    whole, name = to_query(state), state.preset
    if not whole or not isinstance(name, str) or name not in PUBLISHED:
        return whole
    starts = {**STARTS, **{field: as_text(value) for field, value in published(name).items()}}
    said = {field: text for field, text in state_texts(state).items() if text != starts[field]}
    parts = [f"preset={name}"]
    for field, text in said.items():
        if field != "preset" and len(text) <= LONGEST_VALUE:
            parts.append(f"{FIELDS[field].link}={quote(text, safe=':,|*()', errors='replace')}")
    short = "&".join(parts)
    opens_same = len(short) < len(whole) and state_texts(from_query(short)) == state_texts(state)
    return short if opens_same else whole


def from_query(query: object) -> State:
    """The state that a query is about. Errors: bad-link, which names the part that is wrong."""
    return _state(_parts(query))


NAMES: dict[str, Iterable[str]] = {
    **{row.link: row.choices for row in FIELDS.values() if row.link and row.choices},
    **{"model": ("", UNKNOWN, *MODELS), "cluster": ("", *CLUSTERS)},
}
"""What a link may name, by the fields of a link that name something."""


def as_far_as_known(query: object) -> tuple[State, list[LayoutError]]:
    """The state that a query is about without the names in it that there are not, and their
    refusals, each with the nearest names that there are. Errors: bad-link."""
    parts = _parts(query)
    unknown = {
        link: text
        for link, text in parts.items()
        if link in NAMES and len(text) <= LONGEST_VALUE and text not in NAMES[link]
    }
    known = {link: text for link, text in parts.items() if link not in unknown}
    refused = []
    for link, text in unknown.items():
        name = LONG[link]
        # Beside a layout the name of a published one opens nothing.
        said = (LONG.get(other) for other in known if "v" in known)
        opens = name != "preset" or not _has_layout(filter(None, said))
        near = nearest_names(text, NAMES[link]) if opens else []
        fixes = ({name: choice} for choice in near)
        refused.append(refusal("unknown-name", name, *fixes, control=name, value=quoted(text)))
    return _state(known), refused


def with_name(query: str, link: str, text: str) -> str:
    """A query in which a field names something else.

    >>> with_name("preset=llama3-405b&pp=8", "preset", "llama3-405b-1")
    'preset=llama3-405b-1&pp=8'
    """
    parts = {**_parts(query), link: text}
    return "&".join(f"{name}={quote(said, safe=':,|*()')}" for name, said in parts.items())


def _parts(query: object) -> dict[str, str]:
    """The texts of a query by their names in links. Errors: bad-link."""
    text = query.removeprefix("?") if isinstance(query, str) else None
    if text is None or len(text) > 3 * LONGEST_QUERY:
        raise _bad(query)
    rules: dict[str, Any] = {"keep_blank_values": True, "max_num_fields": 128}
    try:
        pairs = parse_qsl(text, strict_parsing=bool(text), **rules)
    except ValueError:
        raise _bad(text) from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name.startswith("__"):  # Gradio's own, such as its theme
            continue
        if name in given or (name in FIELDS and FIELDS[name].link not in ("", name)):
            raise _bad(f"{name}={value}")
        given[name] = value
    if given.get("v") not in (None, "1", VERSION):
        raise _bad(text)
    return given


def _state(parts: Mapping[str, str]) -> State:
    """The state of a link's parts. Errors: bad-link."""
    given = dict(parts)
    version = given.pop("v", None)
    if version == "1":
        given = _of_version_1(given)
    fields = dict(_field(link, text) for link, text in given.items())
    is_whole = version is None or (version == VERSION and not _has_layout(fields))
    if is_whole and fields.get("preset"):
        fields = {**published(fields["preset"]), **fields}
    return State(**fields)


def changes_from(text: str) -> dict[str, Any]:
    """Fields by their names in links, with semicolons between them. Errors: bad-link.

    >>> changes_from("tp=8;zero=3")
    {'tp': 8, 'zero': '3'}
    """
    parts = (part.partition("=") for part in text.split(";") if part)
    return dict(_field(name, value) for name, _, value in parts)


def _has_layout(said: Iterable[str]) -> bool:
    """Whether these fields are more than the name of a published layout."""
    return any(FIELDS[name].published for name in said)


def published(preset: str) -> dict[str, Any]:
    """All that a published layout says."""
    return {**vars(from_preset(preset)), **fields_of_preset(preset)}


def _of_version_1(given: dict[str, str]) -> dict[str, str]:
    """A link of version 1 as one of today that opens the same.

    The pipeline had a schedule, virtual stages, groups, micro-batches and ends of its own, and drew
    a schedule that has chunks of its own whatever was typed; those that count a step took the
    global batch, one virtual stage where none are typed, and layers dealt out nearly equally where
    the stages do not divide them.
    """
    given = {"group_type": FIRST_TYPE, **given}
    chunks, counted = given.pop("chunks", ""), given.pop("memory_schedule", "")
    view = given.get("show")
    if view in COUNTING:
        given |= {"schedule": counted, "micro_batches": "", "group_size": ""}
        given |= dict.fromkeys(("first_layers", "last_layers", "pipe_layout"), "")
        if counted:  # one that loops takes two of today
            given["vpp"] = given.get("vpp") or "1"
        if _is_uneven(given) and not given.get("spread"):
            given["spread"] = "nearly"
    elif view == "pipeline":
        if given.get("micro_batches"):
            given["global_batch"] = ""
        if chunks:
            is_looped = given.get("vpp", "") not in ("", "1")
            named = given.get("schedule") or ("interleaved" if is_looped else "1f1b")
            given |= {"schedule": named, "vpp": chunks}
        if _has_chunks(given.get("schedule")):
            given["vpp"] = ""
    else:
        given["schedule"] = given.get("schedule") or counted
        if not _has_chunks(given["schedule"]):
            given["vpp"] = given.get("vpp") or chunks
        elif given.get("vpp", "") not in ("", "1"):  # by which layers were told
            given["schedule"] = ""
        if given.get("global_batch"):
            given["micro_batches"] = ""
    return given


def _has_chunks(schedule: str | None) -> bool:
    """Whether a schedule has a number of chunks that cannot be chosen."""
    return schedule in SCHEDULES and SCHEDULES[schedule].v is not None


def _is_uneven(given: Mapping[str, str]) -> bool:
    """Whether Megatron would not deal the layers that are typed to the stages."""
    starts = {"layers": "", "pp": STARTS["pp"], "vpp": "1"}
    sizes = [parse_number(given.get(name, start)) for name, start in starts.items()]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return False
    layers, pp, vpp = sizes
    return pp == 1 < vpp or (layers + 2 * (given.get("account") == "1")) % (pp * vpp) > 0


def _field(link: str, text: str) -> tuple[str, Any]:
    """A field and its value, from its name and its text in a link."""
    if link not in LONG:
        raise _bad(link)
    row = FIELDS[LONG[link]]
    if len(text) > LONGEST_VALUE or (row.choices is not None and text not in row.choices):
        raise _bad(f"{link}={text}")
    if link == "more":  # typed names may have spaces between them, those of a link have none
        return link, tuple(filter(None, text.split(",")))
    return LONG[link], row.parse(text) if row.parse else text


def script_fields() -> list[tuple[str, str, str, bool]]:
    """What the page's script needs to write links: of each field its name, its name in links
    (empty: in none), its start, whether a published layout says it."""
    rows = FIELDS.items()
    return [(name, row.link, STARTS[name], row.published) for name, row in rows if name != "lang"]


def _bad(part: object) -> LayoutError:
    return refusal("bad-link", "link", value=quoted(part))


# -- what the page sends -------------------------------------------------------------------------


def from_values(values: Mapping[str, Any]) -> State:
    """The state that a page's values are; other names are ignored. What they lack is as the link
    says that the page has just opened, else as at the start.

    Any value may arrive here: whether it makes sense is asked where it is used.
    """
    fields = {}
    for name, value in values.items():
        if name in FIELDS:
            parse = FIELDS[name].parse
            fields[name] = parse(value) if parse else value
    link, linked = link_of(values), dict[str, Any]()
    with suppress(LayoutError):  # a bad one is told when the page is drawn
        linked = {} if link is None else vars(as_far_as_known(link)[0])
    return State(**{**linked, **fields, "lang": language_of(fields.get("lang"))})


def link_of(values: Mapping[str, Any]) -> str | None:
    """The link that a page has just opened, whole, to be read; None if it opened none."""
    link = values.get("link")
    return link if isinstance(link, str) and link else None


def state_texts(state: State) -> dict[str, str]:
    """A state as the page's script has it, without what no link holds."""
    return {name: as_text(value) for name, value in vars(state).items() if FIELDS[name].link}


def parsed(sent: object) -> dict[str, Any]:
    try:
        values = json.loads(sent) if isinstance(sent, str) else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
