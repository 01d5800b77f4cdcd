"""The Hang view: who did not arrive, who waits for it, and what the evidence cannot tell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from descriptions import RUN, close_up, counted, hang_sentence
from formats.logs import Log, read_log
from formats.logs.account import account_of
from formats.logs.matching import Match, Matched, match_layout
from formats.logs.model import Hop
from formats.logs.names import WORLD
from groups import LayoutError
from groups.grouping import Grouping
from groups.layout import Layout
from groups.placement import Placement
from render.svg.heat import Heat

from ..base import form
from ..base.context import Context
from ..base.html import cell, fold, heading, table, tag, together
from ..base.messages import fix_label
from ..base.problems import problem_html
from ..base.state import State, is_empty
from ..base.units import ranges_text, ranks_text
from ..groups.view import framed
from ..hosts.inputs import placement_or_none
from ..nodes.view import chips
from .digest import log_of
from .picture import MOST_CONNECTED, chain_html, chain_of, heat_of_chain

ROWS = 40
"""Groups, hops and GPUs that are listed."""


def hang_html(context: Context) -> str:
    """The box and the files, then the answer for the layout on screen."""
    state, language = context.state, context.language
    return framed(
        context,
        f"{heading(RUN['hang_title'][language])}{_answer(context)}{_ways_in(state, language)}",
        "hang",
    )


def _ways_in(state: State, language: str) -> str:
    """The box for lines, and the way in for files."""
    said = {name: RUN[f"files_{name}"][language] for name in ("reading", "large", "failed", "busy")}
    return (
        f"{form.fields(form.area('evidence', state.evidence, language, rows=5))}"
        f'<p class="files" data-said="{escape(json.dumps(said))}">'
        '<input type="file" id="hang-files" multiple hidden>'
        f'<button type="button" class="fix" data-files>{RUN["choose_files"][language]}</button> '
        f'<span>{RUN["files_hint"][language]}</span> <strong role="status"></strong></p>'
    )


def _answer(context: Context) -> str:
    layout, state, language = context.layout, context.state, context.language
    try:
        log, head = _log(layout, state, language)
    except LayoutError as error:
        return problem_html(error, language)
    if log is None:
        return f'<p class="fine">{escape(RUN["hang_empty"][language])}</p>'
    log = _with_hosts(log, placement_or_none(context))
    match, better = _match(log, layout)
    every = _every(match, layout)
    return (
        f"{_verdict(log, layout, every, language)}{head}"
        f"{_contradiction(match, better, log, layout, language)}"
        f"{_chain(log, layout, every, language)}{_hops(log.diagnosis.hops, language)}"
        f"{_groups(match, layout, language)}{_untold(log, language)}"
    )


def hang_pictures(context: Context) -> list[tuple[str, Heat]]:
    """The chain, for files; nothing where no evidence says who waits, or its GPUs are others.

    Errors: LayoutError for evidence that cannot be read.
    """
    layout = context.layout
    language = context.language
    log, _ = _log(layout, context.state, language)
    if log is None or log.diagnosis.first is None or _world(log, layout) != layout.world_size:
        return []
    chain = chain_of(log, layout, _every(_match(log, layout)[0], layout))
    return [(RUN["chain_title"][language], heat_of_chain(chain, layout, language))]


def hang_verdict(context: Context) -> str:
    """Who is missing, in at most three sentences; nothing without evidence.

    Errors: LayoutError for evidence that cannot be read.
    """
    layout, language = context.layout, context.language
    log, _ = _log(layout, context.state, language)
    if log is None:
        return ""
    return _told(log, layout, _every(_match(log, layout)[0], layout), language)


def _every(match: Match | None, layout: Layout) -> Mapping[str, Grouping]:
    """The layout's groups, where the evidence does not contradict them."""
    fits = match is not None and not match.contradictions
    return layout.every if fits and layout.world_size <= MOST_CONNECTED else {}


def _with_hosts(log: Log, placement: Placement | None) -> Log:
    """With the machines that the page names, where the evidence names none."""
    if placement is None:
        return log
    named = (rank for rank in log.missing if rank < placement.world_size)
    hosts = {rank: placement.host(rank) for rank in named}
    return replace(log, hosts={**hosts, **log.hosts})


def _log(layout: Layout, state: State, language: str) -> tuple[Log | None, str]:
    """What the pasted text says, else what the files said, with a line about these."""
    every = layout.every if layout.world_size <= MOST_CONNECTED else None
    if not is_empty(state.evidence):
        return read_log(state.evidence, every), ""
    if is_empty(state.digest):
        return None, ""
    said = _said(state.digest)
    log = log_of(said["log"])
    words = RUN["files_read"][language].format(
        files=counted(said["files"], "file", language),
        dumps=counted(len(log.dumped), "gpu", language),
    )
    forget = form.setter({"digest": ""}, RUN["files_forget"][language])
    return log, f'<p class="fine">{escape(words)} {forget}</p>'


