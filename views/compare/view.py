"""The Compare view: another layout beside this one, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote, urlsplit

from markupsafe import Markup

from descriptions import PAGE, counted, joined
from groups import LayoutError
from groups.audit import moved_ranks, span
from groups.grouping import Grouping
from groups.layout import Layout
from render.files.tables import TableChart
from render.scenes import groups as scene
from render.svg import groups as svg

from ..base import form
from ..base.context import Context, Pictures, View
from ..base.html import chips, figure, heading, heads_of, saying, table, tag, together
from ..base.link import from_query, to_query
from ..base.model import model_name, stated_layout
from ..base.problems import control_label, each_once, refusal, refusal_line, tried, value_text
from ..base.resolve import sizes_text
from ..base.state import State, fields_of, is_empty
from ..base.trained import Trained
from ..base.units import bytes_text, seconds_text
from ..estimate.words import KINDS, about
from ..groups.view import PANEL_LIMIT
from ..memory.stages import gib
from ..stories import LINKS
from ..traffic.view import rows_of

_FOUR = "nodes=4&show=compare"
PAIRS = {
    "pair_nodes": LINKS["cost"],
    "pair_order": f"{_FOUR}&pp=4&framework=megatron-pp-dp&kept={quote('?nodes=4&pp=4')}",
    "pair_zero": f"{_FOUR}&tp=1&pp=1&zero=3&kept={quote('?nodes=4&tp=1&pp=4')}",
}
"""Pairs to begin with, as a person types links."""


def kept_context(context: Context) -> Context:
    """The same page with the job that the kept link, or the query of one, is about.

    Errors: LayoutError for nothing, for what is no link, and for a layout that cannot be.
    """
    if is_empty(context.state.kept):
        raise refusal("nothing-kept", "kept")
    state = with_job(context.state, from_query(_query_of(context.state.kept)))
    return Context.of(state)


def with_job(state: State, other: State) -> State:
    return State(**{**vars(state), **{name: getattr(other, name) for name in fields_of("job")}})


def _query_of(kept: Any) -> Any:
    """The query of an address; anything else is taken to be one itself."""
    text = kept.strip() if isinstance(kept, str) else ""
    if not text.startswith(("http://", "https://", "?")):
        return text or kept
    try:
        return urlsplit(text).query
    except ValueError:
        return text


def compare_html(context: Context) -> Markup:
    """What differs between the kept layout and the one on screen."""
    state, language, say = context.state, context.language, saying(PAGE, context.language)
    now = f"?{to_query(with_job(State(), state)) or 'v=2'}"
    keep = form.setter({"kept": now}, say("keep"))
    inputs = form.fields(form.text("kept", state), keep)
    if is_empty(state.kept):
        pairs = (form.opener(link, say(name)) for name, link in PAIRS.items())
        head = heading(say("compare_title"), tag("p", say("compare_empty")))
        return together(head, inputs, tag("p", Markup(" ").join(pairs), class_="openers"))
    try:
        before = kept_context(context)
    except LayoutError as error:
        return together(heading(say("compare_title")), inputs, refusal_line(error, language))
    lines = (_line(before.layout, "kept", language), _line(context.layout, "now", language))
    return together(
        heading(say("compare_title"), tag("p", lines[0], Markup("<br>"), lines[1])),
        inputs,
        _sizes(before, context),
        costs_html(before, context),
        _groups(before.layout, context.layout, names_of(context), language),
    )


def _line(layout: Layout, which: str, language: str) -> str:
    """A layout in a line: its GPUs and its sizes."""
    return PAGE["layout_line"][language].format(
        side=PAGE[f"column_{which}"][language],
        gpus=counted(layout.world_size, "gpu", language),
        nodes=f"{layout.nodes:,} × {layout.gpus_per_node}",
        sizes=sizes_text(layout),
    )


# -- sizes ---------------------------------------------------------------------------------------

COUNTS: dict[str, Callable[[Trained], Any]] = {
    "layers": lambda trained: trained.model.layers,
    "experts": lambda trained: trained.model.experts,
    "vpp": lambda trained: trained.split.vpp,
    "schedule": lambda trained: trained.training.schedule,
    "global_batch": lambda trained: trained.batch.global_batch,
    "micro_batch": lambda trained: trained.batch.micro_batch,
    "micro_batches": lambda trained: trained.batch.micro_batches,
}
"""What counts where the fields of a model, its batch and its schedule are empty."""


def _sizes(before: Context, after: Context) -> Markup:
    """Every control and derived size that differs."""
    language, sides = after.language, (before.layout, after.layout)
    rows = []
    for name in fields_of("job"):
        said = [_said(name, side, language) for side in (before, after)]
        if said.count("–") == 1 and name in COUNTS:
            said = [_said(name, side, language, COUNTS[name]) for side in (before, after)]
        rows.append((control_label(name, language), *said))
    derived = {
        "world": [side.world_size for side in sides],
        "dp_size": [side.mesh.size("dp") for side in sides],
    }
    if any(side.has_experts for side in sides):
        meshes = (side.expert for side in sides)
        derived["edp_size"] = [0 if mesh is None else mesh.size("edp") for mesh in meshes]
    rows += [
        (PAGE[name][language], *(f"{size:,}" if size else "–" for size in sizes))
        for name, sizes in derived.items()
    ]
    different = [row for row in rows if row[1] != row[2]]
    if not different:
        return tag("p", PAGE["compare_same"][language])
    return table(heads_of(PAGE, "setting kept now", language), different, "sizes")


def _said(
    name: str, side: Context, language: str, counts: Callable[[Trained], Any] | None = None
) -> str:
    """A control's value as a cell of the table, or what counts where it says none, unless that is
    refused; the type of a number does not count."""
    value = getattr(side.state, name)
    if counts and value in ("", None):
        with suppress(LayoutError):
            value = counts(side.trained)
    return "–" if value in ("", None, (), []) else value_text(name, value, language)


# -- costs ---------------------------------------------------------------------------------------

COSTS = tuple(
    f"cost_{name}" for name in ("step", "compute", "bubble", "exposed", "rest", "across", "memory")
)
"""The rows of the table, words of PAGE."""

Cost = dict[str, tuple[float, str]]
"""What a layout costs: by COSTS a number, the less the better, and how it is said."""

Sides = tuple[Cost | None, Cost | None]


def cost_of(layout: Layout, trained: Trained) -> Cost:
    """What a layout costs: seconds, bytes that leave NVLink domains in a step, bytes of a GPU.

    Errors: LayoutError for what the model, the batch or the schedule does not allow.
    """
    across = sum(row.across for row in rows_of(layout, trained))
    estimate = trained.estimate(layout)
    parts, needed = estimate.parts, estimate.fit.needed
    seconds = {
        "cost_compute": parts["compute"],
        "cost_bubble": parts["bubble"],
        "cost_exposed": sum(parts[kind] for kind in KINDS),
        "cost_rest": parts["optimizer"] + parts["offload"] + parts["host"],
    }
    return {
        "cost_step": (estimate.seconds, about(estimate)),
        **{name: (number, seconds_text(number)) for name, number in seconds.items()},
        "cost_across": (across, bytes_text(across)),
        "cost_memory": (needed, gib(needed)),
    }


def sides_of(before: Context, now: Context) -> tuple[Sides, Trained | None, list[LayoutError]]:
    """What the two layouts cost, what is trained, and why there is none of these.

    The model, how it is trained and the cluster are those of the layout on screen.
    """
    problems: list[LayoutError] = []
    trained = tried(problems, lambda: now.trained)
    if trained is not None:  # steps can be compared only where they do the same work
        same: dict[str, Any] = {"global_batch": str(trained.batch.global_batch)}
        if not stated_layout(before.state):  # which is for as many stages as it says
            is_dealt = bool(stated_layout(now.state))
            same["layers"] = str(trained.chosen.model.layers) if is_dealt else now.state.layers
        same |= {"experts": now.state.experts, "micro_batches": ""}
        before = Context(before.layout, replace(before.state, **same))

    def kept_cost() -> Cost:
        own = before.trained
        return cost_of(before.layout, replace(own, chosen=trained.chosen) if trained else own)

    kept = tried(problems, kept_cost)
    current = trained and tried(problems, lambda: cost_of(now.layout, trained))
    return (kept, current), trained, problems


def rows_of_costs(sides: Sides, language: str) -> list[tuple[str, ...]]:
    """A row a cost: its name, both layouts, how the second differs."""
    rows = []
    for name in COSTS:
        said = ("–" if side is None else side[name][1] for side in sides)
        numbers = [side[name][0] for side in sides if side is not None]
        difference = _difference(*numbers, language) if len(numbers) == 2 else "–"
        rows.append((PAGE[name][language], *said, difference))
    return rows


def costs_html(before: Context, now: Context) -> Markup:
    """A row a cost; a layout that the model does not allow says why in place of its numbers."""
    language, (sides, trained, problems) = now.language, sides_of(before, now)
    said = "" if trained is None else what_text(trained, language)
    heads = heads_of(PAGE, "cost kept now difference", language)
    return together(
        heading(PAGE["cost_title"][language], tag("p", said)),
        table(heads, rows_of_costs(sides, language), "costs"),
        *(refusal_line(error, language) for error in each_once(problems)),
    )


def _difference(before: float, after: float, language: str) -> str:
    """By how much the layout on screen is better or worse."""
    if abs(after - before) <= 0.0005 * max(before, after):
        return PAGE["cost_same"][language]
    words = "cost_better" if after < before else "cost_worse"
    if not before:
        return PAGE["cost_worse_than_none"][language]
    if after and not 0.1 < after / before < 10:
        times = max(before, after) / min(before, after)
        return PAGE[f"{words}_times"][language].format(times=f"{times:,.0f}")
    share = 100 * abs(after / before - 1)
    return PAGE[words][language].format(share=f"{share:,.0f}" if share >= 1 else f"{share:.1f}")


def what_text(now: Trained, language: str) -> str:
    batch = f"{now.batch.global_batch:,}"
    name = model_name(now.chosen, language)
    return PAGE["cost_of"][language].format(model=name, cluster=now.cluster.name, batch=batch)


# -- groups --------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _groups(before: Layout, after: Layout, visible: tuple[str, ...], language: str) -> Markup:
    """Every group of either layout: number, size, who moved, which leave their node; drawn, those
    that are visible. Names that make the very same groups in both share a row."""
    rows: dict[object, tuple[list[str], list[str]]] = {}
    for name in dict.fromkeys((*before.every, *after.every)):
        kept, now = before.every.get(name), after.every.get(name)
        if max(side.size for side in (kept, now) if side is not None) == 1:
            continue
        key = tuple(side and (side.spread or side) for side in (kept, now))
        if key in rows:
            rows[key][0].append(name)
            continue
        moved = "–"
        if kept is not None and now is not None and before.world_size == after.world_size:
            moved = f"{int(moved_ranks(kept, now).sum()):,}"
        sides = _told(kept, before, language), _told(now, after, language)
        (shape_kept, leaving_kept), (shape_now, leaving_now) = sides
        rows[key] = ([name], [shape_kept, shape_now, moved, leaving_kept, leaving_now])
    heads = heads_of(PAGE, "kind kept now moved leaving_kept leaving_now", language)
    grids = []
    for layout, title in ((before, "column_kept"), (after, "column_now")):
        is_small = layout.world_size <= PANEL_LIMIT
        paint = svg.panel_svg if is_small else partial(svg.overview_svg, kinds=[0])
        drawn = (figure(name, paint(each, name)) for name, each in _scenes(layout, visible))
        grids.append(tag("div", tag("h3", PAGE[title][language]), *drawn, class_="grid"))
    named = ((chips(names), *cells) for names, cells in rows.values())
    return together(table(heads, named, "moves"), tag("div", *grids, class_="grids still"))


def _told(grouping: Grouping | None, layout: Layout, language: str) -> tuple[str, str]:
    """Number and size of its groups, and how many of them leave their node."""
    if grouping is None:
        return "–", "–"
    spans = span(grouping, layout.gpus_per_node)
    groups = counted(grouping.num_groups, "group", language)
    return f"{groups} × {grouping.size:,}", f"{spans.crossing:,} / {spans.groups:,}"


def compare_pictures(context: Context) -> Pictures:
    """What of the view goes into a file: titles and scenes, first of the kept layout."""
    sides = kept_context(context).layout, context.layout
    return [
        (f"{name}: {side.mesh}", drawn)
        for side in sides
        for name, drawn in _scenes(side, names_of(context))
    ]


def compare_slide(context: Context) -> Pictures:
    """What the layouts cost; where the model does not allow that, their pictures by kind."""
    language, before = context.language, kept_context(context)
    sides, trained, _ = sides_of(before, context)
    if trained is None or None in sides:
        pictures = compare_pictures(context)
        return sorted(pictures, key=lambda picture: picture[0].split(":")[0])
    heads = heads_of(PAGE, "cost kept now difference", language)
    rows = tuple(rows_of_costs(sides, language))
    return [("", TableChart(tuple(heads), rows, marked=0))]


def compare_summary(context: Context) -> str:
    """The two layouts, each with its GPUs, and what is trained on them."""
    language, before = context.language, kept_context(context)
    trained = sides_of(before, context)[1]
    lines = _line(before.layout, "kept", language), _line(context.layout, "now", language)
    what = () if trained is None else (what_text(trained, language),)
    return joined((*lines, *what), language)


def names_of(context: Context) -> tuple[str, ...]:
    """The kinds that are visible on screen."""
    return tuple(grouping.name for grouping in context.visible)


def _scenes(layout: Layout, visible: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The kinds that are visible on screen; of a large world, with the groups of rank 0."""
    kinds = [layout.every[name] for name in visible if name in layout.every]
    if layout.world_size <= PANEL_LIMIT:
        yield from ((kind.name, scene.panel(kind, layout.gpus_per_node)) for kind in kinds)
        return
    # All are the same million of cells, with other marks.
    plain = scene.overview(layout.mesh, (), layout.gpus_per_node, rank=0)
    for kind in kinds:
        marks = scene.marks_of([kind], rank=0)
        yield kind.name, replace(plain, marks=marks, sizes=((kind.name, kind.size),))


VIEW = View(
    "compare",
    "choose",
    compare_html,
    compare_pictures,
    PAGE["compare_title"],
    compare_summary,
    slide=compare_slide,
    pins_locally=True,
)
