"""The Compare view: another layout beside this one, which is better, and what differs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

from markupsafe import Markup

from descriptions import PAGE, SERVER, counted, joined
from formats.documents.tables import Table
from groups import LayoutError
from groups.alternatives import divisors
from groups.audit import span
from groups.grouping import Grouping
from groups.kept import kept
from groups.layout import Layout
from render.files.tables import TableChart
from render.marks import Scene, Together
from render.scenes import groups as scene
from render.svg import groups as svg
from request.answers.compare.api import compare as compare_endpoint
from request.answers.compare.servers import what_served
from request.answers.compare.sides import (
    COSTS,
    PARTS,
    Compared,
    Side,
    comparison_of,
    moved_by_kind,
    settings_that_differ,
    what_text,
)
from request.answers.compare.words import measured_lines, rows_of_costs, verdict_text
from request.context import Context
from request.named.kept import query_to_keep
from request.resolve import resolve
from request.state import is_empty
from request.words import control_label, each_once, saying, within_sentence

from ..base import form
from ..base.html import cell, chips, figure, fine, heading, row, table, tag, together
from ..base.problems import refusal_line
from ..base.view import Pictures, View
from ..parts.examples import LINKS
from ..parts.framed import PANEL_LIMIT, framed
from ..parts.job import job_pictures
from ..parts.shown import PictureSpec
from .jobs import jobs_html, spec_of_both

_FOUR = "nodes=4&show=compare"
PAIRS = {
    "pair_nodes": LINKS["cost"],
    "pair_order": f"{_FOUR}&pp=4&framework=megatron-pp-dp&kept={quote('?nodes=4&pp=4')}",
    "pair_zero": f"{_FOUR}&tp=1&pp=1&zero=3&kept={quote('?nodes=4&tp=1&pp=4&zero=1')}",
}
"""Example pairs, as links."""

_VLLM = "framework=vllm&nodes=1&pp=1&model=llama3-70b"
SERVER_PAIRS = {
    "pair_tp": f"{_VLLM}&tp=8&show=compare&kept={quote('?framework=vllm&nodes=1&tp=4&pp=1')}",
    "pair_experts": "show=compare&preset=serve-kimi-k2-dp"
    f"&kept={quote('?preset=serve-kimi-k2-tp')}",
}
"""The same of servers, where one is on screen."""

_PAIRS = {"train": (PAIRS, PAGE), "serve": (SERVER_PAIRS, SERVER)}
"""The pairs that are offered and their texts, by what the framework on screen does."""


def compare_html(context: Context) -> Markup:
    """The verdict; the costs, the groups that differ, and the pictures of both."""
    state, language, say = context.state, context.language, saying(PAGE, context.language)
    keep = form.setter({"kept": f"?{query_to_keep(state)}"}, say("keep"))
    inputs = form.fields(form.text("kept", state), keep)
    spec = PictureSpec(context.layout, state)
    if is_empty(state.kept):
        links, words = _PAIRS[context.layout.made_by.does]
        pairs = (form.opener(link, words[name][language]) for name, link in links.items())
        head = heading(say("compare_title"), tag("p", say("compare_empty")))
        ways = tag("p", Markup(" ").join(pairs), class_="openers")
        return framed(spec, "compare", head, inputs, ways, _example(context))
    try:
        found = context.once(comparison_of)
    except LayoutError as error:
        head = heading(say("compare_title"))
        return framed(spec, "compare", head, inputs, refusal_line(error, language))
    verdict = verdict_text(found, language)
    verdict_box = tag("div", tag("p", verdict), class_="verdict", role="status") if verdict else ""
    both = tag("div", costs_html(found, language), jobs_html(found, language), class_="both")
    parts = (both, inputs, _settings(found, language), _groups_of(found, language))
    return framed(
        spec_of_both(found), "compare", heading(say("compare_title")), verdict_box, *parts
    )


def _example(context: Context) -> Markup:
    """This layout beside one on the same GPUs with the nearest other tp; empty if there is none."""
    tp, language = context.layout.mesh.size("tp"), context.language
    sizes = divisors(tp * context.layout.mesh.size("dp"))
    for other in sorted(sizes, key=lambda size: abs(math.log(size / tp))):
        with suppress(LayoutError):
            changed = context.state.changed({"tp": other})
            resolve(changed)
            changes = {"kept": f"?{query_to_keep(changed)}"}
            found = comparison_of(Context(context.layout, context.state.changed(changes)))
            if other != tp and (verdict := verdict_text(found, language)):
                verdict_box = tag("div", tag("p", verdict), class_="verdict")
                return form.example(language, changes, verdict_box, costs_html(found, language))
    return Markup()


# -- costs and settings --------------------------------------------------------------------------


def costs_html(found: Compared, language: str) -> Markup:
    """A table with a row for each cost; a layout that the model does not fit has the reason
    instead."""
    decides = _deciding(found)
    rows = (
        row(*cells, class_="part" if name in PARTS else "decides" if name == decides else None)
        for name, cells in rows_of_costs(found, language).items()
    )
    heads = [_first_head(found, language), *_heads(found, language)]
    what = _what(found, language)
    return tag(
        "div",
        table([*heads, PAGE["column_difference"][language]], rows, "costs"),
        fine(what) if what else "",
        *(tag("p", line, class_="measured") for line in measured_lines(found, language)),
        *(refusal_line(error, language) for error in each_once(found.problems)),
    )


def _first_head(found: Compared, language: str) -> str:
    return (SERVER["column_fact"] if found.serves else PAGE["column_cost"])[language]


def _what(found: Compared, language: str) -> str:
    """What is trained or served; empty where that is refused."""
    if found.trained is not None:
        return what_text(found.trained, language)
    return what_served(found, language)


def _heads(found: Compared, language: str) -> list[Markup]:
    """The names of both layouts as heads of a table, with a mark for the one on screen."""
    shown = tag("small", PAGE["side_shown"][language])
    return [together(found.first.name), together(found.second.name, " ", shown)]


def _settings(found: Compared, language: str) -> Markup:
    """A table of the controls and derived sizes that differ."""
    sides, layouts = (found.first.context, found.second.context), _layouts(found)
    settings = settings_that_differ(*sides, language)
    rows = [(control_label(name, language), *values) for name, *values in settings]
    named = {name for name, *_ in settings}
    derived = {
        "world": [layout.world_size for layout in layouts],
        "dp_size": [layout.mesh.size("dp") for layout in layouts],
    }
    if any(layout.has_experts for layout in layouts):
        meshes = (layout.expert for layout in layouts)
        derived["edp_size"] = [0 if mesh is None else mesh.size("edp") for mesh in meshes]
    rows += [
        (PAGE[name][language], *(f"{size:,}" if size else "–" for size in sizes))
        for name, sizes in derived.items()
        if sizes[0] != sizes[1] and name.removesuffix("_size") not in named
    ]
    if not rows:
        return tag("p", PAGE["compare_same"][language])
    heads = [PAGE["column_setting"][language], *_heads(found, language)]
    return _titled("settings_differ", table(heads, rows, "sizes"), language)


def _titled(name: str, body: object, language: str) -> Markup:
    return tag("section", tag("h3", PAGE[name][language]), body)


def _layouts(found: Compared) -> tuple[Layout, Layout]:
    return found.first.layout, found.second.layout


# -- groups --------------------------------------------------------------------------------------


def _groups_of(found: Compared, language: str) -> Markup:
    names = (found.first.name, found.second.name)
    return _groups(*_layouts(found), names, visible_in(found), language)


@kept
def _groups(
    before: Layout,
    after: Layout,
    names: tuple[str, str],
    visible: tuple[str, ...],
    language: str,
) -> Markup:
    """A table of the groups that differ between the layouts: number, size, how many leave their
    node, the ranks that moved; of small worlds with pictures. Names of identical groups share a
    row."""
    rows: dict[object, tuple[list[str], list[str]]] = {}
    for name, count in moved_by_kind(before, after).items():
        kept, now = before.every.get(name), after.every.get(name)
        key = tuple(side and (side.spread or side) for side in (kept, now))
        if key in rows:
            rows[key][0].append(name)
            continue
        moved = "–" if count is None else f"{count:,}"
        rows[key] = (
            [name],
            [_groups_text(kept, before, language), _groups_text(now, after, language), moved],
        )
    if not rows:
        return tag("p", PAGE["compare_same_groups"][language])
    heads = [PAGE["column_kind"][language], *names, PAGE["column_moved"][language]]
    # On a phone a cell says which column it is of.
    body = (
        (chips(kinds), *(cell(content, data_label=head) for head, content in zip(heads[1:], cells)))
        for kinds, cells in rows.values()
    )
    listed = table(heads, body, "moves")
    grids: list[Markup] = []
    if max(before.world_size, after.world_size) <= PANEL_LIMIT:
        differ = {name for kinds, _ in rows.values() for name in kinds}
        shown = tuple(name for name in visible if name in differ)
        for layout, title in zip((before, after), names):
            drawn = [figure(name, svg.panel_svg(one, name)) for name, one in _panels(layout, shown)]
            grids += [tag("div", tag("h3", title), *drawn, class_="grid")] if drawn else []
        grids = [tag("div", *grids, class_="grids still")] if shown else []
    return together(_titled("groups_differ", listed, language), *grids)


def _groups_text(grouping: Grouping | None, layout: Layout, language: str) -> str:
    """The number and size of groups, and how many of them leave their node."""
    if grouping is None:
        return "–"
    spans, say = span(grouping, layout.gpus_per_node), saying(PAGE, language)
    groups = f"{counted(grouping.num_groups, 'group', language)} × {grouping.size:,}"
    leaving = {"leaving": f"{spans.crossing:,}", "groups": f"{spans.groups:,}"}
    where = say("leave_node", **leaving) if spans.crossing else say("none_leaves")
    return f"{groups}{PAGE['semicolon'][language]}{where}"


def visible_in(found: Compared) -> tuple[str, ...]:
    """The kinds visible on screen."""
    return tuple(grouping.name for grouping in found.second.context.visible)


def _panels(layout: Layout, visible: tuple[str, ...]) -> Iterator[tuple[str, scene.Panel]]:
    kinds = (layout.every[name] for name in visible if name in layout.every)
    return ((kind.name, scene.panel(kind, layout.gpus_per_node)) for kind in kinds)


def _scenes(layout: Layout, visible: tuple[str, ...]) -> Iterator[tuple[str, Scene]]:
    """Panels of these kinds; of a large world its nodes, with the groups of rank 0."""
    if layout.world_size <= PANEL_LIMIT:
        yield from _panels(layout, visible)
        return
    # All are the same million of cells, with other marks.
    plain = scene.overview(layout.mesh, (), layout.gpus_per_node, rank=0)
    for kind in (layout.every[name] for name in visible if name in layout.every):
        marks = scene.marks_of([kind], rank=0)
        yield kind.name, replace(plain, marks=marks, sizes=((kind.name, kind.size),))


# -- what goes into files ------------------------------------------------------------------------


def compare_pictures(context: Context) -> Pictures:
    """Both jobs, then the kinds of groups that differ, first of the kept layout."""
    found = context.once(comparison_of)
    differ = moved_by_kind(*_layouts(found))
    visible = tuple(name for name in visible_in(found) if name in differ)
    panels = [
        (f"{name}{PAGE['colon'][context.language]}{side.name}", drawn)
        for side in found.sides
        for name, drawn in _scenes(side.layout, visible)
    ]
    return [*_jobs(found), *panels]


def _jobs(found: Compared) -> Pictures:
    return [
        (f"{side.name} {title}".strip(), picture)
        for side in found.sides
        for title, picture in job_pictures(_on_its_own(side))
    ]


def _on_its_own(side: Side) -> Context:
    return Context(side.layout, replace(side.context.state, more=(), group_type="auto"))


def compare_slide(context: Context) -> Pictures | Together:
    """Both jobs, each with its costs, as far as they are readable side by side; else a table of all
    costs."""
    language, found = context.language, context.once(comparison_of)
    if any(side.is_refused for side in found.sides):
        return _jobs(found)
    names = (side.name for side in found.sides)
    heads = _first_head(found, language), *names, PAGE["column_difference"][language]
    rows = tuple(
        (PAGE["of_step"][language].format(part=within_sentence(first)), *rest)
        if name in PARTS
        else (first, *rest)
        for name, (first, *rest) in rows_of_costs(found, language).items()
    )
    decides = _deciding(found)
    marked = COSTS.index(decides) if decides else -1
    costs = TableChart(Table("compare", heads, rows), marked)
    return [("", costs)] if found.serves else Together(_with_costs(found, language), [("", costs)])


def _with_costs(found: Compared, language: str) -> Pictures:
    """Both jobs, each below its main costs; of one with experts the dense mesh."""
    pictures = []
    for side in found.sides:
        cost = side.cost(language)
        assert cost is not None  # none is refused
        amounts = {name.removeprefix("cost_"): text for name, (_, text) in cost.items()}
        amounts["mfu"] = f"{cost['cost_mfu'][0]:.1%}"
        title = PAGE["slide_side"][language].format(side=side.name, **amounts)
        pictures.append((title, job_pictures(_on_its_own(side))[0][1]))
    return pictures


def _deciding(found: Compared) -> str:
    """The name of the cost that decides; empty for none."""
    decides = {"memory": "cost_memory", "time": "cost_step", "bytes": "cost_across"}
    return "" if found.serves else decides.get(found.verdict.by, "")


def compare_summary(context: Context) -> str:
    """The verdict, and what is trained."""
    language, found = context.language, context.once(comparison_of)
    lines = [verdict_text(found, language, is_short=True)]
    if found.first.layout.world_size != found.second.layout.world_size:
        lines += (_line(side, language) for side in found.sides)
    lines.append(_what(found, language))
    lines += measured_lines(found, language)
    return joined(filter(None, lines), language)


def _line(side: Side, language: str) -> str:
    """The name of a layout and its GPUs."""
    layout = side.layout
    return PAGE["layout_line"][language].format(
        side=side.name,
        gpus=counted(layout.world_size, "gpu", language),
        nodes=f"{layout.nodes:,} × {layout.gpus_per_node}",
    )


VIEW = View(
    "compare",
    "better",
    compare_html,
    compare_pictures,
    PAGE["compare_title"],
    compare_summary,
    slide=compare_slide,
    is_framed=True,
    place=2,
    endpoints=(compare_endpoint,),
    commands=("compare",),
)
