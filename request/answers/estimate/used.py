"""How well a step uses its GPUs, and one's own measured step beside the estimate."""

from __future__ import annotations

from dataclasses import dataclass

from descriptions import MACHINE
from formats.measured_step import MeasuredStep
from training.estimate import CAUSAL, FULL, Estimate, Use, seconds_of, waterfall
from training.recipe import WIDE

from ...context import Context
from ...errors import step_in
from ...state import is_empty
from ...words import saying


@dataclass(frozen=True)
class OwnStep:
    """One's own measured step. use: where attention counts in half, or however it is counted;
    other: where it counts in full, if it was told in TFLOP/s; else the same. read: what it says."""

    use: Use
    other: Use
    read: MeasuredStep


@dataclass(frozen=True)
class StepDoubt:
    """A question about a measured step that is quicker than the peak allows: its code, and the
    change of the page that answers it, if there is one."""

    code: str
    changes: dict[str, str]
    instead: str = ""


def step_doubt(own: OwnStep) -> StepDoubt | None:
    """What a measured step of more than the peak may be instead; None of one within it.

    all: the speed of all GPUs together, given as that of each; eight: products of layers in 8 bits,
    which the page does not say; beyond: another model, batch or number of GPUs.
    """
    use = own.use
    if use.mfu() <= 1.0:
        return None
    machine, gpus = use.request.machine, use.request.gpus
    if own.read.kind in ("tflops", "tokens_per_gpu") and gpus > 1 and use.mfu() <= gpus:
        unit = {"tflops": "TFLOP/s", "tokens_per_gpu": "tokens/s/GPU"}[own.read.kind]
        instead = f"{own.read.value / gpus:.6g} {unit}"
        return StepDoubt("all", {"own_step": instead, "step_log": ""}, instead)
    is_wide = use.request.training.products in WIDE
    if is_wide and use.mfu() * use.peak <= machine.fp8:
        return StepDoubt("eight", {"products": "fp8"}, "FP8")
    return StepDoubt("beyond", {})


def doubt_text(own: OwnStep, language: str) -> str:
    """The question in words; empty without one."""
    doubt = step_doubt(own)
    if doubt is None:
        return ""
    return MACHINE[f"step_doubt_{doubt.code}"][language].format(
        mfu=f"{own.use.mfu():.0%}", instead=doubt.instead
    )


def own_step(context: Context, estimate: Estimate) -> OwnStep | None:
    """The measured step of the log that is pasted, else the one that is typed; None without one.

    Errors: LayoutError for a text that says none.
    """
    state = context.state
    name = "own_step" if is_empty(state.step_log) else "step_log"
    text = getattr(state, name)
    if is_empty(text):
        return None
    found = step_in(text, name=name)
    seconds = seconds_of(estimate.request, found.kind, found.value)
    uses = [
        Use(estimate.request, seconds.get(name, seconds.get("", 0.0))) for name in (CAUSAL, FULL)
    ]
    half, full = uses
    return OwnStep(half, full, found)


def use_text(use: Use, language: str) -> str:
    """Tokens, TFLOP/s and MFU of a step in one sentence."""
    gpus = use.request.gpus
    words = saying(MACHINE, language)
    text = words(
        "used",
        tflops=f"{use.per_gpu() / 1e12:,.0f}",
        mfu=f"{use.mfu():.1%}",
        full=f"{use.mfu(FULL):.1%}",
        each=f"{use.tokens_per_second / gpus:,.0f}",
        tokens=f"{use.tokens_per_second:,.0f}",
        peak=f"{use.peak / 1e12:,.0f}",
    )
    return text if use.hfu() <= use.mfu() else text + words("hfu", hfu=f"{use.hfu():.1%}")


def use_facts(context: Context, estimate: Estimate) -> dict[str, object]:
    """The seconds from the peak to the step, and one's own step, as JSON values.

    Errors: LayoutError for a measured step that is none.
    """
    facts: dict[str, object] = {
        "from_peak_seconds": waterfall(estimate),
    }
    if own := own_step(context, estimate):
        facts["own_step"] = {
            "seconds": own.use.seconds,
            "unexplained_seconds": own.use.seconds - estimate.seconds,
            "doubt": doubt_text(own, "en"),
            **own.use.facts(),
        }
    return facts
