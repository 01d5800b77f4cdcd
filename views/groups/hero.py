"""The first screen of the Groups view: who is grouped with one GPU, said, drawn and listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from descriptions import JOB, counted
from groups import LayoutError, Mesh
from groups.grouping import Grouping
from groups.layout import Layout
from render.scenes import job as scene
from render.scenes.job_plan import HALF, NUMBERED, TALL, WHOLE
from render.svg import job as svg

from ..base.html import explained, tag, together
from ..base.model import layers_by_stage
from ..base.resolve import sizes_of
from ..base.state import State, is_empty, parse_number
from .sentence import question, sentence_of
from .shown import PictureSpec, marked

MOST_STAGES = 64
"""Stages whose layers are listed."""


def layers_of(state: State, pp: int) -> tuple[str, ...]:
    """The layers of each stage as text; nothing where no model is set, or it does not fit."""
    if is_empty(state.layers) or pp > MOST_STAGES:
        return ()
    vpp = None if is_empty(state.vpp) else parse_number(state.vpp)
    try:
        stages = layers_by_stage(state, pp, vpp)
    except LayoutError:
        return ()
    return tuple(", ".join(_range(chunk) for chunk in stage if chunk) or "–" for stage in stages)


def _range(layers: Sequence[int]) -> str:
    return str(layers[0]) if len(layers) == 1 else f"{layers[0]}–{layers[-1]}"


def hero_html(spec: PictureSpec) -> Markup:
    """The question, its answer, the picture of each grid, and the card of the GPU."""
    layout, rank, language = spec.layout, spec.rank, spec.language
    figures = (_figure(spec, mesh, groupings) for _, mesh, groupings in spec.sides)
    hint = tag("p", JOB["hint"][language], class_="hint")
    card = {"class_": "card aside", "style": f"--kinds:{len(spec.listed)}"}
    return tag(
        "div",
        tag("h2", question(rank, language), class_="question"),
        tag("p", sentence_of(layout, rank, language), class_="answer", aria_live="polite"),
        tag("div", *figures, class_="jobs"),
        tag("div", tag("div", class_="told"), hint, **card),
        class_="hero two" if len(spec.sides) > 1 else "hero",
    )


def _figure(spec: PictureSpec, mesh: Mesh, groupings: Sequence[Grouping]) -> Markup:
    """One grid; its title says which, where there are two."""
    layout, language, has_two = spec.layout, spec.language, len(spec.sides) > 1
    room = HALF if has_two else WHOLE if layout.world_size <= NUMBERED else TALL
    groupings = marked(layout, groupings)
    picture = job_of_grid(spec, mesh, groupings, room)
    of_experts = mesh == layout.expert
    described = _described(layout, picture, groupings, language)
    drawn = svg.job_svg(picture, described, [spec.known.index(grouping) for grouping in groupings])
    name, body = ("experts", "expert_body") if of_experts else ("dense", "dense_body")
    title, says, ends = Markup(), explained(JOB[body][language], language), Markup()
    if has_two:
        which = tag("b", f"{JOB[name][language]}: {sizes_of(mesh)}")
        title, says = tag("figcaption", which, " ", tag("span", says)), Markup()
    if picture.node_ends:
        ends = together(tag("i"), " ", JOB["node_end"][language])
    key = tag("p", tag("span", says), " ", tag("span", ends), class_="key")
    return tag("figure", title, Markup(drawn), key if says or ends else "")


def job_of_grid(
    spec: PictureSpec, mesh: Mesh, groupings: Sequence[Grouping], room: tuple[float, float]
) -> scene.JobPicture:
    words, gpus = label_words(mesh == spec.layout.expert, spec.language), spec.layout.gpus_per_node
    return scene.job_picture(mesh, groupings, gpus, spec.rank, room, spec.layers, words)


def label_words(of_experts: bool, language: str) -> dict[str, str]:
    prefix = "label_expert_" if of_experts else "label_"
    names = {name: f"label_{name}" for name in ("stage", "layers", "band")}
    names |= {name: f"{prefix}{name}" for name in ("replica", "replicas")}
    return {name: JOB[text][language] for name, text in names.items()}


def _described(
    layout: Layout, picture: scene.JobPicture, groupings: Iterable[Grouping], language: str
) -> str:
    from .view import marks_text

    return JOB["described"][language].format(
        gpus=counted(layout.world_size, "gpu", language),
        nodes=counted(layout.nodes, "node", language),
        groups=marks_text(picture.marks, groupings, picture.rank, language),
    )
