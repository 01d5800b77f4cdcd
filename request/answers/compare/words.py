"""The sentences of the Compare view: the verdict, and why a cost that is worse does not decide."""

from __future__ import annotations

from collections.abc import Iterator

from descriptions import PAGE, SERVER, joined
from training.estimate.memory import CLOSE, OVER
from training.search import compared
from training.search.verdict import Verdict

from ...trained import GIB
from ...units import bytes_text, gib, interval_text, seconds_text
from ...words import saying
from ..estimate.measured import measured_text
from ..estimate.words import share_text, step_text
from ..search import reason_text
from .differences import SAME, difference, times_text
from .servers import numbers_of_facts, rows_of_facts, verdict_served
from .sides import COSTS, PARTS, USED, Compared, Cost, Side

OF_MEMORY = ("fits", "lacks", "close")
"""Reasons that are not about time (training.search.reasons)."""


# -- the verdict ---------------------------------------------------------------------------------


def verdict_text(found: Compared, language: str, *, is_short: bool = False) -> str:
    """Which layout is better and by how much, then caveats; short without how sure the order is,
    which stands beside the steps too.

    Empty where the model or the batch on screen is refused, so that there is nothing to judge.
    """
    if found.is_same:
        return PAGE["verdict_same"][language]
    if found.serves:
        return verdict_served(found, language)
    if found.trained is None:
        return ""
    sure = () if is_short else _sure(found, language)
    return joined([*_sentence(found, language), *sure, *_besides(found, language)], language)


def _sentence(found: Compared, language: str) -> Iterator[str]:
    say, verdict = saying(PAGE, language), found.verdict
    if verdict.by == "refused":
        yield _refused(found, language)
        return
    by, better = verdict.by, found.sides[verdict.better or 0]
    worse = found.second if better is found.first else found.first
    assert better.estimate
    assert worse.estimate
    needed, memory = needed_text(worse), needed_text(better)
    facts = {"needed": needed, "memory": memory, "capacity": capacity_text(found)}
    if by == "memory" and verdict.better is None:
        facts |= {"first": better.name, "needed": memory, "second": worse.name, "memory": needed}
        yield say("verdict_neither", **facts)
    elif by == "memory":
        names = {"over": worse.name, "other": better.name, "step": step_text(better.estimate)}
        yield say("verdict_host" if _lacks_host(worse, found) else "verdict_over", **facts, **names)
    elif by == "time":
        quick, slow = step_text(better.estimate), step_text(worse.estimate)
        yield say("verdict_time", better=better.name, worse=worse.name, quick=quick, slow=slow)
        reasons = compared(better.estimate, worse.estimate)
        reason = next(reason for reason in reasons if reason.code not in OF_MEMORY)
        yield say("verdict_mostly", reason=reason_text(reason, language))
    else:
        yield _alike(found, language)


def _refused(found: Compared, language: str) -> str:
    say = saying(PAGE, language)
    able = [side for side in found.sides if side.estimate is not None]
    if len(able) != 1 or able[0].estimate is None:
        return say("verdict_both_refused")
    (other,), estimate = able, able[0].estimate
    refused = found.second if other is found.first else found.first
    facts = {"refused": refused.name, "other": other.name, "step": step_text(estimate)}
    facts |= {"needed": needed_text(other), "capacity": capacity_text(found)}
    return say("verdict_refused" if estimate.fits else "verdict_refused_over", **facts)


def _alike(found: Compared, language: str) -> str:
    """The sentence for steps within each other's error."""
    say = saying(PAGE, language)
    steps = [step_text(side.estimate) for side in found.sides if side.estimate]
    words = "steps_each" if steps[0] == steps[1] else "steps_both"
    facts = {"steps": say(words, step=steps[0], first=steps[0], second=steps[-1])}
    facts["between"] = say("between_nodes" if _is_node(found) else "between_domains")
    if found.verdict.by == "nothing":
        return say("verdict_nothing", **facts)
    less, more = sorted(found.sides, key=lambda side: side.across)
    if not less.across:
        return say("verdict_only", **facts, more=more.name, bytes=bytes_text(more.across))
    times = times_text(more.across / less.across, language)
    return say("verdict_bytes", **facts, more=more.name, times=times)


