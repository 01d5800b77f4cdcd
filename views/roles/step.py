"""One step of a plan over time: which role uses the GPUs, what is in their memory, and buttons to
the views of its phases."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from descriptions import MEMORY, ROLES
from render.draw.step import draw_step
from render.scenes.step import HeldPart, PhaseBar, StepPicture
from render.svg.marks import marks_svg
from request.answers.moves.sides import ROLE
from request.answers.roles.said import (
    changes_of,
    found_of,
    fullest_text,
    phase_text,
    way_text,
    ways_of,
)
from request.context import Context
from request.units import gib
from request.words import saying, sentence
from training.roles import Phase

from ..base import form
from ..base.html import button, fine, tag
from .bar import TONES
from .places import chosen_gpu


def step_html(context: Context) -> Markup:
    """The strip, a slider over its phases, and the fullest moment."""
    say = saying(ROLES, context.language)
    found, picture = found_of(context), step_picture(context)
    names = [role.name for role in context.plan.turns]
    works = [[names.index(role) for role in phase.roles] for phase in found.step.phases]
    label = say("step_slider")
    bars = [f"{bar.name}: {bar.note}" for bar in picture.bars]
    slider = tag(
        "input",
        type="range",
        min=0,
        max=len(found.step.phases),
        value=0,
        step=1,
        aria_label=label,
        aria_valuetext=say("step_whole"),
        data_works=works,
        data_told=[say("step_whole"), *bars],
    )
    output = tag("output", say("step_whole"))
    refusals = (
        fine(say("unknown", role=name, said=sentence(error, context.language).rstrip(".。")))
        for name, error in found.refused.items()
    )
    return tag(
        "section",
        tag("h3", say("step", gpu=chosen_gpu(context)), " ", tag("small", say("step_key"))),
        tag("p", fullest_text(context), class_="plan-fullest" + " over" * (not found.fits)),
        _ways_to_fit(context),
        tag("div", Markup(step_svg(picture, "; ".join(bars))), class_="step-box"),
        tag("div", tag("label", tag("span", label), slider), output, class_="player"),
        tag("p", *_ways(context), class_="ways"),
        *refusals,
        class_="plan-step",
    )


def _ways_to_fit(context: Context) -> Markup:
    """Buttons for what would make the plan fit; nothing where it does."""
    found, language = found_of(context), context.language
    if found.fits or found.refused:
        return Markup()
    buttons = [
        form.setter(changes_of(way, context), way_text(way, language)) for way in ways_of(context)
    ]
    then = MEMORY["ways" if buttons else "way_none"][language]
    return tag("p", tag("span", then), *buttons, class_="fixes")


def step_picture(context: Context) -> StepPicture:
    found, language, say = found_of(context), context.language, saying(ROLES, context.language)
    tones = {role.name: at % TONES for at, role in enumerate(context.plan.roles)}
    bars = []
    for phase in found.step.phases:
        moment = found.step.moment(phase, chosen_gpu(context))
        parts = tuple(
            HeldPart(
                say("held", role=role, part=say(f"part_{part}")),
                say(f"part_{part}"),
                size,
                tones[role],
                role in phase.roles,
            )
            for role, part, size in moment.held
        )
        is_known = not any(role in found.refused for role in phase.roles)
        note = gib(moment.total) if moment.held else say("elsewhere" if is_known else "no_memory")
        bars.append(PhaseBar(phase_text(phase, language), note, parts))
    line = say("limit", capacity=gib(found.capacity))
    legend = tuple((tone, role) for role, tone in tones.items())
    return StepPicture(tuple(bars), found.capacity, line, legend=legend)


def step_svg(picture: StepPicture, description: str) -> str:
    wide, tall = f"{picture.width:.0f}", f"{picture.height:.0f}"
    return (
        f'<svg class="step" role="img" style="--width:{wide}px" viewBox="0 0 {wide} {tall}" '
        f'aria-label="{escape(description)}">{marks_svg(draw_step(picture, "page"))}</svg>'
    )


def _ways(context: Context) -> Iterator[Markup]:
    """Buttons to the views of the phases: a server's memory, the moves of weights."""
    say = saying(ROLES, context.language)
    for phase in found_of(context).step.phases:
        changes = way_of(phase)
        name = phase_text(phase, context.language)
        words = "way_moves" if changes.get("view") == "moves" else "way_memory"
        yield button(say(words, phase=name, role=phase.roles[0]), data_set=changes)


def way_of(phase: Phase) -> dict[str, str]:
    """The change of the state that shows the view of a phase."""
    first = phase.roles[0]
    if phase.name != "weights":
        return {"view": "memory", "role_edit": f"to {first}"}
    other = f"{ROLE}{phase.roles[1]}"
    return {"view": "moves", "role_edit": f"to {first}", "moves_other": other}
