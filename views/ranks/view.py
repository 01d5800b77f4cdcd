"""The Ranks view: everything about one rank, and which groups some ranks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, RUN, counted
from formats.logs.ranks import named_ranks
from groups import LayoutError, coordinates
from groups.layout import Layout
from groups.placement import Placement, local_rank, node_of, nodes_spanned
from groups.ranks import require_rank
from groups.sharing import SharedGroups, SplitGroups, shared_groups
from groups.stages.holdings import local_experts, samples_of, sequence_chunks

from ..base import form
from ..base.context import Context
from ..base.html import cell, row, table
from ..base.messages import sentence
from ..base.model import layers_by_stage
from ..base.problems import leads_html
from ..base.state import State, is_empty, parse_number
from ..base.training import batch_of
from ..groups.view import framed, ranges_text, ranks_text
from ..hosts.inputs import hosts_cell, hosts_head, placement_or_none
from ..nodes.view import chips, same_groups

SAMPLES = 4
"""Micro-batches whose samples the card writes out."""


def ranks_html(context: Context) -> str:
    """The groups that the pasted ranks share, and the card of the pinned rank (0 if none is)."""
    layout, language = context.layout, context.language
    placement = placement_or_none(context)
    card = _card(layout, context.known, language, placement)
    together = _together(layout, context.state.ranks, language, placement)
    return framed(context, f"{together}{card}", "ranks")


# -- one rank ------------------------------------------------------------------------------------


def _card(layout: Layout, state: State, language: str, placement: Placement | None) -> str:
    try:
        chosen = require_rank(layout.mesh, 0 if is_empty(state.rank) else parse_number(state.rank))
    except LayoutError as error:
        return _refused(error, language)
    facts = _host(placement, chosen, language) + "".join(
        f"<dt>{escape(PAGE[name][language])}</dt><dd>{text}</dd>"
        for name, text in _facts(layout, state, chosen, language)
    )
    title = PAGE["rank_title"][language].format(rank=chosen)
    return (
        f'<div class="intro"><h2>{escape(title)}</h2></div><dl class="rank">{facts}</dl>'
        f"{_groups_table(layout, chosen, language, placement)}"
    )


def _host(placement: Placement | None, rank: int, language: str) -> str:
    """The machine of a rank by name, and the places that it stands in."""
    if placement is None:
        return ""
    text = RUN["rank_host"][language].format(
        host=placement.host(rank), local=placement.device(rank)
    )
    places = "".join(f" · {place}" for place in placement.places(rank).values())
    return f"<dt>{RUN['host'][language]}</dt><dd>{escape(text + places)}</dd>"


def _facts(layout: Layout, state: State, rank: int, language: str) -> list[tuple[str, str]]:
    """What the card says, line by line: a word of PAGE and HTML."""
    at = coordinates(layout.mesh, rank)
    place = PAGE["card_place"][language].format(
        node=int(node_of(rank, layout.gpus_per_node)),
        local=int(local_rank(rank, layout.gpus_per_node)),
    )
    found = [("rank_place", escape(place)), ("dense_grid", _code(at))]
    has_experts = layout.has_experts or not is_empty(state.experts)
    if layout.expert is not None and has_experts:
        found.append(("expert_grid", _code(coordinates(layout.expert, rank))))
    found.append(("rank_stage", _said(lambda: _stage(layout, state, at, language), language)))
    if at["cp"] or layout.mesh.size("cp") > 1:
        cp = layout.mesh.size("cp")
        text = PAGE["rank_chunks_of"][language].format(
            chunks=" + ".join(map(str, sequence_chunks(cp, at["cp"]))), total=2 * cp
        )
        found.append(("rank_chunks", escape(text)))
    if has_experts and layout.expert is not None:
        experts = _said(lambda: _experts(layout, state, rank, language), language)
        found.append(("rank_experts", experts))
    found.append(("rank_samples", _said(lambda: _samples(layout, state, at, language), language)))
    found.append(("rank_neighbours", _neighbours(layout, rank, language)))
    return found


def _said(say: Callable[[], str], language: str) -> str:
    """A line of the card; a number of the model that does not fit is refused in its place."""
    try:
        return say()
    except LayoutError as error:
        return _refused(error, language)


def _stage(layout: Layout, state: State, at: dict[str, int], language: str) -> str:
    pp = layout.mesh.size("pp")
    text = PAGE["rank_stage_of"][language].format(stage=at["pp"], stages=pp)
    if is_empty(state.layers):
        return f"{escape(text)} {leads_html('layers', PAGE['rank_give_layers'][language])}"
    vpp = None if is_empty(state.vpp) else parse_number(state.vpp)
    chunks = layers_by_stage(state, pp, vpp)[at["pp"]]
    shown = [
        ranges_text(layers) if layers else PAGE["rank_no_layers"][language] for layers in chunks
    ]
    words = "rank_layers_of" if len(shown) == 1 else "rank_chunks_layers"
    held = [PAGE["rank_embedding"][language]] if at["pp"] == 0 else []
    held += [PAGE["rank_output"][language]] if at["pp"] == pp - 1 else []
    more = "".join(f" {one}" for one in held)
    return escape(f"{text} {PAGE[words][language].format(layers='; '.join(shown))}{more}")


def _experts(layout: Layout, state: State, rank: int, language: str) -> str:
    assert layout.expert is not None
    at = coordinates(layout.expert, rank)
    ep = layout.expert.size("ep")
    if is_empty(state.experts):
        text = PAGE["rank_expert_place"][language].format(place=at["ep"], ep=ep)
        return f"{escape(text)} {leads_html('experts', PAGE['rank_give_experts'][language])}"
    held = local_experts(parse_number(state.experts), ep, at["ep"])
    text = PAGE["rank_experts_of"][language].format(
        experts=ranges_text(list(held)), total=state.experts
    )
    if layout.expert.size("etp") > 1:
        text += " " + PAGE["rank_expert_slice"][language].format(
            slice=at["etp"], etp=layout.expert.size("etp")
        )
    return escape(text)


def _samples(layout: Layout, state: State, at: dict[str, int], language: str) -> str:
    dp = layout.mesh.size("dp")
    text = PAGE["rank_reads"][language].format(place=at["dp"], dp=dp)
    batch = batch_of(layout, state)
    read = samples_of(dp, at["dp"], batch.micro_batch, batch.global_batch)
    shown = ", ".join(
        str(one.start) if len(one) == 1 else f"{one.start}-{one.stop - 1}"
        for one in (read[i] for i in range(min(SAMPLES, len(read))))
    )
    more = ", …" if len(read) > SAMPLES else ""
    told = PAGE["rank_samples_of"][language].format(
        samples=shown + more, count=counted(len(read), "microbatch", language)
    )
    return escape(f"{text} {told}")


def _neighbours(layout: Layout, rank: int, language: str) -> str:
    ring = layout.every["pp"].neighbours(rank)
    if ring is None or layout.every["pp"].size == 1:
        return escape(PAGE["rank_no_pipeline"][language])
    return escape(PAGE["rank_ring"][language].format(before=ring[0], after=ring[1]))


def _groups_table(layout: Layout, rank: int, language: str, placement: Placement | None) -> str:
    """Every group that the rank is in; names of the very same group share a row."""
    heads = _heads("peers", placement, language)
    rows = []
    for names, grouping in same_groups(layout.every.values()):
        ranks = grouping.members(rank)
        if not len(ranks):
            text = PAGE["card_none"][language].format(kind=grouping.name)
            rows.append(row(chips(names), cell(text, colspan=4 + bool(placement))))
            continue
        rows.append(_group_row(layout, names, grouping.index_of(rank), ranks, placement))
    return table(heads, rows, "peers")


def _heads(members: str, placement: Placement | None, language: str) -> list[str]:
    names = ("kind", "group", "size", members, "nodes")
    return [*(PAGE[f"column_{name}"][language] for name in names), *hosts_head(placement, language)]


def _group_row(
    layout: Layout,
    names: Iterable[str],
    index: object,
    ranks: np.ndarray | Sequence[int],
    placement: Placement | None,
) -> Markup:
    listed = cell(ranks_text(ranks), class_="ranks")
    nodes = _spanned(layout, ranks, placement)
    hosts = hosts_cell(placement, ranks)
    return row(chips(names), index, f"{len(ranks):,}", listed, nodes, *hosts)


def _spanned(layout: Layout, ranks: np.ndarray | Sequence[int], placement: Placement | None) -> int:
    """On how many machines ranks stand."""
    if placement is not None:
        return len(np.unique(placement.nodes[list(ranks)]))
    return int(nodes_spanned([ranks], layout.gpus_per_node)[0])


# -- some ranks ----------------------------------------------------------------------------------


def _together(layout: Layout, ranks: Any, language: str, placement: Placement | None) -> str:
    """Which groups have all the pasted ranks, smallest first."""
    box = form.fields(form.area("ranks", ranks, language))
    title = f'<div class="intro"><h2>{PAGE["together_title"][language]}</h2>'
    if is_empty(ranks):
        return f"{title}<p>{PAGE['together_empty'][language]}</p></div>{box}"
    title += f"</div>{box}<div>"
    try:
        asked, _ = named_ranks(ranks, layout.world_size)
    except LayoutError as error:
        return f"{title}</div>{_refused(error, language)}"
    groups = [grouping for grouping in layout.every.values() if grouping.size > 1]
    together, apart = shared_groups(groups, asked)
    understood = PAGE["together_ranks"][language].format(
        ranks=ranges_text(asked), count=counted(len(asked), "rank", language)
    )
    return (
        f"{title}<p>{escape(understood)}</p><p>{_verdict(together, len(asked), language)}</p></div>"
        f"{_shared_table(layout, together, language, placement)}"
        f"{_apart(apart, language)}"
    )


def _verdict(together: list[SharedGroups], asked: int, language: str) -> str:
    if not together:
        return escape(PAGE["together_none"][language])
    first = together[0]
    names = " = ".join(first.names)
    words = "together_exact" if len(first.ranks) == asked else "together_first"
    return escape(
        PAGE[words][language].format(
            kind=names, index=first.indices[0], count=counted(len(first.ranks), "rank", language)
        )
    )


def _shared_table(
    layout: Layout, together: list[SharedGroups], language: str, placement: Placement | None
) -> str:
    if not together:
        return ""
    rows = (
        _group_row(
            layout, one.names, ", ".join(map(str, dict.fromkeys(one.indices))), one.ranks, placement
        )
        for one in together
    )
    return table(_heads("ranks", placement, language), rows, "shared")


def _apart(apart: list[SplitGroups], language: str) -> str:
    if not apart:
        return ""
    items = ", ".join(f"{one.name} ({one.groups})" for one in apart)
    return f"<p>{escape(PAGE['together_apart'][language].format(kinds=items))}</p>"


def _code(at: dict[str, int]) -> str:
    return f"<code>{escape(', '.join(f'{name} {place}' for name, place in at.items()))}</code>"


def _refused(error: LayoutError, language: str) -> str:
    return f'<span class="refusal" role="alert">{escape(sentence(error, language))}</span>'
