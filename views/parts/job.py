"""The picture of the job: the first screen of the Groups view, and in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from markupsafe import Markup

from descriptions import GAP, JOB, PAGE, SAVED, counted
from groups import LayoutError, Mesh
from groups.grouping import Grouping
from groups.layout import Layout
from render.scenes import groups
from render.scenes import job as scene
from render.scenes.job_plan import NUMBERED
from render.scenes.marked import Mark
from render.svg import job as svg
from request.answers.pipeline.inputs import stages_by_rank
from request.answers.sentence import question, sentence_of
from request.context import Context, of_server
from request.resolve import sizes_of
from request.state import State, is_empty
from request.units import ranges_text, ranks_text

from ..base.html import button, tag, together
from ..base.view import Pictures
from .shown import PictureSpec, by_grid, marked

MOST_STAGES = 64
"""The most stages whose layers are listed."""


def layers_of(state: State, pp: int) -> tuple[str, ...]:
    """The layers of each stage as text; empty if no model is set or it does not fit."""
    if is_empty(state.layers) or pp > MOST_STAGES:
        return ()
    try:
        ranks = stages_by_rank(pp, state)
    except LayoutError:
        return ()
    return tuple(
        ", ".join(ranges_text(chunk.layers) for chunk in chunks if chunk.layers) or "–"
        for chunks in ranks
    )


def spec_of(context: Context) -> PictureSpec:
    layers = layers_of(context.known, context.layout.mesh.size("pp"))
    return PictureSpec(context.layout, context.state, layers)


def hero_html(spec: PictureSpec, on_nodes: Sequence[Markup] = ()) -> Markup:
    """The question, its answer, the picture of each grid, and the card of the GPU.

    on_nodes: figures of the same groups on the nodes, to which a switch turns the pictures.
    """
    layout, rank, language = spec.layout, spec.rank, spec.language
    pictures = [
        job_of_grid(spec, mesh, marked(layout, groupings), spec.room)
        for _, mesh, groupings in spec.sides
    ]
    figures = [
        _figure(spec, mesh, groupings, picture)
        for (_, mesh, groupings), picture in zip(spec.sides, pictures, strict=True)
    ]
    if on_nodes:
        ways = (("mesh", figures), ("nodes", on_nodes))
        figures = [
            tag("div", *drawn, class_="way", data_way=way, hidden=way == "nodes")
            for way, drawn in ways
        ]
    hint = tag("p", JOB["hint"][language], class_="hint")
    card = {"class_": "card aside", "style": f"--kinds:{len(spec.listed)}"}
    is_large = layout.world_size > NUMBERED
    insets = [tag("div", class_="inset", aria_hidden="true") for _ in spec.sides if is_large]
    groups_card, costs = tag("div", class_="told"), tag("div", class_="costs", aria_busy="true")
    asks = (
        tag("h2", question(rank, language), class_="question"),
        " ",
        tag("p", sentence_of(layout, rank, language), class_="answer", aria_live="polite"),
    )
    turns = [_ways(language)] if on_nodes else []
    lenses = tag("div", *_key_of_lens(spec), *turns, class_="lens-row")
    return tag(
        "div",
        tag("div", tag("div", *asks), class_="asks"),
        tag("div", *figures, lenses, _player(spec), hint, class_="jobs"),
        tag("div", tag("div", groups_card, costs, **card), *insets, class_="side"),
        class_=spec.look + " beside" * (is_large or shown_width(pictures[0]) < NARROW),
    )


NARROW = 745
"""The width in pixels of a shown picture up to which the card of a GPU has room beside it."""

MOST_SCALE, MOST_TALL = 1.46, 378.0
"""How much the style sheet enlarges a picture at most, and up to which height in a usual window."""


def shown_width(picture: scene.JobPicture) -> float:
    """The width in pixels of a picture in a window of 900 pixels, as groups/view.css has it."""
    as_tall = max(picture.width, MOST_TALL * picture.width / picture.height)
    return min(MOST_SCALE * picture.width, as_tall)


LENSES = {"hang": "", "hosts": "measures"}
"""What the cells may be coloured by beside the four numbers of a job, named by the view that
explains it, with the box that it needs to be filled, if one."""


def _no_key(_: PictureSpec) -> tuple[Markup, ...]:
    return ()


@of_server(_no_key)
def _key_of_lens(_: PictureSpec) -> tuple[Markup, ...]:
    """A line for the scale, which is of a training step."""
    return (tag("p", class_="lens-key", aria_live="polite"),)


@cache
def lenses_html(language: str) -> Markup:
    """The buttons of the scales that are no number of the job."""
    buttons = (
        button(
            JOB[f"lens_{name}"][language],
            data_lens=name,
            tabindex=-1,
            aria_pressed="false",
            data_box=box or None,
        )
        for name, box in LENSES.items()
    )
    group = {"role": "group", "aria_label": JOB["lenses"][language]}
    return tag("div", tag("span", JOB["lens_more"][language]), *buttons, class_="lenses", **group)


def _ways(language: str) -> Markup:
    """The switch between mesh and nodes (views/client/picture/ways.js)."""
    buttons = (
        button(
            JOB[f"way_{way}"][language],
            data_turns=way,
            tabindex=0 if way == "mesh" else -1,
            aria_pressed=str(way == "mesh").lower(),
        )
        for way in ("mesh", "nodes")
    )
    return tag("div", *buttons, class_="orders", role="group", aria_label=JOB["ways"][language])


MOST_ROWS = 6
"""The most stages with a row below the picture (film.js)."""


def _no_player(_: PictureSpec) -> Markup:
    return Markup()


@of_server(_no_player)
def _player(spec: PictureSpec) -> Markup:
    """The player of a step on the pictures (views/client/picture/film.js)."""
    language = spec.language
    play, stop = JOB["film_play"][language], JOB["film_stop"][language]
    strip = tag("div", class_="film-track", aria_hidden="true")
    label = {"aria_label": JOB["film_at"][language]}
    place = tag("input", type="range", min=0, max=1000, value=0, **label)
    return tag(
        "div",
        button(play, data_play="play", data_start=play, data_stop=stop),
        tag(
            "div", strip, place, tag("div", class_="film-names"), class_="film-strip", data_told=""
        ),
        tag("p", class_="film-says", aria_live="off"),
        class_="film player still",
        style=f"--rows:{min(spec.layout.mesh.size('pp'), MOST_ROWS)}",
        role="group",
        aria_label=JOB["film"][language],
    )


def _figure(
    spec: PictureSpec, mesh: Mesh, groupings: Sequence[Grouping], picture: scene.JobPicture
) -> Markup:
    """One grid; with two, the title says which."""
    layout, language, has_two = spec.layout, spec.language, len(spec.sides) > 1
    groupings = marked(layout, groupings)
    of_experts = mesh == layout.expert
    reads = reading(layout, picture, language)
    text = described(layout, picture, groupings, language)
    drawn = svg.job_svg(
        picture, text, [spec.script_groups.index(grouping) for grouping in groupings]
    )
    name = "experts" if of_experts else layout.made_by.dense_grid
    # What its own labels say is for those who do not see them (`described`).
    is_told = reads == plain_reading(layout, picture, language)
    title, says, ends = Markup(), Markup() if is_told else tag("span", reads), Markup()
    if has_two:
        which = tag("b", JOB[name][language] + PAGE["colon"][language] + sizes_of(mesh))
        title, says = tag("figcaption", which, " ", says), Markup()
    if picture.node_ends:
        ends = together(tag("i"), " ", JOB["node_end"][language])
    key = tag("p", says, " ", tag("span", ends), class_="key")
    own = [grouping for grouping in groupings if grouping.mesh == mesh]
    look = {
        "class_": "numbered-job" if picture.is_numbered else None,
        "style": svg.letters(picture),
    }
    key = key if says or ends else Markup()
    return tag("figure", title, Markup(drawn), _sends(spec, own), key, **look)


def _no_sends(_: PictureSpec) -> Markup:
    return Markup()


@of_server(_no_sends)
def _sends(spec: PictureSpec, groupings: Sequence[Grouping]) -> Markup:
    """A badge for each kind that a picture marks, beside the row of the chosen GPU; the script says
    in it what the GPU sends (views/client/picture/sends.js)."""
    whose = JOB["sends"][spec.language].format(rank=spec.rank)
    badges = (
        badge(grouping.name, f"chip t-{spec.tones.get(grouping.name, 'tp')}", grouping.name)
        for grouping in groupings
    )
    look = {"class_": "sends", "style": f"--badges:{len(groupings)}"}
    return tag("div", tag("p", badge(whose, "whose"), " ", *badges, **look))


def badge(text: str, kind: str, sends: str = "") -> Markup:
    """A label of a picture that stands beside it: drawn, as those in it are."""
    rect = tag("rect", width="100%", height="100%", rx=6)
    said = tag("text", text, x="50%", y="50%")
    return tag(
        "svg", rect, said, class_=kind, data_sends=sends or None, height=20, aria_hidden="true"
    )


def job_of_grid(
    spec: PictureSpec, mesh: Mesh, groupings: Sequence[Grouping], room: tuple[float, float]
) -> scene.JobPicture:
    words = label_words(mesh == spec.layout.expert, spec.language, "ep_dp" not in mesh.names)
    gpus = spec.layout.gpus_per_node
    return scene.job_picture(mesh, groupings, gpus, spec.rank, room, spec.layers, words)


def label_words(of_experts: bool, language: str, are_copies: bool = True) -> dict[str, str]:
    """The labels of rows and columns; columns of vLLM's experts are no copies of the model."""
    of = "expert_" if of_experts else ""
    kinds = ("replica", "replicas") if are_copies else ("data", "datas")
    names = {name: f"label_{name}" for name in ("stage", "stages", "layers", "band")}
    names |= {name: f"label_{of}{kind}" for name, kind in zip(("replica", "replicas"), kinds)}
    return {name: JOB[text][language] for name, text in names.items()}


