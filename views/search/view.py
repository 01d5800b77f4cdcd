"""The Search view: the best layouts for this model on these GPUs, the one on screen among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from descriptions import REASONS, SEARCH_LEFT_OUT, TRAFFIC, counted, joined
from groups import LayoutError
from groups.layout import Layout
from training.reasons import Reason, alone, compared
from training.search import LEAST_TOKENS, Candidate, SearchJob, SearchResult, evaluate, search

from ..base import form
from ..base.context import Context
from ..base.messages import sentence
from ..base.problems import said_html
from ..base.resolve import resolve
from ..base.state import is_empty
from ..base.trained import Trained
from ..base.units import bytes_text, seconds_text
from ..base.words import intro
from ..groups.view import framed
from ..memory.bars import gib
from ..traffic.inputs import inputs_html, refused_html
from ..traffic.view import left_out_html


def search_html(context: Context) -> str:
    """The whole view: inputs, what was searched, the table, what it leaves out."""
    language = context.language
    world = counted(context.layout.world_size, "gpu", language)
    try:
        body = _answer(context)
    except LayoutError as error:
        body = refused_html(error, context)
    about = TRAFFIC["search_body"][language].format(world=world)
    return framed(
        context,
        f"{intro(TRAFFIC['search_title'][language], about, language)}"
        f'{inputs_html(context.state, language)}<div class="search">{body}</div>',
        "search",
    )


def job_of(layout: Layout, trained: Trained) -> SearchJob:
    """The search that a layout's model, batch and orders ask for."""
    training, split = trained.training, trained.split
    return SearchJob(
        model=trained.model,
        training=training,
        global_batch=trained.batch.global_batch,
        world=layout.world_size,
        gpus_per_node=layout.gpus_per_node,
        cluster=trained.cluster,
        capacity=trained.capacity,
        vpp=split.vpp,
        cp_algorithm=trained.cp_algorithm,
        dense=tuple(name for name in layout.mesh.names if name in ("tp", "cp", "dp", "pp")),
        expert=() if layout.expert is None else layout.expert.names,
    )


def _answer(context: Context) -> str:
    trained, language = context.trained, context.language
    job = job_of(context.layout, trained)
    found = search(job)
    try:
        current, refusal = evaluate(job, trained.split), ""
    except LayoutError as error:
        current, refusal = None, sentence(error, language)
    said = _job(job, found, trained, language)
    if not found.best:
        return f'{said}<p class="fine">{escape(TRAFFIC["search_none"][language])}</p>'
    rows = _rows(job, found.best, current, context)
    if refusal:
        said += f'<p class="refusal line" role="alert">{escape(refusal)}</p>'
    heads = "".join(
        f'<th scope="col">{escape(TRAFFIC[f"column_{name}"][language])}</th>'
        for name in ("place", "layout", "step", "memory", "across", "reasons")
    )
    return (
        f'{said}<div class="scroll search-table" tabindex="0"><table><thead><tr>{heads}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{_key(language)}"
        f"{left_out_html(SEARCH_LEFT_OUT, language, least=f'{LEAST_TOKENS:,}')}"
    )


def _job(job: SearchJob, found: SearchResult, trained: Trained, language: str) -> str:
    """What was searched, in a few sentences."""
    capacity, batch = gib(job.capacity), f"{job.global_batch:,}"
    lines = [
        TRAFFIC["search_job"][language].format(
            model=trained.name,
            tokens=f"{job.model.sequence:,}",
            batch=batch,
            micro_batch=job.training.micro_batch,
            cluster=job.cluster.name,
            capacity=capacity,
        ),
        TRAFFIC["search_tried" if found.too_large else "search_all"][language].format(
            tried=f"{found.tried:,}", large=f"{found.too_large:,}"
        ),
    ]
    if not trained.batch.is_given:
        lines.append(TRAFFIC["search_taken"][language].format(batch=batch))
    if not found.complete:
        lines.append(TRAFFIC["search_incomplete"][language])
    told = joined(lines, language)
    said = f'<div class="traffic-job"><p>{escape(told)}</p></div>'
    if found.best and found.best[0].memory > job.capacity:
        words = TRAFFIC["search_none_fits"][language].format(capacity=capacity)
        fix = ({"recompute": "full"}, TRAFFIC["search_other_recompute"][language])
        is_full = job.training.recompute == "full" or not _fits_with_full(job)
        said += said_html(words, [] if is_full else [fix], language)
    return said


def _fits_with_full(job: SearchJob) -> bool:
    """Whether a layout fits once whole layers are computed again."""
    best = search(replace(job, training=replace(job.training, recompute="full")), most=1).best
    return bool(best) and best[0].memory <= job.capacity


# -- the table -----------------------------------------------------------------------------------