def _said(digest: Any) -> dict[str, Any]:
    """The parts of what the browser keeps of files; see files.py."""
    try:
        said = json.loads(digest) if isinstance(digest, str) else {}
    except (ValueError, RecursionError):
        said = {}
    if not isinstance(said, dict) or type(said.get("files")) is not int:
        said = {"files": 0, "log": None}
    return {"files": said["files"], "log": said.get("log")}


# -- the answer ----------------------------------------------------------------------------------


def _verdict(log: Log, layout: Layout, every: Mapping[str, Grouping], language: str) -> str:
    """Who is missing, in at most three sentences, and the GPUs that lead on.

    every: the layout's groups, where the evidence does not contradict them.
    """
    named = log.diagnosis.culprits or log.diagnosis.suspects or log.ranks
    inside = [rank for rank in named if rank < layout.world_size][:8]
    buttons = "".join(
        form.setter({"view": "ranks", "rank": rank}, RUN["gpu_button"][language].format(rank=rank))
        for rank in inside
    )
    shared = ""
    if len(named) > 1 and inside:
        listed = ranges_text(list(named)[:512])
        shared = form.setter({"view": "ranks", "ranks": listed}, RUN["show_groups_of"][language])
    return (
        f'<div class="verdict" role="status"><p>{escape(_told(log, layout, every, language))}</p>'
        f'<p class="fixes">{buttons}{shared}</p></div>'
    )


def _told(log: Log, layout: Layout, every: Mapping[str, Grouping], language: str) -> str:
    notes = account_of(log, every, layout.gpus_per_node if every else None)
    told = [hang_sentence(note.code, note.facts, language) for note in notes]
    if not told:
        told = [RUN["hang_no_verdict" if log.ranks else "hang_nothing"][language]]
    return (" " if language == "en" else "").join(told)


def _chain(log: Log, layout: Layout, every: Mapping[str, Grouping], language: str) -> str:
    """The picture, where the ranks of the evidence are those of the layout."""
    if log.diagnosis.first is None or _world(log, layout) != layout.world_size:
        return ""
    picture = chain_html(chain_of(log, layout, every), layout, language)
    return f"<h3>{RUN['chain_title'][language]}</h3>{picture}"


def _hops(hops: Sequence[Hop], language: str) -> str:
    if len(hops) < 1:
        return ""
    items = []
    for place, hop in enumerate(hops[:ROWS]):
        for wait in hop.waits[: 8 if place else 4]:
            words = RUN["hop_row" if place and hop.through else "hop_first"][language].format(
                kind=wait.group.kind or wait.group.key,
                op=wait.op or RUN["operation"][language],
                seq=f"{wait.seq:,}",
                waiting=counted(len(wait.waiting), "gpu", language),
                through=ranges_text(list(hop.through)[:64]),
            )
            items.append(tag("li", tag("b", place), " ", close_up(words)))
        rest = len(hop.waits) - (8 if place else 4)
        if rest > 0:
            words = RUN["more_rows"][language].format(count=f"{rest:,}")
            items.append(tag("li", tag("b", place), " ", words))
    return fold(RUN["hops_title"][language], tag("ol", *items, class_="hops"), is_open=True)


# -- the evidence beside the layout --------------------------------------------------------------


def _match(log: Log, layout: Layout) -> tuple[Match | None, tuple[dict[str, Any], ...]]:
    """The groups of the evidence in this layout; and layouts that would fit, nearest first."""
    mesh, expert = layout.mesh, layout.expert
    sizes: dict[str, Any] = {name: mesh.size(name) for name in ("tp", "cp", "pp")}
    sizes |= {"order": layout.order}
    if expert is not None:
        sizes |= {"ep": expert.size("ep"), "etp": expert.size("etp")}
    world = _world(log, layout)
    if world != layout.world_size:
        return None, tuple(_changes(fit, layout, world) for fit in _fits(log, world, sizes))
    try:
        match = match_layout(log, world, **sizes)
    except LayoutError:
        return None, ()
    return match, tuple(_changes(fit, layout, world) for fit in match.fits)


