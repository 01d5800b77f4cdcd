"""What a group is called and what it carries, whoever names it: Megatron or another framework."""

from __future__ import annotations

import re
from dataclasses import dataclass

from descriptions import OWN_GROUPS, PAGE, Kind, kind_of
from groups.conventions import CONVENTIONS
from groups.grouping import Grouping
from groups.layout import Layout
from groups.megatron.parallel_state import FAMILIES, family


@dataclass(frozen=True)
class KindText:
    """The words beside a panel; ``source`` is the name in Megatron's code, if there is one."""

    title: str
    lead: str  # two sentences
    body: str
    source: str = ""


def kind_text(layout: Layout, grouping: Grouping, language: str) -> KindText:
    """The words for one group of a layout."""
    name = grouping.name
    if layout.every.get(name) == grouping:
        kind = kind_of(name)
        return _of_kind(kind.title[language], kind, code_name(name, language), language)
    framework = CONVENTIONS[layout.framework].name
    same = megatrons_name(layout, grouping)
    words = {"framework": framework, "name": name, "axes": " × ".join(grouping.axes)}
    if same:
        title = PAGE["own_as"][language].format(**words, same=same)
        return _of_kind(title, kind_of(same), code_name(same, language), language)
    title = PAGE["own_alone"][language].format(**words)
    body = OWN_GROUPS.get(name) or PAGE["own_joins"]
    said = body[language].format(**words)
    return KindText(title, said, said)


def _of_kind(title: str, kind: Kind, source: str, language: str) -> KindText:
    body = kind.body[language]
    return KindText(title, kind.lead[language] if kind.lead else first_sentence(body), body, source)


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:]) (?=[A-Z])|(?<=。)", text)[0]


def code_name(name: str, language: str) -> str:
    """Where to find a group in Megatron's code and options."""
    row = family(name)
    option = PAGE["nccl_option"][language].format(option=row.option) if row.option else ""
    return f"parallel_state: {row.parallel_state}{option}"


def megatrons_name(layout: Layout, grouping: Grouping) -> str:
    """The group of Megatron's that a framework's own group is, by what its axes play; or nothing.

    Of two axes that play dp, the larger one is dp, if it alone makes the very groups of dp.
    """
    convention = CONVENTIONS[layout.framework]
    plays = {axis.name: axis.axis for axis in (*convention.axes, *convention.expert_axes)}
    mesh = grouping.mesh
    data = max((name for name in mesh.names if plays.get(name) == "dp"), key=mesh.size, default="")
    of_experts = "ep" in {plays.get(name) for name in mesh.names}
    renamed = {"tp": "etp", "dp": "edp"} if of_experts else {}
    roles = {
        renamed.get(plays[name], plays[name])
        for name in grouping.axes
        if plays[name] != "dp" or name == data
    }
    rows = ((name, row) for name, row in FAMILIES.items() if row.kind and name in layout.every)
    return next(
        (
            name
            for name, row in rows
            if set(row.kind.split("-")) == roles and layout.every[name].spread == grouping.spread
        ),
        "",
    )
