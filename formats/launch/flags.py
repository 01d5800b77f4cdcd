"""What the options and keys of launchers and frameworks mean, as data.

A row says which field an option sets: a field of `Job`, one of the model (`MODEL`), or one that
only leads to those ("world", "chunk", "embedding", "loss", "shard", "mapping" ...).

    options       --name value, --name=value; dashes and underscores are one
    keys          name under its section: model.name=value, "name": value, name = value, name: value
    variables     NAME=value in the script itself, where nothing else says it

Sources: NVIDIA/Megatron-LM d98e8a6 megatron/training/arguments.py and 000c4ac (what was removed);
NVIDIA-NeMo/Megatron-Bridge 167ba2a docs/megatron-lm-to-megatron-bridge.md and 02f06b4
scripts/training/README.md; NVIDIA/NeMo-Framework-Launcher 056a90e
launcher_scripts/conf/training/gpt3/175b.yaml; pytorch/torchtitan 0.3.0 torchtitan/config/configs.py
and, for files, 2dfaa27 tests/integration_tests/base_config.toml (releases before 0.3 read TOML);
deepspeedai/DeepSpeed 18e7227 deepspeed/runtime/tensor_parallel/config.py, 088be89
deepspeed/runtime/constants.py and 2d991ba deepspeed/launcher/runner.py;
deepspeedai/Megatron-DeepSpeed dd16deb examples_deepspeed/MoE/ds_pretrain_gpt_1.3B_MoE128.sh;
the manuals of torchrun, Slurm's srun and sbatch, and Open MPI's mpirun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from groups.mesh import MAX_RANKS
from groups.stages.holdings import MAX_BATCH
from groups.stages.layers import MAX_LAYERS

MODEL = (
    *("layers", "vpp", "experts", "micro_batch", "global_batch", "account", "seq"),
    *("first", "last", "mtp"),
)
"""Fields of the model: no group depends on them. ``layers`` may be a layout's text."""

TRAINING = (
    *("hidden", "ffn", "heads", "kv_heads", "head_dim", "vocabulary", "top_k", "expert_ffn"),
    *("sequence_parallel", "distributed_optimizer", "zero", "flash", "bf16", "fp16"),
    *("recompute", "recompute_method", "recompute_layers", "recompute_modules", "tied"),
    *("offload", "offload_fraction", "offload_optimizer", "offload_param"),
)
"""What is said of the training and of the model's shape beyond MODEL: no group follows from it."""

SERVING = (
    *("dp_served", "dcp", "expert_parallel"),
    *("dp_attention", "served_cp", "served_ep", "moe_dp"),
)
"""What is said of a server's groups beyond a Job's sizes."""

LIMITS = {
    **dict.fromkeys(("layers", "vpp", "first", "last", "mtp", "chunk"), MAX_LAYERS),
    **dict.fromkeys(("micro_batch", "global_batch", "seq"), MAX_BATCH),
    **dict.fromkeys(("micro_tokens", "step_tokens"), MAX_BATCH**2),
}
"""The largest value of a field; of all others it is MAX_RANKS."""


def limit_of(field: str) -> int:
    return LIMITS.get(field, MAX_RANKS)


@dataclass(frozen=True)
class Row:
    """What an option or a key means.

    kind: "size" (a whole number from 1), "count" (from 0), "sizes" (several), "switch", "layout",
    "nodes" (a size or a range), "devices" (a size, or a word that leaves it to the machine), "gres"
    (Slurm's resources), "word" (one word), "off" (a switch that says no), "partition" (how
    DeepSpeed cuts layers), "degree" (a size, or -1 for what
    remains), "text" (its being there says enough). rank: of several that say the same, the lowest
    counts.
    """

    field: str
    kind: str = "size"
    speaks: str = ""  # the framework that alone has this
    rank: int = 0

    @property
    def sets(self) -> str:
        """The field of Job or of the model that it leads to."""
        return LEADS_TO.get(self.field, self.field)


AXES = ("tp", "pp", "cp", "ep")
"""Degrees that a program may have a default of; where it is not known, it is asked for."""

_AXIS = r"(?:tensor|pipeline|pipe|model|context|expert|sequence|data|cp|tp|pp|ep|dp)"
_NAMES_SIZE = re.compile(
    rf"(?:.*[_.-])?{_AXIS}[_-](?:model[_-])?(?:parallel(?:ism)?[_-]?)?(?:size|degree|dim|world[_-]size)"
    rf"|(?:.*[_.-])?{_AXIS}[_-](?:model[_-])?parallelism|tp|pp|cp|ep|tp[_-]size|pp[_-]size"
)


