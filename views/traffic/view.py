"""The Traffic view: the bytes that each kind of group sends in a step, their links, and their
ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from markupsafe import Markup

from descriptions import (
    BESIDE,
    CLUSTER_NOTES,
    LEFT_OUT,
    PURPOSES,
    TRAFFIC,
    ZOOMS,
    close_up,
    counted,
    joined,
)
from groups import LayoutError
from groups.layout import Layout
from request.answers.traffic import rows_of, traffic_per_step, unknown_links
from request.answers.zooms import zooms_of
from request.context import Context
from request.model import model_name
from request.trained import Trained
from request.units import bracketed, bytes_text, seconds_text
from request.words import saying
from training.machine import GB, Machine
from training.traffic.demands import BEFORE, NEXT
from training.traffic.per_step import Traffic, seconds_together
from training.traffic.reached import SLOWEST, reached_seconds

from ..base.html import (
    chips,
    explained,
    fine,
    fold,
    heading,
    heads_of,
    left_out_html,
    row,
    share_bar,
    table,
    tag,
    together,
)
from ..base.problems import or_refused, problem_html
from ..base.view import Pictures, View
from ..parts.host import crossing_html
from ..parts.inputs import inputs_html
from ..parts.step import step_of
from ..parts.zooms import axis_pictures, sent_name, what_text, zooms_html
from .matrix import choice_html, matrix_html, matrix_pictures


def traffic_html(context: Context) -> Markup:
    language = context.language
    rows: list[Traffic] = []
    body = or_refused(context, partial(_answer, found=rows))
    answer = tag("p", answer_text(rows, language)) if rows else ""
    head = heading(TRAFFIC["title"][language], answer)
    return together(zooms_html(context), head, tag("div", body, class_="traffic"))


def answer_text(rows: Sequence[Traffic], language: str) -> str:
    """The kind that sends most, and the share of all bytes that leaves NVLink domains."""
    kinds = dict.fromkeys(sent.kind for sent in rows)
    of_kind = {kind: [sent for sent in rows if sent.kind == kind] for kind in kinds}
    largest_kind = max(kinds, key=lambda kind: sum(sent.total for sent in of_kind[kind]))
    total, across = (sum(getattr(sent, name) for sent in rows) for name in ("total", "across"))
    words = "answer" if across else "answer_inside"
    return TRAFFIC[words][language].format(
        kind=largest_kind,
        sent=bytes_text(_by_rank(of_kind[largest_kind])),
        total=bytes_text(total),
        across=bytes_text(across),
    )


def _by_rank(rows: Sequence[Traffic]) -> float:
    """Bytes sent by a rank of the stage that sends most."""
    return max(map(sum, zip(*(sent.by_stage for sent in rows))))


def _answer(context: Context, found: list[Traffic]) -> Markup:
    """The matrix, then its sums; ``found`` takes every transfer."""
    layout, trained, language = context.layout, context.trained, context.language
    rows = rows_of(layout, trained)
    found.extend(rows)
    job = (tag("p", text) for text in job_texts(layout, trained, language))
    answer = together(
        tag("div", *job, class_="traffic-job"),
        crossing_html(trained, layout, language),
        step_of(context),
    )
    if not rows:
        return together(answer, fine(TRAFFIC["silent"][language]))
    note = CLUSTER_NOTES.get(trained.cluster_id)
    sources = "; ".join((*trained.cluster.source, *([note[language]] if note else [])))
    aside = tag("div", choice_html(context, rows), _cp_html(context), sent_html(context))
    return together(
        tag("div", matrix_html(context, rows), aside, class_="traffic-top"),
        _kinds(rows, language),
        *(problem_html(error, language) for error in unknown_links(rows, trained.cluster)),
        fine(explained(TRAFFIC["body"][language], language)),
        answer,
        _every(rows, trained.cluster, language),
        left_out_html(LEFT_OUT.values(), language),
        tag("p", TRAFFIC["sources"][language], " ", sources, class_="traffic-source"),
    )


def _cp_html(context: Context) -> Markup | str:
    """How keys and values go round, where a cp group has several ranks."""
    return inputs_html(context.state) if context.layout.mesh.size("cp") > 1 else ""


def sent_html(context: Context) -> Markup:
    """What the op of the time axis above sends, the longest first; nothing where none is known."""
    try:
        found = context.once(zooms_of)
    except LayoutError:
        return Markup()
    language, say = context.language, saying(ZOOMS, context.language)
    title = say("title", rank=context.rank, what=what_text(found, language))
    if not found.sent:
        return tag("section", tag("h3", title), tag("p", say("nothing_sent_here")))
    rows = (
        (
            together(chips([one.row.kind]), " ", sent_name(one)),
            bytes_text(one.sent),
            seconds_text(one.seconds),
        )
        for one in found.sent
    )
    busy = say("links", busy=seconds_text(found.busy), seconds=seconds_text(found.own))
    heads = [say("column_sent"), *heads_of(TRAFFIC, "sent seconds", language)]
    return tag("section", tag("h3", title), table(heads, rows, "traffic-table"), tag("p", busy))


def job_texts(layout: Layout, trained: Trained, language: str) -> tuple[str, str]:
    """The model with its batch, and the links."""
    say, cluster, b = saying(TRAFFIC, language), trained.cluster, trained.training.micro_batch
    job = say(
        "job",
        model=model_name(trained.chosen, language),
        tokens=f"{trained.model.sequence:,}",
        micro_batches=counted(trained.training.micro_batches, "microbatch", language),
        micro_batch=say("sample" if b == 1 else "samples", count=b),
    )
    domain = counted(cluster.domain_of(layout.gpus_per_node), "gpu", language)
    return job, links_text(cluster, domain, language)


def links_text(machine: Machine, domain: str, language: str) -> str:
    """The speed of the links inside a domain and beyond it, as far as they are known.

    >>> from training.clusters import CLUSTERS
    >>> links_text(CLUSTERS["mi300x"], "8 GPUs", "en").partition(": ")[2]
    'links 448 GB/s over 8 GPUs (64 GB/s to any one), then 50 GB/s a GPU, one way.'
    >>> links_text(CLUSTERS["ascend-910b"], "8 GPUs", "en").partition(": ")[2]
    'links of unknown speed over 8 GPUs, then a network of unknown speed.'
    """
    say = saying(TRAFFIC, language)
    speeds = {
        "speed": f"{machine.nvlink / GB:,.0f} GB/s",
        "pair": f"{machine.one_pair / GB:,.0f} GB/s",
    }
    if not machine.nvlink:
        inside = "inside_unknown"
    else:
        inside = "inside" if machine.one_pair == machine.nvlink else "inside_pair"
    outside = "outside" if machine.nic else "outside_unknown"
    sentence = say(
        "links",
        cluster=machine.name,
        inside=say(inside, link=say(f"link_{_wires(machine)}"), domain=domain, **speeds),
        outside=say(outside, speed=f"{machine.nic / GB:,.0f} GB/s"),
        way=say("one_way") if machine.nvlink or machine.nic else "",
    )
    return close_up(sentence)


def _wires(machine: Machine) -> str:
    """What the links of a domain are called."""
    if machine.maker != "nvidia":
        return "own"
    return "pcie" if 0 < machine.nvlink < SLOWEST else "nvlink"


# -- tables --------------------------------------------------------------------------------------


def _kinds(rows: Sequence[Traffic], language: str) -> Markup:
    """A line for each kind, that with the longest transfers first."""
    by_kind: dict[str, list[Traffic]] = {}
    for sent in rows:
        by_kind.setdefault(sent.kind, []).append(sent)
    took = {kind: seconds_together(entries) for kind, entries in by_kind.items()}
    body = []
    for kind in sorted(took, key=lambda kind: -(took[kind] or math.inf)):
        entries, seconds = by_kind[kind], took[kind]
        cells = (chips([kind]), f"{entries[0].size:,}", bytes_text(_by_rank(entries)))
        body.append(row(*cells, *_totals(entries, language), _seconds(seconds, language)))
    known = [seconds for seconds in took.values() if seconds is not None]
    sums = (TRAFFIC["sum"][language], "", "", *_totals(rows, language))
    whole = sum(known) if len(known) == len(took) else None
    body.append(row(*sums, _seconds(whole, language), class_="traffic-sum"))
    heads = heads_of(TRAFFIC, "kind size sent total across seconds", language)
    return table(heads, body, "traffic-table traffic-kinds")


def _totals(rows: Sequence[Traffic], language: str) -> tuple[str, Markup]:
    """Bytes of all ranks, and those that leave NVLink domains with a bar of their share."""
    total, across = (sum(getattr(sent, name) for sent in rows) for name in ("total", "across"))
    crossing = _across(total, across, language)
    return bytes_text(total), together(crossing, share_bar(across / (total or 1)))


def _across(total: float, across: float, language: str) -> str:
    """Bytes that leave NVLink domains, and their share."""
    if not across:
        return TRAFFIC["all_inside"][language]
    share = bracketed(f"{100 * across / total:.0f}%", language)
    return together(bytes_text(across), tag("small", share))


def _seconds(seconds: float | None, language: str, otherwise: str = "unknown_speed") -> str:
    return TRAFFIC[otherwise][language] if seconds is None else seconds_text(seconds)


def _reached(sent: Traffic, machine: Machine, language: str) -> str:
    """Seconds as measured ones take; "not measured" where nobody measured any, and a dash of what
    goes to one rank."""
    if sent.pattern in (NEXT, BEFORE):
        return "–"
    return _seconds(reached_seconds(sent, machine), language, "not_measured")


def _every(rows: Sequence[Traffic], machine: Machine, language: str) -> Markup:
    names = "kind purpose operation buffer sent across seconds reached beside"
    marks = {kind: chips([kind]) for kind in {sent.kind for sent in rows}}
    body = (
        (
            marks[sent.kind],
            PURPOSES[sent.what][language],
            together(tag("code", sent.operation), f" × {sent.count:,g}"),
            *(bytes_text(sent.buffer), bytes_text(sent.sent)),
            *(_across(sent.total, sent.across, language), _seconds(sent.seconds, language)),
            _reached(sent, machine, language),
            BESIDE[sent.beside][language],
        )
        for sent in rows
    )
    listed = table(heads_of(TRAFFIC, names, language), body, "traffic-table")
    return fold(TRAFFIC["every"][language], listed)


def traffic_pictures(context: Context) -> Pictures:
    """The matrix of bytes and the time axis; empty if nothing is sent."""
    drawn = matrix_pictures(context, rows_of(context.layout, context.trained))
    return [*drawn, *axis_pictures(context)] if drawn else []


def traffic_summary(context: Context) -> str:
    return joined(job_texts(context.layout, context.trained, context.language), context.language)


VIEW = View(
    "traffic",
    "step",
    traffic_html,
    traffic_pictures,
    TRAFFIC["matrix_title"],
    traffic_summary,
    of_step=True,
    place=3,
    endpoints=(traffic_per_step,),
    commands=("traffic",),
)
