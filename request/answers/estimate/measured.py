"""Measured speeds of the published layout on screen, if it is unchanged.

Every size, the model, the batch, how it is trained and the cluster must be the same, whoever set
them; the name of a published layout that stands in the page's menu does not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from descriptions import ESTIMATE
from groups import LayoutError
from groups.presets import PRESETS
from training.estimate import Request
from training.published import PublishedStep, published_steps

from ...context import Context
from ...state import State
from ...trained import published


def measured_of(context: Context) -> PublishedStep | None:
    """The measured step of the layout on screen; None if no source states one.

    >>> shown = Context.of(State(**published("nemotron4-340b-6144")))
    >>> measured_of(shown).low
    8.0
    >>> measured_of(Context.of(shown.state.changed({"global_batch": "1152"}))) is None
    True
    """
    return context.once(_measured)


def _measured(context: Context) -> PublishedStep | None:
    world, steps = context.layout.world_size, published_steps()
    near = [name for name in steps if PRESETS[name].world_size == world]
    if not near:
        return None
    try:
        request = context.trained.request(context.layout)
    except LayoutError:
        return None
    return next((steps[name] for name in near if _request_of(name) == request), None)


@lru_cache(maxsize=128)
def _request_of(preset: str) -> Request:
    context = Context.of(State(**published(preset)))
    return context.trained.request(context.layout)


# -- in words ------------------------------------------------------------------------------------


def measured_text(context: Context) -> str:
    """The measured step and its place in the source; empty without one.

    >>> measured_text(Context.of(State(**published("llama3-405b-1"))))
    'Measured: 11.6 to 12.6 s, Table 4.'
    """
    step, language = measured_of(context), context.language
    if step is None:
        return ""
    return ESTIMATE["measured_line"][language].format(
        seconds=_seconds(step, language), place=_place(step, language)
    )


def _seconds(step: PublishedStep, language: str) -> str:
    """Printed seconds with all their digits, others with three."""
    digits = "g" if step.counted == "stated" else ".3g"
    low, high = (f"{seconds:{digits}}" for seconds in (step.low, step.high))
    words = "measured_one" if low == high else "measured_between"
    return ESTIMATE[words][language].format(low=low, high=high)


def _place(step: PublishedStep, language: str) -> str:
    """A table or section of a paper, translated; of a file, its name."""
    numbered = re.fullmatch(r"(Table|section) ([\d.]+)", step.place)
    if numbered:
        return ESTIMATE[f"place_{numbered[1].lower()}"][language].format(number=numbered[2])
    return step.source.rpartition("/")[2] + (f", {step.place}" if step.place else "")


def measured_facts(context: Context) -> dict[str, object]:
    """The measured step as JSON values; null without one."""
    step = measured_of(context)
    return {"measured": step and _facts(step)}


def _facts(step: PublishedStep) -> Mapping[str, object]:
    return {
        "preset": step.preset,
        "low_seconds": step.low,
        "high_seconds": step.high,
        "source": step.source,
        "place": step.place,
        "counted": ESTIMATE[f"counted_{step.counted}"]["en"].format(value=step.value).strip(" :."),
    }
