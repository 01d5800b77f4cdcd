"""Eight real processes that make groups as five frameworks do, and what each then knows of them."""

from __future__ import annotations

import json

from torch_jobs import TorchJob

LAYOUTS: dict[str, tuple[str, dict]] = {
    "megatron tp2 pp2": ("megatron", {"tp": 2, "pp": 2}),
    "megatron tp2 cp2 pp2": ("megatron", {"tp": 2, "cp": 2, "pp": 2}),
    "megatron ep4 pp2": ("megatron", {"pp": 2, "ep": 4, "etp": 1}),
    "megatron tp2 ep2 etp1": ("megatron", {"tp": 2, "ep": 2, "etp": 1}),
    "megatron tp2 pp2, dp last": ("megatron", {"tp": 2, "pp": 2, "order": "tp-cp-ep-pp-dp"}),
    "torchtitan pp2 dp_shard2 tp2": ("mesh", {"pp": 2, "dp_shard": 2, "tp": 2}),
    "torchtitan dp_replicate2 dp_shard2 tp2": (
        "mesh",
        {"dp_replicate": 2, "dp_shard": 2, "tp": 2},
    ),
    "torchtitan dp_shard2 cp2 tp2": ("mesh", {"dp_shard": 2, "cp": 2, "tp": 2}),
    "torchtitan pp2 ep4": ("torchtitan", {"pp": 2, "ep": 4}),
    "torchtitan tp2 ep2": ("torchtitan", {"tp": 2, "ep": 2}),
    "accelerate dp_replicate2 cp2 tp2": ("mesh", {"dp_replicate": 2, "cp": 2, "tp": 2}),
    "deepspeed pipe2 data2 model2": ("deepspeed", {"pp": 2, "tp": 2}),
    "deepspeed pipe2 data4": ("deepspeed", {"pp": 2, "tp": 1}),
    "deepspeed experts 4": ("deepspeed_experts", {"ep": 4}),
    "deepspeed data4 tensor2": ("mesh", {"data_parallel": 4, "tensor_parallel": 2}),
    "vllm tp2 pp2 dp2": ("vllm", {"tp": 2, "pp": 2, "dp": 2}),
    "vllm tp4 pp2": ("vllm", {"tp": 4, "pp": 2, "dp": 1}),
    "vllm tp4 dp2": ("vllm", {"tp": 4, "pp": 1, "dp": 2}),
    "vllm tp4 pp2, dense": ("vllm", {"tp": 4, "pp": 2, "dp": 1, "experts": False}),
    "vllm tp2 pp2, two engines": ("vllm", {"tp": 2, "pp": 2, "dp": 1, "experts": False}),
}
"""How groups are made, and the sizes; meshes slowest axis first."""

PROGRAM = r"""
import json, os, sys
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
try:  # before the processes are forked: it takes seconds
    from megatron.core import parallel_state
except ImportError:
    parallel_state = None

WORLD = 8

def megatron(tp=1, cp=1, pp=1, ep=1, etp=None, order="tp-cp-ep-dp-pp"):
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=tp, context_parallel_size=cp, pipeline_model_parallel_size=pp,
        expert_model_parallel_size=ep, expert_tensor_parallel_size=etp, order=order)
    return parallel_state.destroy_model_parallel

def mesh(**sizes):
    made = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    return repr(made)

def torchtitan(pp=1, tp=1, ep=1):
    # torchtitan/distributed/parallel_dims.py, build_mesh: dense, sparse and loading axes
    world = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("world",))
    rest = WORLD // pp
    for names, sizes in (
        (("pp", "batch", "cp", "tp"), (pp, rest // tp, 1, tp)),
        (("pp", "dp_replicate", "fsdp", "tp"), (pp, 1, rest // tp, tp)),
        (("pp", "dp_replicate", "efsdp", "ep"), (pp, 1, rest // ep, ep)),
    ):
        world._unflatten(0, sizes, names)

def deepspeed(pp, tp):
    # deepspeed/runtime/pipe/topology.py, PipelineParallelGrid with axes pipe, data, model
    dist.new_group(range(WORLD))
    ranks = torch.arange(WORLD).reshape(pp, -1, tp)
    for at in range(ranks.shape[1]):
        dist.new_group(ranks[:, at].flatten().tolist())
    for axis in (1, 0, 2):
        for group in ranks.movedim(axis, -1).reshape(-1, ranks.shape[axis]).tolist():
            dist.new_group(group)

def deepspeed_experts(ep):
    # deepspeed/utils/groups.py, _create_expert_and_data_parallel
    dist.new_group(range(WORLD))
    for at in range(ep):
        dist.new_group(range(at, WORLD, ep))
    for at in range(WORLD // ep):
        dist.new_group(range(at * ep, (at + 1) * ep))

def vllm(tp, pp, dp, experts=True):
    # vllm/distributed/parallel_state.py, initialize_model_parallel; each for GPUs and for hosts
    ranks = torch.arange(WORLD).reshape(-1, dp, pp, 1, tp)
    def make(lists):
        for group in lists:
            dist.new_group(group)
            dist.new_group(group, backend="gloo")
    make([list(range(WORLD))])
    make(ranks.view(-1, tp).tolist())
    make(ranks.view(-1, 1).tolist())
    make(ranks.transpose(3, 4).reshape(-1, 1).tolist())
    make(ranks.transpose(2, 4).reshape(-1, pp).tolist())
    make(ranks.transpose(1, 4).reshape(-1, dp).tolist())
    if experts:
        make(ranks.transpose(1, 2).reshape(-1, dp * tp).tolist())

def run(rank):
    from torch.distributed.distributed_c10d import _world
    for number, (name, (way, sizes)) in enumerate(json.loads(sys.argv[1]).items()):
        if way == "megatron" and parallel_state is None:
            continue
        dist.init_process_group("gloo", init_method=f"file://{sys.argv[0]}/{number}.store",
                                rank=rank, world_size=WORLD)
        made = globals()[way](**sizes)
        known = {"name": name, "rank": rank, "pg_config": _world.pg_config_info,
                 "mesh": made if isinstance(made, str) else ""}
        with open(f"{sys.argv[0]}/{number}.{rank}.json", "w") as file:
            json.dump(known, file)
        if name == "vllm tp4 dp2":
            import torch.profiler
            with torch.profiler.profile() as profile:
                dist.all_reduce(torch.ones(1))
            if rank == 5:
                profile.export_chrome_trace(f"{sys.argv[0]}/trace.json")
        dist.barrier()
        if callable(made):
            made()
        dist.destroy_process_group()

children = [forked(run, rank) for rank in range(WORLD)]
sys.exit(max(status_of(child) for child in children))
"""

JOB = TorchJob(PROGRAM, (json.dumps(LAYOUTS),))
