"""The buttons of what moves step by step in the browser alone: back, play or stop, on."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import PAGE

from .html import button, together


def player_buttons(back: str, on: str, language: str) -> Markup:
    """``back`` and ``on`` are the words of PAGE for one step; a view's script does the rest.

    >>> "data-play=" in player_buttons("pipeline_back", "pipeline_on", "en")
    True
    """
    play, stop = (PAGE[name][language] for name in ("play", "stop"))
    return together(
        _step("back", "←", PAGE[back][language]),
        button(play, data_play="play", data_start=play, data_stop=stop),
        _step("on", "→", PAGE[on][language]),
    )


def _step(direction: str, sign: str, label: str) -> Markup:
    return button(sign, data_play=direction, aria_label=label, title=label)
