"""The pictures of a slow step: lost time on the mesh of the job, and the calls of one group."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from diagnosis.slow.model import GroupTimeline, SlowGroup
from render.draw.together import draw_together
from render.marks import Scene
from render.palette import scale_of
from render.scenes.job import JobPicture, job_picture
from render.scenes.job_plan import NUMBERED, WHOLE
from render.scenes.lost import LostPicture, Scale, amounts_of
from render.scenes.together import TogetherCall, TogetherChart
from render.svg.lost import lost_svg
from render.svg.marks import scene_svg
from request.answers.slow.seen import SeenSlow
from request.units import SECONDS, ranges_text, seconds_text

from ..base.html import scrolling, tag, together
from ..base.view import Pictures
from ..parts.job import label_words
from .words import SLOW_VIEW, say_of

NAMES = ("lost", "caused")
TWO = (736.0, 300.0)
"""The size of one of two stacked pictures."""


def lost_pictures(seen: SeenSlow, language: str) -> list[LostPicture]:
    """One picture with both scales; of a large job one for each."""
    job, scales = _job(seen, language), [_scale(seen, name, language) for name in NAMES]
    if job.is_numbered:
        return [LostPicture(job, tuple(scales))]
    return [LostPicture(job, (scale,)) for scale in scales]


def _job(seen: SeenSlow, language: str) -> JobPicture:
    layout = seen.layout
    words = label_words(False, language)
    room = WHOLE if layout.world_size <= NUMBERED else TWO
    return job_picture(layout.mesh, [], layout.gpus_per_node, seen.chosen, room, words=words)


def _scale(seen: SeenSlow, name: str, language: str) -> Scale:
    seconds = seen.seconds(name)
    size, unit = unit_of(float(np.nanmax(seconds, initial=0.0)) or seen.most)
    most = seconds_text(seen.most)
    words = SLOW_VIEW[f"scale_{name}"][language].format(most=most, unit=unit)
    return Scale(name, seconds, seen.most, amounts_of(seconds, size), words)


def unit_of(most: float) -> tuple[float, str]:
    """The unit in which seconds up to this have at most three digits before the point.

    >>> unit_of(0.25), unit_of(1.5), unit_of(4e-5)
    ((0.001, 'ms'), (1.0, 's'), (1e-06, 'µs'))
    """
    return next(((size, unit) for size, unit in SECONDS if most >= size), SECONDS[-1])


def lost_html(seen: SeenSlow, language: str) -> Markup:
    """The pictures above their legends; clicking a GPU selects it and its group."""
    say = say_of(language)
    parts = []
    for picture in lost_pictures(seen, language):
        ranks = range(seen.layout.world_size if picture.job.is_numbered else 0)
        tips = [_tip(seen, rank, language) for rank in ranks]
        sets = [_choice(seen, rank) for rank in ranks]
        drawn = lost_svg(picture, _described(seen, language), tips, sets)
        keys = (_key(scale) for scale in picture.scales)
        parts.append(tag("figure", Markup(drawn), tag("p", *keys, class_="lost-key")))
    hint = tag("p", say("picture_hint"), class_="fine")
    return together(tag("div", *parts, class_="lost-pictures"), hint)


def _key(scale: Scale) -> Markup:
    steps = (tag("i", style=f"background:{fill}") for fill in scale_of(scale.name, "page")[1:])
    return tag("span", tag("span", *steps, class_="steps", aria_hidden="true"), " ", scale.words)


def _tip(seen: SeenSlow, rank: int, language: str) -> str:
    say, one = say_of(language), seen.of_rank.get(rank)
    if one is None:
        return say("tip_none", rank=rank)
    lost, caused = (seconds_text(us / 1e6) for us in (one.lost_us, one.cost_us))
    return say("tip", rank=rank, lost=lost, caused=caused)


def _choice(seen: SeenSlow, rank: int) -> dict[str, str]:
    line = seen.timeline_of(rank)
    return {"rank": str(rank), "slow_group": "" if line is None else str(line.group)}


def _described(seen: SeenSlow, language: str) -> str:
    """The picture in words: the GPUs that cost and that lost most."""
    say = say_of(language)
    ranks = sorted(seen.slow.ranks, key=lambda one: -one.cost_us)[:3]
    tips = (say("tip", rank=one.rank, lost=seconds_text(one.lost_us / 1e6),
                caused=seconds_text(one.cost_us / 1e6)) for one in ranks)  # fmt: skip
    return " ".join([say("picture_label"), *tips])


# -- calls of one group ----------------------------------------------------------------------------


def group_name(group: SlowGroup) -> str:
    """The name of a group: its kind and its members."""
    return f"{group.title}: {ranges_text(group.ranks, 8)}"


def timeline_chart(seen: SeenSlow, line: GroupTimeline, language: str) -> TogetherChart:
    say = say_of(language)
    group = seen.slow.groups[line.group]
    members = group.ranks[: max((len(call.took_us) for call in line.calls), default=0)]
    rows = {rank: row for row, rank in enumerate(members)}
    calls = [
        TogetherCall(
            call.op,
            call.end_us / 1e6,
            tuple(None if took is None else took / 1e6 for took in call.took_us),
            rows.get(call.last, -1),
        )
        for call in line.calls
    ]
    span = max((call.end for call in calls), default=0.0)
    key = (say("key_waits"), say("key_moves"), say("key_last"))
    names = [say("row_gpu", rank=rank) for rank in members]
    return TogetherChart(names, calls, unit_of(span), key, rows.get(seen.chosen, -1))


def timeline_html(seen: SeenSlow, line: GroupTimeline, language: str) -> Markup:
    say, chart = say_of(language), timeline_chart(seen, line, language)
    title = say("timeline_label", group=group_name(seen.slow.groups[line.group]))
    drawn = scene_svg("together", chart, draw_together(chart, "page"), title)
    names = ("lost", "moving", "caused")
    keys = (tag("span", tag("i", class_=name), " ", words) for name, words in zip(names, chart.key))
    more = say("timeline_rest", count=f"{line.left_out:,}") if line.left_out else ""
    return together(
        scrolling("together-scroll", Markup(drawn)),
        tag("p", *keys, class_="lost-key"),
        tag("p", " ".join(filter(None, (say("timeline_hint"), more))), class_="fine"),
    )


# -- for files -------------------------------------------------------------------------------------


def slow_scenes(seen: SeenSlow, chosen: str, language: str) -> Pictures:
    """Scenes for files: the pictures of the job, and the calls of the shown group."""
    say = say_of(language)
    pictures: list[tuple[str, Scene]] = [
        (say("picture_title") if len(picture.scales) > 1 else picture.scales[0].words, picture)
        for picture in lost_pictures(seen, language)
    ]
    if line := seen.timeline(chosen):
        title = say("timeline_label", group=group_name(seen.slow.groups[line.group]))
        pictures.append((title, timeline_chart(seen, line, language)))
    return pictures
