"""Published layouts to start from, each with the source that states it."""

from __future__ import annotations

from dataclasses import dataclass

from .fitting import fit
from .mesh import DEFAULT_ORDER, Mesh


@dataclass(frozen=True)
class Preset:
    """A layout somebody published; ``dp`` is derived and must come out as they state it.

    >>> PRESETS["bloom-176b"].mesh().size("dp")
    8
    """

    name: str
    group_type: str
    nodes: int
    gpus_per_node: int
    tp: int
    cp: int
    pp: int
    dp: int
    order: str
    source: str
    url: str  # empty where the source is no longer to be found

    @property
    def world_size(self) -> int:
        return self.nodes * self.gpus_per_node

    def mesh(self) -> Mesh:
        return fit(self.world_size, order=self.order, tp=self.tp, cp=self.cp, pp=self.pp)


PRESETS: dict[str, Preset] = {
    "playground-16": Preset(
        name="Playground, 16 GPUs",
        group_type="dp+tp+pp",
        nodes=2,
        gpus_per_node=8,
        tp=2,
        cp=1,
        pp=2,
        dp=4,
        order=DEFAULT_ORDER,
        source="Megatron-LM parallel group playground (Hugging Face Space), two nodes of eight",
        url="",
    ),
    "bloom-176b": Preset(
        name="BLOOM 176B, 384 GPUs",
        group_type="dp+tp+pp",
        nodes=48,
        gpus_per_node=8,
        tp=4,
        cp=1,
        pp=12,
        dp=8,
        order=DEFAULT_ORDER,
        source="bigscience-workshop/bigscience 9e64ede, train/tr11-176B-ml/README.md",
        url="https://github.com/bigscience-workshop/bigscience/blob/master/train/tr11-176B-ml/README.md",
    ),
    "llama3-405b": Preset(
        name="Llama 3 405B, 16,384 GPUs",
        group_type="cp+dp+tp+pp",
        nodes=2048,
        gpus_per_node=8,
        tp=8,
        cp=16,
        pp=16,
        dp=8,
        order="tp-cp-pp-dp",
        source="arXiv:2407.21783v3, Table 4 row 3 and section 3.3.2 (order TP, CP, PP, DP)",
        url="https://arxiv.org/abs/2407.21783v3",
    ),
}
