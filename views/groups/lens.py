"""Costs of a GPU by stage, and its measured number, as colours on the picture of the job.

The page asks for them once the picture stands: its card leads to the views that explain them, and
its lenses colour the mesh by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from descriptions import HOSTS_WORDS, JOB, counted, joined
from descriptions import VIEWS as TITLES
from diagnosis.slow.outliers import Slow
from groups import LayoutError
from groups.budget import within
from render.scenes.heat import LEVELS
from request.answers.hang.case import case_on_page, has_chain
from request.answers.pipeline.step import timeline_of
from request.answers.pipeline.timed import about_percent
from request.answers.traffic import rows_of
from request.context import Context
from request.link import from_values, parsed
from request.resolve import main_groupings, resolve
from request.state import State, is_empty
from request.trained import GIB
from request.units import bytes_text, ranges_text
from request.words import saying

from ..base.html import as_json, unparted
from ..parts.chain import ROLES, chain_of
from ..parts.measured import measured, outlier_name, outlier_text, range_of
from ..parts.numbers import numbers_html
from ..parts.values import ends_of, heat_of
from .film import strip_of

MOST_IDLE = 0.3
"""The share of a pipeline's time that has the last colour of its scale, for every layout."""

DIGITS = 3
"""Decimal places of the shares that colour stages."""

WAYS = 3
"""The most buttons that lead to what stands out."""

MOST_NAMED = 512
"""The most ranks of a group that a button names; of a larger one it pins the first."""


@within()
def lens(sent: object) -> str:
    """The costs of a state sent by the page, as far as they are known, as JSON.

        numbers   the four numbers of the job as HTML, as the view shows them
        strip     the step that can be played, before it is (film.strip_of)
        sends     what a GPU sends over each kind in a step (sends_of)
        lenses    on the first screen, by view {"shares": of its scale, by pipeline stage,
                  "said": by stage, "values": short, for the cells, "scale": [least, most] in
                  words, "asks": its question,
                  "says": the answer}; of a hang {"ranks": {rank: role}}; of numbers that were
                  pasted those of ``numbers_lens``

    What is refused, or not asked for, is left out.
    """
    state = from_values(parsed(sent))
    try:
        context = Context(resolve(state), state)
    except LayoutError:
        return "{}"
    view, lenses = view_named(state), dict[str, object]()
    for name, work in LENSES.items() if view == "groups" else ():
        with suppress(LayoutError):  # the view itself says why
            lenses[name] = work(context)
    answer: dict[str, object] = {"numbers": numbers_html(context, view), "lenses": lenses}
    if view == "groups":
        with suppress(LayoutError):
            answer["strip"] = strip_of(context)
        with suppress(LayoutError):
            answer["sends"] = sends_of(context)
    return as_json(answer)


def view_named(state: State) -> str:
    """The view that the state shows; the first one for an unknown name."""
    return state.view if state.view in TITLES else "groups"


def memory_lens(context: Context) -> dict[str, object]:
    """The memory that a GPU of each stage needs, of its capacity: as Memory says of the fullest."""
    capacity = context.trained.capacity
    held = context.trained.estimate(context.layout).fit.needs
    texts = [
        JOB["cost_over" if one > capacity else "cost_memory"][context.language].format(
            held=f"{one / GIB:.1f}", most=f"{capacity / GIB:,.0f}"
        )
        for one in held
    ]
    scale = ["0", f"{capacity / GIB:,.0f} GiB"]
    say, numbers = saying(JOB, context.language), np.array(held)
    if f"{numbers.max() / GIB:.1f}" == f"{numbers.min() / GIB:.1f}":
        says = say("lens_even_memory", held=f"{numbers.max() / GIB:.1f} GiB")
    else:
        most, least = _stage(numbers.argmax(), say), _stage(numbers.argmin(), say)
        says = joined(
            (
                say("lens_says_memory", most=most, held=f"{numbers.max() / GIB:.1f} GiB"),
                say("lens_least_memory", least=least, low=f"{numbers.min() / GIB:.1f} GiB"),
            ),
            context.language,
        )
    return {
        **scaled(numbers / capacity, texts, scale),
        "asks": say("lens_asks_memory"),
        "says": says,
        "values": [f"{one / GIB:.1f}" for one in held],
        "full": [one > capacity for one in held],
    }


