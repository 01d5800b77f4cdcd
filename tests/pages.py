"""The views as a test reads them: the state, its answer, and the groups that they are about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from groups import LayoutError
from groups.layout import Layout
from groups.presets import PRESETS
from request.inputs import FIELDS
from request.link import STARTS, from_values, parsed, published, state_texts
from request.resolve import from_preset, resolve
from request.state import State
from views.all import VIEWS
from views.page import Answer, answer

MOE = State(group_type="moe", nodes=4, tp=2, cp=2, pp=2, ep=8, etp=1)
LAYOUTS = {
    "16 GPUs": State(),
    "dense and expert grids": MOE,
    "nodes of 12": State(nodes=4, gpus_per_node=12, tp=3, pp=2, ep=4, etp=1),
    "nodes of 72": State(nodes=2, gpus_per_node=72, tp=4, pp=1, ep=18, etp=2),
    "one node": State(nodes=1, tp=8, pp=1),
    "optimizer instances": State(nodes=8, pp=2, ep=2, etp=2, instances=2),
    "levels of cp": State(nodes=8, tp=1, pp=1, cp=16, levels="2x2x4"),
    "hybrid cp": State(nodes=3, tp=2, pp=1, cp=2, hybrid=True),
    "Llama 3 order": State(nodes=8, framework="llama3", cp=2, tp=4),
    "own order": State(nodes=8, framework="own", order="dp-cp-tp-ep-pp", tp=4, ep=4, etp=2),
    "DeepSeek-V3": from_preset("deepseek-v3"),
}


@cache
def preset_states() -> Mapping[str, Mapping[str, str]]:
    """What each published layout says of the job, where that differs from the page's start."""
    said = {name: state_texts(State(**published(name))).items() for name in PRESETS}
    return {
        name: {field: text for field, text in texts if text != STARTS[field]}
        for name, texts in said.items()
    }


def from_sent(sent: object) -> State:
    """The state that a page sent, as JSON."""
    return from_values(parsed(sent))


def to_sent(state: State) -> str:
    """The state as the page sends it."""
    return json.dumps(vars(state))


def shown(controls: State, view: str, language: str = "en", **asked) -> str:
    """One view; the tests compare its text, so what stands for a character is that character."""
    found = answer(replace(controls, lang=language, view=view, **asked))
    assert found.picture is not None, found.status
    return found.picture


def groups_of(layout: Layout) -> dict[str, list[list[int]]]:
    """Every group by name, the ranks ascending; those of one rank are left out, as on the page."""
    return {
        name: [sorted(int(rank) for rank in ranks) for ranks in one.groups()]
        for name, one in layout.every.items()
        if one.size > 1
    }


def spans(groups: list[list[int]], domain: int) -> list[int]:
    return [len({rank // domain for rank in ranks}) for ranks in groups]


def refusal_of(controls: State) -> LayoutError:
    with pytest.raises(LayoutError) as refusal:
        resolve(controls)
    return refusal.value


# --- The state as the browser sends it ------------------------------------------------------------


def state() -> dict[str, object]:
    """Every name that the page sends, with the value it starts with."""
    return json.loads(to_sent(State()))


def draw(changes: Mapping[str, object]) -> Answer:
    """What the page shows for a state that a browser sends: the first one with ``changes``."""
    return answer(from_sent(json.dumps({**state(), **changes})))


def views_of(name: str) -> list[str]:
    """The views that an input may matter to: all, unless it is one of a single view's own."""
    owner = FIELDS[name].of
    if owner in ("model", "training", "memory"):
        return ["memory", "search"]
    others = {"traffic": ["search", "compare"], "compare": ["moves"]}
    is_own = owner in VIEWS and name != "hosts"
    return [owner, *others.get(owner, [])] if is_own else [*VIEWS]
