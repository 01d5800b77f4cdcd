"""An algorithm step by step: the slots of every member, and all states as data for the script."""

from __future__ import annotations

import json
from collections import Counter
from html import escape
from typing import Any

from descriptions import ALGORITHM_TEXTS, PAGE
from groups.holdings import sequence_chunks
from render.exchange import Cell
from render.slots import slots_svg
from training.algorithms import algorithm_of, attended
from training.cost import bus_factor
from training.steps import Algorithm, Port, Slots, ports, run

from .collectives_asked import MOST_STEPPED, Watched
from .units import bytes_text, seconds_text


def steps_html(watched: Watched, inputs: str, language: str) -> str:
    """The algorithm that does what is watched, in a group of at most MOST_STEPPED members."""
    title = f"<h3>{PAGE['collectives_steps'][language]}</h3>{inputs}"
    if not watched.algorithm:
        said = escape(PAGE["collectives_no_steps"][language])
        return f'<div class="collectives-steps-none">{title}<p>{said}</p></div>'
    ranks = watched.members[:MOST_STEPPED]
    root = watched.root if watched.root < len(ranks) else 0
    algorithm = algorithm_of(watched.algorithm, len(ranks), root)
    words = ALGORITHM_TEXTS[algorithm.name]
    numbers = run(algorithm.steps, _numbers(watched, algorithm))
    places = run(algorithm.steps, _who(algorithm), lambda a, b: a | b)
    states = [
        [
            [None if own is None else Cell(str(own), tuple(sorted(who))) for own, who in zip(a, b)]
            for a, b in zip(*state)
        ]
        for state in zip(numbers, places)
    ]
    told = _told(watched, algorithm, ranks, language)
    longest = max((len(c.text) for state in states for row in state for c in row if c), default=1)
    description = PAGE["collectives_steps_picture"][language].format(
        name=words.does[language], ranks=", ".join(map(str, ranks))
    )
    svg = slots_svg(ranks, states[0], _heads(algorithm, ranks), longest, description)
    note = ""
    if watched.size > len(ranks):
        note = PAGE["collectives_steps_window"][language].format(
            shown=len(ranks), size=f"{watched.size:,}"
        )
    if root != watched.root:
        note += " " + PAGE["collectives_steps_root"][language].format(rank=ranks[0])
    said = f'<p class="collectives-note" role="note">{escape(note.strip())}</p>' if note else ""
    data = json.dumps(_changes(algorithm, states, told), separators=(",", ":"))
    return (
        f'<div class="collectives-play" data-algorithm="{algorithm.name}-{len(ranks)}-{root}" '
        f'data-states="{escape(data)}">'
        f"{title}<p>{escape(words.used[language])}</p>{said}{_player(algorithm, told[0], language)}"
        f'<div class="collectives-scroll" tabindex="0">{svg}</div>'
        f"{_balance(algorithm, ranks, language)}</div>"
    )


def _player(algorithm: Algorithm, told: str, language: str) -> str:
    """Buttons, slider and the sentence of the step; the script does the rest."""
    last = len(algorithm.steps)
    names = {
        name: PAGE[f"collectives_{name}"][language] for name in ("back", "next", "play", "stop")
    }
    return (
        '<div class="collectives-player">'
        f'<button type="button" data-play="back" aria-label="{escape(names["back"])}">◀</button>'
        f'<button type="button" data-play="play" data-stop="{escape(names["stop"])}" '
        f'data-start="{escape(names["play"])}">{escape(names["play"])}</button>'
        f'<button type="button" data-play="next" aria-label="{escape(names["next"])}">▶</button>'
        f'<input type="range" min="0" max="{last}" value="0" step="1" '
        f'aria-label="{escape(PAGE["collectives_step"][language])}"></div>'
        '<div class="collectives-meter"><span></span></div>'
        f'<p class="collectives-told" aria-live="polite">{escape(told)}</p>'
    )


