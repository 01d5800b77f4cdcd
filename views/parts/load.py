"""The requests of which a server's speed is asked: inputs that two views have."""

from __future__ import annotations

from markupsafe import Markup

from request.answers.served.speed import ANSWER, AT_ONCE, PROMPT
from request.context import Context

from ..base import form


def load_inputs(context: Context) -> Markup:
    """Requests at once, their lengths, a bound of a token's time, and whether it guesses."""
    state = context.state
    return form.line(
        form.number("served_at_once", state, hint=AT_ONCE),
        form.number("served_prompt", state, hint=f"{PROMPT:,}"),
        form.number("served_answer", state, hint=f"{ANSWER:,}"),
        form.number("served_tpot", state),
        form.check("served_guesses", state),
    )
