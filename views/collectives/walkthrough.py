"""The published walk-through of seven functions, with its own numbers, worked out here."""

from __future__ import annotations

from functools import lru_cache
from html import escape

import numpy as np

from descriptions import PAGE
from training.collectives.walkthrough import Example, examples

from ..base.form import opener, setter
from ..base.link import to_query
from ..base.state import State

SHOWN = (6, 7)
"""Ranks of the last tensor parallel group, where most of the published numbers are."""


@lru_cache(maxsize=2)
def walkthrough_html(language: str) -> str:
    """A table: function, forward and backward on ranks 6 and 7."""
    heads = "".join(
        f'<th scope="col">{escape(PAGE[name][language])}</th>'
        for name in ("collectives_function", "collectives_forward_of", "collectives_backward_of")
    )
    rows = "".join(_row(example, language) for example in examples())
    query = to_query(State(nodes=1, tp=2, pp=2, view="collectives", lang=language))
    open_it = opener(query, PAGE["collectives_walk_open"][language])
    return (
        f'<details class="collectives-walk" open><summary>'
        f"{escape(PAGE['collectives_walk'][language])}</summary>"
        f"<p>{escape(PAGE['collectives_walk_body'][language])} {open_it}</p>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _row(example: Example, language: str) -> str:
    watch = setter(
        {
            "collective": example.op,
            "collective_direction": "forward",
            "collective_group": "tp",
            "collective_index": "",
            "collective_root": "",
            "collective_shape": len(example.before[0]),
            "collective_values": "rank",
        },
        PAGE["collectives_watch"][language],
    )
    forward = _change(example.before, example.after)
    if example.value is not None:
        losses = ", ".join(_tensor(example.value[rank]) for rank in SHOWN)
        forward += f"<br>{escape(PAGE['collectives_loss'][language])}: <code>{losses}</code>"
    back = f"<i>{escape(PAGE['collectives_forward_only'][language])}</i>"
    if example.gradients is not None and example.back is not None:
        back = (
            f"{escape(PAGE['collectives_loss'][language])} = <code>{escape(example.loss)}</code>"
            f"<br>{_change(example.gradients, example.back)}"
        )
    return (
        f'<tr><th scope="row"><code>{escape(example.op)}</code><br>{watch}</th>'
        f"<td>{forward}</td><td>{back}</td></tr>"
    )


def _change(before: list[np.ndarray], after: list[np.ndarray]) -> str:
    return "<br>".join(
        f"{rank}: <code>{_tensor(before[rank])} → {_tensor(after[rank])}</code>" for rank in SHOWN
    )


def _tensor(tensor: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:g}" for value in tensor.tolist()) + "]"
