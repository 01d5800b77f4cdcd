"""One request's KV cache in the Moves view, and in files."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import MOVES
from render.draw.kv import draw_kv
from render.svg.marks import scene_svg
from request.answers.moves.cache import RULE_NAMES, KVTransfer, kv_transfer
from request.context import Context
from request.words import saying

from ..base.html import fine, scrolling, tag, together
from ..base.view import Pictures
from .both import both_html, picture_text
from .cache import cache_answer, cache_needs, cache_picture, cache_table, kv_hover_texts
from .pictures import job_picture


def cache_html(context: Context, answers: list[Markup]) -> Markup:
    """The KV transfer of one request: both layouts, and the cache as a grid of layers by heads.

    Appends the answer to `answers`, which the view's heading shows.
    """
    transfer, say = context.once(kv_transfer), saying(MOVES, context.language)
    answers.append(tag("p", cache_answer(transfer)))

    def hover_texts(ranks: Sequence[set[int]]) -> list[dict[str, str]]:
        return kv_hover_texts(transfer, ranks)

    picture, note = cache_picture(transfer), _note(transfer)
    drawn = scene_svg("moves-kv", picture, draw_kv(picture, "page"), note)
    return together(
        both_html(transfer, cache_needs(transfer), hover_texts),
        tag(
            "div",
            tag("section", tag("h3", say("kv_title")), scrolling("moves-scroll", Markup(drawn))),
            tag("section", tag("h3", say("kv_rows")), cache_table(transfer), fine(note)),
            class_="moves-cache",
        ),
    )


def _note(transfer: KVTransfer) -> str:
    rule = RULE_NAMES[transfer.found.rule]
    return MOVES["kv_note"][transfer.language].format(rank=transfer.rank, rule=rule)


def cache_pictures(context: Context) -> Pictures:
    transfer = context.once(kv_transfer)
    sides = picture_text(transfer), job_picture(transfer)
    return [sides, (_note(transfer), cache_picture(transfer))]
