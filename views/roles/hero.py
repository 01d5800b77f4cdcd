"""The first screen of a plan: the cluster with each GPU's roles, and the selected GPU in the mesh
of every role, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, ROLES
from formats.roles.facts import spans_of
from groups.budget import spend
from groups.grouping import Grouping
from groups.kept import kept
from groups.layout import Layout, framework_name
from groups.plan import Plan
from groups.plan_faults import lost_with
from render.marks import Scene
from render.palette import tones
from render.scenes.cluster import ClusterPicture, RoleBand
from render.scenes.job import JobPicture
from render.scenes.marked import marks_of
from render.svg import job as svg
from render.svg.cluster import cluster_svg
from request.context import Context
from request.resolve import sizes_of, sizes_text
from request.state import State
from request.words import saying

from ..base.html import fine, tag, together
from ..base.problems import or_refused
from ..parts.job import described, job_of_grid, layers_of
from ..parts.shown import PictureSpec, marked
from .bar import TONES, swatch
from .notes import notes_html
from .places import chosen_gpu, groups_of, places_of_gpu
from .step import step_html, step_picture

LISTED = 10
"""Marked GPUs for a unit of work: of each group of each role they are kept until they are drawn."""

CARD = (560.0, 230.0)
"""The size of a role's mesh, in pixels."""


SCRIPT_WORDS = (
    *("question", "answer", "answer_none", "not_here"),
    *("engine", "replica", "stage", "comma", "semicolon"),
)
"""Texts of the GPU that is pointed at (client/picture/cluster.js)."""


def has_roles(context: Context) -> bool:
    """Whether the plan has more than one role."""
    return bool(context.state.roles) and len(context.cast.members) > 1


