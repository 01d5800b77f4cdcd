"""The layout that is kept to compare with: a link, a query, or changes of the one on screen.

A kept layout sets its own job and how it is trained or served; all else is as on screen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from groups.frameworks import framework_of

from ..context import Context
from ..errors import refusal
from ..inputs import FIELDS, fields_of
from ..link import changes_from, from_query, state_texts, to_query
from ..published import is_still
from ..served import ServedModel
from ..state import State, is_empty

WAYS = tuple(name for name in fields_of("training") if name not in ("cluster", "capacity"))
"""Fields about how a layout is trained, besides those of its job."""

SERVES: dict[str, Callable[[ServedModel], object]] = {
    "served_weights": lambda served: served.serving.weights,
    "served_cache": lambda served: served.serving.cache,
    "served_share": lambda served: f"{served.memory.share:g}",
    "served_requests": lambda served: served.serving.requests_on(served.memory.total) or "",
    "served_batched": lambda served: served.memory.batched,
    "served_a2a": lambda served: served.serving.a2a,
    "served_partition": lambda served: ",".join(map(str, served.serving.partition)),
}
"""Fields about how a server serves, besides those of its job, and what applies if one is empty."""

OWN_WAYS = {"train": WAYS, "serve": (*SERVES,)}
"""Fields about how a layout does what its framework does, besides those of its job."""

_ALWAYS = {"train": "zero", "serve": "served_cache"}
"""The field that a link to keep names where none of them is set."""

SHOWN = ("group_type", "more", "dp_kind")
"""Fields of a job that only change what is drawn."""

OWN_FIELDS = (*fields_of("job"), *WAYS, *SERVES, "preset")
"""Fields that each of the two layouts sets for itself."""

FROM_HERE = "~"
"""Prefix of a kept layout that is written as its difference from the one on screen."""


def kept_context(context: Context) -> Context:
    """The context with the job of the kept link or query; or, after a ~, the one on screen with
    some changes.

    >>> kept_context(Context.of(State(tp=4, kept="~tp=8;pp=1"))).layout.mesh.sizes
    (8, 1, 2, 1)

    Errors: LayoutError for an empty text, for one that is no link, and for an invalid layout.
    """
    state, query = context.state, query_of(context.state.kept)
    if is_empty(state.kept):
        raise refusal("nothing-kept", "kept")
    if query.startswith(FROM_HERE):
        return Context.of(state.changed(own_of(changes_from(query[1:]))))
    return Context.of(with_job(state, from_query(query)))


def own_of(changes: dict[str, str]) -> dict[str, str]:
    """Those changes that are about a layout's own fields."""
    return {name: value for name, value in changes.items() if name in OWN_FIELDS}


def short_kept(context: Context) -> str:
    """The kept layout, written as its difference from the one on screen.

    >>> short_kept(Context.of(State(tp=4, kept="https://a.b/?v=2&tp=8&pp=1&zero=1&lang=zh")))
    '~tp=8;pp=1;zero=1'

    Errors: as of `kept_context`.
    """
    now, before = (state_texts(side.state) for side in (context, kept_context(context)))
    differ = (name for name in OWN_FIELDS if now[name] != before[name])
    return FROM_HERE + ";".join(f"{FIELDS[name].link}={before[name]}" for name in differ)


def with_job(state: State, other: State, *, is_whole: bool = False) -> State:
    """The state with another's job, and with how it is trained or served if the other sets any of
    that or is complete."""
    names = [*fields_of("job"), "preset"]
    for ways in OWN_WAYS.values():
        if is_whole or not all(is_empty(getattr(other, name)) for name in ways):
            names += ways
    return State(**{**vars(state), **{name: getattr(other, name) for name in names}})


def query_to_keep(state: State) -> str:
    """The job on screen and how it is trained or served, as a complete query, which later changes
    on screen do not affect.

    >>> query_to_keep(State(tp=4, view="compare")), query_to_keep(State(tp=4, zero="3"))
    ('v=2&tp=4&zero=1', 'v=2&tp=4&zero=3')
    """
    kept = with_job(State(), state)
    if not is_still(state.preset, state):
        kept = replace(kept, preset="")
    does = framework_of(state.framework).does
    if all(is_empty(getattr(kept, name)) for name in OWN_WAYS[does]):
        shown = _ALWAYS[does]
        kept = replace(kept, **{shown: FIELDS[shown].row.counts})
    return to_query(kept)


def query_of(kept: str) -> str:
    """The query of a link; any other text is a query itself."""
    text = kept.strip()
    if not text.startswith(("http://", "https://", "?")):
        return text
    try:
        return urlsplit(text).query
    except ValueError:
        return text
