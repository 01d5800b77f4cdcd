"""The published walk-through of seven functions, with its own numbers, worked out here."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from markupsafe import Markup

from descriptions import PAGE
from training.collectives.walkthrough import Example, examples

from ..base.form import opener, setter
from ..base.html import fold, table, tag, together
from ..base.link import to_query
from ..base.state import State

SHOWN = (6, 7)
"""Ranks of the last tensor parallel group, where most of the published numbers are."""


@lru_cache(maxsize=2)
def walkthrough_html(language: str) -> str:
    """A table: function, forward and backward on ranks 6 and 7."""
    names = ("collectives_function", "collectives_forward_of", "collectives_backward_of")
    heads = (PAGE[name][language] for name in names)
    query = to_query(State(nodes=1, tp=2, pp=2, view="collectives", lang=language))
    open_it = opener(query, PAGE["collectives_walk_open"][language])
    return fold(
        PAGE["collectives_walk"][language],
        tag("p", PAGE["collectives_walk_body"][language], " ", open_it),
        table(heads, (_row(example, language) for example in examples())),
        kind="collectives-walk",
    )


def _row(example: Example, language: str) -> tuple[object, ...]:
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
    loss, line = PAGE["collectives_loss"][language], Markup("<br>")
    forward = _change(example.before, example.after)
    if example.value is not None:
        losses = ", ".join(_tensor(example.value[rank]) for rank in SHOWN)
        forward = together(forward, line, f"{loss}: ", tag("code", losses))
    back = tag("i", PAGE["collectives_forward_only"][language])
    if example.gradients is not None and example.back is not None:
        change = _change(example.gradients, example.back)
        back = together(f"{loss} = ", tag("code", example.loss), line, change)
    return together(tag("code", example.op), line, watch), forward, back


def _change(before: list[np.ndarray], after: list[np.ndarray]) -> Markup:
    return Markup("<br>").join(
        together(f"{rank}: ", tag("code", f"{_tensor(before[rank])} → {_tensor(after[rank])}"))
        for rank in SHOWN
    )


def _tensor(tensor: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:g}" for value in tensor.tolist()) + "]"
