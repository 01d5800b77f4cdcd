"""How well a step uses its GPUs, and one's own measured step beside the estimate."""

from __future__ import annotations

from dataclasses import dataclass

from descriptions import MACHINE
from formats.measured_step import read_step
from groups.errors import quoted
from training.estimate import CAUSAL, FULL, Estimate, Use, seconds_of, waterfall

from ...context import Context
from ...errors import refusal
from ...state import is_empty
from ...words import saying


@dataclass(frozen=True)
class OwnStep:
    """One's own measured step. seconds: where attention counts in half, or however it is counted;
    other: where it counts in full, if it was told in TFLOP/s; else the same."""

    use: Use
    other: Use


def own_step(context: Context, estimate: Estimate) -> OwnStep | None:
    """The measured step that is typed or pasted; None without one.

    Errors: LayoutError for a text that says none.
    """
    text = context.state.own_step
    if is_empty(text):
        return None
    found = read_step(text)
    if found is None:
        raise refusal("not-a-step", "own_step", value=quoted(text.strip()))
    seconds = seconds_of(estimate.request, found.kind, found.value)
    uses = [
        Use(estimate.request, seconds.get(name, seconds.get("", 0.0))) for name in (CAUSAL, FULL)
    ]
    return OwnStep(*uses)


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
            **own.use.facts(),
        }
    return facts
