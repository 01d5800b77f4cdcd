"""What a move costs: in all, by each rule, and beside what others measured."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from descriptions import MOVES, MOVES_RULES
from render.draw.times import draw_times
from render.scenes.times import MeasuredTime, RuleTime, TimesChart
from render.svg.marks import scene_svg
from training.clusters import Cluster
from training.moves import Moves
from training.moves.cost import (
    balance,
    busiest,
    idle_senders,
    least_seconds,
    seconds_of,
    usual_seconds,
)
from training.moves.published import MeasuredUpdate, measured_updates

from ..base import form
from ..base.context import Context
from ..base.html import fine, fold, saying, table, tag, together
from ..base.units import bytes_text, seconds_text
from .asked import Asked, asked_of
from .sides import cluster_used, moves_between

HOT = 2.0
"""Times the best possible that a sender sends where it is named."""


@dataclass(frozen=True)
class RuleCost:
    """What moves by one rule, and what that takes."""

    rule: str
    moves: Moves
    cluster: Cluster

    @property
    def seconds(self) -> float:
        return seconds_of(self.moves, self.cluster)

    @property
    def usual(self) -> tuple[float, float]:
        return usual_seconds(self.moves, self.cluster)


def costs_of(asked: Asked) -> list[RuleCost]:
    """Each rule, in the order of the page."""
    return asked.source.once(_costs)


def _costs(context: Context) -> list[RuleCost]:
    asked, costs = context.once(asked_of), []
    ends = asked.moves.target.first_rank, asked.moves.source.first_rank
    for rule in MOVES_RULES:
        moves = asked.moves
        if rule != moves.rule:
            moves = moves_between(asked.source, asked.target, rule, *ends)
        costs.append(RuleCost(rule, moves, cluster_used(asked.source)))
    return costs


# -- in all --------------------------------------------------------------------------------------


def totals_html(asked: Asked) -> Markup:
    """Bytes by where they come from, who is busiest, and how long that takes."""
    say, moves = saying(MOVES, asked.language), asked.moves
    total = sum(moves.bytes) or 1
    rows = [
        (say(name), say("share", size=bytes_text(size), share=f"{size / total:.0%}"))
        for name, size in moves.bytes._asdict().items()
    ]
    for word, is_sender in (("busiest", True), ("receiver_busiest", False)):
        most = busiest(moves, sender=is_sender)
        if most.bytes:
            rows.append((say(word), say("sender", rank=most.rank, size=bytes_text(most.bytes))))
    if moves.bytes.in_node or moves.bytes.between_nodes:
        rows.append((say("time"), time_text(asked)))
    items = (together(tag("dt", name), tag("dd", value)) for name, value in rows)
    return tag("dl", *items, class_="moves-totals")


def time_text(asked: Asked) -> str:
    """Seconds at link speed, and between what real updates take."""
    cluster = cluster_used(asked.source)
    low, high = map(seconds_text, usual_seconds(asked.moves, cluster))
    seconds = seconds_text(seconds_of(asked.moves, cluster))
    return MOVES["usually"][asked.language].format(seconds=seconds, low=low, high=high)


# -- by rule -------------------------------------------------------------------------------------


def rules_html(asked: Asked) -> Markup:
    """What every rule costs, a row each; the one that counts is marked, a hot sender named."""
    language, say = asked.language, saying(MOVES, asked.language)
    rows = []
    for cost in costs_of(asked):
        sender, label = busiest(cost.moves, sender=True), MOVES_RULES[cost.rule][language]
        is_chosen = cost.rule == asked.moves.rule
        low, high = map(seconds_text, cost.usual)
        rows.append(
            (
                tag("b", label) if is_chosen else form.setter({"moves_rule": cost.rule}, label),
                *map(bytes_text, cost.moves.bytes),
                say("sender", rank=sender.rank, size=bytes_text(sender.bytes)),
                say("multiple", times=f"{balance(cost.moves):.1f}"),
                seconds_text(cost.seconds),
                say("between", low=low, high=high) if cost.seconds else "–",
            )
        )
    heads = ("rule", "same_gpu", "in_node", "between_nodes", "busiest", "times_best", "time")
    return together(
        tag("h3", say("rules")),
        tag("p", hot_text(asked), class_="moves-hot") if hot_text(asked) else "",
        table([*map(say, heads), say("usual")], rows, "moves-rules"),
    )


def hot_text(asked: Asked) -> str:
    """Of a sender that sends far more than its part: which, and how much more; else empty."""
    times, moves = balance(asked.moves), asked.moves
    if times < HOT:
        return ""
    sender, sent = busiest(moves, sender=True), moves.bytes.in_node + moves.bytes.between_nodes
    return MOVES["hot"][asked.language].format(
        rank=sender.rank,
        share=f"{sender.bytes / sent:.0%}",
        idle=f"{idle_senders(moves):,}",
        senders=f"{moves.source.ranks:,}",
        times=f"{times:.1f}",
    )


# -- on an axis ----------------------------------------------------------------------------------


def times_chart(asked: Asked) -> TimesChart:
    """Each rule's time, and what others measured."""
    say, language = saying(MOVES, asked.language), asked.language
    rules = tuple(
        RuleTime(MOVES_RULES[cost.rule][language], cost.seconds, *cost.usual, is_chosen)
        for cost in costs_of(asked)
        for is_chosen in (cost.rule == asked.moves.rule,)
    )
    measured = tuple(
        MeasuredTime(one.seconds, one.is_direct, _measured_text(one)) for one in measured_updates()
    )
    nearest = next(cost for cost in costs_of(asked) if cost.rule == "nearest")
    least = least_seconds(nearest.moves, nearest.cluster)
    told = say("bound", seconds=seconds_text(least))
    return TimesChart(rules, measured, (least, told), say("measured"))


def _measured_text(one: MeasuredUpdate) -> str:
    return f"{one.model}, {one.setup}, {one.way}: {one.seconds:g} s"


def times_html(asked: Asked) -> Markup:
    say, chart = saying(MOVES, asked.language), times_chart(asked)
    rows = [
        (one.model, f"{one.setup}, {one.way}", f"{one.seconds:g}", one.source)
        for one in measured_updates()
    ]
    heads = (say(f"column_{name}") for name in ("model", "setup", "seconds", "source"))
    drawn = scene_svg("moves-times", chart, draw_times(chart, "page"), say("times_picture"))
    return tag(
        "section",
        Markup(drawn),
        tag(
            "div",
            fine(say("times_note")),
            fold(say("published"), table(heads, rows, "moves-published")),
        ),
        class_="moves-scale",
    )
