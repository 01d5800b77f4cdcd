"""The same servers in three engines' groups: a picture for each engine, and a table of kinds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from markupsafe import Markup

from descriptions import SERVER
from groups import LayoutError
from groups.grouping import Grouping
from groups.layout import Job, Layout, framework_name
from render.scenes import groups as scene
from render.svg import groups as svg

from ..base.context import Context, Pictures
from ..base.html import cell, chip, figure, heading, row, saying, table, tag, together
from ..base.problems import sentence
from ..base.units import ranges_text
from ..groups.shown import PictureSpec
from ..groups.view import framed, overview_figure

ENGINES = ("vllm", "sglang", "tensorrt-llm")

ROLES = ("tp", "cp", "dp", "etp", "ep", "pp")
"""Rows of the table: attention's axes, the experts', the pipeline."""


@dataclass(frozen=True)
class SameServers:
    """The sizes that all engines get: GPUs of a stage of one server, and their division."""

    layout: Layout

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """The job of each engine. In SGLang and TensorRT-LLM tp is the whole stage; in vLLM it is
        what attention dp and pcp leave of it, and experts are on all of it."""
        size, expert = self.layout.mesh.size, self.layout.expert
        tp, cp, dp, pp = (size(name) for name in ("tp", "cp", "dp", "pp"))
        experts = self.layout.kind("ep") if expert is not None and self.layout.has_experts else None
        ep = 1 if experts is None else experts.size
        if self.layout.framework == "megatron-inference":
            dp = 1  # its data parallel ranks are further servers
        plain = Job(nodes=self.layout.nodes, gpus_per_node=self.layout.gpus_per_node, pp=pp)
        has_dp = "dp" in self.layout.roles and dp > 1
        inside = tp * cp * (dp if has_dp else 1)
        own = self.layout.framework
        made = {
            "vllm": replace(plain, tp=tp, cp=cp, dp=dp, expert_parallel=ep > 1),
            "sglang": replace(plain, tp=inside, cp=cp, dp=dp, ep=min(ep, inside)),
            "tensorrt-llm": replace(
                plain, tp=inside // cp, cp=cp, ep=ep, dp=inside // cp if has_dp else None
            ),
        }
        made = {name: replace(job, framework=name) for name, job in made.items()}
        return made | ({own: self.layout.job} if own in made else {})

    @cached_property
    def sides(self) -> dict[str, Layout | LayoutError]:
        """Each engine with its layout of these servers, or the error why it has none."""
        made: dict[str, Layout | LayoutError] = {}
        for name in ENGINES:
            try:
                made[name] = self.jobs[name].layout()
            except LayoutError as error:
                made[name] = error
        return made

    @cached_property
    def layouts(self) -> dict[str, Layout]:
        return {name: side for name, side in self.sides.items() if isinstance(side, Layout)}


def engines_html(context: Context, *below: Markup) -> Markup:
    """The sentence, a picture of each engine's experts, and every kind in a table."""
    same, language = context.once(_same), context.language
    others = [shown_of(layout) for layout in same.layouts.values()]
    spec = PictureSpec(context.layout, context.state, others=others)
    figures = (_figure(spec, name, side) for name, side in same.sides.items())
    title = heading(SERVER["engines_title"][language], tag("p", engines_summary(context)))
    pictures = tag("div", *figures, class_="engines")
    return framed(spec, "orders", title, pictures, _table(context, same), *below)


def _same(context: Context) -> SameServers:
    return SameServers(context.layout)


def engines_summary(context: Context) -> str:
    """The GPUs with which the selected one shares experts, in each engine."""
    say, rank = saying(SERVER, context.language), context.rank
    parts = []
    for name, layout in context.once(_same).layouts.items():
        ranks = _ranks(shown_of(layout), rank)
        parts.append(say("engine_group", engine=framework_name(name), ranks=ranks))
    return say("engines", rank=rank, groups=say("semicolon").join(parts))


def _ranks(grouping: Grouping, rank: int) -> str:
    return ranges_text(grouping.members(rank), 8)


def shown_of(layout: Layout) -> Grouping:
    """The kind in which engines differ most: that of the experts."""
    found = layout.kind("ep")
    assert found is not None  # every engine has one, if only of single ranks
    return found


def _figure(spec: PictureSpec, name: str, side: Layout | LayoutError) -> Markup:
    title = framework_name(name)
    if isinstance(side, LayoutError):
        return tag("div", tag("h3", title), tag("p", sentence(side, spec.language)))
    shown = shown_of(side)
    if spec.layout.world_size > scene.PANEL_LIMIT:
        return tag("div", tag("h3", title), overview_figure(spec, side.mesh, (shown,)))
    return figure(title, svg.panel_svg(scene.panel(shown, side.gpus_per_node), title))


def _table(context: Context, same: SameServers) -> Markup:
    """A table with a row for each kind: the engine's own name, and the group of the selected
    GPU."""
    say = saying(SERVER, context.language)
    rows = []
    for role in ROLES:
        found = [layout.roles.get(role) for layout in same.layouts.values()]
        if not any(grouping and grouping.size > 1 for grouping in found):
            continue
        cells = (_cell(context, grouping) for grouping in found)
        rows.append(row(tag("b", say(f"role_{role}")), *cells))
    return table((say("role"), *map(framework_name, same.layouts)), rows, "same-servers")


def _cell(context: Context, grouping: Grouping | None) -> Markup:
    if grouping is None:
        return cell("–")
    ranks = _ranks(grouping, context.rank)
    return cell(together(chip(grouping.name), " ", ranks), class_="ranks")


def engines_pictures(context: Context) -> Pictures:
    """The pictures, by engine."""
    layout, pictures = context.layout, []
    for name, side in context.once(_same).layouts.items():
        shown, gpus = shown_of(side), layout.gpus_per_node
        is_small = layout.world_size <= scene.PANEL_LIMIT
        whole = () if is_small else (side.mesh, [shown], gpus, context.rank)
        drawn = scene.overview(*whole) if whole else scene.panel(shown, gpus)
        pictures.append((framework_name(name), drawn))
    return pictures
