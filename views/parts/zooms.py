"""The time axis that the four views of a step share: each is a scale of it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import PAGE, ZOOMS
from groups import LayoutError
from groups.group_names import main_axis
from render.marks import advance
from render.scenes.timeline import PHASES
from render.scenes.zooms import ZoomLevel, ZoomPart, ZoomsPicture
from request.answers.collectives.inputs import resolve_inputs
from request.answers.zooms import GpuOp, Zooms, zooms_of
from request.context import Context
from request.state import texts_of
from request.units import seconds_text
from request.words import saying
from training.pipeline.plan import KINDS
from training.traffic.ops import OpTransfer

from ..base.html import button, tag
from ..base.view import Pictures

MOST_PARTS = 64
"""The most parts of a level of which each is chosen by itself; of more, as many equal shares."""

MOST_TURNS = 48
"""The most steps of a collective that are drawn one by one."""

LETTERS = 12.0
"""Font size of the words in a part, in pixels."""

NARROW, WIDE = 250.0, 800.0
"""Pixels of a level on a phone and on a screen: what fits is named in its parts."""


def zooms_html(context: Context) -> Markup:
    """The axis above a view; nothing where the step is refused, which the view says."""
    try:
        picture = zooms_picture(context)
    except LayoutError:
        return Markup()
    parts = list[Markup]()
    for number, level in enumerate(picture.levels):
        parts.append(_level(level, level.view == picture.here))
        if number + 1 < len(picture.levels):
            parts.append(_wedge(level))
    label = ZOOMS["label"][context.language]
    return tag("div", *parts, class_="zooms", role="group", aria_label=label)


def _level(level: ZoomLevel, is_here: bool) -> Markup:
    """A bar of its parts, of which those that a view zooms into are buttons."""
    parts = level.parts
    shown: list[Markup] = []
    if len(parts) > MOST_PARTS:
        shown.append(_painted(parts))
        parts = _shares(level)
    chosen = next((at for at, part in enumerate(parts) if part is level.at), 0)
    stop = next((at for at in range(chosen, len(parts)) if parts[at].sets), None)
    shown += [
        _part(part, part is level.at, 0 if at == stop else -1) for at, part in enumerate(parts)
    ]
    name = tag("b" if is_here else "span", level.name, class_="zoom-name")
    track = tag("div", *shown, class_="zoom-track")
    return tag("div", name, track, class_=f"zoom{' here' * is_here}")


def _part(part: ZoomPart, is_chosen: bool, tab: int) -> Markup:
    place = f"left:{100 * part.start:.3f}%;width:{100 * part.wide:.3f}%"
    kind = _class(part.kind) + " on" * is_chosen
    need, text = LETTERS * advance(part.text) + 8.0, Markup()
    if part.text and need <= WIDE * part.wide:
        inks = [f"on-{part.kind.lower()}0"] if part.kind in PHASES else []
        inks += ["only-wide"] if need > NARROW * part.wide else []
        text = tag("span", part.text, class_=" ".join(inks) or None)
    if not part.sets:
        return tag("i", text, class_=kind, style=place, title=part.says)
    marks = {"data_set": texts_of(part.sets), "aria_label": part.says, "title": part.says}
    pressed = str(is_chosen).lower()
    return button(text, class_=kind, style=place, tabindex=tab, aria_pressed=pressed, **marks)


def _class(kind: str) -> str:
    """The class of a part's colour: that of an op's in a timeline, or of a kind's mark."""
    return f"op-{kind.lower()}0" if kind in PHASES else f"z-{kind}"


def _painted(parts: Sequence[ZoomPart]) -> Markup:
    """Many parts as one picture, a path for each kind."""
    paths: dict[str, str] = {}
    for part in parts:
        run = f"M{1e4 * part.start:.1f} 0h{1e4 * part.wide:.1f}v1h-{1e4 * part.wide:.1f}z"
        paths[part.kind] = paths.get(part.kind, "") + run
    drawn = (tag("path", class_=_class(kind), d=path) for kind, path in paths.items())
    return tag("svg", *drawn, viewBox="0 0 10000 1", preserveAspectRatio="none", aria_hidden="true")


