"""An algorithm step by step: the slots of every member, as data for the script to draw."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import accumulate

import numpy as np
from markupsafe import Markup

from descriptions import ALGORITHM_TEXTS, PAGE
from groups import LayoutError
from groups.stages.holdings import attended, sequence_chunks
from render.scenes.exchange import Cell, cell_width
from request.answers.collectives.inputs import CollectiveSpec, filled
from request.state import State
from request.units import bytes_text, seconds_text
from request.words import saying
from training.collectives.algorithms import algorithm_of
from training.collectives.cost import bus_factor
from training.collectives.transfers import Algorithm, Slots, loaded, ports, run

from ..base.form import choice, fields, number
from ..base.html import player_buttons, scrolling, table, tag, together, unparted
from ..base.problems import problem_html
from .cells import cell_of

MOST_STEPPED = 8
"""The most members of a group whose steps are drawn."""


def steps_html(watched: CollectiveSpec, state: State, language: str) -> Markup:
    """The steps of the selected algorithm, in a group of at most MOST_STEPPED members."""
    say = saying(PAGE, language)
    title, inputs = tag("h3", say("collectives_steps")), _inputs(watched, state, language)
    if not watched.algorithm:
        none = tag("p", say("collectives_no_steps"))
        return tag("div", title, inputs, none, class_="collectives-steps-none")
    ranks = watched.members[:MOST_STEPPED]
    root = watched.root if watched.root < len(ranks) else 0
    try:
        algorithm = algorithm_of(watched.algorithm, len(ranks), root)
    except LayoutError as error:  # of an algorithm for some sizes only
        others = [name for name in watched.algorithms if name != watched.algorithm]
        problem = problem_html(error, language, [{"collective_algorithm": name} for name in others])
        return tag("div", title, inputs, problem, class_="collectives-steps-none")
    words = ALGORITHM_TEXTS[algorithm.name]
    states = _states(watched, algorithm)
    captions = _captions(watched, algorithm, ranks, language)
    listed = ", ".join(map(str, ranks))
    label = say("collectives_steps_picture", name=words.does[language], ranks=listed)
    svg = tag("svg", class_="collectives-slots", role="img", aria_label=label)
    notes = []
    if watched.size > len(ranks):
        facts = {"shown": len(ranks), "size": f"{watched.size:,}"}
        notes.append(say("collectives_steps_window", **facts))
    if root != watched.root:
        notes.append(say("collectives_steps_root", rank=ranks[0]))
    return tag(
        "div",
        *(title, inputs, tag("p", words.used[language])),
        noted(" ".join(notes)) if notes else "",
        _player(algorithm, captions[0], language),
        scrolling("collectives-scroll", svg),
        _balance(algorithm, ranks, language),
        class_="collectives-play",
        data_algorithm=f"{algorithm.name}-{len(ranks)}-{root}",
        data_states={**_board(algorithm, states, ranks), **_changes(algorithm, states, captions)},
    )


def _inputs(watched: CollectiveSpec, state: State, language: str) -> Markup:
    speed, names = f"{watched.bytes_per_second / 1e9:g}", watched.algorithms
    state = replace(state, collective_algorithm=watched.algorithm)  # what counts here
    offered = [(ALGORITHM_TEXTS[name].does[language], name) for name in names]
    return fields(
        choice("collective_algorithm", state, offered) if names else "",
        number("collective_mb", state, hint=100),
        number("collective_gbs", state, hint=speed),
    )


def noted(text: str) -> Markup:
    """A notice about the pictures."""
    return tag("p", text, class_="collectives-note", role="note")


def _player(algorithm: Algorithm, caption: str, language: str) -> Markup:
    """Buttons, slider and the caption of the step; the script plays it."""
    steps = {"min": 0, "max": len(algorithm.steps), "value": 0, "step": 1}
    label = PAGE["collectives_step"][language]
    return together(
        tag(
            "div",
            player_buttons("collectives_back", "collectives_on", language),
            tag("input", type="range", **steps, aria_label=label),
            class_="player collectives-player",
        ),
        tag("div", tag("span"), class_="collectives-meter"),
        tag("p", caption, class_="collectives-told", aria_live="polite"),
    )


def _changes(
    algorithm: Algorithm, states: list[Slots[Cell]], captions: list[str]
) -> dict[str, object]:
    """The initial state, then for each step its messages and their results, for the script.

    A cell is [text, places]; null: nothing there.
    """

    def cell(value: Cell | None) -> list[object] | None:
        return value and [value.text, list(value.who)]

    shares = list(accumulate(algorithm.loads(), initial=0.0))
    return {
        "first": [list(map(cell, row)) for row in states[0]],
        "steps": [
            {
                "moves": [[m.sender, m.chunk, m.receiver, m.into, int(m.adds)] for m in step],
                "sets": [
                    [place, slot, cell(new)]
                    for place, rows in enumerate(zip(before, after))
                    for slot, (old, new) in enumerate(zip(*rows))
                    if old != new
                ],
            }
            for step, before, after in zip(algorithm.steps, states, states[1:])
        ],
        "told": [unparted(caption) for caption in captions],
        "share": [round(share / (shares[-1] or 1.0), 4) for share in shares],
    }


def _captions(
    watched: CollectiveSpec, algorithm: Algorithm, ranks: tuple[int, ...], language: str
) -> list[str]:
    """A sentence for the initial state and for each step."""
    say, size, last = saying(PAGE, language), watched.buffer_bytes, len(algorithm.steps)
    bound = bytes_text(bus_factor(algorithm.op, len(ranks)) * size)
    captions = [say("collectives_start", last=last, bound=bound)]
    passed = Counter[tuple[str, int]]()
    seconds = 0.0
    for step, load in zip(algorithm.steps, algorithm.loads()):
        passed += ports(step)
        seconds += load * size / watched.bytes_per_second
        moves = ", ".join(f"{ranks[m.sender]} → {ranks[m.receiver]}" for m in step[:4])
        facts = {
            "step": len(captions),
            "last": last,
            "messages": len(step),
            "moves": moves + (", …" if len(step) > 4 else ""),
            "passed": bytes_text(max(passed.values()) / algorithm.chunks * size),
            "bound": bound,
            "time": seconds_text(seconds),
        }
        captions.append(say("collectives_at", **facts))
    return captions


def _states(watched: CollectiveSpec, algorithm: Algorithm) -> list[Slots[Cell]]:
    """The cells of every slot, initially and after each step.

    The steps run twice: on numbers, filled as those of the view, and on a bit for each member,
    which tells who contributed, for every contribution is added once.
    """
    n = algorithm.members
    count = 1 if algorithm.op in ("all_gather", "gather") else algorithm.chunks
    numbers = filled(watched, enumerate(watched.members[:n]), [(count,)] * n)
    bits = [np.full(count, 1 << place) for place in range(n)]
    both = [run(algorithm.steps, loaded(algorithm, tensors)) for tensors in (numbers, bits)]

    def cell(value: np.ndarray | None, who: np.ndarray | None) -> Cell | None:
        return None if value is None or who is None else cell_of(value[0], who[0])

    return [[list(map(cell, *rows)) for rows in zip(*state)] for state in zip(*both)]


NARROWEST = 38.0
"""The least width of a slot in pixels: its longest number fits."""


def _board(
    algorithm: Algorithm, states: list[Slots[Cell]], ranks: tuple[int, ...]
) -> dict[str, object]:
    longest = max((len(c.text) for state in states for row in state for c in row if c), default=1)
    width = max(cell_width(longest), NARROWEST)
    return {"ranks": ranks, "heads": _heads(algorithm, ranks), "width": width}


def _heads(algorithm: Algorithm, ranks: tuple[int, ...]) -> list[str]:
    """The head of each column of slots."""
    if algorithm.op == "all_to_all":
        return [f"→ {rank}" for rank in ranks] + [f"← {rank}" for rank in ranks]
    if algorithm.name == "ring_attention":
        return ["+".join(map(str, sequence_chunks(len(ranks), i))) for i in range(len(ranks))]
    return [str(chunk) for chunk in range(algorithm.slots)]


def _balance(algorithm: Algorithm, ranks: tuple[int, ...], language: str) -> Markup:
    """The pairs of chunks that each rank computes at each step of ring attention."""
    if algorithm.name != "ring_attention":
        return Markup()
    say, n = saying(PAGE, language), len(ranks)

    def pairs_at(place: int, step: int) -> str:
        return " ".join(f"{q}·{k}" for q, k in attended(n, place, (place - step) % n))

    rows = ([rank, *(pairs_at(at, step) for step in range(n))] for at, rank in enumerate(ranks))
    pairs = table((say("collectives_rank_step"), *range(n)), rows, "collectives-pairs")
    return together(tag("p", say("collectives_balance")), pairs)
