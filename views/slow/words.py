"""The texts of the Slow view; those about the slow ranks are in texts.slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from descriptions import Text, words
from request.words import saying

SLOW_VIEW: Mapping[str, Text] = words("slow", "SLOW_VIEW")


def say_of(language: str) -> Callable[..., str]:
    return saying(SLOW_VIEW, language)