def _world(log: Log, layout: Layout) -> int:
    """GPUs of the job of the evidence: as its group of all says, else whole nodes that hold all."""
    whole = [len(one.members) for one in log.process_groups if one.kind == WORLD and one.complete]
    if whole:
        return max(whole)
    most = max(log.ranks, default=-1) + 1
    per_node = layout.gpus_per_node
    return layout.world_size if most <= layout.world_size else -(-most // per_node) * per_node


def _fits(log: Log, world: int, sizes: dict[str, Any]) -> list[dict[str, Any]]:
    """Layouts of that many GPUs that no group of the evidence contradicts."""
    for start in (sizes, {"order": sizes["order"]}):
        try:
            match = match_layout(log, world, **start)
        except LayoutError:  # the sizes do not divide so many
            continue
        if not match.contradictions:
            return [dict(start)]
        return [{**start, **fit} for fit in match.fits]
    return []


def _changes(fit: dict[str, Any], layout: Layout, world: int) -> dict[str, Any]:
    """What the column changes for a layout that fits."""
    start = {"tp": 1, "cp": 1, "pp": 1, "ep": 1, **fit}
    changes: dict[str, Any] = {name: start[name] for name in ("tp", "cp", "pp", "ep")}
    if start.get("etp") not in (None, start["tp"]):
        changes["etp"] = start["etp"]
    if start.get("order", layout.order) != layout.order:
        changes["order"] = start["order"]
    if world != layout.world_size:
        nodes, rest = divmod(world, layout.gpus_per_node)
        changes |= {"nodes": nodes} if not rest else {"nodes": 1, "gpus_per_node": world}
    return changes


def _contradiction(
    match: Match | None,
    better: tuple[dict[str, Any], ...],
    log: Log,
    layout: Layout,
    language: str,
) -> str:
    """What of the evidence the layout contradicts, and a button for one that would fit."""
    world = _world(log, layout)
    if world == layout.world_size and (match is None or not match.contradictions):
        return ""
    if match is None or world != layout.world_size:
        is_known = any(one.kind == WORLD and one.complete for one in log.process_groups)
        count = f"{world if is_known else max(log.ranks) + 1:,}"
        told = RUN["contradicts_world"][language].format(
            evidence=count if is_known else RUN["at_least"][language].format(count=count),
            layout=f"{layout.world_size:,}",
        )
    else:
        first = match.contradictions[0]
        told = RUN["contradicts"][language].format(
            count=counted(len(match.contradictions), "group", language),
            key=first.claim.key,
            evidence=_claim(first, language),
            layout=ranges_text(list(first.members)[:64]) or "–",
        )
    buttons = "".join(form.setter(one, fix_label(one, language)) for one in better)
    words = f"<p>{escape(told)}</p>"
    if not buttons:
        words += f"<p>{escape(RUN['fits_none'][language])}</p>"
    return f'<div class="refusal" role="alert">{words}<p class="fixes">{buttons}</p></div>'


def _claim(row: Matched, language: str) -> str:
    """What the evidence says of a group: its members, or the place of one of them."""
    claim = row.claim
    if claim.members:
        return ranges_text(list(claim.members)[:64])
    return RUN["claim_place"][language].format(rank=claim.rank, place=claim.place)


def _groups(match: Match | None, layout: Layout, language: str) -> str:
    """Each group that the evidence names: what it is in this layout, and whether that fits."""
    if match is None or not match.rows:
        return ""
    order = {False: 0, True: 1, None: 2}
    once = {(row.claim.key, row.index, row.agrees): row for row in match.rows}
    rows = sorted(once.values(), key=lambda row: order[row.agrees])
    fits = {True: "fits_yes", False: "fits_no", None: "fits_unknown"}
    body = (
        (
            tag("code", one.claim.key[:80]),
            together(chips(one.names) or "–", "" if one.index is None else f" {one.index}"),
            cell(ranks_text(one.claim.members or one.members), class_="ranks"),
            RUN[fits[one.agrees]][language],
        )
        for one in rows[:ROWS]
    )
    heads = (RUN[f"column_{name}"][language] for name in ("printed", "here", "gpus", "fits"))
    rest = len(rows) - ROWS
    more = RUN["more_rows"][language].format(count=f"{rest:,}") if rest > 0 else ""
    title = f"{RUN['log_groups_title'][language]} ({len(rows):,})"
    return fold(title, table(heads, body), more, is_open=True)


def _untold(log: Log, language: str) -> str:
    """What the reader must know: what is unclear, missing, left out."""
    told = [hang_sentence(note.code, note.facts, language) for note in log.notes[:ROWS]]
    if log.diagnosis.without_dump:
        listed = ranges_text(list(log.diagnosis.without_dump)[:256])
        told.append(RUN["no_dump_of"][language].format(ranks=listed))
    for words, numbers in (("only_places", log.group_ranks), ("ambiguous", log.ambiguous_ranks)):
        if numbers and (words == "ambiguous" or not log.ranks):
            told.append(RUN[words][language].format(ranks=ranges_text(list(numbers)[:64])))
    if not told:
        return ""
    items = tag("ul", *(tag("li", one) for one in told))
    return fold(f"{RUN['unknown_title'][language]} ({len(told)})", items, is_open=True)
