"""Ways into the page: the three entries, the menu of stories, and what the tour's script knows.

A story is a link; what no link holds (a hang's evidence, machines by name) it brings along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from descriptions import ENTRIES, LANGUAGES, SHELL, STORIES, TOUR, TOUR_WORDS

from .base.html import button, fold, tag
from .base.link import from_values, to_query
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
    """The link of some fields; a published layout's own come with its name."""
    whole = {**preset_states().get(state.get("preset", ""), {}), **state}
    return to_query(from_values(whole))


def examples_html(language: str) -> str:
    links = []
    for name, label in STORIES.items():
        marks = {"data_query": query_of(STATES[name]), "data_with": BRINGS.get(name)}
        links.append(tag("a", label[language], href=f"?{marks['data_query']}", **marks))
    return fold(SHELL["examples"][language], tag("div", *links, class_="items"), kind="menu")


def entries_html(language: str) -> str:
    """Three ways in, a line each; two lead on to the box that takes what is pasted."""
    buttons = [button(ENTRIES["tour"][language], data_tour="start")]
    for view, box in (("hang", "evidence"), ("launch", "paste")):
        leads = {"data_set": {"view": view}, "data_leads": f"field-{box}"}
        buttons.append(button(ENTRIES[view][language], tabindex=-1, **leads))
    label = ENTRIES["entries"][language]
    return tag("div", *buttons, class_="ways", role="group", aria_label=label)


def tour_data() -> dict[str, Any]:
    """What the tour's script says, in every language."""

    def words(text: Any) -> dict[str, str]:
        return {language: text[language] for language in LANGUAGES}

    return {
        "steps": [{"query": step.query, **words(step.text)} for step in TOUR],
        "words": {name: words(text) for name, text in TOUR_WORDS.items()},
    }