def cluster_of_plan(plan: Plan, gpu: int) -> ClusterPicture:
    """Every GPU with its roles, with the groups of one GPU marked in each."""
    places = {place.role.name: place for place in places_of_gpu(plan, gpu)}
    sizes = [one.size for place in places.values() for one in groups_of(place.role.layout)]
    spend(sum(sizes) // LISTED, "ranks", control="roles")
    bands = []
    for at, role in enumerate(plan.roles):
        marks = []
        if role.name in places:
            groupings = groups_of(role.layout)
            tone = tones([grouping.name for grouping in groupings])
            found = marks_of(groupings, places[role.name].rank, tone)
            marks = [(mark.tone, role.placed.take(mark.ranks)) for mark in found]
            nearest = tone[groupings[0].name] if groupings else "tp"
            marks.append((nearest, np.array([gpu])))
        bands.append(RoleBand(role.name, at % TONES, role.placed, tuple(marks)))
    order = [plan.roles.index(role) for role in plan.turns]
    return ClusterPicture(plan.nodes, plan.gpus_per_node, tuple(bands[at] for at in order), gpu)


def plan_html(context: Context, spec: PictureSpec, *, is_still: bool = False) -> Markup:
    """The question, the answer, the cluster, the mesh of every role, and a step of all.

    is_still: whether it is an example, below a question of its own: no mesh of it is lit up by the
    page's script.
    """
    plan, gpu, language = context.plan, chosen_gpu(context), context.language
    say = saying(ROLES, language)
    picture = cluster_of_plan(plan, gpu)
    answer = answer_text(plan, gpu, language)
    words = {name: ROLES[name][language] for name in SCRIPT_WORDS}
    text = say("described", plan=str(plan), answer=answer)
    cluster = tag(
        "div",
        tag("h3", say("cluster"), " ", tag("small", say("cluster_key"))),
        Markup(cluster_svg(picture, text)),
        fine(lost_text(plan, gpu, language)),
        notes_html(context),
        or_refused(context, step_html),
        class_="plan-cluster",
    )
    cards = (_card(context, spec, at, gpu, is_still) for at in range(len(plan.roles)))
    beside = tag("div", *cards, class_="plan-roles")
    return tag(
        "div",
        "" if is_still else tag("h2", say("question", gpu=gpu)),
        tag("div", tag("p", answer, class_="plan-answer", aria_live="polite"), class_="plan-said"),
        tag("div", cluster, beside, class_="plan-parts"),
        class_="plan",
        data_plan={"words": words},
    )


def answer_text(plan: Plan, gpu: int, language: str) -> str:
    """Where the GPU is in each of its roles, in one sentence."""
    say = saying(ROLES, language)
    places = [place.text(language) for place in places_of_gpu(plan, gpu)]
    if not places:
        return say("answer_none", gpu=gpu)
    listed = say("semicolon").join(places)
    return say("answer", gpu=gpu, places=listed)


def lost_text(plan: Plan, gpu: int, language: str) -> str:
    """What fails with the node of a GPU."""
    say, node = saying(ROLES, language), gpu // plan.gpus_per_node
    losses = [
        say(
            f"lost_{loss.role.layout.made_by.copy}{'s' * (loss.total > 1)}",
            role=loss.role.name,
            count=f"{len(loss.copies):,}",
            total=f"{loss.total:,}",
        )
        for loss in lost_with(plan, node)
    ]
    return say("lost", node=node, losses=say("semicolon").join(losses)) if losses else ""


# -- one role --------------------------------------------------------------------------------------


class RoleSpec(PictureSpec):
    """What is drawn of one of several roles: smaller."""

    @property
    def room(self) -> tuple[float, float]:
        return CARD if len(self.sides) == 1 else (CARD[0], 0.8 * CARD[1])


def _card(context: Context, spec: PictureSpec, at: int, gpu: int, is_still: bool) -> Markup:
    role, member = context.plan.roles[at], context.cast.members[at]
    say, layout, rank = saying(ROLES, context.language), role.layout, role.rank_on(gpu)
    head = tag(
        "h3",
        swatch(at),
        tag("span", role.name),
        " ",
        tag("small", f"{sizes_text(layout)} · {framework_name(layout.framework)}"),
    )
    is_shifted = bool(role.first_rank or len(role.gpus))
    where = fine(say("ranks_at", gpu=role.placed.first)) if is_shifted else ""
    spans = f"{role.placed.lowest}–{role.last}"
    absent = say("not_here", role=role.name, gpu=gpu, gpus=spans) if rank is None else ""
    data: dict[str, object] = {}
    known = {"name": role.name, "turn": context.plan.turns.index(role), "spans": spans}
    if member is context.cast.shown:
        shown = RoleSpec(layout, context.state, spec.layers)
        figures = _figures(shown, is_still=is_still, is_here=rank is not None)
        groups = _marked_groups(shown)
    else:
        changes = {"rank": str(rank or 0), "lang": context.language, "roles": ""}
        other = _other(member.page.changed(changes), is_still, rank is not None)
        figures, groups, data["data_mesh"] = other
    data["data_role"] = {
        **known,
        "runs": spans_of(role),
        "engine": layout.engine_gpus,
        "marks": groups,
    }
    told = tag("div", tag("p", absent), class_="plan-told")
    look = "plan-role" + " absent" * (rank is None)
    return tag("section", head, figures, told, where, class_=look, **data)


def _marked_groups(spec: PictureSpec) -> list[int]:
    """The groups that are marked in the cluster, by their numbers in the data of the script."""
    return [spec.script_groups.index(grouping) for grouping in groups_of(spec.layout)]


@kept
def _other(
    page: State, is_still: bool, is_here: bool
) -> tuple[Markup, list[int], dict[str, object]]:
    """The mesh of a role that is not on screen, its marked groups and the data of its layout;
    cached while the role on screen changes."""
    other = Context.of(page)
    layers = layers_of(other.known, other.layout.mesh.size("pp"))
    spec = RoleSpec(other.layout, other.state, layers)
    figures = _figures(spec, is_still=is_still, is_here=is_here)
    return figures, _marked_groups(spec), spec.data


def _figures(spec: RoleSpec, *, is_still: bool, is_here: bool) -> Markup:
    """The mesh of a role. is_here: whether the selected GPU has a rank in it."""
    figures = []
    for grid, mesh, groupings in spec.sides:
        groupings = _within(spec.layout, groupings)
        picture = job_of_grid(spec, mesh, groupings, spec.room)
        text = described(spec.layout, picture, groupings if is_here else (), spec.language)
        kinds = [spec.script_groups.index(grouping) for grouping in groupings]
        drawn = svg.job_svg(picture, text, kinds, is_still=is_still)
        title = f"{PAGE[grid][spec.language]}{PAGE['colon'][spec.language]}{sizes_of(mesh)}"
        caption = tag("figcaption", title) if len(spec.sides) > 1 else ""
        figures.append(tag("figure", caption, Markup(drawn)))
    return together(*figures)


def _within(layout: Layout, groupings: Sequence[Grouping]) -> tuple[Grouping, ...]:
    """The groups that a mesh marks: for servers, which share nothing, those inside one."""
    found = marked(layout, groupings)
    return tuple(grouping for grouping in found if grouping.size <= layout.joint_gpus)


def role_pictures(context: Context) -> list[tuple[str, Scene]]:
    """The cluster, then the mesh of each role of the selected GPU."""
    plan, gpu, language = context.plan, chosen_gpu(context), context.language
    title = ROLES["question"][language].format(gpu=gpu)
    pictures: list[tuple[str, Scene]] = [(title, cluster_of_plan(plan, gpu))]
    for role, member in zip(plan.roles, context.cast.members):
        rank = role.rank_on(gpu)
        if rank is not None:
            page = member.page.changed({"rank": str(rank), "lang": language})
            pictures += [(f"{role.name} · {sizes}", one) for sizes, one in _meshes(page)]
    step = ROLES["step"][language].format(gpu=gpu)
    return [*pictures, (step, step_picture(context))]


def _meshes(page: State) -> list[tuple[str, JobPicture]]:
    context = Context.of(page.changed({"roles": ""}))
    spec = RoleSpec(context.layout, context.state, ())
    return [
        (sizes_of(mesh), job_of_grid(spec, mesh, _within(spec.layout, groupings), spec.room))
        for _, mesh, groupings in spec.sides
    ]