def _besides(found: Compared, language: str) -> Iterator[str]:
    """Caveats: which layout is close to the limit, and GPU seconds if one has more GPUs."""
    say = saying(PAGE, language)
    near = {
        side.name: interval_text(side.estimate.fit, language)
        for side in found.sides
        if side.estimate and side.estimate.verdict == CLOSE
    }
    if len(near) == 2:
        first, second = near.values()
        facts = {"first": first, "second": second, "capacity": capacity_text(found)}
        yield say("verdict_close_both", **facts)
    else:
        for name, needed in near.items():
            yield say("verdict_close", name=name, needed=needed, capacity=capacity_text(found))
    fewer, more = sorted(found.sides, key=lambda side: side.layout.world_size)
    ratio = more.layout.world_size / fewer.layout.world_size
    if ratio > 1 and more.estimate and fewer.estimate:
        names = {"more": more.name, "fewer": fewer.name, "times": times_text(ratio, language)}
        yield say("verdict_gpus", **names, small=_gpu_seconds(fewer), large=_gpu_seconds(more))


def _sure(found: Compared, language: str) -> Iterator[str]:
    """How sure it is that one is quicker, where both fit."""
    order = found.order
    if order is None or not _has_order(found):
        return
    first, second = found.sides
    low, high = order.low, order.high
    if order.share < 0.5:  # the quicker one is named, and its time is a part of the other's
        first, second, low, high = second, first, 1 / high, 1 / low
    facts = {"quicker": first.name, "other": second.name}
    facts |= {"low": f"{low:.2f}", "high": f"{high:.2f}"}
    share = share_text(max(order.share, 1 - order.share))
    yield PAGE["verdict_sure"][language].format(share=share, **facts)


def _has_order(found: Compared) -> bool:
    """Whether the order of both steps is of interest: both fit, and are not the same."""
    order = found.order
    is_told = found.verdict.by not in ("refused", "memory")
    return is_told and order is not None and order.low < order.high


def _gpu_seconds(side: Side) -> str:
    """GPU seconds of a step in three digits, or with all integer digits."""
    assert side.estimate
    count = side.layout.world_size * side.estimate.seconds
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def measured_lines(found: Compared, language: str) -> Iterator[str]:
    """Measured values of sources for either layout at the work of both, with its name."""
    for side in found.sides:
        if sentence := measured_text(side.worked):
            yield PAGE["measured_of"][language].format(side=side.name, measured=sentence)


def _is_node(found: Compared) -> bool:
    """Whether an NVLink domain is at most a node."""
    assert found.trained
    each = (side.layout.gpus_per_node for side in found.sides)
    return all(found.trained.cluster.domain_of(gpus) == gpus for gpus in each)


def needed_text(side: Side) -> str:
    """GiB that a GPU needs, in front of "of" its memory."""
    assert side.estimate
    return gib(side.estimate.fit.needed).removesuffix(" GiB")


def capacity_text(found: Compared) -> str:
    assert found.trained
    return gib(found.trained.capacity).replace(".0 ", " ")


def _lacks_host(side: Side, found: Compared) -> bool:
    """Whether host memory is what does not suffice."""
    assert side.estimate
    return side.estimate.memory_low <= side.estimate.request.usable


# -- the costs -----------------------------------------------------------------------------------


def rows_of_costs(found: Compared, language: str) -> dict[str, tuple[str, ...]]:
    """A row for each cost by its name, in the order of COSTS: its label, both values, their
    difference, and the weight of that. For a server also the costs of servers; those of a step only
    if the other layout has one."""
    rows = rows_of_facts(found, language) if found.serves else {}
    if found.has_step:
        costs = [side.cost(language) for side in found.sides]
        for name in COSTS:
            amounts = ("–" if cost is None else cost[name][1] for cost in costs)
            rows[name] = (PAGE[name][language], *amounts, _judged(name, found, language))
    return rows


