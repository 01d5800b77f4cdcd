"""From the values of the page's components to `views.page.draw`, and from its regions back.

>>> fields = {"tp": "4", "lang": "en"}
>>> sent_of(fields, {"tp": "2", "view": "memory"})
{'tp': '4', 'view': 'memory', 'lang': 'en'}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from gradio.data_classes import JsonData

from formats.values import Document
from groups import LayoutError
from request.words import sentence

from .. import page
from ..server.lanes import BusyError, Lanes
from .components import GivenProps, PagePart, SizeSlider, StateField


def sent_of(fields: Mapping[str, object], settings: object) -> Document:
    """What the components say together: fields of their own before what the settings hold; one that
    is not known yet, of a link that is not read, says nothing."""
    known = {name: value for name, value in fields.items() if value is not None}
    return {**(settings if isinstance(settings, dict) else {}), **known}


def drawing(
    lanes: Lanes, controls: Sequence[StateField], parts: Sequence[PagePart]
) -> Callable[..., Awaitable[list[object]]]:
    """The function of the event that draws the page: from the values of ``controls``, the last of
    which are the settings, to those of ``parts``, then what is told beside them (`ToldBeside`).

    What is told is {"busy": seconds} of a server that is busy for so long, and
    {"refused": sentence} where the work fails (views/server/lanes.py).
    """
    names = [control.field for control in controls[:-1]]

    async def draw(*values: object) -> list[object]:
        sent = sent_of(dict(zip(names, values)), values[-1])
        try:
            told = await lanes.run(page.draw, sent)
        except BusyError as error:
            told = {"busy": error.facts["seconds"]}
        except LayoutError as error:
            told = {"refused": sentence(error, "zh" if sent.get("lang") == "zh" else "en")}
        regions, stops = told.pop("regions", {}), told.pop("stops", {})
        return [*(_given(part, _shown(part, regions, stops)) for part in parts), told]

    return draw


def _shown(part: PagePart, regions: Mapping[str, str], stops: Mapping[str, object]) -> object:
    """What a part is given: its HTML, or beside the value that it has, its box and its stops."""
    html = regions.get(part.region)
    if not isinstance(part, StateField):
        return html
    props: dict[str, object] = {} if html is None else {"html": html}
    if isinstance(part, SizeSlider) and part.field in stops:
        props["stops"] = stops[part.field]
    return GivenProps(**props)


def _given(part: PagePart, value: object) -> object:
    """A value as the browser gets it, for an event without Gradio's ``postprocess``, which goes to
    a thread for each part: 5.0 of the 5.5 ms of thirty of them. Only a dict is an update that
    makes the component anew; this is none until it is written.
    """
    made = part.postprocess(value)
    return JsonData(made) if isinstance(made, dict) and "__type__" in made else made
