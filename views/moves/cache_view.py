"""One request's KV cache in the Moves view, and in files."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import MOVES
from render.draw.kv import draw_kv
from render.svg.marks import scene_svg

from ..base.context import Context, Pictures
from ..base.html import fine, saying, scrolling, tag, together
from .both import both_html, picture_text
from .cache import (
    RULE_NAMES,
    HandedOver,
    cache_answer,
    cache_needs,
    cache_picture,
    cache_table,
    cache_told,
    handed_over,
)
from .pictures import job_picture


def cache_html(context: Context, said: list[Markup]) -> Markup:
    """What goes over of one request, both layouts, and the cache as layers by heads."""
    asked, say = context.once(handed_over), saying(MOVES, context.language)
    said.append(tag("p", cache_answer(asked)))

    def told(ranks: Sequence[set[int]]) -> list[dict[str, str]]:
        return cache_told(asked, ranks)

    picture, note = cache_picture(asked), _note(asked)
    drawn = scene_svg("moves-kv", picture, draw_kv(picture, "page"), note)
    return together(
        both_html(asked.sides, cache_needs(asked), told),
        tag(
            "div",
            tag("section", tag("h3", say("kv_title")), scrolling("moves-scroll", Markup(drawn))),
            tag("section", tag("h3", say("kv_rows")), cache_table(asked), fine(note)),
            class_="moves-cache",
        ),
    )


def _note(asked: HandedOver) -> str:
    rule = RULE_NAMES[asked.found.rule]
    return MOVES["kv_note"][asked.language].format(rank=asked.rank, rule=rule)


def cache_pictures(context: Context) -> Pictures:
    asked = context.once(handed_over)
    both = asked.sides
    return [(picture_text(both), job_picture(both)), (_note(asked), cache_picture(asked))]
