"""How each framework names its axes and numbers its ranks, as data.

A framework is an order of named axes, fastest first. Each of its axes plays one of Megatron's (tp,
cp, ep, dp, pp), and every group it makes is one request to the mesh of those axes, or to a second
mesh of its experts over the same ranks:

    Megatron Core    tp     cp    dp                      pp
    Llama 3          tp     cp                            pp     dp
    DeepSpeed        model        data                    pipe
    torchtitan       tp     cp    dp_shard  dp_replicate  pp

The sizes of all axes but one are given; one that plays dp is what remains. A source that writes
its shape row-major, such as [pipe, data, model], lists the same axes in reverse.

>>> from groups import rank_groups
>>> mesh = CONVENTIONS["deepspeed"].mesh(16, model=2, pipe=2)
>>> str(mesh)
'model2-data4-pipe2'
>>> rank_groups(mesh, "data").tolist()
[[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import LayoutError
from .fitting import fitted
from .mesh import Mesh


@dataclass(frozen=True)
class OwnAxis:
    """One axis of a framework: its own name, and the axis of Megatron's that it plays."""

    name: str
    axis: str  # "tp", "cp", "ep", "dp" or "pp"; two may play dp, such as shard and replicate


@dataclass(frozen=True)
class OwnGroup:
    """A group that joins several axes of a framework, or has a name of its own there."""

    name: str
    kind: str  # axes of its mesh, joined by dashes
    carries: str = ""  # what it is for; empty where the source does not say
    grid: str = "dense"  # or "expert"


@dataclass(frozen=True)
class Convention:
    """A framework's axes, fastest first, and what they say about its groups.

    basis: "executed" (its own code gave the groups in the tests), "read" or "not verified".
    unsettled: what the source leaves open; empty if nothing.
    remains: the axis that takes what remains, where it is not the first one that plays dp.
    of_node: an axis that plays dp and fills a node; one where faster axes do not divide the node.

    >>> CONVENTIONS["torchtitan"].order, CONVENTIONS["llama3"].order
    ('tp-cp-ep-dp-pp', 'tp-cp-pp-dp')
    """

    name: str
    axes: tuple[OwnAxis, ...]
    source: str
    url: str
    basis: str
    groups: tuple[OwnGroup, ...] = ()
    expert_axes: tuple[OwnAxis, ...] = ()  # empty if it has no second mesh for experts
    unsettled: str = ""
    remains: str = ""
    of_node: str = ""

    @property
    def order(self) -> str:
        """Its order in Megatron's names, each once; ep where the expert mesh has it.

        Where two axes play dp, dp stands where the one stands that takes what remains.
        """
        names, experts = self._roles(self.axes), self._roles(self.expert_axes)
        if "ep" in experts:
            slower = experts[experts.index("ep") + 1 :]
            at = min((names.index(name) for name in slower), default=len(names))
            names.insert(at, "ep")
        return "-".join(names)

    def mesh(self, world: int, **sizes: int) -> Mesh:
        """Its mesh of ``world`` ranks: sizes by its own names, 1 where not given.

        The first axis that plays dp and has no size given is what remains.

        >>> str(CONVENTIONS["horovod"].mesh(16, local=8))
        'local8-cross2'

        Errors: LayoutError for an axis that it does not have, else as `fit`.
        """
        return self._fitted(world, self.axes, sizes)

    def expert_mesh(self, world: int, **sizes: int) -> Mesh:
        """Its mesh of the experts over the same ranks; as `mesh`.

        >>> str(CONVENTIONS["torchtitan"].expert_mesh(16, ep=4, pp=2))
        'ep4-efsdp2-dp_replicate1-pp2'
        """
        return self._fitted(world, self.expert_axes, sizes)

    def _fitted(self, world: int, axes: Sequence[OwnAxis], sizes: Mapping[str, int]) -> Mesh:
        if not axes:
            raise LayoutError("no-axes", "this framework has no mesh of experts", control="ep")
        order = "-".join(own.name for own in axes)
        return fitted(world, order, sizes, self._remaining(axes, sizes))

    def _roles(self, axes: Sequence[OwnAxis]) -> list[str]:
        """The axes in Megatron's names, dp once."""
        dp = self._remaining(axes, {})
        return [own.axis for own in axes if own.axis != "dp" or own.name == dp]

    def _remaining(self, axes: Sequence[OwnAxis], sizes: Mapping[str, int]) -> str | None:
        """The axis that takes what remains: of those that play dp, the first without a size."""
        playing = [own.name for own in axes if own.axis == "dp" and own.name not in sizes]
        return self.remains if self.remains in playing else next(iter(playing), None)


