"""The Ranks view: everything about one rank, and which groups some ranks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from descriptions import CARD, PAGE, RUN, counted, joined
from formats.logs import named_ranks
from groups import LayoutError, coordinates
from groups.grouping import SharedGroups, shared_groups
from groups.layout import Layout
from groups.mesh import require_rank
from groups.placement import Placement, local_rank, node_of, nodes_spanned
from groups.stages.holdings import local_experts, samples_of, sequence_chunks

from ..base import form
from ..base.context import Context, View
from ..base.html import cell, heading, row, saying, table, tag, together
from ..base.problems import leads_html, sentence
from ..base.state import State, is_empty, parse_number
from ..base.trained import batch_of
from ..base.units import ranges_text, ranks_text
from ..hosts.inputs import hosts_cell, hosts_head, placement_or_none
from ..nodes.view import chips, same_groups
from ..pipeline.inputs import dealing_of, stage_numbers, stages_of

SAMPLES = 4
"""Micro-batches whose samples the card writes out."""


def ranks_html(context: Context) -> Markup:
    """The groups that the pasted ranks share, and the card of the pinned rank (0 if none is)."""
    layout, language = context.layout, context.language
    placement = placement_or_none(context)
    return together(
        _together(layout, context.state.ranks, language, placement),
        _card(layout, context.known, language, placement),
    )


def _card(layout: Layout, state: State, language: str, placement: Placement | None) -> Markup:
    try:
        chosen = require_rank(layout.mesh, 0 if is_empty(state.rank) else parse_number(state.rank))
    except LayoutError as error:
        return _refused(error, language)
    say = saying(PAGE, language)
    facts = (
        together(tag("dt", name), tag("dd", text))
        for name, text in (
            *_host(placement, chosen, language),
            *_facts(layout, state, chosen, language),
        )
    )
    return together(
        heading(say("rank_title", rank=chosen)),
        tag("dl", *facts, class_="rank"),
        _groups_table(layout, chosen, language, placement),
    )


def _host(placement: Placement | None, rank: int, language: str) -> list[tuple[str, str]]:
    """The machine of a rank by name, and the places that it stands in."""
    if placement is None:
        return []
    say, places = saying(RUN, language), placement.places(rank).values()
    host = say("rank_host", host=placement.host(rank), local=placement.device(rank))
    return [(say("host"), " · ".join((host, *places)))]


def _facts(
    layout: Layout, state: State, rank: int, language: str
) -> Iterator[tuple[str, str | Markup]]:
    """What the card says; a number of the model that does not fit is refused in its line."""
    say, at = saying(PAGE, language), coordinates(layout.mesh, rank)
    node, local = node_of(rank, layout.gpus_per_node), local_rank(rank, layout.gpus_per_node)
    place = CARD["place"][language].format(node=int(node), local=int(local))
    yield say("rank_place"), place
    yield say("dense_grid"), _code(at)
    has_experts = layout.has_experts or not is_empty(state.experts)
    if layout.expert is not None and has_experts:
        yield say("expert_grid"), _code(coordinates(layout.expert, rank))
    lines: list[tuple[str, Callable[[], str | Markup]]] = [
        ("rank_stage", lambda: _stage(layout, state, at, language)),
        ("rank_samples", lambda: _samples(layout, state, at, language)),
        ("rank_neighbours", lambda: _neighbours(layout, rank, language)),
    ]
    if layout.expert is not None and has_experts:
        lines.insert(1, ("rank_experts", lambda: _experts(layout, state, rank, language)))
    if layout.mesh.size("cp") > 1:
        lines.insert(1, ("rank_chunks", lambda: _chunks(layout.mesh.size("cp"), at, language)))
    for name, line in lines:
        try:
            yield say(name), line()
        except LayoutError as error:
            yield say(name), _refused(error, language)


def _chunks(cp: int, at: dict[str, int], language: str) -> str:
    chunks = " + ".join(map(str, sequence_chunks(cp, at["cp"])))
    return PAGE["rank_chunks_of"][language].format(chunks=chunks, total=2 * cp)


def _stage(layout: Layout, state: State, at: dict[str, int], language: str) -> str | Markup:
    say, pp = saying(PAGE, language), layout.mesh.size("pp")
    text = say("rank_stage_of", stage=at["pp"], stages=pp)
    if is_empty(state.layers):
        return together(text, " ", leads_html("layers", say("rank_give_layers")))
    schedule = dealing_of(pp, state)
    stages = stages_of(schedule, state) or ()
    chunks = [stages[number] for number in stage_numbers(schedule)[at["pp"]]]
    texts = [
        ranges_text(chunk.layers) if chunk.layers else say("rank_no_layers") for chunk in chunks
    ]
    words = "rank_layers_of" if len(texts) == 1 else "rank_chunks_layers"
    held = [text, say(words, layers=say("semicolon").join(texts))]
    others = "".join(chunk.others for chunk in chunks)
    held += [say(f"rank_{what}") for letter, what in HELD_BESIDE.items() if letter in others]
    return joined(held, language)


HELD_BESIDE = {"E": "embedding", "L": "output"}
"""What a stage holds beside layers, by its letter in a pipeline layout."""


def _experts(layout: Layout, state: State, rank: int, language: str) -> str | Markup:
    assert layout.expert is not None
    say, at = saying(PAGE, language), coordinates(layout.expert, rank)
    ep, etp = (layout.expert.size(name) for name in ("ep", "etp"))
    if is_empty(state.experts):
        text = say("rank_expert_place", place=at["ep"], ep=ep)
        return together(text, " ", leads_html("experts", say("rank_give_experts")))
    held = ranges_text(list(local_experts(parse_number(state.experts), ep, at["ep"])))
    text = say("rank_experts_of", experts=held, total=state.experts)
    cut = [say("rank_expert_slice", slice=at["etp"], etp=etp)] if etp > 1 else []
    return joined([text, *cut], language)


def _samples(layout: Layout, state: State, at: dict[str, int], language: str) -> str:
    say, dp, batch = saying(PAGE, language), layout.mesh.size("dp"), batch_of(layout, state)
    read = samples_of(dp, at["dp"], batch.micro_batch, batch.global_batch)
    texts = [ranges_text(read[i]) for i in range(min(SAMPLES, len(read)))]
    listed = ", ".join([*texts, "…"] if len(read) > SAMPLES else texts)
    count = counted(len(read), "microbatch", language)
    reads = say("rank_reads", place=at["dp"], dp=dp)
    return joined([reads, say("rank_samples_of", samples=listed, count=count)], language)


def _neighbours(layout: Layout, rank: int, language: str) -> str:
    ring = layout.every["pp"].neighbours(rank)
    if ring is None or layout.every["pp"].size == 1:
        return PAGE["rank_no_pipeline"][language]
    return PAGE["rank_ring"][language].format(before=ring[0], after=ring[1])


def _groups_table(layout: Layout, rank: int, language: str, placement: Placement | None) -> Markup:
    """Every group that the rank is in; names of the very same group share a row."""
    rows = []
    for names, grouping in same_groups(layout.every.values()):
        ranks = grouping.members(rank)
        if len(ranks):
            rows.append(_group_row(layout, names, grouping.index_of(rank), ranks, placement))
        else:
            text = CARD["none"][language].format(kind=grouping.name)
            rows.append(row(chips(names), cell(text, colspan=4 + bool(placement))))
    return table(_heads("peers", placement, language), rows, "peers")


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
    """A group with the machines that its ranks stand on, and how many."""
    nodes = int(nodes_spanned([ranks], layout.gpus_per_node)[0])
    if placement is not None:
        nodes = len(np.unique(placement.nodes[list(ranks)]))
    listed, hosts = cell(ranks_text(ranks), class_="ranks"), hosts_cell(placement, ranks)
    return row(chips(names), index, f"{len(ranks):,}", listed, nodes, *hosts)


def _together(layout: Layout, ranks: Any, language: str, placement: Placement | None) -> Markup:
    """Which groups have all the pasted ranks, smallest first."""
    say, box = saying(PAGE, language), form.fields(form.area("ranks", ranks, language))
    if is_empty(ranks):
        return together(heading(say("together_title"), tag("p", say("together_empty"))), box)
    head = heading(say("together_title"))
    try:
        numbers, _ = named_ranks(ranks, layout.world_size)
    except LayoutError as error:
        return together(head, box, tag("div"), _refused(error, language))
    groups = [grouping for grouping in layout.every.values() if grouping.size > 1]
    shared, apart = shared_groups(groups, numbers)
    count = counted(len(numbers), "rank", language)
    understood = tag("p", say("together_ranks", ranks=ranges_text(numbers), count=count))
    verdict = tag("p", _verdict(shared, len(numbers), language))
    rows = [
        _group_row(
            layout,
            group.names,
            ", ".join(map(str, dict.fromkeys(group.indices))),
            group.ranks,
            placement,
        )
        for group in shared
    ]
    parts = (say("together_part", kind=kind.name, count=kind.groups) for kind in apart)
    kinds = say("and_list").join(parts)
    return together(
        head,
        box,
        tag("div", understood, verdict),
        table(_heads("ranks", placement, language), rows, "shared") if shared else "",
        tag("p", say("together_apart", kinds=kinds)) if apart else "",
    )


def _verdict(shared: list[SharedGroups], number: int, language: str) -> str:
    if not shared:
        return PAGE["together_none"][language]
    first = shared[0]
    words = "together_exact" if len(first.ranks) == number else "together_first"
    count = counted(len(first.ranks), "rank", language)
    kind = " = ".join(first.names)
    return PAGE[words][language].format(kind=kind, index=first.indices[0], count=count)


def _code(at: dict[str, int]) -> Markup:
    return tag("code", ", ".join(f"{name} {place}" for name, place in at.items()))


def _refused(error: LayoutError, language: str) -> Markup:
    return tag("span", sentence(error, language), class_="refusal", role="alert")


VIEW = View("ranks", "see", ranks_html)