def _shares(level: ZoomLevel) -> tuple[ZoomPart, ...]:
    """Equal shares of a level in place of its many parts, each for the part in its middle; the
    chosen part itself."""
    found = []
    for number in range(MOST_PARTS):
        middle = (number + 0.5) / MOST_PARTS
        part = next((one for one in level.parts if one.end > middle and one.sets), None)
        if part is not None:
            start, end = number / MOST_PARTS, (number + 1) / MOST_PARTS
            found.append(ZoomPart("none", start, end, says=part.says, sets=part.sets))
    return (*found, level.at) if level.at else tuple(found)


def _wedge(level: ZoomLevel) -> Markup:
    if level.at is None:
        return tag("div", class_="zoom-wedge")
    left, right = (round(1000 * at, 1) for at in (level.at.start, level.at.end))
    path = tag("path", d=f"M{left} 0H{max(right, left + 1)}L1000 10H0z")
    marks = {"viewBox": "0 0 1000 10", "preserveAspectRatio": "none", "aria_hidden": "true"}
    return tag("div", tag("svg", path, **marks), class_="zoom-wedge")


# -- what is on it ---------------------------------------------------------------------------------


def zooms_picture(context: Context) -> ZoomsPicture:
    """The four scales. Errors: as of `zooms_of`."""
    found = context.once(zooms_of)
    levels = (
        _of_step(found, context),
        _of_rank(found, context),
        _of_op(found, context),
        _of_collective(found, context),
    )
    return ZoomsPicture(tuple(level for level in levels if level), context.state.view)


def axis_pictures(context: Context) -> Pictures:
    """The axis for files and slides, beside a view's own picture; empty where the step is
    refused."""
    try:
        return [(ZOOMS["label"][context.language], zooms_picture(context))]
    except LayoutError:
        return []


def _of_step(found: Zooms, context: Context) -> ZoomLevel:
    say, parts, at = saying(ZOOMS, context.language), list[ZoomPart](), 0.0
    leads = {"pipeline": "pipeline", "dp": "traffic"}
    for name, seconds in found.seconds.items():
        if not seconds:
            continue
        text = say(name)
        says = say("part", name=text, seconds=seconds_text(seconds))
        sets: dict[str, object] = {}
        if name in leads:
            sets = {"view": leads[name], "moment": found.moments[name]}
        parts.append(
            ZoomPart(name, at / found.whole, (at + seconds) / found.whole, text, says, sets)
        )
        at += seconds
    shown = [name for name, seconds in found.seconds.items() if seconds]
    name = say("step", seconds=seconds_text(found.whole))
    return ZoomLevel("estimate", name, tuple(parts), shown.index(found.part))


def _of_rank(found: Zooms, context: Context) -> ZoomLevel:
    """What the chosen GPU does in the pipeline, with its waits; behind that the part alone."""
    say = saying(ZOOMS, context.language)
    if found.op is None:
        seconds = seconds_text(found.seconds[found.part])
        name = say("rank", rank=context.rank, seconds=seconds)
        only = ZoomPart(
            found.part,
            0.0,
            1.0,
            say(found.part),
            say("part", name=say(found.part), seconds=seconds),
        )
        return ZoomLevel("pipeline", name, (only,), 0)
    whole, parts, at, chosen = found.seconds["pipeline"], list[ZoomPart](), 0.0, 0
    least = 1e-6 * whole
    for number, op in enumerate(found.ops):
        if op.start - at > least:
            parts.append(_wait(at, op.start, whole, context))
        if number == found.op:
            chosen = len(parts)
        parts.append(
            ZoomPart(
                op.letter,
                op.start / whole,
                op.end / whole,
                str(op.runs[0][1]),
                say("part", name=op_text(op, context.language), seconds=seconds_text(op.seconds)),
                {"view": "traffic", "moment": op.moment},
            )
        )
        at = op.end
    if whole - at > least:
        parts.append(_wait(at, whole, whole, context))
    name = say("rank", rank=context.rank, seconds=seconds_text(whole))
    return ZoomLevel("pipeline", name, tuple(parts), chosen)