def names_a_size(name: str) -> bool:
    """Whether a name that no table has still looks like the size of an axis.

    >>> [names_a_size(name) for name in ("tensor_parallel_dim", "pp-size", "batch-size", "tp")]
    [True, True, False, True]
    """
    return len(name) < 80 and bool(_NAMES_SIZE.fullmatch(name.lower()))


BOTH_ENDS = "type:transformer|embedding"
"""Megatron-DeepSpeed's way to count the embedding and the loss as a layer each (BLOOM's)."""

LEADS_TO = {
    **dict.fromkeys(("single", "world", "tasks"), "nodes"),
    **dict.fromkeys(("mapping", "deepspeed", "data_first"), "framework"),
    **dict.fromkeys(("shard", "replicate"), "dp"),
    **dict.fromkeys(("embedding", "loss"), "account"),
    **{"tasks_per_node": "gpus_per_node", "chunk": "vpp", "layout": "layers"},
    **{"local_batch": "micro_batch", "accumulation": "global_batch", "dp_shard": "dp"},
    **{"micro_tokens": "micro_batch", "step_tokens": "global_batch"},
    **{"served_ep": "ep", "dcp": "cp", "expert_parallel": "ep", "dp_attention": "dp"},
    **{"dp_served": "dp", "moe_dp": "dp", "served_cp": "cp"},
}
"""Fields that only lead to others."""


def rows(speaks: str, table: str) -> dict[str, Row]:
    """Rows from lines of name, field, kind and rank."""
    found: dict[str, Row] = {}
    for cells in filter(None, map(str.split, table.splitlines())):
        name, field, kind, rank = [*cells, *("size", "0")[len(cells) - 2 :]]
        found[name] = Row(field, kind, speaks, int(rank))
    return found


def blocks(text: str) -> Iterator[tuple[dict[str, Row], tuple[str, ...]]]:
    """Rows under lines of ``[who alone has them | where they mean that]``; a dash is the top."""
    for head, table in re.findall(r"\[(.*)\]\n([^\[]*)", text):
        speaks, _, where = head.partition("|")
        yield rows(speaks.strip(), table), tuple(name.strip("-") for name in where.split())


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPTIONS = """
[megatron]
    tensor-model-parallel-size               tp
    pipeline-model-parallel-size             pp
    context-parallel-size                    cp
    expert-model-parallel-size               ep
    expert-tensor-parallel-size              etp
    hierarchical-context-parallel-sizes      levels     sizes
    hybrid-context-parallel                  hybrid     switch
    num-distributed-optimizer-instances      instances
    use-tp-pp-dp-mapping                     mapping    switch
    num-virtual-stages-per-pipeline-rank     vpp
    num-layers-per-virtual-pipeline-stage    chunk
    pipeline-model-parallel-layout           layout     layout
    decoder-first-pipeline-num-layers        first
    decoder-last-pipeline-num-layers         last
    account-for-embedding-in-pipeline-split  embedding  switch
    account-for-loss-in-pipeline-split       loss       switch
    mtp-num-layers                           mtp        count
[deepspeed]
    deepspeed                 deepspeed  switch
    deepspeed-config          deepspeed  text
    moe-expert-parallel-size  ep
    pp-partition-method       account    partition
[]
    num-layers                           layers
    num-experts                          experts
    hidden-size                          hidden
    ffn-hidden-size                      ffn
    num-attention-heads                  heads
    num-query-groups                     kv_heads
    kv-channels                          head_dim
    padded-vocab-size                    vocabulary
    moe-router-topk                      top_k
    moe-ffn-hidden-size                  expert_ffn
    untie-embeddings-and-output-weights  tied                   off
    sequence-parallel                    sequence_parallel      switch
    use-distributed-optimizer            distributed_optimizer  switch
    use-flash-attn                       flash                  switch
    zero-stage                           zero                   count
    recompute-granularity                recompute              word
    recompute-method                     recompute_method       word
    recompute-num-layers                 recompute_layers
    optimizer-cpu-offload                offload                switch
    optimizer-offload-fraction           offload_fraction       word
    bf16                                 bf16                   switch
    fp16                                 fp16                   switch
    micro-batch-size                     micro_batch
    global-batch-size                    global_batch
    seq-length                           seq
    nnodes                               nodes                  nodes
    num-nodes                            nodes
    nodes                                nodes                  nodes  1
    standalone                           single                 switch
    nproc-per-node                       gpus_per_node          devices
    num-gpus                             gpus_per_node
    num-accelerators                     gpus_per_node
    gpus-per-node                        gpus_per_node          gres  1
    gres                                 gpus_per_node          gres  1
    npernode                             gpus_per_node          size  1
    ntasks-per-node                      tasks_per_node         size  2
    ntasks                               tasks                  size  2
    world-size                           world
"""
OPTIONS = {name: row for table, _ in blocks(_OPTIONS) for name, row in table.items()}
"""Options by their name without leading dashes."""

