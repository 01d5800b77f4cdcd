"""The cost of a move: in total, by each rule, and beside published measurements."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from descriptions import MOVES, MOVES_RULES
from render.draw.times import draw_times
from render.scenes.times import MeasuredTime, RuleTime, TimesChart
from render.svg.marks import scene_svg
from request.answers.moves.sides import cluster_used, moves_between
from request.answers.moves.transfer import WeightTransfer, weight_transfer
from request.context import Context
from request.units import bytes_text, seconds_text
from request.words import saying
from training.machine import Machine
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
from ..base.html import fine, fold, table, tag, together

HOT = 2.0
"""A sender is named when it sends at least this many times the best possible maximum."""


@dataclass(frozen=True)
class RuleCost:
    """The moves of one rule, and the seconds that they take."""

    rule: str
    moves: Moves
    cluster: Machine

    @property
    def seconds(self) -> float:
        return seconds_of(self.moves, self.cluster)

    @property
    def usual(self) -> tuple[float, float]:
        return usual_seconds(self.moves, self.cluster)


def costs_of(transfer: WeightTransfer) -> list[RuleCost]:
    """The cost of each rule, in the page's order."""
    return transfer.source.once(_costs)


def _costs(context: Context) -> list[RuleCost]:
    transfer, costs = context.once(weight_transfer), []
    ends = transfer.moves.target.first_rank, transfer.moves.source.first_rank
    for rule in MOVES_RULES:
        moves = transfer.moves
        if rule != moves.rule:
            moves = moves_between(transfer.source, transfer.target, rule, *ends)
        costs.append(RuleCost(rule, moves, cluster_used(transfer.source)))
    return costs


# -- in all --------------------------------------------------------------------------------------


def totals_html(transfer: WeightTransfer) -> Markup:
    """Bytes by origin, the busiest sender and receiver, and the seconds of the move."""
    say, moves = saying(MOVES, transfer.language), transfer.moves
    total = sum(moves.bytes) or 1
    rows = [
        (say(name), say("share", size=bytes_text(size), share=f"{size / total:.0%}"))
        for name, size in moves.bytes._asdict().items()
    ]
    for word, is_sender in (("busiest", True), ("receiver_busiest", False)):
        busiest_rank = busiest(moves, sender=is_sender)
        if busiest_rank.bytes:
            rows.append(
                (
                    say(word),
                    say("sender", rank=busiest_rank.rank, size=bytes_text(busiest_rank.bytes)),
                )
            )
    if moves.bytes.in_node or moves.bytes.between_nodes:
        cluster = cluster_used(transfer.source)
        low, high = map(seconds_text, usual_seconds(moves, cluster))
        rows.append((say("usual"), say("between", low=low, high=high)))
        rows.append((say("time"), seconds_text(seconds_of(moves, cluster))))
    items = (together(tag("dt", name), tag("dd", value)) for name, value in rows)
    return tag("dl", *items, class_="moves-totals")


# -- by rule -------------------------------------------------------------------------------------


def rules_html(transfer: WeightTransfer) -> Markup:
    """A table of the cost of every rule; the selected one in bold, a hot sender named above it."""
    language, say = transfer.language, saying(MOVES, transfer.language)
    rows = []
    for cost in costs_of(transfer):
        sender, label = busiest(cost.moves, sender=True), MOVES_RULES[cost.rule][language]
        is_chosen = cost.rule == transfer.moves.rule
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
        tag("p", hot_text(transfer), class_="moves-hot") if hot_text(transfer) else "",
        table([*map(say, heads), say("usual")], rows, "moves-rules"),
    )


def hot_text(transfer: WeightTransfer) -> str:
    """Names a sender that sends at least HOT times the best possible maximum; "" if there is
    none."""
    times, moves = balance(transfer.moves), transfer.moves
    if times < HOT:
        return ""
    sender, sent = busiest(moves, sender=True), moves.bytes.in_node + moves.bytes.between_nodes
    return MOVES["hot"][transfer.language].format(
        rank=sender.rank,
        share=f"{sender.bytes / sent:.0%}",
        idle=f"{idle_senders(moves):,}",
        senders=f"{moves.source.ranks:,}",
        times=f"{times:.1f}",
    )


# -- on an axis ----------------------------------------------------------------------------------


def times_chart(transfer: WeightTransfer) -> TimesChart:
    """The seconds of each rule beside measured updates."""
    say, language = saying(MOVES, transfer.language), transfer.language
    rules = tuple(
        RuleTime(MOVES_RULES[cost.rule][language], cost.seconds, *cost.usual, is_chosen)
        for cost in costs_of(transfer)
        for is_chosen in (cost.rule == transfer.moves.rule,)
    )
    measured = tuple(
        MeasuredTime(one.seconds, one.is_direct, _measured_text(one)) for one in measured_updates()
    )
    nearest = next(cost for cost in costs_of(transfer) if cost.rule == "nearest")
    least = least_seconds(nearest.moves, nearest.cluster)
    least_text = say("bound", seconds=seconds_text(least))
    return TimesChart(rules, measured, (least, least_text), say("measured"))


def _measured_text(one: MeasuredUpdate) -> str:
    return f"{one.model}, {one.setup}, {one.way}: {one.seconds:g} s"


def times_html(transfer: WeightTransfer) -> Markup:
    say, chart = saying(MOVES, transfer.language), times_chart(transfer)
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
