"""The buttons of what moves step by step in the browser alone: back, play or stop, on."""

from __future__ import annotations

from html import escape

from descriptions import PAGE


def player_buttons(back: str, on: str, language: str) -> str:
    """``back`` and ``on`` are the words of PAGE for one step; a view's script does the rest.

    >>> "data-play=" in player_buttons("pipeline_back", "pipeline_on", "en")
    True
    """
    play, stop = (escape(PAGE[name][language]) for name in ("play", "stop"))
    return (
        f"{_step('back', '←', back, language)}"
        f'<button type="button" data-play="play" data-start="{play}" data-stop="{stop}">{play}'
        f"</button>{_step('on', '→', on, language)}"
    )


def _step(way: str, sign: str, words: str, language: str) -> str:
    label = escape(PAGE[words][language])
    return (
        f'<button type="button" data-play="{way}" aria-label="{label}" title="{label}">{sign}'
        "</button>"
    )
