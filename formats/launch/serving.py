"""The groups of the server that a text starts, in the server's own order."""

from __future__ import annotations

from typing import Any

from groups.grouping import Grouping
from groups.serving import sglang_groups, vllm_groups

from .items import Parsed

OF_VLLM = {"dp_served": "dp", "dcp": "dcp", "expert_parallel": "experts"}
OF_SGLANG = {"dp_served": "dp", "dp_attention": "dp_attention", "dcp": "dcp"}
OF_SGLANG |= {"served_cp": "attn_cp", "served_ep": "ep", "moe_dp": "moe_dp"}


def served_groups(text: Parsed) -> dict[str, Grouping]:
    """The groups by name; none where the text starts no server or leaves its sizes open.

    >>> from formats.launch import parse
    >>> groups = served_groups(parse("vllm serve m -tp 4 -dp 2 --enable-expert-parallel"))
    >>> groups["ep"].groups().tolist()
    [[0, 1, 2, 3, 4, 5, 6, 7]]

    Errors: LayoutError for sizes that the server would refuse.
    """
    name = text.framework.name if text.framework else ""
    if name not in ("vllm", "sglang") or text.asks:
        return {}
    values: dict[str, Any] = {**text.assumed, **text.values}
    names = OF_VLLM if name == "vllm" else OF_SGLANG
    sizes = {names[key]: size for key, size in text.serving.items() if key in names}
    sizes |= {axis: values.get(axis, 1) for axis in ("tp", "pp")}
    return (
        vllm_groups(pcp=values.get("cp", 1), **sizes) if name == "vllm" else sglang_groups(**sizes)
    )
