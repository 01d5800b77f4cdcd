"""Two layouts of which one, at least, is a server: fact by fact what each has, or one alone.

A server has no training step, so what can be compared is GPUs, groups, weights and room for
requests; and how fast each answers the requests that are asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from descriptions import PAGE, SERVER, SPEED, joined
from groups import LayoutError
from groups.audit import Span, span
from groups.layout import Layout

from ...model import model_name
from ...resolve import main_groupings
from ...served import ServedModel
from ...trained import GIB, machine_of_state
from ...units import gib
from ...words import saying, sentence
from ..served.speed import speed_of
from ..served.words import ms, rate_text, requests_text
from .differences import difference, times_text
from .sides import Compared, Side

ALIKE = 0.005
"""Share by which room for tokens that is said to be alike differs at most."""


@dataclass(frozen=True)
class Fact:
    """A figure of servers: its number in a unit, and its text."""

    name: str
    number: Callable[[ServedModel], float]
    unit: str = ""
    text: Callable[[float], str] = "{:,.0f}".format

    def of(self, side: Side) -> float | None:
        """The number of a server; None of what is none, or is refused."""
        return None if side.served is None else self.number(side.served)


FACTS = (
    Fact("servers", lambda served: served.servers),
    Fact("weights", lambda served: max(one.weights for one in served.memory.stages), "gib", gib),
    Fact("cache", lambda served: served.memory.deciding.available, "gib", gib),
    Fact("tokens", lambda served: served.tokens),
    Fact("gpu_tokens", lambda served: served.tokens / served.layout.world_size),
    Fact("requests", lambda served: served.requests, text="{:,.1f}".format),
    Fact("gpu_requests", lambda served: served.requests / served.layout.world_size,
         text="{:,.2f}".format),
)  # fmt: skip


def leaving(layout: Layout) -> list[Span]:
    """The kinds of groups that leave their node, with how many do, on how many nodes."""
    spans = (span(one, layout.gpus_per_node) for one in main_groupings(layout) if one.size > 1)
    return [one for one in spans if one.crossing]


# -- in words --------------------------------------------------------------------------------------


def verdict_served(found: Compared, language: str) -> str:
    """Which has more room for tokens; of a server and a job, what only one of them has."""
    return joined(_sentences(found, language), language)


def _sentences(found: Compared, language: str) -> Iterator[str]:
    say = saying(SERVER, language)
    if found.has_step:
        (server,), (job,) = found.doing("serve"), found.doing("train")
        yield say("verdict_apart", server=server.name, job=job.name)
        return
    able = [side for side in found.sides if side.served is not None]
    if len(able) < 2:
        yield _refused(found, able, language)
        return
    less, more = sorted(able, key=_gpu_tokens)
    ratio = _gpu_tokens(more) / _gpu_tokens(less)
    facts = {"most": f"{_gpu_tokens(more):,.0f}", "least": f"{_gpu_tokens(less):,.0f}"}
    if ratio < 1 + ALIKE:
        yield say("verdict_alike", **facts)
    else:
        facts |= {"more": more.name, "other": less.name, "times": times_text(ratio, language)}
        yield say("verdict_more", **facts)
    yield from _speeds(found, language)


APART = 1.1
"""The ratio of two speeds from which on they are told apart: 96 of 100 measured pairs of layouts of
one model on one machine that differ by more than a twentieth are in the order that is worked out
(`python -m benchmarks.fit_serving`)."""


def _speeds(found: Compared, language: str) -> Iterator[str]:
    """Which of two servers answers quicker with the same requests at once, and whose GPUs give
    more; or why one of them is not told."""
    say, speeds = saying(SPEED, language), []
    for side in found.sides:
        try:
            speeds.append((side.name, speed_of(side.context)))
        except LayoutError as error:
            yield say("compare_refused", name=side.name, why=sentence(error, language))
    if len(speeds) < 2:
        return
    (quick, first), (slow, second) = sorted(speeds, key=lambda each: each[1].speed.seconds)
    ratio = second.speed.seconds / first.speed.seconds
    facts = {
        "requests": requests_text(first.asked.load.requests, language),
        "faster": quick,
        "other": slow,
        "times": times_text(ratio, language),
        "first": ms(first.speed.seconds),
        "second": ms(second.speed.seconds),
        "rate": rate_text(first.rate),
        "other_rate": rate_text(second.rate),
        "gpu": rate_text(second.gpu_rate),
        "other_gpu": rate_text(first.gpu_rate),
    }
    if ratio < APART:
        yield say("compare_alike", **facts)
    elif second.gpu_rate > APART * first.gpu_rate:
        yield say("compare_trade", **facts)
    else:
        yield say("compare_faster", **facts)


def _refused(found: Compared, able: list[Side], language: str) -> str:
    say = saying(SERVER, language)
    if not able:
        return say("verdict_neither")
    (other,) = able
    assert other.served
    refused = found.second if other is found.first else found.first
    facts = {"refused": refused.name, "other": other.name, "tokens": f"{other.served.tokens:,}"}
    return say("verdict_only", **facts)


def _gpu_tokens(side: Side) -> float:
    assert side.served
    return side.served.tokens / side.layout.world_size


def what_served(found: Compared, language: str) -> str:
    """What is served, on which GPUs; empty where that is refused."""
    served = next((side.served for side in reversed(found.sides) if side.served), None)
    if served is None:
        return ""
    return SERVER["facts_of"][language].format(
        model=model_name(served.chosen, language),
        cluster=machine_of_state(found.second.context.state).name,
        length=f"{served.serving.length:,}",
    )


def rows_of_facts(found: Compared, language: str) -> dict[str, tuple[str, ...]]:
    """A row a fact, by its name: what it is called, both layouts, and how the second differs or who
    alone has it."""
    say = saying(SERVER, language)
    first, second = (side.layout.world_size for side in found.sides)
    left = [_leaving_text(side.layout, language) for side in found.sides]
    is_same = PAGE["cost_same"][language] if left[0] == left[1] else ""
    rows: dict[str, tuple[str, ...]] = {
        "gpus": (say("fact_gpus"), f"{first:,}", f"{second:,}", difference(first, second, language))
    }
    for fact in FACTS:
        numbers = [fact.of(side) for side in found.sides]
        texts = ["–" if number is None else fact.text(number) for number in numbers]
        rows[fact.name] = (say(f"fact_{fact.name}"), *texts, _judged(found, numbers, language))
    return rows | {"leaving": (say("fact_leaving"), *left, is_same)}


def _judged(found: Compared, numbers: list[float | None], language: str) -> str:
    first, second = numbers
    if first is not None and second is not None:
        return difference(first, second, language)
    return SERVER["only_served"][language] if found.has_step else "–"


def _leaving_text(layout: Layout, language: str) -> str:
    """
    >>> from groups.layout import Job
    >>> _leaving_text(Job(nodes=2, tp=16, framework="vllm").layout(), "en")
    'tp: 1 of 1, on 2 nodes'
    """
    say = saying(SERVER, language)
    kinds = (
        say("leaves", kind=one.name, crossing=one.crossing, groups=one.groups, nodes=one.most)
        for one in leaving(layout)
    )
    return say("semicolon").join(kinds) or say("none_leaves")


# -- for programs ----------------------------------------------------------------------------------


def numbers_of_facts(found: Compared) -> list[list[object]]:
    """A row a fact for programs: its name with its unit, both numbers, None where there is none,
    and who alone has it."""
    rows: list[list[object]] = [["gpus", *(side.layout.world_size for side in found.sides), ""]]
    for fact in FACTS:
        numbers = [fact.of(side) for side in found.sides]
        size = GIB if fact.unit else 1
        shown = (None if one is None else round(one / size, 3) for one in numbers)
        name = "_".join(filter(None, (fact.name, fact.unit)))
        rows.append([name, *shown, SERVER["only_served"]["en"] if found.has_step else ""])
    kinds = (" ".join(one.name for one in leaving(side.layout)) or "-" for side in found.sides)
    return [*rows, ["leave_node", *kinds, ""]]
