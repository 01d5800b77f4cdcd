"""The page's components: small subclasses of ``gr.HTML`` whose markup the page's script mends.

A `PagePart` is one element, by its id: its value says what it shows, an event gives the value
anew, and paint.js puts that in place of the last one node by node, so that focus, folds and
half-typed texts stay (Gradio's own way sets attributes and inputs to what they were made with). Its
handle for the script is ``element.handle`` (part.js).

Why not Gradio's own Dropdown and Slider: with them a step of a slider was on screen after 82 ms
where the page took 55 (all that the page needs, Gradio 6.31, answers new); with these after 1.00 to
1.35 times what the page before took, one component that did it all by its script, both in turns at
16 to 16,384 GPUs. What they cost is in ``python -m benchmarks --only browser``.

>>> part = ShownRegion("picture", "<p>all</p>", render=False)
>>> part.postprocess("<p>one</p>"), part.postprocess(None)
('<p>one</p>', {'__type__': 'update'})
>>> SizeSlider("tp", "2", stops=[1, 2, 4], render=False).postprocess(GivenProps(stops=[1, 3]))
{'__type__': 'update', 'props': {'stops': '1 3'}}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

PART = (Path(__file__).parent / "part.js").read_text(encoding="utf-8")


OWN = ("region", "element", "script", "field", "stops", "html")
"""Parameters of ours, which the browser knows by others."""


class GivenProps:
    """What an event tells a component beside its value, by the names of its properties."""

    def __init__(self, **props: object) -> None:
        self.props = props


class PagePart(gr.HTML):
    """An element of the page, such as "div tabindex=-1"; ``None`` or empty `GivenProps` leave it as
    it is, for a fifth of what ``gr.skip()`` costs an event, which makes the component anew."""

    def __init__(
        self,
        region: str,
        value: Any = None,
        *,
        element: str = "div",
        script: str = PART,
        render: bool = True,
        server_functions: Any = None,
        **props: Any,
    ) -> None:
        self.region, self.element, self.script = region, element, script
        super().__init__(
            value,
            html_template=f'<{element} id="{region}"></{element.partition(" ")[0]}>',
            js_on_load=script,
            apply_default_css=False,
            elem_classes="part",
            render=render,
            server_functions=server_functions,
            **props,
        )

    def get_config(self, cls: Any = None) -> dict[str, Any]:
        """What the browser is told of it, without what is not said: Gradio copies each word of that
        some seven times an event."""
        told = super().get_config()
        return {
            name: value for name, value in told.items() if name not in OWN and value is not None
        }

    def postprocess(self, value: Any) -> Any:
        """The value as the browser gets it."""
        if value is None:
            return gr.skip()
        if isinstance(value, GivenProps):
            return {**gr.skip(), **({"props": value.props} if value.props else {})}
        return value


class ShownRegion(PagePart):
    """What the page shows: its value is its HTML."""


class Picture(ShownRegion):
    """The view: pictures and their descriptions."""


class ToldBeside(PagePart):
    """What is told of an answer beside its regions, such as the link of its picture."""


class StateField(PagePart):
    """One field of the state: its value is what its box holds, ``html`` its box (a region)."""

    def __init__(self, field: str, value: Any = "", html: str = "", **more: Any) -> None:
        self.field, self.html = field, html
        super().__init__(more.pop("region", field), value, field=field, html=html, **more)


class Dropdown(StateField):
    """A list of choices in groups; the browser's own, which a phone opens as it opens all."""


class Sections(StateField):
    """The views by section; its value is the one on screen."""


class ChosenGpu(StateField):
    """The box of the chosen GPU, in views that show something of it."""


class SizeSlider(StateField):
    """A size: a box that takes any text, and a slider on a scale of powers of two, whose stops are
    the sizes that work with the others; marks of others are grey."""

    def __init__(self, field: str, value: str, html: str = "", **more: Any) -> None:
        self.stops = more.pop("stops", [])
        super().__init__(field, value, html, stops=_written(self.stops), **more)

    def postprocess(self, value: Any) -> Any:
        if isinstance(value, GivenProps) and "stops" in value.props:
            value = GivenProps(**{**value.props, "stops": _written(value.props["stops"])})
        return super().postprocess(value)


def _written(stops: Any) -> str:
    """Stops as one word of a component's, for each word is copied."""
    return " ".join(map(str, stops))


class Script(PagePart):
    """The page's script, what it knows, and the functions that it asks: no event has it, for Gradio
    copies all that a component is given whenever one is about it."""


class Settings(StateField):
    """All that is folded away, and what a view asks: its value is a dict of their fields."""
