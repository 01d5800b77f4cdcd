"""Ways into the page: the three entries, the menu of stories, and what the tour's script knows.

A story is a link; what no link holds (a hang's evidence, machines by name) it brings along.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from descriptions import ENTRIES, LANGUAGES, SHELL, STORIES, TOUR, TOUR_WORDS

from .base.link import VERSION
from .base.state import FIELDS
from .column import preset_states

_TP4 = "PG ID 2 PG GUID 40(TENSOR_MODEL_PARALLEL_GROUP)"
_STUCK = " failure detected by watchdog at work sequence id: 7"
EVIDENCE = "\n".join(
    f"[rank{rank}]:[E] [{_TP4} Rank {rank % 4}] PG status: last enqueued work: {last}, "
    f"last completed work: 6{_STUCK if last == 7 else ''}"
    for rank, last in ((4, 7), (5, 6), (6, 7), (7, 7))
)
"""A watchdog's lines of one tp group of 4, as PyTorch prints them (formats/logs/lines.py)."""

HOSTS = "\n".join(f"gpu-{node}" for node in range(8))
RACKS = (
    "SwitchName=rack0 Nodes=gpu-0,gpu-2,gpu-4,gpu-6\nSwitchName=rack1 Nodes=gpu-1,gpu-3,gpu-5,gpu-7"
)
"""Machines by turns in two racks: neighbours in the order of ranks are never in one."""

STATES: dict[str, dict[str, str]] = {
    "playground-16": {"rank": "5"},
    "llama3-405b-2": {"preset": "llama3-405b-2"},
    "deepseek-v3": {"preset": "deepseek-v3", "rank": "405"},
    "rack": {"nodes": "8", "ep": "16", "etp": "1", "view": "hosts"},
    "hang": {"tp": "4", "view": "hang"},
    "cost": {
        "tp": "16",
        "pp": "1",
        "model": "gpt-18.4b",
        "micro_batch": "4",
        "global_batch": "128",
        "view": "compare",
        "kept": "v=2&tp=8&pp=1&micro_batch=4&global_batch=128&model=gpt-18.4b",
    },
}
"""What each story's link says, beside its published layout."""

BRINGS: dict[str, dict[str, str]] = {
    "rack": {"hosts": HOSTS, "racks": RACKS},
    "hang": {"evidence": EVIDENCE},
}
"""What no link holds."""


def query_of(state: Mapping[str, str]) -> str:
    """The link of some fields; a published layout's own come with its name.

    >>> query_of({"tp": "4", "view": "hang"})
    'v=2&tp=4&show=hang'
    """
    whole = {**preset_states().get(state.get("preset", ""), {}), **state}
    named = ((FIELDS[name].link, quote(text, safe=":,|*()")) for name, text in whole.items())
    return "&".join((f"v={VERSION}", *(f"{name}={text}" for name, text in named)))


def examples_html(language: str) -> str:
    """The menu of stories."""
    items = "".join(_story(name, language) for name in STORIES)
    return (
        f'<details class="menu"><summary>{escape(SHELL["examples"][language])}</summary>'
        f'<div class="items">{items}</div></details>'
    )


def _story(name: str, language: str) -> str:
    query = escape(query_of(STATES[name]))
    brings = f' data-with="{escape(json.dumps(BRINGS[name]))}"' if name in BRINGS else ""
    return f'<a href="?{query}" data-query="{query}"{brings}>{escape(STORIES[name][language])}</a>'


def entries_html(language: str) -> str:
    """Three ways in, a line each; two lead on to the box that takes what is pasted."""
    tour = escape(ENTRIES["tour"][language])
    buttons = f'<button type="button" data-tour="start">{tour}</button>'
    for view, box in (("hang", "evidence"), ("launch", "paste")):
        changes = escape(json.dumps({"view": view}))
        buttons += (
            f'<button type="button" tabindex="-1" data-set="{changes}" data-leads="field-{box}">'
            f"{escape(ENTRIES[view][language])}</button>"
        )
    label = escape(ENTRIES["entries"][language])
    return f'<div class="ways" role="group" aria-label="{label}">{buttons}</div>'


def tour_data() -> dict[str, Any]:
    """What the tour's script says, in every language."""

    def words(text: Any) -> dict[str, str]:
        return {language: text[language] for language in LANGUAGES}

    return {
        "steps": [{"query": step.query, **words(step.text)} for step in TOUR],
        "words": {name: words(text) for name, text in TOUR_WORDS.items()},
    }
