"""The inputs of a machine in the column: a name, or numbers of one's own, and what looks wrong in
them."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import CONTROLS, MACHINE
from groups import LayoutError
from request.state import State
from request.trained import cluster_of, machine_of_state
from request.words import saying
from training.clusters import CLUSTERS
from training.described import OWN, doubts, start_of
from training.machine import FABRICS

from .base import form
from .base.html import fine, tag, together
from .parts.machine import notes_of

FIVE = ("peak", "capacity", "hbm", "nvlink", "nic")
"""Numbers of a machine of one's own that decide nearly everything."""

RARE = ("peak_fp8", "peak_fp4", "pair", "fabric", "domain", "pod", "spine")


def machine_inputs(start: State) -> list[Markup]:
    """A machine by its name, or five numbers over it; the rest of them in a fold."""
    say = saying(MACHINE, start.language)
    machines = [(one.name, name) for name, one in CLUSTERS.items()]
    wired = [(say(f"fabric_{name}"), name) for name in FABRICS]
    rare = (
        form.choice(name, start, wired, unsaid=say("as_row"))
        if name == "fabric"
        else form.number(name, start)
        for name in RARE
    )
    more = tag("details", tag("summary", say("more")), tag("div", *rare, class_="inside"))
    return [
        form.choice("cluster", start, [*machines, (say("own"), OWN)], counts="dgx-h100"),
        *(form.number(name, start) for name in FIVE),
        more,
    ]


def doubts_html(state: State, language: str) -> Markup:
    """What is not sure of a machine, and questions about numbers of one's own that look like others
    than they should be."""
    try:
        machine = machine_of_state(state)
    except LayoutError:
        return Markup()
    say, rows = saying(MACHINE, language), [fine(note) for note in notes_of(machine, language)]
    for doubt in doubts(machine, start_of(cluster_of(state))):
        label = CONTROLS[doubt.control].label[language]
        facts = {"value": doubt.value, "instead": doubt.instead, "of": doubt.of}
        words = say(f"doubt_{doubt.code}", label=label, **facts)
        take = form.setter({doubt.control: doubt.instead}, say("doubt_take", **facts))
        rows.append(tag("p", words, " ", take, class_="doubt"))
    return together(*rows)
