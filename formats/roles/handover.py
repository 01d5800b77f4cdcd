"""The sizes between which servers hand a KV cache over, by the connector that does it.

Each rule is one that the program itself raises for; sizes that it takes, fast or slow, are no
concern here, nor are connectors that store a cache in between (LMCache, Mooncake's store, FlexKV,
HF3FS: none of them compares sizes).

>>> refused_sizes("NixlConnector", {"tp": 3}, {"tp": 2}), refused_sizes("sglang", {}, {"pp": 1})
(Refused(code='connector-wants-divides', axis='tp', size=3, other=2), None)

Sources: vLLM 0.33.0 (its wheel) vllm/distributed/kv_transfer/kv_connector/utils.py:529 (NIXL,
tp_ratio), v1/nixl/base_worker.py:885 (a consumer's pp), v1/mooncake/mooncake_connector.py:153
(_get_tp_ratio), v1/moriio/moriio_connector.py:165 (get_moriio_remote_tp_rank), v1/moriio/
moriio_tp_mapping.py:80; vLLM 0.11 kv_connector/v1/p2p/p2p_nccl_connector.py (gone in 0.33);
SGLang 0.5.23 (its wheel) sglang/srt/disaggregation/common/conn.py:1493 (cp) and 1516 (pp), for
each of its transfer backends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Refused(NamedTuple):
    """Sizes between which nothing is handed over, and the refusal that says so."""

    code: str
    axis: str
    size: int  # of the prefilling side
    other: int  # of the decoding side


LAWS: Mapping[str, Callable[[int, int], bool]] = {
    "equal": lambda size, other: size == other,
    "divides": lambda size, other: max(size, other) % min(size, other) == 0,
    "equal-or-one": lambda size, other: other in (size, 1),
    "one": lambda size, other: other == 1,
}
"""What is asked of the sizes of the prefilling and of the decoding side."""

CODES = {
    "equal": "connector-wants-equal",
    "divides": "connector-wants-divides",
    "equal-or-one": "connector-wants-equal-or-one",
    "one": "connector-wants-one",
}
"""The refusal of each."""

_DIVIDES = (("tp", "divides"),)
_NIXL = (*_DIVIDES, ("pp", "one"))

RULES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "P2pNcclConnector": (("tp", "equal"), ("pp", "equal")),
    **dict.fromkeys(("NixlConnector", "NixlPullConnector", "NixlPushConnector"), _NIXL),
    **dict.fromkeys(("MooncakeConnector", "MoRIIOConnector"), _DIVIDES),
    "sglang": (("cp", "one"), ("pp", "equal-or-one")),
}
"""The laws of each connector, by axis; an engine's name stands for all of its own."""

CONSUMERS = ("NixlConnector", "NixlPullConnector", "NixlPushConnector")
"""Connectors that ask for one decoding stage only where the server says that it consumes."""


def refused_sizes(
    connector: str, prefill: Mapping[str, int], decode: Mapping[str, int], role: str = ""
) -> Refused | None:
    """The first sizes that a connector does not take. role: the decoding side's kv_role."""
    for axis, law in RULES.get(connector, ()):
        size, other = prefill.get(axis, 1), decode.get(axis, 1)
        is_free = axis == "pp" and connector in CONSUMERS and role != "kv_consumer"
        if not is_free and not LAWS[law](size, other):
            return Refused(CODES[law], axis, size, other)
    return None
