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
from request.context import Context
from request.model import is_dense
from request.units import ranges_text
from request.words import saying, sentence

from ..base.html import cell, chip, figure, heading, row, table, tag, together
from ..base.view import Pictures
from ..parts.framed import framed, overview_figure
from ..parts.shown import PictureSpec

ENGINES = ("vllm", "sglang", "tensorrt-llm")

ROLES = ("tp", "cp", "dp", "etp", "ep", "pp")
"""Rows of the table: attention's axes, the experts', the pipeline."""

OF_EXPERTS = ("etp", "ep")
"""Those of them that a model without experts has not."""


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
    part = context.once(_part)
    others = [shown_of(layout, part) for layout in same.layouts.values()]
    spec = PictureSpec(context.layout, context.state, others=others)
    figures = (_figure(spec, name, side, part) for name, side in same.sides.items())
    title = heading(SERVER["engines_title"][language], tag("p", engines_summary(context)))
    pictures = tag("div", *figures, class_="engines")
    return framed(spec, "orders", title, pictures, _table(context, same), *below)


def _same(context: Context) -> SameServers:
    return SameServers(context.layout)


def engines_summary(context: Context) -> str:
    """The GPUs with which the selected one shares experts, or cuts them or attention, in each
    engine."""
    say, rank, part = saying(SERVER, context.language), context.rank, context.once(_part)
    parts = []
    for name, layout in context.once(_same).layouts.items():
        ranks = _ranks(shown_of(layout, part), rank)
        parts.append(say("engine_group", engine=framework_name(name), ranks=ranks))
    return say(f"engines_{part}", rank=rank, groups=say("semicolon").join(parts))


def _ranks(grouping: Grouping, rank: int) -> str:
    return ranges_text(grouping.members(rank), 8)


def _part(context: Context) -> str:
    """The part in which engines differ most: whole experts, or else slices of each; for a model
    without experts attention."""
    if context.layout.has_experts:
        return "whole"
    return "attention" if is_dense(context.state) else "slices"


def shown_of(layout: Layout, part: str) -> Grouping:
    """The groups of a part: vLLM's ep has whole experts or slices of them."""
    if part == "attention":
        return layout.roles.get("tp") or Grouping("tp", layout.mesh, "tp")
    etp, ep = (layout.kind(name) for name in ("etp", "ep"))
    assert ep is not None  # every engine has one, if only of single ranks
    return etp if part == "slices" and etp is not None else ep


def _figure(spec: PictureSpec, name: str, side: Layout | LayoutError, part: str) -> Markup:
    title = framework_name(name)
    if isinstance(side, LayoutError):
        return tag("div", tag("h3", title), tag("p", sentence(side, spec.language)))
    shown = shown_of(side, part)
    if spec.layout.world_size > scene.PANEL_LIMIT:
        return tag("div", tag("h3", title), overview_figure(spec, side.mesh, (shown,)))
    return figure(title, svg.panel_svg(scene.panel(shown, side.gpus_per_node), title))


def _table(context: Context, same: SameServers) -> Markup:
    """A table with a row for each kind: the engine's own name, and the group of the selected
    GPU."""
    say = saying(SERVER, context.language)
    rows = []
    left_out = OF_EXPERTS if context.once(_part) == "attention" else ()
    for role in (role for role in ROLES if role not in left_out):
        found = [_playing(layout, role) for layout in same.layouts.values()]
        if not any(grouping and grouping.size > 1 for grouping in found):
            continue
        cells = (_cell(context, grouping) for grouping in found)
        rows.append(row(tag("b", say(f"role_{role}")), *cells))
    return table((say("role"), *map(framework_name, same.layouts)), rows, "same-servers")


def _playing(layout: Layout, role: str) -> Grouping | None:
    """The groups of a role; vLLM's ep cuts each expert where it has no whole ones."""
    if layout.framework == "vllm" and not layout.has_experts:
        role = {"etp": "ep", "ep": ""}.get(role, role)
    return layout.roles.get(role)


def _cell(context: Context, grouping: Grouping | None) -> Markup:
    if grouping is None:
        return cell("–")
    ranks = _ranks(grouping, context.rank)
    return cell(together(chip(grouping.name), " ", ranks), class_="ranks")


def engines_pictures(context: Context) -> Pictures:
    """The pictures, by engine."""
    layout, pictures = context.layout, []
    for name, side in context.once(_same).layouts.items():
        shown, gpus = shown_of(side, context.once(_part)), layout.gpus_per_node
        is_small = layout.world_size <= scene.PANEL_LIMIT
        whole = () if is_small else (side.mesh, [shown], gpus, context.rank)
        drawn = scene.overview(*whole) if whole else scene.panel(shown, gpus)
        pictures.append((framework_name(name), drawn))
    return pictures
