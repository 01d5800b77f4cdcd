"""What a framework is asked for: the sizes and options of a job.

`groups.layout.Job` is these with the layout that a framework makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ..inputs import Input
from ..megatron.grids import ORDER

ENGRAM = {
    "none": "the model has none, or they are as its other weights: over tp",
    "node": "DeepSeek-V4.1's: cut over tp, shared by the data parallel ranks of a node",
    "across": "DeepSeek-V4.1's in host memory, cut over tp and dp",
    "across-gpu": "DeepSeek-V4.1's on GPUs, cut over tp and dp",
    "across-plain": "Qwen4's, cut over tp and dp",
}
"""Where tables of n-gram embeddings lie: vLLM 0.33's --engram-config and the model's name."""


@dataclass(frozen=True)
class JobSizes:
    """The sizes and options of a layout, by the names that links, endpoints, documents and the
    command line use too; nothing is checked here.

    >>> JobSizes(tp=2).framework, JobSizes.etp
    ('megatron', None)
    """

    nodes: Annotated[int, Input("machines in the job", stands=True)] = 1
    gpus_per_node: Annotated[int, Input("GPUs of one machine", stands=True)] = 8
    tp: Annotated[int, Input("tensor parallel size", stands=True)] = 1
    pp: Annotated[int, Input("pipeline parallel size", stands=True)] = 1
    cp: Annotated[int, Input("context parallel size", stands=True)] = 1
    ep: Annotated[int, Input("expert parallel size", stands=True)] = 1
    etp: Annotated[int | None, Input("expert tensor parallel size", otherwise="as tp")] = None
    framework: str = "megatron"
    order: Annotated[
        str,
        Input(
            "an order of your own, axes from fastest to slowest, such as tp-cp-ep-dp-pp",
            otherwise="the framework's",
            stands=True,
        ),
    ] = ORDER  # counts where the framework is OWN
    instances: Annotated[
        int,
        Input("copies of the sharded states: Megatron's optimizer instances, HSDP", stands=True),
    ] = 1
    hpz: Annotated[
        int | None,
        Input("of ZeRO++: ranks that share a second copy of weights", otherwise="a node's"),
    ] = None
    levels: Annotated[
        Sequence[int] | None, Input("sizes of hierarchical context parallelism, such as 2x4")
    ] = None
    hybrid: Annotated[bool, Input("hybrid context parallel groups", ticked=True)] = False
    gtp: Annotated[
        int, Input("ranks over which dense weights lie, gathered before each use", stands=True)
    ] = 1  # Megatron's main alone has it
    egtp: Annotated[int, Input("the same of experts' weights", stands=True)] = 1
    gathers: Annotated[
        bool, Input("communicators of their own for Megatron FSDP's all-gathers", ticked=True)
    ] = False
    dp: Annotated[
        int | None,
        Input("of a server: data parallel size of attention", otherwise="vLLM: what remains"),
    ] = None  # if given, further GPUs hold more servers
    dcp: Annotated[int, Input("of a server: decode context parallel size", stands=True)] = 1
    moe_dp: Annotated[int, Input("of SGLang: copies of the experts inside tp", stands=True)] = 1
    engram: Annotated[
        str,
        Input(
            "of vLLM: where a model's n-gram tables lie",
            choices=ENGRAM,
            stands=True,
        ),
    ] = "none"
    expert_parallel: Annotated[bool, Input("of vLLM: whole experts on each rank", ticked=True)] = (
        False
    )