def traffic_lens(context: Context) -> dict[str, object]:
    """Bytes that a GPU of each stage sends in a step, over all kinds."""
    by_kind = sent_by_stage(context)
    sent = sum(by_kind.values(), np.zeros(context.layout.mesh.size("pp")))
    top = decade_above(float(sent.max(initial=0.0)))
    texts = [
        JOB["cost_traffic" if one else "cost_silent"][context.language].format(
            sent=bytes_text(one), kinds=_kinds(by_kind, stage)
        )
        for stage, one in enumerate(sent.tolist())
    ]
    say = saying(JOB, context.language)
    across = sum(row.across for row in rows_of(context.layout, context.trained))
    facts = {"most": _stage(sent.argmax(), say), "sent": bytes_text(float(sent.max()))}
    says = say("lens_says_traffic", across=bytes_text(across), **facts) if sent.any() else ""
    return {
        **scaled(sent / top, texts, ["0", bytes_text(top)]),
        "values": [bytes_text(one) if one else "0" for one in sent.tolist()],
        "asks": say("lens_asks_traffic"),
        "says": says or say("lens_none_traffic"),
    }


def _stage(stage: np.intp, say: Callable[..., str]) -> str:
    return say("stage", stage=int(stage))


def decade_above(most: float) -> float:
    """The power of ten that a scale of bytes ends at: layouts of like traffic have one scale.

    >>> decade_above(52.8e9), decade_above(0.0)
    (100000000000.0, 1.0)
    """
    return 10.0 ** math.ceil(math.log10(most)) if most > 1 else 1.0


def _kinds(by_kind: dict[str, np.ndarray], stage: int) -> str:
    """The kinds that a rank of the stage sends over, with their bytes, the most first."""
    sent = sorted(((float(one[stage]), kind) for kind, one in by_kind.items()), reverse=True)
    return " · ".join(f"{kind}\u00a0{bytes_text(one)}" for one, kind in sent if one)


def idle_lens(context: Context) -> dict[str, object]:
    """The share of the pipeline's time that a GPU of each stage waits."""
    timeline = timeline_of(context)
    plan = timeline.plan
    busy = np.add.reduceat(timeline.end - timeline.start, plan.starts[:-1])
    idle = 1.0 - busy / (timeline.makespan or 1.0)
    say = JOB["cost_idle"][context.language].format
    texts = [say(share=about_percent(one)) for one in idle.tolist()]
    scale = [about_percent(0.0), about_percent(MOST_IDLE)]
    words = saying(JOB, context.language)
    share = about_percent(float(idle.max()))
    if share == about_percent(float(idle.min())):
        says = words("lens_even_pipeline", share=share)
    else:
        says = words("lens_says_pipeline", most=_stage(idle.argmax(), words), share=share)
    asks = words("lens_asks_pipeline")
    values = [about_percent(one) for one in idle.tolist()]
    return {
        **scaled(idle / MOST_IDLE, texts, scale),
        "values": values,
        "asks": asks,
        "says": says,
    }


def hang_lens(context: Context) -> dict[str, object]:
    """The part of each rank of the evidence in a hang; other ranks are left out.

    Errors: LayoutError where nothing says who waits, or it is about another number of GPUs.
    """
    case = case_on_page(context)
    if case is None or not has_chain(case):
        raise LayoutError("no-evidence", "no evidence says who waits in this layout")
    chain = chain_of(case.log, case.layout, case.every)
    return {"ranks": {str(rank): ROLES[chain[rank]] for rank in np.flatnonzero(chain).tolist()}}


