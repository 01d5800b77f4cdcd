"""The measured parts of a step beside the estimated ones."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from groups import LayoutError
from request.answers.estimate.words import KINDS, part_name, seconds_about
from request.answers.slow.parts import StepPart, is_gpu, most_apart, parts_of
from request.answers.slow.seen import SeenSlow
from request.context import Context, of_server
from request.trained import trained_of
from request.units import seconds_text
from training.estimate import Estimate

from ..base.html import chips, fine, share_bar, table, tag, together
from ..base.problems import leads_html, problem_html
from .words import say_of


def estimate_of_seen(seen: SeenSlow, context: Context) -> Estimate:
    """The estimate of the page's model on the shown layout. Errors: LayoutError."""
    return trained_of(seen.layout, context.state).estimate(seen.layout)


def _no_step(_: SeenSlow) -> tuple[Estimate | None, Markup]:
    return None, Markup()


@of_server(_no_step)
def _estimated(seen: SeenSlow, context: Context) -> tuple[Estimate | None, Markup]:
    """The estimate of a step, or why there is none; of a run without kernels there is none: it did
    not compute the model on the page's GPUs."""
    if not is_gpu(seen.slow):
        return _no_step(seen)
    try:
        return estimate_of_seen(seen, context), Markup()
    except LayoutError as error:
        return None, problem_html(error, context.language, [])


def parts_html(seen: SeenSlow, context: Context) -> Markup:
    """A sentence about the largest difference, then a table of the parts."""
    language, say = context.language, say_of(context.language)
    estimate, refused = _estimated(seen, context)
    parts = parts_of(seen.slow, estimate)
    return together(
        tag("h3", say("parts_title")),
        refused,
        _summary(seen, parts, estimate, context),
        _table(parts, language),
        "" if is_gpu(seen.slow) else fine(say("parts_cpu")),
    )


def apart_text(parts: Iterable[StepPart], language: str) -> str:
    """The largest difference between plan and run, in a sentence; empty if nothing can be
    compared."""
    part = most_apart(parts)
    if part is None or part.measured is None or part.estimated is None:
        return ""
    times = (seconds_text(part.measured), seconds_about(part.estimated))
    facts = {"part": named(part.name, language), "measured": times[0], "estimated": times[1]}
    return say_of(language)("parts_apart", **facts)


def _summary(
    seen: SeenSlow, parts: list[StepPart], estimate: Estimate | None, context: Context
) -> Markup:
    language, say = context.language, say_of(context.language)
    step = seconds_text(seen.slow.step_us / 1e6)
    if estimate is None:
        return tag("p", say("parts_step", step=step))
    trained = trained_of(seen.layout, context.state)
    facts = {"model": trained.name(language), "cluster": trained.cluster.name}
    sentence = say("parts_both", step=step, about=seconds_about(estimate.seconds), **facts)
    lead = leads_html("model", say("parts_lead"))
    return tag("p", sentence, " ", apart_text(parts, language), " ", lead)


def named(name: str, language: str) -> str:
    """The name of a part in the table, for a wait with its kind."""
    if name in KINDS:
        return f"{part_name(name, language)} {name}"
    own = f"part_{name}"
    return (
        say_of(language)(own) if name in ("data", "own", "unknown") else part_name(name, language)
    )


def _table(parts: list[StepPart], language: str) -> Markup:
    say = say_of(language)
    longest = most_apart(parts)
    full = max([1e-9, *(max(one.measured or 0.0, one.estimated or 0.0) for one in parts)])
    rows = []
    for one in parts:
        name: object = named(one.name, language)
        if one.name in KINDS:
            name = together(part_name(one.name, language), " ", chips([one.name]))
        apart = ""
        if one.measured is not None and one.estimated is not None:
            sign = "+" if one.apart > 0 else "-"
            apart = sign + seconds_text(abs(one.apart)) if one.apart else "="
        rows.append(
            (
                name,
                _time(one.measured, full),
                seconds_text(one.waited) if one.waited else "–",
                seconds_text(one.hidden) if one.hidden else "–",
                _time(one.estimated, full),
                tag("b", apart) if one is longest else apart or "–",
            )
        )
    heads = [say(f"column_{name}") for name in
             ("part", "measured", "waited", "hidden", "estimated", "apart")]  # fmt: skip
    columns = len(heads) if any(one.estimated is not None for one in parts) else -2
    return table(heads[:columns], [row[:columns] for row in rows], "slow-parts")


def _time(seconds: float | None, most: float) -> object:
    return "–" if seconds is None else together(seconds_text(seconds), share_bar(seconds / most))