def _rows(
    job: SearchJob,
    best: Sequence[Candidate],
    current: Candidate | None,
    context: Context,
) -> str:
    """The best layouts with the one on screen in its place: behind them all if it is not there."""
    language = context.language
    shown = [(str(place), one) for place, one in enumerate(best, 1)]
    if current and all(one.sizes != current.sizes for one in best):
        behind = sum(_is_before(job, one, current) for one in best)
        place = TRAFFIC["behind"][language] if behind == len(best) else ""
        shown.insert(behind, (place, current))
    longest = max(one.seconds for _, one in shown)
    rows = []
    for place, one in shown:
        is_current = current is not None and one.sizes == current.sizes
        if is_current or current is None:
            reasons = alone(one, job.capacity)
        else:
            reasons = compared(one, current, job.capacity)
        name = _name(one, job)
        if not is_current:
            name = _opener(one, name, job, context)
        rows.append(_row(job, place, name, one, longest, reasons, is_current, language))
    return "".join(rows)


def _is_before(job: SearchJob, one: Candidate, other: Candidate) -> bool:
    """Whether the first is ranked before the second: it lacks less memory, or costs less."""
    lacks = [max(0.0, each.memory - job.capacity) for each in (one, other)]
    return (lacks[0], one.seconds) <= (lacks[1], other.seconds)


def _row(
    job: SearchJob,
    place: str,
    name: str,
    one: Candidate,
    longest: float,
    reasons: Sequence[Reason],
    is_current: bool,
    language: str,
) -> str:
    parts = (("compute", one.compute), ("idle", one.idle), ("exposed", one.exposed))
    title = ", ".join(
        f"{TRAFFIC[f'part_{part}'][language]} {seconds_text(seconds)}" for part, seconds in parts
    )
    bar = "".join(
        f'<span class="search-{part}" style="width:{100 * seconds / longest:.1f}%"></span>'
        for part, seconds in parts
    )
    held = gib(one.memory)
    if one.memory > job.capacity:
        words = TRAFFIC["over_memory"][language].format(memory=held)
        held = f'<span class="over">{escape(words)}</span>'
    stage = TRAFFIC["stage"][language].format(stage=one.stage)
    mark = f"<small>{escape(TRAFFIC['on_screen'][language])}</small>" if is_current else ""
    items = "".join(f"<li>{escape(reason_text(reason, language))}</li>" for reason in reasons)
    return (
        f'<tr{" class=current" if is_current else ""}><th scope="row">{escape(place)}{mark}</th>'
        f'<td class="search-name">{name}</td>{_cell("step", language)}{seconds_text(one.seconds)}'
        f'<span class="search-bar" role="img" aria-label="{escape(title)}" '
        f'title="{escape(title)}">{bar}</span></td>'
        f"{_cell('memory', language)}{held} <small>{escape(stage)}</small></td>"
        f"{_cell('across', language)}{bytes_text(one.across)}</td>"
        f'<td class="search-why"><ul>{items}</ul></td></tr>'
    )


def _cell(column: str, language: str) -> str:
    """The start of a cell that, on a phone, says which column it is of."""
    return f'<td data-label="{escape(TRAFFIC[f"column_{column}"][language])}">'


def _name(one: Candidate, job: SearchJob) -> str:
    """The sizes, as the state have them; experts' only where there are experts."""
    names = ["tp", "cp", "pp", "dp"]
    if one.split.vpp > 1:
        names.insert(3, "vpp")
    if job.model.experts and job.expert:
        names += ["ep", "etp"]
    return " ".join(f"{name}{getattr(one.split, name)}" for name in names)


def _opener(one: Candidate, name: str, job: SearchJob, context: Context) -> str:
    """The layout, one click away; plain text if the page would refuse it."""
    split = one.split
    etp = "" if split.etp == split.tp else str(split.etp)
    sizes = {"tp": split.tp, "cp": split.cp, "pp": split.pp, "ep": split.ep, "etp": etp}
    vpp = "" if split.vpp == 1 else str(split.vpp)
    # The same samples in a step as on this page, however they are said here.
    changes: dict[str, str] = {"global_batch": str(job.global_batch), "micro_batches": ""}
    changes |= {**sizes, "vpp": vpp}
    if split.spread != "equal":
        changes["spread"] = split.spread
    if not is_empty(context.state.schedule) and context.state.schedule != one.training.schedule:
        changes["schedule"] = ""
    try:
        resolve(context.state.changed(changes))
    except LayoutError:
        return escape(name)
    return form.opener(context.link(changes), name)


def reason_text(reason: Reason, language: str) -> str:
    """A reason in words."""
    facts = dict(reason.facts)
    if "seconds" in facts:
        facts["seconds"] = seconds_text(facts["seconds"])
    facts |= {name: gib(facts[name]) for name in ("memory", "other", "left") if name in facts}
    return REASONS[reason.code][language].format(**facts)


def _key(language: str) -> str:
    parts = "".join(
        f'<span><i class="search-{part}"></i>{escape(TRAFFIC[f"part_{part}"][language])}</span>'
        for part in ("compute", "idle", "exposed")
    )
    return f'<p class="search-key">{parts}</p>'