def numbers_lens(context: Context) -> dict[str, object]:
    """The number that was measured on each rank, and what stands out.

        levels    of each rank its level, a digit below ``steps``; "-" without a number
        numbers   of each rank its number in words; "" without one
        scale     [least, most] in words
        notes     the median, how many have no number, and that nothing stands out, in words
        ways      the worst that stands out in a sentence, then names of groups, then of ranks:
                  [what is said, the fields that lead to it]

    Errors: LayoutError where nothing is pasted, or it is no number for each GPU.
    """
    if is_empty(context.state.measures):
        raise LayoutError("no-measurements", "no number was pasted")
    layout, language = context.layout, context.language
    values, outliers = context.once(measured)
    heat, printed = heat_of(values, layout.gpus_per_node, language), range_of(values)
    bare = int(np.isnan(values).sum())
    notes = [JOB["lens_median"][language].format(median=printed["median"])]
    if bare:
        notes.append(JOB["lens_bare"][language].format(gpus=counted(bare, "gpu", language)))
    if not outliers:
        notes.append(HOSTS_WORDS["none-slow"][language])
    return {
        "levels": "".join("-" if level == LEVELS else str(level) for level in heat.level.tolist()),
        "steps": LEVELS,
        "numbers": ["" if math.isnan(value) else f"{value:,.6g}" for value in values.tolist()],
        "scale": [f"{end:,.4g}" for end in ends_of(values)],
        "notes": notes,
        "ways": _ways(outliers, language),
    }


def _ways(outliers: Sequence[Slow], language: str) -> list[tuple[str, dict[str, object]]]:
    rest = sorted(outliers[1:], key=lambda one: len(one.ranks) == 1)[: WAYS - 1]
    said = [outlier_text(replace(one, names=one.names[:1]), language) for one in outliers[:1]]
    said += [outlier_name(replace(one, names=one.names[:1]), language) for one in rest]
    return [
        (what, _way_to(one.ranks)) for what, one in zip(said, [*outliers[:1], *rest], strict=True)
    ]


def _way_to(ranks: Sequence[int]) -> dict[str, object]:
    """The fields that lead to one rank, or to the groups that several share.

    >>> _way_to([3]), _way_to([0, 1, 6])
    ({'view': 'ranks', 'rank': '3'}, {'view': 'ranks', 'ranks': '0-1, 6'})
    """
    if not 1 < len(ranks) <= MOST_NAMED:
        return {"view": "ranks", "rank": str(ranks[0])}
    return {"view": "ranks", "ranks": ranges_text(ranks, MOST_NAMED).replace("\u2013", "-")}


LENSES: dict[str, Callable[[Context], dict[str, object]]] = {
    "memory": memory_lens,
    "traffic": traffic_lens,
    "pipeline": idle_lens,
    "hang": hang_lens,
    "hosts": numbers_lens,
}
"""The lenses, by the view that explains them."""


def scaled(shares: np.ndarray, texts: Sequence[str], scale: Sequence[str]) -> dict[str, object]:
    return {
        "shares": np.round(np.minimum(shares, 1.0), DIGITS).tolist(),
        "said": [unparted(text) for text in texts],
        "scale": list(scale),
    }


def sent_by_stage(context: Context) -> dict[str, np.ndarray]:
    """Bytes that a rank of each stage sends over each kind in a step: float64, shape (stages,)."""
    sums: dict[str, np.ndarray] = {}
    for row in rows_of(context.layout, context.trained):
        sums[row.kind] = sums.get(row.kind, 0.0) + np.array(row.by_stage, dtype=float)
    return sums


def sends_of(context: Context) -> dict[str, tuple[str, list[str]]]:
    """By kind of group that pictures mark: what its badge is called, and the bytes that a GPU of
    each stage sends over it in a step, in words; empty where it sends nothing.

    Gradients go over a kind of several axes, dp-cp: its bytes stand at the first of them that is
    marked, under its own name where the others are larger than 1.

    >>> from request.state import State
    >>> sent = {cp: sends_of(Context.of(State(nodes=4, tp=2, cp=cp, pp=2))) for cp in (1, 2)}
    >>> [*sent[2]], sent[1]["dp"][0], sent[2]["dp"][0], len(sent[2]["pp"][1])
    (['tp', 'cp', 'dp', 'pp'], 'dp', 'dp-cp', 2)

    Errors: LayoutError for a training that is refused.
    """
    layout, sent = context.layout, sent_by_stage(context)
    sends = {}
    for grouping in main_groupings(layout):
        name = grouping.name
        joined = (kind for kind in sent if "-" in kind and kind.split("-")[0] == name)
        kind = name if name in sent else next(joined, "")
        if kind:
            others = kind.split("-")[1:]
            is_same = all(layout.mesh.size(axis) == 1 for axis in others)
            texts = [bytes_text(one) if one else "" for one in sent[kind].tolist()]
            sends[name] = name if is_same else kind, texts
    return sends