def _axes(**roles: str) -> tuple[OwnAxis, ...]:
    """Axes from own name = the axis it plays, fastest first."""
    return tuple(OwnAxis(name, axis) for name, axis in roles.items())


MEGATRON = "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/parallel_state.py"
MEGATRON_GROUPS = (
    OwnGroup("dp-cp", "dp-cp", "gradients of dense layers, loss averages"),
    OwnGroup("mp", "tp-pp", "gradient norm and overflow flag"),
    OwnGroup("tp-cp", "tp-cp", "load-balancing loss of a sequence"),
    OwnGroup("tp-dp", "tp-dp", "FP8 maxima without cp"),
    OwnGroup("tp-dp-cp", "tp-dp-cp", "FP8 maxima, global load balancing"),
    OwnGroup("tp-ep", "etp-ep", "token counts, all-gather of tokens", grid="expert"),
    OwnGroup("tp-ep-pp", "etp-ep-pp", "gradient norm of expert parameters", grid="expert"),
)
DEEPSPEED = "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/"
DEEPSPEED_GROUPS = (
    OwnGroup("slice", "model", "activations of sliced layers"),
    OwnGroup("ds_model", "model-pipe", "overflow flag"),
)
NANOTRON = (
    "https://github.com/huggingface/nanotron/blob/009b8f716603d326840a5aaad697286bd8b6e8da/"
    "src/nanotron/parallel/context.py"
)

OWN = "own"
"""The framework of an order of one's own."""

MEGATRONS = ("megatron", "megatron-pp-dp", OWN)
"""Frameworks that Megatron's own rules and messages are about."""

