"""The measured parts of a step beside the estimated ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from diagnosis.slow import Slowness
from groups import LayoutError
from render.palette import own_tone
from request.context import Context
from request.trained import trained_of
from request.units import seconds_text
from training.estimate import Estimate

from ..base.html import chips, fine, share_bar, table, tag, together
from ..base.problems import leads_html, problem_html
from ..estimate.view import part_name
from ..estimate.words import KINDS, seconds_about
from .seen import SeenSlow
from .words import say_of

LEAST = 0.001
"""The share of a step below which a part is not shown."""


@dataclass(frozen=True)
class StepPart:
    """One part of a step in seconds, with the time of it spent waiting, and in addition the time
    hidden by computation; measured, estimated: None if that side does not have the part."""

    name: str
    measured: float | None
    waited: float = 0.0
    hidden: float = 0.0
    estimated: float | None = None

    @property
    def apart(self) -> float:
        """Measured minus estimated; 0 if one side is missing."""
        if self.measured is None or self.estimated is None:
            return 0.0
        return self.measured - self.estimated


def measured_parts(slow: Slowness) -> dict[str, StepPart]:
    """Means over the ranks; communication as far as it is exposed, waits of a pipeline's groups as
    its bubble. If only the CPU was recorded, computation is all own work."""
    ranks = slow.ranks
    if not ranks:
        return {}
    steps = max(1, len(slow.steps))

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(ranks) / 1e6

    own = mean(sum(one.own_us) / steps for one in ranks)
    data, optimizer = mean(one.data_us for one in ranks), mean(one.optimizer_us for one in ranks)
    computed = [one.computation_us for one in ranks if one.computation_us is not None]
    is_gpu = len(computed) == len(ranks)
    compute = mean(computed) if is_gpu else max(0.0, own - data - optimizer)
    parts = {"compute": StepPart("compute", compute)}
    sums: dict[str, list[float]] = {}
    for one in ranks:
        for kind in one.kinds:
            times = sums.setdefault(own_tone(kind.kind), [0.0, 0.0, 0.0])
            for place, us in enumerate((kind.exposed_us, kind.waited_us, kind.hidden_us)):
                times[place] += us / len(ranks) / 1e6
    if "pp" in sums:
        exposed, waited, hidden = sums.pop("pp")
        parts["bubble"] = StepPart("bubble", waited, waited)
        parts["pp"] = StepPart("pp", max(0.0, exposed - waited), 0.0, hidden)
    for name, (exposed, waited, hidden) in sums.items():
        parts[name or "unknown"] = StepPart(name or "unknown", exposed, waited, hidden)
    parts["optimizer"] = StepPart("optimizer", optimizer or None)
    parts["data"] = StepPart("data", data or None)
    if is_gpu:
        parts["own"] = StepPart("own", max(0.0, own - compute - data))
    return parts


def parts_of(slow: Slowness, estimate: Estimate | None) -> list[StepPart]:
    """Measured beside estimated parts; those of the estimate in its order, the rest after them."""
    measured = measured_parts(slow)
    planned = estimate.parts if estimate else {}
    names = dict.fromkeys([*planned, *measured])
    rows = []
    for name in names:
        one = measured.get(name, StepPart(name, None))
        rows.append(StepPart(name, one.measured, one.waited, one.hidden, planned.get(name)))
    most = max(slow.step_us / 1e6, estimate.seconds if estimate else 0.0)
    return [
        one
        for one in rows
        if max(one.measured or 0.0, one.estimated or 0.0, one.hidden) >= LEAST * most
    ]


def estimate_of_seen(seen: SeenSlow, context: Context) -> Estimate:
    """The estimate of the page's model on the shown layout. Errors: LayoutError."""
    return trained_of(seen.layout, context.state).estimate(seen.layout)


def most_apart(parts: Iterable[StepPart]) -> StepPart | None:
    """The part with the largest difference; None if no part is on both sides."""
    both = [one for one in parts if one.measured is not None and one.estimated is not None]
    return max(both, key=lambda one: abs(one.apart), default=None)


def parts_html(seen: SeenSlow, context: Context) -> Markup:
    """A sentence about the largest difference, then a table of the parts."""
    language, say = context.language, say_of(context.language)
    estimate, refused = None, Markup()
    if not seen.layout.is_server:
        try:
            estimate = estimate_of_seen(seen, context)
        except LayoutError as error:
            refused = problem_html(error, language, [])
    parts = parts_of(seen.slow, estimate)
    return together(
        tag("h3", say("parts_title")),
        refused,
        _summary(seen, parts, estimate, context),
        _table(parts, language),
        "" if _is_gpu(seen.slow) else fine(say("parts_cpu")),
    )


def _is_gpu(slow: Slowness) -> bool:
    return all(one.computation_us is not None for one in slow.ranks)


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
    return table(heads, rows, "slow-parts")


def _time(seconds: float | None, most: float) -> object:
    return "–" if seconds is None else together(seconds_text(seconds), share_bar(seconds / most))