_SHORT = """
[| slurm]
    -N       nodes  nodes  2
    --nodes  nodes  nodes  2
    -n       tasks  size  2
    -G       world  gres
    --gpus   world  gres
[| sbatch]
    -N      nodes  nodes  1
    -n      tasks  size  2
    -G      world  gres
    --gpus  world  gres
[| ray]
    --num-gpus  gpus_per_node  size  2
    --num_gpus  gpus_per_node  size  2
[| accelerate]
    --num_processes  world
    --num-processes  world
    --num_machines   nodes
    --num-machines   nodes
[megatron | bridge]
    -tp                           tp
    --tensor_model_parallel_size  tp
    -pp                           pp
    -cp                           cp
    -ep                           ep
    -et                           etp
    -vp                           vpp
[| bridge]
    -mb         micro_batch
    -gb         global_batch
    -ng         world
    --num_gpus  world
    --num-gpus  world
    -gn         gpus_per_node  gres  1
[| mpi]
    -np        world
    -n         world
    --np       world
    -N         gpus_per_node  size  1
    -npernode  gpus_per_node  size  1
    -ppn       gpus_per_node  size  1
"""
SHORT: dict[str, dict[str, Row]] = {}
for _table, (_launcher,) in blocks(_SHORT):
    SHORT.setdefault(_launcher, {}).update(_table)
"""Short options, which are a launcher's own."""

LAUNCHERS = {
    **dict.fromkeys(("sbatch", "salloc"), "sbatch"),
    **{"srun": "slurm", "ray": "ray", "accelerate": "accelerate"},
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra"), "mpi"),
    **dict.fromkeys(("torchrun", "deepspeed"), "launcher"),
    **dict.fromkeys(("docker", "podman", "singularity", "apptainer"), "container"),
}
"""Programs that start the processes of a job, and whose short options they read."""

QUIET = _names(
    """
    echo printf cat mkdir rm cp mv ln cd ls tee grep sed awk pip pip3 conda git wget curl set
    source . unset read sleep wait kill trap exit return true false ulimit module scontrol
    nvidia-smi chmod touch tar date pwd hostname export local declare env readonly shift
    """
)
"""Programs that start no job: their options say nothing."""

VARIABLE_RANK = 3
VARIABLES: dict[str, Row] = {
    **dict.fromkeys(("NNODES", "NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"), Row("nodes")),
    **dict.fromkeys(("GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS_PER_NODE"), Row("gpus_per_node")),
    **dict.fromkeys(("NGPU", "LOCAL_WORLD_SIZE", "SLURM_GPUS_PER_NODE"), Row("gpus_per_node")),
    **dict.fromkeys(("WORLD_SIZE", "SLURM_NTASKS"), Row("world")),
}
"""Variables of a script that say how big the job is, where nothing else does."""


REMOVED = {
    "model-parallel-size": "tensor-model-parallel-size",
    "batch-size": "micro-batch-size",
    "warmup": "lr-warmup-fraction",
}
"""Options of Megatron that it refuses, and what it says to use."""

NOT_DRAWN = _names(
    """
    tensor-parallel-num-weight-shards expert-tensor-parallel-num-weight-shards
    ds-sequence-parallel-size pipeline-model-parallel-split-rank encoder-tensor-model-parallel-size
    encoder-pipeline-model-parallel-size encoder-context-parallel-size sequence-parallel-size
    ulysses-degree ulysses-sequence-parallel-size zero-hpz-partition-size mics-shard-size
    eval-context-parallel-size
    """
)
"""Options and keys that change groups in ways that `Job` does not ask for."""

