"""Types of groups, the choices of the dropdown, with pages to read; and kinds of groups."""

from __future__ import annotations

import re

from .shapes import GroupType, Kind, Link, catalogue, words

LINKS = {
    name: Link(url, title)
    for key, title in words("types", "LINKS").items()
    for name, _, url in [key.partition("=")]
}

_CP = "context-parallel-docs ulysses-and-ring ring-and-flash context-parallel-answer lightseq"
_SHOWN = {
    "auto": ("", "megatron-setup megatron-init"),
    "dp": ("dp", "parameter-server from-dp-to-fsdp data-parallel-1 data-parallel-2"),
    "tp": ("tp", "megatron-2019 megatron-survey tensor-parallel"),
    "pp": ("pp", "megatron-2021 pipeline-source pipeline-gpipe megatron-setup zero-bubble"),
    "cp": ("cp", _CP),
    "dp+tp": ("dp tp", "best-layout"),
    "dp+pp": ("dp pp", "best-layout zero-bubble pipeline-source"),
    "dp+tp+pp": ("dp tp pp", "megatron-setup megatron-init pytorch-fsdp"),
    "cp+dp": ("cp dp", _CP),
    "cp+dp+tp": ("cp dp tp", _CP),
    "cp+dp+pp": ("cp dp pp", _CP),
    "cp+dp+tp+pp": ("cp dp tp pp", _CP),
    "cp+tp": ("cp tp", _CP),
    "cp+pp": ("cp pp", _CP),
    "cp+tp+pp": ("cp tp pp", _CP),
    "ep": ("ep", "parallel-folding deepseek-v3 moe-docs"),
    "ep+edp": ("ep etp edp", "parallel-folding moe-docs"),
    "moe": ("tp cp dp pp etp ep edp", "parallel-folding deepseek-v3 moe-docs"),
    "model": ("mp embd pos-embd", "megatron-setup megatron-init pipeline-source"),
    "framework": ("", "from-dp-to-fsdp pytorch-fsdp megatron-setup"),
    "chosen": ("", "megatron-setup megatron-init"),
}
"""Of each type the kinds of its panels, and pages to read about them."""

TYPES: dict[str, GroupType] = {
    name: GroupType(
        title, body, tuple(kinds.split()), tuple(LINKS[link] for link in reading.split())
    )
    for name, (title, body) in catalogue("types")["TYPES"].items()
    for kinds, reading in [_SHOWN[name]]
}

KINDS: dict[str, Kind] = {
    name: Kind(title, body, lead[0] if lead else None)
    for name, (title, *lead, body) in catalogue("kinds")["KINDS"].items()
}
"""By the name of the group; of numbered ones (hcp-l0, hybrid-dp-cp-2) by the family's name."""

NUMBERED = re.compile(r"(hcp)-l\d+|(hybrid-dp-cp)-\d+", re.ASCII)


def kind_of(name: str) -> Kind:
    """The kind of a group by its own name, which may carry a number: hcp-l1 is an hcp. Errors:
    KeyError."""
    numbered = NUMBERED.fullmatch(name)
    return KINDS[numbered[1] or numbered[2] if numbered else name]
