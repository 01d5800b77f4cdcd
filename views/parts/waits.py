"""The cost of latency-bound groups that leave their node."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from descriptions import PAGE
from groups import LayoutError
from request.answers.estimate.words import seconds_about, step_text
from request.answers.traffic import rows_of
from request.context import Context
from request.units import bytes_text
from request.words import saying

PARTS = {"tp": "tp", "cp": "cp", "ep": "ep", "etp": "ep"}
"""The part of a step that waits for a kind (training.estimate.seconds)."""


def cost_of_waiting(names: Collection[str], context: Context) -> Iterator[str]:
    """Sentences: the share of a step that waits for these groups, and the link that bounds them;
    without numbers if the model or the batch is refused.

    >>> from request.trained import published
    >>> from request.state import State
    >>> cost, routing = cost_of_waiting(["ep"], Context.of(State(**published("deepseek-v3"))))
    >>> cost.replace("\N{NO-BREAK SPACE}", " ").partition("a GPU ")[2]
    'sends 821 GB for this, and 52 ms of about 16 s are spent waiting for it.'
    """
    say, language = saying(PAGE, context.language), context.language
    kinds = [kind for kind in PARTS if kind in names]
    try:
        trained = context.trained
        estimate = trained.estimate(context.layout)
        rows = [row for row in rows_of(context.layout, trained) if row.kind in kinds]
    except LayoutError:
        rows = []
    if not rows:
        yield say("audit_waits")
        return
    yield say(
        "audit_cost",
        model=trained.name(language),
        wait=seconds_about(sum(estimate.parts[part] for part in {PARTS[kind] for kind in kinds})),
        step=step_text(estimate),
        sent=bytes_text(max(map(sum, zip(*(row.by_stage for row in rows))))),
    )
    model = trained.model
    if "ep" in kinds and model.router_groups:
        facts = {"chosen": model.router_group_top_k, "groups": model.router_groups}
        yield say("audit_routing", **facts)
