"""Measured speeds of the published layout on screen, if it is unchanged.

Every size, the model, the batch, how it is trained and the cluster must be the same, whoever set
them; the name of a published layout that stands in the page's menu does not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from descriptions import ESTIMATE, MACHINE
from groups import LayoutError
from groups.kept import kept
from groups.presets import PRESETS
from training.estimate import COUNTS, Request, Use
from training.published import PublishedStep, published_steps

from ...context import Context
from ...state import State
from ...trained import published
from ...words import saying


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


@kept
def _request_of(preset: str) -> Request:
    context = Context.of(State(**published(preset)))
    return context.trained.request(context.layout)


# -- in words ------------------------------------------------------------------------------------


def measured_text(context: Context) -> str:
    """The measured step and its place in the source; empty without one.

    >>> measured_text(Context.of(State(**published("llama3-405b-1"))))
    'Measured: 11.6 to 12.6 s, Table 4.'
    """
    step = measured_of(context)
    return "" if step is None else seconds_line(step, context.language)


def seconds_line(step: PublishedStep, language: str) -> str:
    """The seconds of a measured step, and where they stand."""
    return ESTIMATE["measured_line"][language].format(
        seconds=_seconds(step, language), place=_place(step, language)
    )


def measured_seconds(step: PublishedStep, language: str) -> str:
    """The seconds alone: "measured 11.6 to 12.6 s"."""
    return ESTIMATE["measured_short"][language].format(seconds=_seconds(step, language))


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


# -- how well it used its GPUs ---------------------------------------------------------------------


@dataclass(frozen=True)
class MeasuredUse:
    """What a measured step comes to, at both ends of its seconds, beside the source's own figure.

    Attributes:
        mfu, tflops: from the slower end to the quicker one, what a causal token sees counted.
        alike: the source's figure as it is counted there; empty where the source has none.
    """

    mfu: tuple[float, float]
    tflops: tuple[float, float]
    alike: tuple[float, float] | tuple[()]


def measured_use(step: PublishedStep) -> MeasuredUse:
    """How well the GPUs were used, as the source counts it too.

    >>> found = measured_use(published_steps()["korthikanti-175b"])
    >>> round(found.mfu[0], 3), round(found.alike[0], 3), published_steps()["korthikanti-175b"].own
    (0.507, 0.514, 0.514)
    """
    request = _request_of(step.preset)
    slow, quick = (Use(request, seconds) for seconds in (step.high, step.low))
    counts = (step.attention,) if step.attention else COUNTS
    alike = [_counted(step.figure, use, how) for use in (slow, quick) for how in counts]
    return MeasuredUse(
        mfu=(slow.mfu(), quick.mfu()),
        tflops=(slow.per_gpu() / 1e12, quick.per_gpu() / 1e12),
        alike=(min(alike), max(alike)) if step.figure else (),
    )


def _counted(figure: str, use: Use, attention: str) -> float:
    """A figure of use as a source counts it: MFU of the 16-bit peak, or TFLOP/s a GPU."""
    if figure == "hardware":
        return use.hfu(attention) * use.peak / 1e12
    each = use.per_gpu(attention)
    return each / use.request.machine.peak if figure == "mfu" else each / 1e12


def measured_use_text(step: PublishedStep, language: str) -> str:
    """MFU and TFLOP/s of a measured step, and what its source says of that.

    >>> measured_use_text(published_steps()["korthikanti-175b"], "en")
    'That is MFU 50.7%, 158 TFLOP/s a GPU; its source says MFU 51.4%, counted its way here 51.4%.'
    """
    found, say = measured_use(step), saying(MACHINE, language)
    text = say("measured_use", mfu=_range(found.mfu, "mfu"), tflops=_range(found.tflops, "model"))
    if found.alike:
        words = "source_use" if step.attention else "source_use_open"
        alike = _range(found.alike, step.figure)
        text += say(words, what=source_text(step, language), alike=alike)
    return text + say("full_stop")


def source_text(step: PublishedStep, language: str) -> str:
    """The source's own figure of use; empty where it has none.

    >>> source_text(published_steps()["bloom-176b"], "en")
    '156 TFLOP/s a GPU with what is computed again'
    """
    if not step.figure:
        return ""
    return MACHINE[f"source_{step.figure}"][language].format(printed=step.printed)


def _range(ends: Sequence[float], figure: str) -> str:
    texts = [f"{end:.1%}" if figure == "mfu" else f"{end:,.0f}" for end in ends]
    return "–".join(dict.fromkeys(texts))


def measured_facts(context: Context) -> dict[str, object]:
    """The measured step as JSON values; null without one."""
    step = measured_of(context)
    return {"measured": step and _facts(step)}


def _facts(step: PublishedStep) -> Mapping[str, object]:
    use = measured_use(step)
    source = {"figure": step.figure, "attention": step.attention, "value": step.own}
    return {
        "preset": step.preset,
        "low_seconds": step.low,
        "high_seconds": step.high,
        "source": step.source,
        "place": step.place,
        "counted": ESTIMATE[f"counted_{step.counted}"]["en"].format(value=step.value).strip(" :."),
        "mfu": use.mfu,
        "tflop_per_second_per_gpu": use.tflops,
        "source_says": {**source, "counted_its_way": use.alike} if step.figure else None,
    }
