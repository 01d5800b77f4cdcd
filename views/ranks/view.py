"""The Ranks view: everything about one rank, and the groups that several share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from descriptions import CARD, PAGE, RUN, SERVER, counted, joined
from formats.logs import named_ranks
from groups import LayoutError, coordinates
from groups.grouping import SharedGroups, shared_groups
from groups.layout import Layout
from groups.mesh import require_rank
from groups.placement import Placement, local_rank, node_of, nodes_spanned
from groups.stages.holdings import local_experts, sample_starts, sequence_chunks
from render.scenes.job_plan import HALF, WHOLE
from render.svg.job import job_svg
from request.answers.pipeline.inputs import Stage, stages_by_rank
from request.answers.ranks import rank_card, shared_by_ranks
from request.context import Context, of_server
from request.hosts import placement_or_none
from request.resolve import sizes_of
from request.state import State, is_empty
from request.trained import batch_of, readers_of
from request.units import ranges_text, ranks_text
from request.words import saying, sentence

from ..base import form
from ..base.hosts import hosts_cell, hosts_head
from ..base.html import cell, chips, dotted, figure, heading, row, table, tag, together
from ..base.names import folding_names, rare_names
from ..base.problems import leads_html
from ..base.view import View
from ..parts.job import described, job_of_grid, spec_of
from ..parts.levels import same_groups
from ..parts.shown import marked

SAMPLES = 4
"""The most micro-batches whose samples the card lists."""

GRIDS = {"dense": (PAGE, "dense_grid"), "attention": (SERVER, "attention_grid")}
"""The name of the grid beside that of experts."""

HELD_BESIDE = {"E": "embedding", "L": "output"}
"""What a stage holds besides layers, by its letter in a pipeline layout."""


def ranks_html(context: Context) -> Markup:
    """The groups that the pasted ranks share, and the card of the pinned rank (0 without one)."""
    layout, state = context.layout, context.known
    chosen = state.values["rank"]
    placement = placement_or_none(context)
    numbers, asked, shared = _together(context, placement)
    try:
        rank = require_rank(layout.mesh, 0 if chosen is None else chosen)
    except LayoutError as error:
        return together(asked, shared, _refused(error, context.language))
    card = _Card(layout, state, rank, context.language, placement, rare_names(context))
    facts = (together(tag("dt", name), tag("dd", text)) for name, text in card.facts())
    title = PAGE["rank_title"][context.language].format(rank=rank)
    told = tag("div", heading(title), tag("dl", *facts, class_="rank"))
    drawn = tag("div", *_pictures(context, numbers), class_="jobs")
    return together(asked, tag("div", drawn, told, class_="rank-shown"), shared, card.groups())


def _pictures(context: Context, numbers: Sequence[int]) -> Iterator[Markup]:
    """The picture of the job with the groups of the chosen rank, by grid; the pasted ranks have
    dashed frames."""
    layout, language, spec = context.layout, context.language, spec_of(context)
    outlined = np.isin(np.arange(layout.world_size), numbers) if len(numbers) else None
    for name, mesh, groupings in spec.sides:
        groupings = marked(layout, groupings)
        picture = job_of_grid(spec, mesh, groupings, WHOLE if len(spec.sides) == 1 else HALF)
        places = [spec.script_groups.index(grouping) for grouping in groupings]
        text = described(layout, picture, groupings, language)
        caption = PAGE[name][language] + PAGE["colon"][language] + sizes_of(mesh)
        drawn = job_svg(picture, text, places, outlined=outlined)
        yield figure(caption if len(spec.sides) > 1 else "", drawn)


_Lines = dict[str, Callable[[dict[str, int]], str | Markup]]


def _no_lines(_: _Card) -> _Lines:
    return {}


def _none_beside(_: _Card) -> list[str]:
    return []


@dataclass(frozen=True)
class _Card:
    """One rank of a layout."""

    layout: Layout
    state: State
    rank: int
    language: str
    placement: Placement | None
    rare: frozenset[str]  # names that are folded

    def say(self, name: str, **facts: object) -> str:
        return PAGE[name][self.language].format(**facts)

    def facts(self) -> Iterator[tuple[str, str | Markup]]:
        """The lines of the card; a number that the model refuses has the refusal in its line."""
        layout, rank, language = self.layout, self.rank, self.language
        if self.placement is not None:
            say, host = saying(RUN, language), self.placement.host(rank)
            device = say("rank_host", host=host, local=self.placement.device(rank))
            yield say("host"), dotted(device, *self.placement.places(rank).values())
        node, local = node_of(rank, layout.gpus_per_node), local_rank(rank, layout.gpus_per_node)
        place = CARD["place"][language].format(node=int(node), local=int(local))
        yield self.say("rank_place"), place
        at = coordinates(layout.mesh, rank)
        words, name = GRIDS[layout.made_by.dense_grid]
        yield words[name][language], _code(at)
        lines: _Lines = {"rank_stage": self._stage}
        if layout.mesh.size("cp") > 1:
            lines["rank_chunks"] = self._chunks
        if layout.expert is not None and (layout.has_experts or not is_empty(self.state.experts)):
            yield self.say("expert_grid"), _code(coordinates(layout.expert, rank))
            lines["rank_experts"] = self._experts
        lines |= self._of_step()
        lines["rank_neighbours"] = self._neighbours
        for name, line in lines.items():
            try:
                yield self.say(name), line(at)
            except LayoutError as error:
                yield self.say(name), _refused(error, language)

    @of_server(_no_lines)
    def _of_step(self) -> _Lines:
        """The line that only a training step has."""
        return {"rank_samples": self._samples}

    def _stage(self, at: dict[str, int]) -> str | Markup:
        say, pp = self.say, self.layout.mesh.size("pp")
        text = say("rank_stage_of", stage=at["pp"], stages=pp)
        if is_empty(self.state.layers):
            return together(text, " ", leads_html("layers", say("rank_give_layers")))
        chunks = stages_by_rank(pp, self.state)[at["pp"]]
        texts = [
            ranges_text(chunk.layers) if chunk.layers else say("rank_no_layers") for chunk in chunks
        ]
        words = "rank_layers_of" if len(texts) == 1 else "rank_chunks_layers"
        held = [text, say(words, layers=say("semicolon").join(texts))]
        held += [say(f"rank_{what}") for what in self._beside(chunks)]
        return joined(held, self.language)

    @of_server(_none_beside)
    def _beside(self, chunks: Iterable[Stage]) -> list[str]:
        """What a stage holds besides layers."""
        others = "".join(chunk.others for chunk in chunks)
        return [what for letter, what in HELD_BESIDE.items() if letter in others]

    def _chunks(self, at: dict[str, int]) -> str:
        cp = self.layout.mesh.size("cp")
        chunks = " + ".join(map(str, sequence_chunks(cp, at["cp"])))
        return self.say("rank_chunks_of", chunks=chunks, total=2 * cp)

    def _experts(self, _: dict[str, int]) -> str | Markup:
        expert, say, experts = self.layout.expert, self.say, self.state.values["experts"]
        assert expert is not None
        at, ep, etp = coordinates(expert, self.rank), expert.size("ep"), expert.size("etp")
        if "ep_dp" in expert.names and ep > 1:  # whole experts of vLLM, over all dp ranks too
            at["ep"] += ep * at["ep_dp"]
            ep *= expert.size("ep_dp")
        if experts is None:
            text = say("rank_expert_place", place=at["ep"], ep=ep)
            return together(text, " ", leads_html("experts", say("rank_give_experts")))
        held = ranges_text(list(local_experts(experts, ep, at["ep"])))
        text = say("rank_experts_of", experts=held, total=experts)
        cut = [say("rank_expert_slice", slice=at["etp"], etp=etp)] if etp > 1 else []
        return joined([text, *cut], self.language)

    def _samples(self, at: dict[str, int]) -> str:
        readers, batch = readers_of(self.layout), batch_of(self.layout, self.state)
        dp, place = readers.size, int(np.searchsorted(readers.members(self.rank), self.rank))
        starts = sample_starts(dp, place, batch.micro_batch, batch.global_batch)
        runs = (range(first, first + batch.micro_batch) for first in starts[:SAMPLES])
        texts = list(map(ranges_text, runs))
        listed = ", ".join([*texts, "…"] if len(starts) > SAMPLES else texts)
        count = counted(len(starts), "microbatch", self.language)
        reads = self.say("rank_reads", place=place, dp=dp)
        samples = self.say("rank_samples_of", samples=listed, count=count)
        return joined([reads, samples], self.language)

    def _neighbours(self, _: dict[str, int]) -> str:
        ring = self.layout.every["pp"].neighbours(self.rank)
        if ring is None or self.layout.every["pp"].size == 1:
            return self.say("rank_no_pipeline")
        return self.say("rank_ring", before=ring[0], after=ring[1])

    def groups(self) -> Markup:
        """Every group of the rank; names of identical groups share a row."""
        rows = []
        for names, grouping in same_groups(self.layout.every.values()):
            ranks, index = grouping.members(self.rank), grouping.index_of(self.rank)
            if len(ranks):
                rows.append(_group_row(self.layout, names, index, ranks, self.placement, self.rare))
            else:
                text = cell(
                    CARD["none"][self.language].format(kind=grouping.name),
                    colspan=4 + bool(self.placement),
                )
                rows.append(row(chips(names, self.rare), text, class_=_fold_of(names, self.rare)))
        heads = _heads("peers", self.placement, self.language)
        found = table(heads, rows, "peers")
        return folding_names(found, self.rare, self.layout, self.language)


def _heads(members: str, placement: Placement | None, language: str) -> list[str]:
    names = ("kind", "group", "size", members, "nodes")
    return [*(PAGE[f"column_{name}"][language] for name in names), *hosts_head(placement, language)]


def _group_row(
    layout: Layout,
    names: Iterable[str],
    index: object,
    ranks: np.ndarray | Sequence[int],
    placement: Placement | None,
    rare: Collection[str] = (),
) -> Markup:
    """A group with the machines of its ranks, and their number."""
    nodes = int(nodes_spanned(np.asarray([ranks]), layout.gpus_per_node)[0])
    if placement is not None:
        nodes = len(np.unique(placement.nodes[list(ranks)]))
    listed, hosts = cell(ranks_text(ranks), class_="ranks"), hosts_cell(placement, ranks)
    cells = (index, f"{len(ranks):,}", listed, nodes, *hosts)
    return row(chips(names, rare), *cells, class_=_fold_of(names, rare))


def _fold_of(names: Iterable[str], rare: Collection[str]) -> str | None:
    return "folded" if all(name in rare for name in names) else None


def _together(
    context: Context, placement: Placement | None
) -> tuple[Sequence[int], Markup, Markup]:
    """The pasted ranks; the box with the answer; the groups that hold them all, smallest first."""
    layout, ranks, language = context.layout, context.state.ranks, context.language
    say, box = saying(PAGE, language), form.fields(form.area("ranks", context.state, rows=1))
    title = say("together_title")
    if is_empty(ranks):
        return (), together(heading(title, tag("p", say("together_empty"))), box), Markup()
    try:
        numbers, _ = named_ranks(ranks, layout.world_size)
    except LayoutError as error:
        return (), together(heading(title), box, tag("div"), _refused(error, language)), Markup()
    groups = [grouping for grouping in layout.every.values() if grouping.size > 1]
    shared, apart = shared_groups(groups, numbers)
    count = counted(len(numbers), "rank", language)
    understood = say("together_ranks", ranks=ranges_text(numbers), count=count)
    rows = []
    for group in shared:
        indices = ", ".join(map(str, dict.fromkeys(group.indices)))
        rows.append(_group_row(layout, group.names, indices, group.ranks, placement))
    parts = (say("together_part", kind=kind.name, count=kind.groups) for kind in apart)
    kinds = say("and_list").join(parts)
    answer = tag("p", joined([_verdict(shared, len(numbers), language), understood], language))
    found = together(
        table(_heads("ranks", placement, language), rows, "shared") if shared else "",
        tag("p", say("together_apart", kinds=kinds)) if apart else "",
    )
    return numbers, together(heading(title, answer), box), found


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


VIEW = View(
    "ranks",
    "diagnose",
    ranks_html,
    place=3,
    endpoints=(rank_card, shared_by_ranks),
    commands=("rank", "share"),
)