NO_GROUP = _names(
    """
    use-sharp fake-process-group create-all-gather-group cp-comm-type
    microbatch-group-size-per-virtual-pipeline-stage no-overlap-p2p-communication
    disable-gloo-process-groups pipeline-model-parallel-comm-backend sharp-enabled-group
    nccl-communicator-config-path high-priority-stream-groups distributed-backend
    distributed-timeout-minutes group-query-attention max-position-embeddings
    position-embedding-type rotary-base rotary-percent no-position-embedding normalization
    norm-epsilon swiglu squared-relu disable-bias-linear attention-backend attention-dropout
    hidden-dropout attention-softmax-in-fp32 make-vocab-size-divisible-by use-mcore-models
    transformer-impl spec init-method-std no-masked-softmax-fusion no-bias-gelu-fusion
    no-rope-fusion rampup-batch-size train-iters train-samples train-tokens exit-interval
    exit-duration-in-mins recompute-activations recompute-modules checkpoint-activations lr min-lr
    lr-decay-style lr-decay-iters lr-decay-samples lr-warmup-iters lr-warmup-samples
    lr-warmup-fraction lr-wsd-decay-style lr-wsd-decay-iters clip-grad weight-decay adam-beta1
    adam-beta2 adam-eps seed loss-scale initial-loss-scale hysteresis fp8-format fp8-recipe
    fp8-margin params-dtype accumulate-allreduce-grads-in-fp32 overlap-grad-reduce
    overlap-param-gather tp-comm-overlap ddp-bucket-size use-megatron-fsdp
    data-parallel-sharding-strategy use-torch-fsdp2 use-torch-optimizer-for-cpu-offload
    moe-router-load-balancing-type moe-aux-loss-coeff moe-grouped-gemm moe-token-dispatcher-type
    moe-permute-fusion moe-router-fusion moe-router-dtype moe-layer-freq
    moe-shared-expert-intermediate-size moe-router-score-function moe-router-num-groups
    moe-router-group-topk moe-expert-capacity-factor moe-flex-dispatcher-backend
    moe-router-pre-softmax moe-enable-deepep moe-router-force-load-balancing moe-z-loss-coeff
    multi-latent-attention q-lora-rank kv-lora-rank qk-head-dim v-head-dim qk-layernorm
    mtp-loss-scaling-factor data-path data-cache-path split mock-data vocab-file merge-file
    vocab-size tokenizer-type tokenizer-model num-workers dataloader-type
    no-create-attention-mask-in-dataloader train-data-path valid-data-path data-impl save load
    save-interval eval-interval eval-iters log-interval log-throughput log-params-norm
    tensorboard-dir tensorboard-log-interval tensorboard-queue-size wandb-project wandb-exp-name
    wandb-save-dir no-load-optim no-load-rng no-save-optim no-save-rng finetune ckpt-format
    async-save dist-ckpt-strictness pretrained-checkpoint timing-log-level profile
    profile-step-start profile-step-end profile-ranks manual-gc manual-gc-interval
    log-timers-to-tensorboard log-batch-size-to-tensorboard log-validation-ppl-to-tensorboard
    log-memory-to-tensorboard master-addr master-port node-rank rdzv-id rdzv-backend rdzv-endpoint
    rdzv-conf max-restarts monitor-interval tee redirects log-dir role local-addr local-ranks-filter
    start-method run-path no-python hostfile include exclude launcher launcher-args no-ssh module
    deepspeed-activation-checkpointing no-pipeline-parallel create-moe-param-group job-name
    partition account time output error exclusive mem cpus-per-task constraint qos reservation
    dependency container-image container-mounts container-workdir mpi label wait kill-on-bad-exit
    export jobid comment mail-type mail-user hint overlap open-mode signal cpu-bind nodelist requeue
    no-requeue get-user-env zero-optimization gradient-clipping gradient-accumulation-steps
    steps-per-print wall-clock-breakdown scheduler activation-checkpointing communication-data-type
    zero-allow-untested-optimizer prescale-gradients flops-profiler aio amp stage enabled
    fsdp-reshard-after-forward pipeline-parallel-schedule pipeline-parallel-layers-per-stage
    enable-async-tensor-parallel enable-sequence-parallel disable-loss-parallel
    context-parallel-rotate-method recipe mode dataset config optimizer
    """
)
"""Options and keys that are known and shape no group and no layer."""
