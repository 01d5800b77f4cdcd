"""Names and descriptions of groups, of Megatron's and other frameworks'."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from markupsafe import Markup

from descriptions import OWN_GROUPS, PAGE, SERVER, SERVER_GROUPS, kind_of
from groups.grouping import Grouping
from groups.layout import OWN_PREFIX, Layout
from groups.megatron.parallel_state import FAMILIES, family
from request.context import Context
from request.resolve import main_groupings

from .html import tag, together


class KindText(NamedTuple):
    """The texts beside a panel; ``source`` is the name in Megatron's code, if there is one."""

    title: str
    lead: str  # two sentences
    body: str
    source: str = ""


def kind_text(layout: Layout, grouping: Grouping, language: str) -> KindText:
    """The texts of a group of a layout."""
    name = grouping.name
    if not layout.made_by.has_grids:
        text = SERVER_GROUPS.get(f"{layout.framework}.{name}") or SERVER_GROUPS[name]
        sentence = text.body[language]
        return KindText(text.title[language], sentence, sentence)
    is_own = layout.every.get(name) != grouping
    same = megatrons_name(layout, grouping) if is_own else name
    name = name.removeprefix(OWN_PREFIX)
    facts = {"framework": layout.made_by.name} if is_own else {}
    facts |= {"name": name, "axes": " × ".join(grouping.axes), "same": same}
    if not same:
        sentence = (OWN_GROUPS.get(name) or PAGE["own_joins"])[language].format(**facts)
        return KindText(PAGE["own_alone"][language].format(**facts), sentence, sentence)
    kind, row = kind_of(same), family(same)
    title = PAGE["own_as"][language].format(**facts) if is_own else kind.title[language]
    option = PAGE["nccl_option"][language].format(option=row.option) if row.option else ""
    body = kind.body[language]
    first = re.split(r"(?<=[.:]) (?=[A-Z])|(?<=。)", body)[0]  # sentence
    lead = kind.lead[language] if kind.lead else first
    return KindText(title, lead, body, f"parallel_state: {row.parallel_state}{option}")


def megatrons_name(layout: Layout, grouping: Grouping) -> str:
    """Megatron's name of a framework's own group, by the axes that it plays; empty if there is
    none.

    Of two axes that play dp, the larger one is dp, if it alone makes the very groups of dp.
    """
    convention = layout.made_by
    plays = {axis.name: axis.axis for axis in (*convention.axes, *convention.expert_axes)}
    mesh = grouping.mesh
    data = max((name for name in mesh.names if plays.get(name) == "dp"), key=mesh.size, default="")
    of_experts = "ep" in {plays.get(name) for name in mesh.names}
    renamed = {"tp": "etp", "dp": "edp"} if of_experts else {}
    played = (plays[name] for name in grouping.axes if plays[name] != "dp" or name == data)
    roles = {renamed.get(role, role) for role in played}
    for name, row in FAMILIES.items():
        is_one = row.kind and name in layout.roles and {*row.kind.split("-")} == roles
        if is_one and layout.roles[name].spread == grouping.spread:
            return name
    return ""


def rare_names(context: Context) -> frozenset[str]:
    """Megatron's names of groups that were not selected and that are no axis of the job.

    >>> from request.state import State
    >>> sorted(rare_names(Context.of(State())) & {"tp", "tp-cp", "embd"})
    ['embd', 'tp-cp']
    """
    wanted = {grouping.name for grouping in (*main_groupings(context.layout), *context.visible)}
    return frozenset(context.layout.every) - wanted


def folding_names(table: Markup, names: Collection[str], layout: Layout, language: str) -> Markup:
    """A table whose rows and chips of the class ``folded`` are hidden until all are requested."""
    if not names:
        return table
    words = PAGE if layout.made_by.has_grids else SERVER
    box, label = tag("input", type="checkbox"), words["all_names"][language]
    return together(tag("label", box, " ", label, class_="switch all-names"), table)
