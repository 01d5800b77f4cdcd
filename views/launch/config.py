"""A pasted config.json: what model it is, and a button that makes it the page's."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import MEMORY
from groups import LayoutError
from request.inputs import UNKNOWN
from request.model import ChosenModel
from request.state import State
from request.words import saying
from training.configs.compact import compact, read_text
from training.parameters import total_parameters

from ..base import form
from ..base.html import fine, tag, together
from ..base.problems import refusal_line
from ..parts.model import facts_html


def config_html(state: State) -> Markup:
    """The model of a pasted config.json, or what of it is not understood."""
    language, say = state.language, saying(MEMORY, state.language)
    try:
        read, short = read_text(state.paste), compact(state.paste)
    except LayoutError as error:
        return refusal_line(error, language)
    model = read.model
    facts = {"name": read.model_type, "layers": model.layers}
    total = f"{total_parameters(model) / 1e9:,.2f}"
    changes = {"model": UNKNOWN, "config": short, "layers": "", "experts": ""}
    is_used = state.config == short and state.model == UNKNOWN
    use = tag("p", say("config_used")) if is_used else form.setter(changes, say("config_use"))
    chosen = ChosenModel(model, UNKNOWN, False, (), read.model_type, read.weights)
    notes = "; ".join(read.not_counted)
    assumed = ", ".join(f"{name} {value}" for name, value in (read.assumed or {}).items())
    return together(
        tag(
            "div",
            tag("p", say("config_pasted", total=total, **facts)),
            tag("p", use, class_="fixes"),
            class_="verdict",
            role="status",
        ),
        facts_html(chosen, language),
        fine(say("config_notes", notes=notes)) if notes else "",
        fine(say("config_assumed", names=assumed)) if assumed else "",
    )