ASCII = str.maketrans({"\N{MINUS SIGN}": "-", "\N{MICRO SIGN}": "u"})

UNITS = dict(zip(COSTS, ("gib", *("seconds",) * (1 + len(PARTS)), "bytes", "share", "per_second")))
"""Suffixes of the costs' names for programs: their units."""


def numbers_of_costs(found: Compared) -> list[list[object]]:
    """A row for each cost, for programs: its name with its unit, both numbers (None if refused),
    and the weight of their difference; for a server as `rows_of_costs`."""
    rows = numbers_of_facts(found) if found.serves else []
    costs = [side.cost() for side in found.sides]
    for name in COSTS if found.has_step else ():
        unit, numbers = UNITS[name], (None if cost is None else cost[name][0] for cost in costs)
        if unit == "gib":
            numbers = (number and round(number / GIB, 3) for number in numbers)
        elif unit in ("seconds", "share"):
            numbers = (number and round(number, 6) for number in numbers)
        elif unit == "per_second":
            numbers = (number and round(number, 1) for number in numbers)
        why = _judged(name, found, "en") if found.serves else counts_text(name, found, "en")
        rows.append([f"{name.removeprefix('cost_')}_{unit}", *numbers, why.translate(ASCII)])
    return rows


def _judged(name: str, found: Compared, language: str) -> str:
    """The difference of a cost, and whether it decides, or why not."""
    first, second = (side.cost() for side in found.sides)
    if found.serves:
        return SERVER["only_trained"][language]
    if first is None or second is None:
        return "–"
    differs = difference(first[name][0], second[name][0], language)
    counts = counts_text(name, found, language)
    return f"{differs}{PAGE['colon'][language]}{counts}" if counts else differs


def counts_text(name: str, found: Compared, language: str) -> str:
    """The weight of a cost's difference in words; empty if there is none."""
    first, second = (side.cost() for side in found.sides)
    if first is None or second is None:
        return ""
    before, after = first[name][0], second[name][0]
    why = _why(name, found, first, second)
    if abs(after - before) <= SAME * max(before, after) or not why:
        return ""
    sign = "+" if after > before else "\N{MINUS SIGN}"
    facts = {"error": f"{100 * found.verdict.error:.0f}"}
    facts["seconds"] = f"{sign}{seconds_text(abs(after - before))}"
    text = PAGE[why][language].format(**facts)
    if name == "cost_step" and found.order and _has_order(found):
        share = share_text(max(found.order.share, 1 - found.order.share))
        text += PAGE["sure_short"][language].format(share=share)
    return text


def _why(name: str, found: Compared, first: Cost, second: Cost) -> str:
    """The reason for the weight of a difference."""
    verdict, is_more = found.verdict, second[name][0] > first[name][0]
    if name == "cost_memory":
        return _why_memory(found, verdict)
    if name in USED:
        return ""
    if name in PARTS:
        in_all = second["cost_step"][0] - first["cost_step"][0]
        return "why_part" if (in_all > 0) == is_more else "why_outweighed"
    decides = {"cost_step": "time", "cost_across": "bytes"}[name]
    if verdict.by == decides:
        return "why_worse" if is_more else "why_better"
    if verdict.by == "memory":
        return "why_unfit"
    return "why_error" if name == "cost_step" else "why_timed" if verdict.by == "time" else ""


def _why_memory(found: Compared, verdict: Verdict) -> str:
    if verdict.by == "memory":
        if verdict.better is None:
            return "why_neither"
        return "why_fits" if verdict.better else "why_over"
    fits = [side.estimate.verdict for side in found.sides if side.estimate]
    return "" if OVER in fits else "why_close" if CLOSE in fits else "why_both"
