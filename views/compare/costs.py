"""What two layouts cost, side by side: memory, bubble, traffic and the time of a step.

The model, how it is trained and the cluster are those of the layout on screen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from descriptions import PAGE
from groups import LayoutError
from groups.layout import Layout
from training.estimate import Estimate

from ..base.context import Context
from ..base.html import heading, table, tag, together
from ..base.problems import once, refusal_line, tried
from ..base.state import is_empty, parse_number
from ..base.trained import Trained
from ..base.units import bytes_text, seconds_text
from ..estimate.words import KINDS, about
from ..memory.bars import gib
from ..traffic.view import rows_of


@dataclass(frozen=True)
class LayoutCost:
    """A layout's estimate, and the bytes that leave NVLink domains in a step."""

    estimate: Estimate
    across: float

    @property
    def waits(self) -> float:
        """Seconds for which a step waits for transfers of any kind."""
        return sum(self.estimate.parts[kind] for kind in KINDS)

    @property
    def rest(self) -> float:
        """Seconds of the optimizer, of states in host memory, of a host that launches slowly."""
        return sum(self.estimate.parts[name] for name in ("optimizer", "offload", "host"))

    def said(self, name: str) -> str:
        """A row of the table; a step with its interval."""
        number, say = ROWS[name]
        return about(self.estimate) if name == "cost_step" else say(number(self))


Row = tuple[Callable[[LayoutCost], float], Callable[[Any], str]]

ROWS: dict[str, Row] = {
    "cost_step": (lambda cost: cost.estimate.seconds, seconds_text),
    "cost_compute": (lambda cost: cost.estimate.parts["compute"], seconds_text),
    "cost_bubble": (lambda cost: cost.estimate.parts["bubble"], seconds_text),
    "cost_exposed": (lambda cost: cost.waits, seconds_text),
    "cost_rest": (lambda cost: cost.rest, seconds_text),
    "cost_across": (lambda cost: cost.across, bytes_text),
    "cost_memory": (lambda cost: cost.estimate.fit.needed, gib),
}
"""A word of PAGE, the number of a layout, the less the better, and how it is said."""


Sides = tuple["LayoutCost | None", "LayoutCost | None"]


def sides_of(before: Context, now: Context) -> tuple[Sides, Trained | None, list[LayoutError]]:
    """What the two layouts cost, what is trained, and why there is none of these."""
    problems: list[LayoutError] = []
    trained = tried(problems, lambda: now.trained)
    if trained is not None:  # steps can be compared only where they do the same work
        same: dict[str, Any] = {"global_batch": str(trained.batch.global_batch)}
        if is_count(before.state.layers) and is_count(now.state.layers):
            same["layers"] = now.state.layers
        same |= {"experts": now.state.experts, "micro_batches": ""}
        before = Context(before.layout, replace(before.state, **same))
    kept = tried(problems, lambda: cost_of(before.layout, before.trained))
    current = trained and tried(problems, lambda: cost_of(now.layout, trained))
    return (kept, current), trained, problems


def is_count(layers: object) -> bool:
    """Whether the layers are no pipeline layout, which is for as many stages as it says."""
    return not isinstance(parse_number(layers), str) or is_empty(layers)


def rows_of_costs(sides: Sides, language: str) -> list[tuple[str, ...]]:
    """A row a cost: its name, both layouts, how the second differs."""
    return [
        (
            PAGE[name][language],
            *("–" if side is None else side.said(name) for side in sides),
            _difference(name, *sides, language),
        )
        for name in ROWS
    ]


def costs_html(before: Context, now: Context) -> Markup:
    """A row a cost; a layout that the model does not allow says why in place of its numbers."""
    language, (sides, trained, problems) = now.language, sides_of(before, now)
    rows = rows_of_costs(sides, language)
    said = "" if trained is None else what_text(trained, language)
    heads = (PAGE[f"column_{name}"][language] for name in ("cost", "kept", "now", "difference"))
    return together(
        heading(PAGE["cost_title"][language], tag("p", said)),
        table(heads, rows, "costs"),
        *(refusal_line(error, language) for error in once(problems)),
    )


def _difference(name: str, kept: LayoutCost | None, now: LayoutCost | None, language: str) -> str:
    """By how much the layout on screen is better or worse."""
    if kept is None or now is None:
        return "–"
    before, after = (ROWS[name][0](cost) for cost in (kept, now))
    if abs(after - before) <= 0.0005 * max(before, after):
        return PAGE["cost_same"][language]
    words = "cost_better" if after < before else "cost_worse"
    if not before:
        return PAGE["cost_worse_than_none"][language]
    if after and not 0.1 < after / before < 10:
        times = max(before, after) / min(before, after)
        return PAGE[f"{words}_times"][language].format(times=f"{times:,.0f}")
    share = 100 * abs(after / before - 1)
    return PAGE[words][language].format(share=f"{share:,.0f}" if share >= 1 else f"{share:.1f}")


def what_text(now: Trained, language: str) -> str:
    batch = f"{now.batch.global_batch:,}"
    return PAGE["cost_of"][language].format(model=now.name, cluster=now.cluster.name, batch=batch)


def cost_of(layout: Layout, trained: Trained) -> LayoutCost:
    """What a layout costs.

    Errors: LayoutError for what the model, the batch or the schedule does not allow.
    """
    across = sum(row.across for row in rows_of(layout, trained))
    return LayoutCost(trained.estimate(layout), across)
