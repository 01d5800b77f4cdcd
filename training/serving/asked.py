"""One server of which the speed is asked, and the servers of which it is not told."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import refusal
from ..machine import Machine
from ..model import Model
from ..traffic.reached import SLOWEST
from .weights import Cut

ENGINES = ("vllm", "sglang", "tensorrt-llm")
"""Engines of which runs were measured."""

MAKERS = ("nvidia", "")
"""Makers of the GPUs that were measured; of a machine of one's own, which has none, its numbers
tell."""

MOST_MEASURED = 8
"""GPUs that share attention's heads or experts in the largest servers that were measured."""


@dataclass(frozen=True)
class AskedServer:
    """One server of which the speed is asked.

    Attributes:
        model, cut, weights, cache: as of `server_memory`.
        parts: data parallel parts of attention.
        prefill: GPUs over which a prompt is divided (context parallelism of prefills).
        domain: GPUs that are joined by the machine's fast links.
        name: the model's id in training.models, by which measured runs are found.
        speculative: whether it decodes several tokens at once by guessing.
        disaggregated: whether others read the prompts for it.
    """

    model: Model
    cut: Cut
    machine: Machine
    engine: str = "vllm"
    weights: str = "bf16"
    cache: str = "bf16"
    parts: int = 1
    prefill: int = 1
    domain: int = 8
    name: str = ""
    speculative: bool = False
    disaggregated: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of the server."""
        return self.cut.attention * self.cut.pp * self.parts * self.prefill

    @property
    def sharing(self) -> int:
        """GPUs of a stage, between which every layer sends."""
        return self.cut.attention * self.parts


def require_told(server: AskedServer) -> None:
    """Errors: LayoutError, in words, for servers of which the law does not tell."""
    machine, engine = server.machine, server.engine
    if engine not in ENGINES:
        raise refusal("speed-of-engine", "framework", {"framework": "vllm"}, engine=engine)
    if machine.maker not in MAKERS:
        raise refusal("speed-of-machine", "cluster", machine=machine.name)
    for name, size in (("cp", server.prefill), ("dcp", server.cut.dcp)):
        if size > 1:
            raise refusal("speed-of-divided-sequences", name, {name: 1}, name=name, size=size)
    if server.speculative:
        raise refusal("speed-of-guesses", "served_guesses")
    if server.disaggregated:
        raise refusal("speed-of-pairs", "roles")
    if server.sharing > 1 and machine.nvlink < SLOWEST:
        raise refusal("speed-over-pcie", "tp", {"tp": 1}, machine=machine.name)
    largest = min(server.domain, MOST_MEASURED)
    if server.sharing > largest:
        facts = {"gpus": server.sharing, "most": largest, "machine": machine.name}
        raise refusal("speed-beyond-domain", "tp", {"tp": largest}, **facts)