def reading(layout: Layout, picture: scene.JobPicture, language: str) -> str:
    """What columns and rows of a picture are, as it is drawn.

    A picture of one stage has no rows of stages, one of a replica no columns of them; what is
    folded goes on in another column of stages, or in bands below.
    """
    plan, mesh = picture.plan, picture.mesh
    of_experts, stages = mesh == layout.expert, mesh.size("pp")
    replicas = mesh.world_size // stages // plan.inner_size
    name = "replica" if "ep_dp" not in mesh.names else "data"
    columns = JOB[f"columns_{'expert_' * (of_experts and name == 'replica')}{name}"][language]
    beside, below = plan.bands
    facts = {"columns": columns, "count": f"{plan.replicas:,}", "all": f"{replicas:,}"}
    if stages == 1:
        words = "reads_alone" if replicas == 1 else "reads_rows" if below > 1 else "reads_one_stage"
    else:
        words = "reads_one_replica" if replicas == 1 else "reads"
    parts = [JOB[words][language].format(**facts)]
    if beside > 1:
        parts.append(JOB["reads_beside"][language])
    elif below > 1 and stages > 1:
        parts.append(JOB["reads_below"][language].format(**facts))
    if picture.is_flat:
        wide = f"{round(1 / picture.sides[0]):,}"
        parts.append(JOB["reads_flat"][language].format(count=wide))
    return GAP[language].join(parts)


