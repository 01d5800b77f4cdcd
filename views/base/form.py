"""Inputs inside a view's HTML, in the language and with the values of a state.

Gradio walks every component of its own around every event, so what only one view asks is no
component: it is plain HTML with a ``data-field``, which the page's script (client/form.js) gathers
into the one state. The server draws the view anew; the nodes stay, and with them the focus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from descriptions import CONTROLS, PAGE
from request.state import State, is_empty, texts_of

from .html import button, tag, together


def choice(
    name: str,
    state: State,
    options: Iterable[tuple[str, str]],
    *,
    unsaid: str = "",
    counts: object = "",
    others: bool = False,
) -> Markup:
    """A list of options, each a label and its value; it shows a value that is not an option, too.

    unsaid: the label of the empty value, if it can be chosen; counts: the value chosen in its place
    if not; others: the page's script may add other values.
    """
    offered = [*([(unsaid, "")] if unsaid else []), *options]
    text = getattr(state, name)
    chosen = str(counts) if is_empty(text) else text
    if chosen not in {code for _, code in offered}:
        offered.append((chosen, chosen))
    items = [tag("option", label, value=code, selected=code == chosen) for label, code in offered]
    items += [tag("option", hidden=True, data_other=True)] if others else []
    return _field(name, tag("select", *items, **_marks(name)), state)


def text(
    name: str, state: State, *, hint: str = "", sets: str = "", besides: str = "", **marks: object
) -> Markup:
    """A box for a short text. ``hint``: what applies while it is empty; ``sets``: the field of the
    state that it sets, if its name differs; ``besides``: values of that field that another list
    offers."""
    marks |= {"type": "text", "autocomplete": "off", "spellcheck": "false"}
    typed = getattr(state, sets or name)
    marks |= {"value": "" if typed in besides.split() else typed}
    marks |= {"placeholder": hint or None, "data_besides": besides or None}
    return _field(name, tag("input", **marks, **_marks(name, sets)), state)


def number(name: str, state: State, *, hint: object = "") -> Markup:
    """A box for a number; anything else is refused with a sentence, not by the box."""
    return text(name, state, hint=str(hint), inputmode="decimal")


def area(name: str, state: State, *, rows: int = 2, sets: str = "") -> Markup:
    """A box for a long text; ``sets`` as of `text`."""
    typed = f"\n{getattr(state, sets or name)}"
    box = tag("textarea", typed, rows=rows, spellcheck="false", **_marks(name, sets))
    return _field(name, box, state, "field wide")


def check(name: str, state: State) -> Markup:
    """A checkbox."""
    is_on = state.value(name)
    box = tag("input", type="checkbox", checked=is_on, **_marks(name))
    return _field(name, box, state, "field tick")


def fields(*inputs: object) -> Markup:
    """Inputs and their buttons side by side, wrapped to the width."""
    return tag("div", *inputs, class_="fields")


def line(*inputs: object) -> Markup:
    """The inputs above a view's picture in one line, each label before its box; rare ones are in a
    fold."""
    return tag("div", *inputs, class_="fields line")


def setter(changes: Mapping[str, object], label: str) -> Markup:
    """A button that sets fields of the state, such as a fix of a refusal."""
    return button(label, class_="fix", data_set=texts_of(changes))


def copyable(text: str, language: str, words: str = "copy_text") -> Markup:
    """A text with a copy button, whose label is in PAGE."""
    done = PAGE["copied"][language]
    copies = button(PAGE[words][language], class_="copy", data_done=done)
    return together(copies, tag("pre", text, tabindex=0))


def example(
    language: str, changes: Mapping[str, object], *shown: object, also: Markup | str = ""
) -> Markup:
    """The content of a view without input: an example in grey, which a button loads; also: further
    buttons beside it. Keyboard and screen readers skip its content."""
    use = together(setter(changes, PAGE["example_use"][language]), " ", also)
    grey = tag("div", *shown, class_="grey", inert=True)
    return tag("section", tag("p", PAGE["example"][language], " ", use), grey, class_="example")


def beside(box: object, *told: object) -> Markup:
    """A box that takes a text, and what is told of it beside it where there is room."""
    return tag("div", tag("div", box), tag("div", *told), class_="box-and-told")


def opener(query: str, label: str) -> Markup:
    """A link to another state of the page, opened in place; `query` is from link.to_query."""
    return tag("a", label, class_="opener", href=f"?{query}", data_query=query)


def _marks(name: str, sets: str = "") -> dict[str, str]:
    box = f"field-{name}"
    return {"id": box, "data_field": sets or name, "aria_describedby": f"{box}-help"}


def _field(name: str, box: Markup, state: State, kind: str = "field") -> Markup:
    words, language = CONTROLS[name], state.language
    label = tag("label", words.label[language], for_=f"field-{name}")
    help_text = tag("p", words.help[language], class_="help", id=f"field-{name}-help")
    return tag("div", label, box, help_text, class_=kind)
