"""What the page and programs ask, as Gradio serves it: worked out in its lane, told in words."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from groups import LayoutError

from ..base.endpoint import words_of
from .lanes import BusyError, Lanes


def answering(
    function: Callable[[Any], str], lanes: Lanes, *, heavy: bool = False
) -> Callable[[Any], Awaitable[str]]:
    """The same function of a text for the page's script, which is told where the server is busy.

    heavy: whether it is, whatever it is sent.
    """

    async def answered(sent: Any) -> str:
        try:
            return await lanes.run(function, sent, heavy=heavy)
        except BusyError:
            return '{"busy": true}'

    answered.__name__ = function.__name__
    return answered


def serving(endpoint: Callable[..., str], lanes: Lanes) -> Callable[..., Any]:
    """The same function for Gradio's events: name, parameters and documentation stay."""

    async def served(*values: Any) -> str:
        try:
            return await lanes.run(endpoint, *values)
        except LayoutError as error:
            raise gr.Error(words_of(error), print_exception=False) from None

    served.__name__ = endpoint.__name__
    served.__doc__ = endpoint.__doc__
    served.__annotations__ = inspect.get_annotations(endpoint, eval_str=True)
    served.__signature__ = inspect.signature(endpoint)  # type: ignore[attr-defined]
    return served