def plain_reading(layout: Layout, picture: scene.JobPicture, language: str) -> str:
    """The reading of columns of replicas with rows of stages, all of them labelled."""
    columns = JOB["columns_replica"][language]
    return JOB["reads"][language].format(columns=columns) if picture.is_numbered else ""


def described(
    layout: Layout, picture: scene.JobPicture, groupings: Iterable[Grouping], language: str
) -> str:
    """The picture in words, for screen readers."""
    return JOB["described"][language].format(
        reads=reading(layout, picture, language),
        gpus=counted(layout.world_size, "gpu", language),
        nodes=counted(layout.nodes, "node", language),
        groups=marks_text(picture.marks, groupings, picture.rank, language),
    )


def marks_text(
    marks: Iterable[Mark], groupings: Iterable[Grouping], rank: int, language: str
) -> str:
    by_name = {grouping.name: grouping for grouping in groupings}
    return " ".join(
        PAGE["mark_of"][language].format(
            kind=mark.kind, index=by_name[mark.kind].index_of(rank), ranks=ranks_text(mark.ranks)
        )
        for mark in marks
        if mark.kind in by_name
    )


# -- for files -----------------------------------------------------------------------------------


def job_pictures(context: Context) -> Pictures:
    """For each grid the picture of the job with the groups of the selected rank."""
    layout, language, spec = context.layout, context.language, spec_of(context)
    has_two = len(spec.sides) > 1
    return [
        (
            PAGE[grid][language] + PAGE["colon"][language] + sizes_of(mesh) if has_two else "",
            job_of_grid(spec, mesh, marked(layout, groupings), spec.room),
        )
        for grid, mesh, groupings in spec.sides
    ]


def groups_pictures(context: Context) -> Pictures:
    """The picture of the job, then every visible group; of a large world its nodes."""
    jobs = job_pictures(context)
    layout, rank, language = context.layout, context.rank, context.language
    jobs = [(title or question(rank, language), picture) for title, picture in jobs]
    if layout.world_size <= groups.PANEL_LIMIT:
        panels = [
            (_title(grouping, language), groups.panel(grouping, layout.gpus_per_node))
            for grouping in context.visible
        ]
        return [*jobs, *panels]
    for grid, mesh, groupings in by_grid(layout, context.visible):
        physical = groups.overview(mesh, groupings, layout.gpus_per_node, rank)
        each = counted(layout.gpus_per_node, "gpu", language)
        jobs.append(
            (SAVED["nodes"][language].format(grid=PAGE[grid][language], gpus=each), physical)
        )
    return jobs


def _title(grouping: Grouping, language: str) -> str:
    words = PAGE["groups_of" if grouping.is_even else "groups_of_up_to"][language]
    sentence = words.format(
        groups=counted(grouping.num_groups, "group", language),
        ranks=counted(grouping.size, "rank", language),
    )
    return f"{grouping.name}: {sentence.rstrip('.。')}"