CONVENTIONS: dict[str, Convention] = {
    "megatron": Convention(
        name="Megatron Core",
        axes=_axes(tp="tp", cp="cp", dp="dp", pp="pp"),
        groups=MEGATRON_GROUPS,
        expert_axes=_axes(etp="tp", ep="ep", edp="dp", pp="pp"),
        source="NVIDIA/Megatron-LM d98e8a6 megatron/core/parallel_state.py",
        url=MEGATRON,
        basis="executed",
    ),
    "megatron-pp-dp": Convention(
        name="Megatron Core, --use-tp-pp-dp-mapping",
        axes=_axes(tp="tp", cp="cp", pp="pp", dp="dp"),
        groups=MEGATRON_GROUPS,
        expert_axes=_axes(etp="tp", ep="ep", pp="pp", edp="dp"),
        source="NVIDIA/Megatron-LM d98e8a6 megatron/training/initialize.py",
        url="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/initialize.py",
        basis="executed",
    ),
    "megatron-deepspeed": Convention(
        name="Megatron-DeepSpeed (BLOOM)",
        axes=_axes(tensor="tp", data="dp", pipeline="pp"),
        groups=(OwnGroup("model", "tensor-pipeline"),),
        source="bigscience-workshop/Megatron-DeepSpeed megatron/mpu/initialize.py",
        url="https://github.com/bigscience-workshop/Megatron-DeepSpeed/blob/main/megatron/mpu/initialize.py",
        basis="executed",
    ),
    "deepspeed": Convention(
        name="DeepSpeed",
        axes=_axes(model="tp", data="dp", pipe="pp"),
        groups=DEEPSPEED_GROUPS,
        expert_axes=_axes(model="tp", expert="ep", expert_data="dp", pipe="pp"),
        source="deepspeedai/DeepSpeed edaa722 deepspeed/runtime/pipe/topology.py",
        url=DEEPSPEED + "runtime/pipe/topology.py",
        basis="executed",
    ),
    "deepspeed-data-first": Convention(
        name="DeepSpeed, data before experts",
        axes=_axes(model="tp", data="dp", pipe="pp"),
        groups=DEEPSPEED_GROUPS,
        expert_axes=_axes(model="tp", expert_data="dp", expert="ep", pipe="pp"),
        source="deepspeedai/DeepSpeed edaa722 deepspeed/utils/groups.py",
        url=DEEPSPEED + "utils/groups.py",
        basis="executed",
    ),
    "device-mesh": Convention(
        name="PyTorch DeviceMesh",
        axes=_axes(tp="tp", cp="cp", dp="dp", pp="pp"),
        source="torch 2.13.0 torch/distributed/device_mesh.py",
        url="https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.device_mesh.DeviceMesh",
        basis="executed",
        unsettled="Names and their order are the user's: (pp, dp, cp, tp) is one example.",
    ),
    "torchtitan": Convention(
        name="torchtitan",
        axes=_axes(tp="tp", cp="cp", dp_shard="dp", dp_replicate="dp", pp="pp"),
        groups=(
            OwnGroup("batch", "dp_shard-dp_replicate", "which samples a rank reads"),
            OwnGroup("dp", "dp_shard-dp_replicate", "the data axis of the dense mesh"),
            OwnGroup("loss", "cp-dp_shard-dp_replicate", "loss averages"),
            OwnGroup("fsdp", "cp-dp_shard", "parameter gather, gradient reduce-scatter"),
        ),
        expert_axes=_axes(ep="ep", efsdp="dp", dp_replicate="dp", pp="pp"),
        source="pytorch/torchtitan b5bcd76 (0.3.0) torchtitan/distributed/parallel_dims.py",
        url="https://github.com/pytorch/torchtitan/blob/main/torchtitan/distributed/parallel_dims.py",
        basis="executed",
    ),
    "llama3": Convention(
        name="Llama 3 trainer",
        axes=_axes(tp="tp", cp="cp", pp="pp", dp="dp"),
        source="arXiv:2407.21783 section 3.3.2 and Figure 5",
        url="https://arxiv.org/abs/2407.21783",
        basis="read",
    ),
    "nanotron": Convention(
        name="nanotron",
        axes=_axes(tp="tp", cp="cp", dp="dp", pp="pp"),
        groups=(OwnGroup("mp", "tp-pp"), OwnGroup("tp_and_cp", "tp-cp")),
        source="huggingface/nanotron 009b8f7 src/nanotron/parallel/context.py",
        url=NANOTRON,
        basis="read",
    ),
    "nanotron-moe": Convention(
        name="nanotron with experts",
        axes=_axes(tp="tp", cp="cp", pp="pp", dp="dp"),
        expert_axes=_axes(ep_tp="tp", ep="ep", ep_pp="pp", ep_dp="dp"),
        source="huggingface/nanotron 009b8f7 src/nanotron/parallel/context.py",
        url=NANOTRON,
        basis="read",
        unsettled="Nothing read there checks that both meshes put the same ranks into a pipeline.",
    ),
    "picotron": Convention(
        name="picotron",
        axes=_axes(tp="tp", cp="cp", pp="pp", dp="dp"),
        groups=(
            OwnGroup("cp_dp", "cp-dp", "gradients, loss averages"),
            OwnGroup("pp_dp", "pp-dp"),
        ),
        source="erlebach/picotron_fork d2a551d picotron/process_group_manager.py, "
        "a copy of huggingface/picotron",
        url="https://github.com/erlebach/picotron_fork/blob/"
        "d2a551d060520c7f6785c2fb265fe6368e4bf7bd/picotron/process_group_manager.py",
        basis="read",
        unsettled="Read in a copy of the repository; its own file was not at hand.",
    ),
    "vllm": Convention(
        name="vLLM",
        axes=_axes(tp="tp", pcp="cp", pp="pp", dp="dp", external_dp="dp"),
        groups=(OwnGroup("ep", "tp-pcp-dp", "tokens of the experts"),),
        source="vllm-project/vllm 0c175ae vllm/distributed/parallel_state.py",
        url="https://github.com/vllm-project/vllm/blob/"
        "0c175ae9295b575078961a68c4d3a2a838dce5ef/vllm/distributed/parallel_state.py",
        basis="read",
    ),
    "mesh-tensorflow": Convention(
        name="Mesh TensorFlow",
        axes=_axes(cols="tp", rows="dp"),
        source="tensorflow/mesh da90793 mesh_tensorflow/simd_mesh_impl.py",
        url="https://github.com/tensorflow/mesh",
        basis="executed",
        unsettled='Names and their order are the user\'s: "rows:2;cols:4" is one example, and '
        "which tensor dim is split over which axis is a separate rule.",
    ),
    "horovod": Convention(
        name="Horovod",
        axes=_axes(local="dp", cross="dp"),
        groups=(OwnGroup("global", "local-cross", "gradients"),),
        of_node="local",
        source="horovod/horovod 2626dc8 horovod/common/mpi/mpi_context.cc; 0.28.1 "
        "get_host_assignments",
        url="https://github.com/horovod/horovod/blob/master/horovod/runner/common/util/hosts.py",
        basis="executed",
    ),
    "tf-replicator": Convention(
        name="TF-Replicator",
        axes=_axes(device="tp", in_graph="dp", between_graph="dp"),
        groups=(OwnGroup("replicas", "in_graph-between_graph", "gradients"),),
        of_node="in_graph",
        source="arXiv:1902.00465, abstract; tf.distribute, which took over its model",
        url="https://arxiv.org/abs/1902.00465",
        basis="read",
        unsettled="The body of the paper was not at hand, and its abstract numbers no ranks: one "
        "graph for each node, and the devices of a replica side by side, are taken here.",
    ),
    "pytorch-ddp": Convention(
        name="PyTorch DDP",
        axes=_axes(data="dp"),
        source="torch 2.13.0 torch/nn/parallel/distributed.py",
        url="https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        basis="read",
    ),
    "gpipe": Convention(
        name="GPipe, torchgpipe, PiPPy",
        axes=_axes(stage="pp"),
        source="arXiv:1811.06965 section 2; kakaobrain/torchgpipe a1b4ee2; torch 2.13.0 "
        "torch/distributed/pipelining",
        url="https://arxiv.org/abs/1811.06965",
        basis="read",
        unsettled="GPipe and torchgpipe number devices in one process, not ranks.",
    ),
    "fairscale": Convention(
        name="fairscale model parallel",
        axes=_axes(mp="tp", cp="cp", pp="pp", dp="dp"),
        source="facebookresearch/fairscale 146f160 fairscale/nn/model_parallel/initialize.py",
        url="https://github.com/facebookresearch/fairscale/blob/main/fairscale/nn/model_parallel/initialize.py",
        basis="read",
        unsettled="Its docstring's 16-GPU example lists dp and pp the other way round.",
    ),
    "paddle-fleet": Convention(
        name="PaddlePaddle Fleet",
        axes=_axes(mp="tp", sep="cp", sharding="dp", pp="pp", dp="dp"),
        source="PaddlePaddle/Paddle 0024132 python/paddle/distributed/fleet/base/topology.py and "
        "distributed_strategy.py",
        url="https://github.com/PaddlePaddle/Paddle/blob/develop/python/paddle/distributed/fleet/base/topology.py",
        basis="read",
        unsettled='The order is the default; hybrid_configs["order"] changes it.',
        remains="dp",
    ),
    "oneflow": Convention(
        name="OneFlow",
        axes=_axes(model="tp", data="dp"),
        source="docs.oneflow.org v0.8 parallelism/02_sbp and 03_consistent_tensor",
        url="https://docs.oneflow.org/en/master/parallelism/02_sbp.html",
        basis="read",
        unsettled="It names no axes: model and data stand for the last and the first dim of a "
        "2-D placement.",
    ),
    "mindspore": Convention(
        name="MindSpore",
        axes=_axes(mp="tp", sp="cp", dp="dp", stage="pp"),
        source="mindspore.parallel.Layout (docs); mindspore-ai/mindspore 015c6e0 "
        "mindspore/ccsrc/frontend/parallel/device_manager.cc (stages)",
        url="https://mindspore.cn/docs/en/master/api_python/parallel/mindspore.parallel.Layout.html",
        basis="read",
        unsettled="Names and their order inside a stage are the user's: (dp, sp, mp) is the "
        "documentation's example.",
    ),
    "whale": Convention(
        name="Whale (EasyParallelLibrary)",
        axes=_axes(split="tp", stage="pp", replica="dp"),
        source="alibaba/EasyParallelLibrary d38b527 epl/cluster.py, docs/en/api/strategy.md",
        url="https://github.com/alibaba/EasyParallelLibrary/blob/main/epl/cluster.py",
        basis="read",
        unsettled="With device_place_prefer_intra_node off, devices are taken across workers "
        "first, and that order is not described here.",
    ),
    "palm": Convention(
        name="PaLM (Pathways, PAX)",
        axes=_axes(mdl="tp", data="dp", replica="dp"),
        source="arXiv:2204.02311 section 4; google/praxis praxis/base_layer.py",
        url="https://arxiv.org/abs/2204.02311",
        basis="read",
        unsettled="This is the order of the logical mesh; which chip gets which place is chosen "
        "by create_device_mesh, and Pathways fixes no rank order.",
    ),
}
"""Every framework by a stable id."""