def _changes(algorithm: Algorithm, states: list[Slots], told: list[str]) -> dict[str, Any]:
    """The first state, and for each step its messages and what they leave; as the script reads it.

    A cell is [text, places]; null: nothing there.
    """

    def cell(one: Cell | None) -> list[Any] | None:
        return None if one is None else [one.text, list(one.who)]

    found = []
    for step, before, after in zip(algorithm.steps, states, states[1:]):
        found.append(
            {
                "moves": [
                    [move.sender, move.chunk, move.receiver, move.into, int(move.adds)]
                    for move in step
                ],
                "sets": [
                    [place, slot, cell(new)]
                    for place, (old_row, new_row) in enumerate(zip(before, after))
                    for slot, (old, new) in enumerate(zip(old_row, new_row))
                    if old != new
                ],
            }
        )
    shares, total = [0.0], sum(algorithm.loads()) or 1.0
    for load in algorithm.loads():
        shares.append(shares[-1] + load)
    return {
        "first": [[cell(one) for one in row] for row in states[0]],
        "steps": found,
        "told": told,
        "share": [round(share / total, 4) for share in shares],
    }


def _told(
    watched: Watched, algorithm: Algorithm, ranks: tuple[int, ...], language: str
) -> list[str]:
    """A sentence for the state before the first step and after each."""
    size, n, last = watched.buffer_bytes, len(ranks), len(algorithm.steps)
    bound = bytes_text(bus_factor(algorithm.op, n) * size)
    told = [PAGE["collectives_start"][language].format(last=last, bound=bound)]
    passed: Counter[Port] = Counter()
    seconds = 0.0
    for number, (step, load) in enumerate(zip(algorithm.steps, algorithm.loads()), start=1):
        passed += ports(step)
        seconds += load * size / watched.bytes_per_second
        shown = ", ".join(f"{ranks[m.sender]} → {ranks[m.receiver]}" for m in step[:4])
        told.append(
            PAGE["collectives_at"][language].format(
                step=number,
                last=last,
                messages=len(step),
                moves=shown + (", …" if len(step) > 4 else ""),
                passed=bytes_text(max(passed.values()) / algorithm.chunks * size),
                bound=bound,
                time=seconds_text(seconds),
            )
        )
    return told


def _numbers(watched: Watched, algorithm: Algorithm) -> Slots:
    """One whole number a slot, as the tensors of the view are filled."""

    def value(place: int, slot: int) -> int:
        if watched.values == "count":
            return 10 * place + slot
        return watched.members[place] if watched.values == "rank" else 1

    return _filled(algorithm, value)


def _who(algorithm: Algorithm) -> Slots:
    return _filled(algorithm, lambda place, slot: frozenset([place]))


def _filled(algorithm: Algorithm, value: Any) -> Slots:
    """The slots before the first step, as training.algorithms.loaded fills them with tensors."""
    n = algorithm.members
    slots: Slots = [[None] * algorithm.slots for _ in range(n)]
    for place in range(n):
        if algorithm.op in ("all_gather", "gather"):
            slots[place][place] = value(place, 0)
        elif algorithm.op in ("broadcast", "scatter", "send_recv") and place != algorithm.root:
            continue
        else:
            slots[place][: algorithm.chunks] = [value(place, c) for c in range(algorithm.chunks)]
        if algorithm.op == "all_to_all":
            slots[place][n + place] = slots[place][place]
    return slots


def _heads(algorithm: Algorithm, ranks: tuple[int, ...]) -> list[str]:
    """What stands above each column of slots."""
    if algorithm.op == "all_to_all":
        return [f"→ {rank}" for rank in ranks] + [f"← {rank}" for rank in ranks]
    if algorithm.name == "ring_attention":
        return ["+".join(map(str, sequence_chunks(len(ranks), i))) for i in range(len(ranks))]
    return [str(chunk) for chunk in range(algorithm.slots)]


def _balance(algorithm: Algorithm, ranks: tuple[int, ...], language: str) -> str:
    """Of ring attention: the pairs of chunks that each rank works out at each step."""
    if algorithm.name != "ring_attention":
        return ""
    n = len(ranks)
    heads = "".join(f'<th scope="col">{q}</th>' for q in range(n))
    rows = "".join(
        f'<tr><th scope="row">{rank}</th>'
        + "".join(
            "<td>"
            + " ".join(f"{q}·{k}" for q, k in attended(n, place, (place - step) % n))
            + "</td>"
            for step in range(n)
        )
        + "</tr>"
        for place, rank in enumerate(ranks)
    )
    corner = escape(PAGE["collectives_rank_step"][language])
    return (
        f"<p>{escape(PAGE['collectives_balance'][language])}</p>"
        f'<div class="scroll" tabindex="0"><table class="collectives-pairs"><thead><tr>'
        f'<th scope="col">{corner}</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