def _wait(start: float, end: float, whole: float, context: Context) -> ZoomPart:
    says = ZOOMS["waits"][context.language].format(seconds=seconds_text(end - start))
    return ZoomPart("idle", start / whole, end / whole, says=says)


def op_text(op: GpuOp, language: str) -> str:
    """An op in words, such as "forward of micro-batch 3"."""
    names = [
        ZOOMS[f"op_{KINDS[kind].lower()}"][language].format(micro_batch=micro_batch)
        for kind, micro_batch, _ in op.runs
    ]
    return PAGE["and_list"][language].join(names)


def what_text(found: Zooms, language: str) -> str:
    """What the bytes of the third scale are sent in: an op, or a part of the step."""
    return (
        ZOOMS[found.part][language] if found.op is None else op_text(found.ops[found.op], language)
    )


def sent_name(one: OpTransfer) -> str:
    """Operations of a kind, such as "all-gather × 32"."""
    count = f"{one.count:,.3g}" if one.count < 10 else f"{one.count:,.0f}"
    return f"{one.row.operation.replace('_', '-')} × {count}"


def _of_op(found: Zooms, context: Context) -> ZoomLevel | None:
    """What is sent in the op, at link speed, and for how long no link is busy."""
    say, language, at = saying(ZOOMS, context.language), context.language, 0.0
    if found.part == "optimizer":
        return None
    parts = list[ZoomPart]()
    for one in found.sent:
        text = f"{one.row.kind} {sent_name(one)}"
        says = say("part", name=text, seconds=seconds_text(one.seconds))
        fields = found.fields(one)
        sets = {"view": "collectives", "collective_index": "", **fields} if fields else {}
        kind = main_axis(one.row.kind) or "tp"
        parts.append(
            ZoomPart(kind, at / found.span, (at + one.seconds) / found.span, text, says, sets)
        )
        at += one.seconds
    if found.span - at > 1e-4 * found.span:
        words = say("links_idle" if parts else "nothing_sent")
        says = say("part", name=words, seconds=seconds_text(found.span - at))
        parts.append(ZoomPart("rest", at / found.span, 1.0, words, says))
    what = what_text(found, language)
    name = say("part", name=what, seconds=seconds_text(found.span))
    return ZoomLevel("traffic", name, tuple(parts), found.chosen)


def _of_collective(found: Zooms, context: Context) -> ZoomLevel | None:
    """One operation in its steps: of what is sent, or of what Collectives shows besides."""
    say = saying(ZOOMS, context.language)
    if found.chosen is not None:
        one = found.sent[found.chosen]
        operation, turns, seconds, kind = (
            one.row.operation,
            found.turns(one),
            one.each,
            one.row.kind,
        )
    elif context.state.view == "collectives":
        watched, _, _ = resolve_inputs(context.layout, context.state)
        facts = watched.cost_facts()
        operation, kind = watched.cost, watched.grouping.name
        turns, seconds = int(str(facts["steps"])), float(str(facts["least_seconds"]))
    else:
        return None
    tone = main_axis(kind) or "tp"
    count = min(max(turns, 1), MOST_TURNS)
    words = say("turns", count=f"{turns:,}") if turns > MOST_TURNS else ""
    texts = [words] if words else [str(at + 1) for at in range(count)]
    count = len(texts)
    parts = tuple(
        ZoomPart(
            tone,
            at / count,
            (at + 1) / count,
            text,
            say("turn", number=text, seconds=seconds_text(seconds / max(turns, 1))),
        )
        for at, text in enumerate(texts)
    )
    named = say("one", operation=operation.replace("_", "-"))
    return ZoomLevel("collectives", say("part", name=named, seconds=seconds_text(seconds)), parts)
