"""An algorithm step by step: the slots of every member, and all states as data for the script."""

from __future__ import annotations

import json
from collections import Counter
from html import escape
from typing import Any

import numpy as np

from descriptions import ALGORITHM_TEXTS, PAGE
from groups.stages.holdings import sequence_chunks
from render.svg.exchange import Cell
from render.svg.slots import slots_svg
from training.collectives.algorithms import algorithm_of, attended, loaded
from training.collectives.cost import bus_factor
from training.collectives.steps import Algorithm, Port, Slots, ports, run

from ..base.player import player_buttons
from ..base.units import bytes_text, seconds_text
from .inputs import MOST_STEPPED, CollectiveSpec, filled


def steps_html(watched: CollectiveSpec, inputs: str, language: str) -> str:
    """The algorithm that does what is watched, in a group of at most MOST_STEPPED members."""
    title = f"<h3>{PAGE['collectives_steps'][language]}</h3>{inputs}"
    if not watched.algorithm:
        said = escape(PAGE["collectives_no_steps"][language])
        return f'<div class="collectives-steps-none">{title}<p>{said}</p></div>'
    ranks = watched.members[:MOST_STEPPED]
    root = watched.root if watched.root < len(ranks) else 0
    algorithm = algorithm_of(watched.algorithm, len(ranks), root)
    words = ALGORITHM_TEXTS[algorithm.name]
    states = _states(watched, algorithm)
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
    return (
        '<div class="player collectives-player">'
        f"{player_buttons('collectives_back', 'collectives_on', language)}"
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
    watched: CollectiveSpec, algorithm: Algorithm, ranks: tuple[int, ...], language: str
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


def _states(watched: CollectiveSpec, algorithm: Algorithm) -> list[Slots]:
    """The cells of every slot before the first step and after each.

    The steps run twice: on numbers, filled as those of the view, and on a bit for each member,
    which tells who contributed, for every contribution is added once.
    """
    n = algorithm.members
    count = 1 if algorithm.op in ("all_gather", "gather") else algorithm.chunks
    numbers = filled(watched, [(count,)] * n)
    bits = [np.full(count, 1 << place) for place in range(n)]
    both = [run(algorithm.steps, loaded(algorithm, tensors)) for tensors in (numbers, bits)]
    return [
        [[_cell(own, who, n) for own, who in zip(*rows)] for rows in zip(*state)]
        for state in zip(*both)
    ]


def _cell(own: np.ndarray | None, who: np.ndarray | None, members: int) -> Cell | None:
    if own is None or who is None:
        return None
    bits = int(who[0])
    return Cell(str(int(own[0])), tuple(p for p in range(members) if bits >> p & 1))


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
