"""What stands around a command: other programs, containers, programs in Python, logs, remarks."""

import pytest

from formats.launch import parse
from formats.launch.training import training_of
from formats.roles.read import read_plan

SCRIPT = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py"
SIZES = "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"
WHOLE = {"nodes": 2, "gpus_per_node": 8, "tp": 4, "pp": 2}
SERVER = {"tp": 4}
LISTING = """
  context_parallel_size ........................... 2
  expert_model_parallel_size ...................... 4
  pipeline_model_parallel_size .................... 2
  tensor_model_parallel_size ...................... 4
"""
PRINTED = {"cp": 2, "ep": 4, "pp": 2, "tp": 4}
POD = """spec:
  containers:
  - name: server
    env:
    - {name: VLLM_PP_LAYER_PARTITION, value: "30,34"}
    command: [vllm, serve, Qwen/Qwen3-32B, --pipeline-parallel-size, "2"]
"""
ENGINE = """Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-32B', \
speculative_config=None, dtype=torch.bfloat16, max_seq_len=40960, tensor_parallel_size=4, \
pipeline_parallel_size=1, quantization=None, seed=0"""


def prefixed(label: str) -> str:
    return "".join(f"{label}{line}\n" for line in LISTING.splitlines())


TEXTS = {
    "env before it": (f"env NCCL_DEBUG=INFO A=1 {SCRIPT} {SIZES}", WHOLE),
    "sudo with an option": (f"sudo -E env A=1 {SCRIPT} {SIZES}", WHOLE),
    "a remark behind each line": (
        "vllm serve m  # on half a node\n--tensor-parallel-size 4   # cut\n--data-parallel-size 2",
        {"tp": 4},
    ),
    "a list of quoted words": (
        '"torchrun", "--nnodes", "2", "--nproc_per_node", "8",\n'
        '"--tensor-model-parallel-size", "4",\n"--pipeline-model-parallel-size", "2",',
        WHOLE,
    ),
    "python -c": (
        "python -c \"from vllm import LLM; LLM('m', tensor_parallel_size=4)\"",
        SERVER,
    ),
    "a program in a here-document": (
        "python3 - <<'EOF'\nfrom vllm import LLM\nLLM('m', tensor_parallel_size=4)\nEOF\n",
        SERVER,
    ),
    "the cat that showed a file": (
        f"$ cat run.sh\nsource sizes.sh\n{SCRIPT} $SIZES\n$ cat sizes.sh\nSIZES='{SIZES}'\n",
        WHOLE,
    ),
    "a remark with the file's name": (
        f"source conf/sizes.sh\n{SCRIPT} $SIZES\n\n# conf/sizes.sh:\nSIZES='{SIZES}'\n",
        WHOLE,
    ),
    "head's and tail's lines": (
        f"==> run.sh <==\n. ./sizes.sh\n{SCRIPT} $SIZES\n\n==> sizes.sh <==\nSIZES='{SIZES}'\n",
        WHOLE,
    ),
    "options of a mapping": (
        "import subprocess\nsizes = {'tensor-model-parallel-size': 4,"
        " 'pipeline-model-parallel-size': 2}\n"
        f"cmd = {SCRIPT.split()}\nfor name, size in sizes.items():\n"
        "    cmd += [f'--{name}', str(size)]\nsubprocess.run(cmd)",
        WHOLE,
    ),
    "format": (
        f"import os\nos.system('{SCRIPT} --tensor-model-parallel-size {{}} "
        "--pipeline-model-parallel-size {}'.format(4, 2))",
        WHOLE,
    ),
    "percent": (
        f"import os\nos.system('{SCRIPT} --tensor-model-parallel-size %d "
        "--pipeline-model-parallel-size %s' % (4, 2))",
        WHOLE,
    ),
    "a label of kubectl logs": (prefixed("[pod/train-worker-0/pytorch] "), PRINTED),
    "a label of Ray": (prefixed("(TrainWorker pid=1234, ip=10.0.0.3) "), PRINTED),
    "a label of a logger": (prefixed("INFO:root:"), PRINTED),
    "a server's line of options": (
        "INFO [utils.py:233] non-default args: {'model': 'm', 'tensor_parallel_size': 4, "
        "'seed': None, 'enforce_eager': True}",
        SERVER,
    ),
    "a server's line of everything": (
        "server_args=ServerArgs(model_path='m', tp_size=4, dp_size=1, quantization=None)",
        SERVER,
    ),
    "an engine's line": (ENGINE, SERVER),
    "recipes of NeMo": (
        "from nemo.collections import llm\n"
        "recipe = llm.llama3_70b.pretrain_recipe(num_nodes=2, num_gpus_per_node=8)\n"
        "recipe.trainer.strategy.tensor_model_parallel_size = 4\n"
        "recipe.trainer.strategy.pipeline_model_parallel_size = 2",
        WHOLE,
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_sizes_behind_it_are_read(name):
    text, sizes = TEXTS[name]
    parsed = parse(text)
    assert {field: parsed.values.get(field) for field in sizes} == sizes


def test_the_variables_of_a_container_count_and_the_engines_length():
    assert parse(POD).serving["served_partition"] == "30,34"
    assert parse(ENGINE).serving["served_length"] == 40960


@pytest.mark.parametrize(
    "text",
    [
        "docker run -e TP=4 image bash /w/train.sh --bf16",
        "just train TP=4",
        "python3 main.py training=gpt3/175b cluster=bcm",
        "x.py vision.tensor_model_parallel_size=8",
        # Options whose names nothing tells, and a loop that would start several jobs.
        f"import os, subprocess\ncmd = {SCRIPT.split()}\nfor name, size in sizes():\n"
        "    cmd += [f'--{name}', str(size)]\nsubprocess.run(cmd)",
        "import os\nfor tp in (2, 4):\n"
        f"    os.system(f'{SCRIPT} --tensor-model-parallel-size {{tp}}')",
    ],
)
def test_what_is_not_in_the_text_is_asked_for(text):
    assert "tp" in parse(text).asks


@pytest.mark.parametrize(
    ("frequency", "dense"),
    [("([0]*3+[1]*29)", 3), ("1", 0), ("[1]*32", 0), ("2", None), ("([0,1]*16)", None)],
)
def test_layers_with_experts_follow_the_dense_ones_or_stand_where_the_list_says(frequency, dense):
    parsed = parse(
        f"{SCRIPT} --num-layers 32 --hidden-size 64 --num-attention-heads 4 --num-experts 8 "
        f"--moe-layer-freq '{frequency}'"
    )
    assert training_of(parsed).get("dense_layers") == dense
    assert ("config" in training_of(parsed)) == (dense is None)
    assert not [item for item in parsed.problems if item.code == "unread"]


HF = "torchrun --nproc_per_node 8 run_clm.py --per_device_train_batch_size 1 "
TITAN = "[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
FOUNDRY = "max_seq_len: 2048\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 1\n"


@pytest.mark.parametrize(
    ("text", "zero"),
    [
        (HF, 0),
        (f"{HF} --fsdp 'offload full_shard auto_wrap'", 3),
        (f"{HF} --fsdp hybrid_shard_zero2", 2),
        (f"{HF} --fsdp no_shard", 0),
        ("accelerate launch --num_processes 8 --use_fsdp run.py", 3),
        ("accelerate launch --num_processes 8 --use_fsdp --fsdp_sharding_strategy 2 run.py", 2),
        (TITAN.format(8, 1), 0),
        (TITAN.format(1, 8) + 'fsdp_reshard_after_forward = "never"', 2),
        ('{"train_micro_batch_size_per_gpu": 2, "train_batch_size": 64}', 0),
        (FOUNDRY, 0),
        (f"{FOUNDRY}fsdp_config: {{sharding_strategy: HYBRID_SHARD}}", 3),
        (
            "from lightning import Trainer\nTrainer(strategy='deepspeed_stage_2_offload')",
            2,
        ),
    ],
)
def test_what_data_parallelism_keeps_is_the_frameworks_word(text, zero):
    assert training_of(parse(text))["zero"] == zero


def test_a_file_of_deepspeed_that_is_not_here_is_known_by_its_name_with_a_remark():
    parsed = parse(f"{HF} --deepspeed mine/ds_zero3.json")
    assert training_of(parsed)["zero"] == 3
    assert [item.code for item in parsed.problems] == ["unread"]
    unknown = parse(f"{HF} --deepspeed mine/ds.json")
    assert "zero" not in training_of(unknown)
    assert [item.code for item in unknown.problems] == ["unread"]


def test_a_switch_against_recomputation_is_no_silence():
    text = "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\ncutoff_len: 8\n"
    found = [
        training_of(parse(text + more)) for more in ("", "disable_gradient_checkpointing: true")
    ]
    assert [one["recompute"] for one in found] == ["full", "none"]


def test_what_only_generates_has_no_trainer_and_what_never_collects_a_batch_updates_as_they_come():
    """THUDM/slime: trainers load no model then; verl recipe/fully_async_policy: batch size 0."""
    text = "train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 --hf-checkpoint Qwen/Qwen3-8B "
    text += "--colocate --debug-rollout-only --rollout-num-gpus 16 --rollout-num-gpus-per-engine 2"
    plan = read_plan(f"ray job submit -- python3 {text}").plan
    assert [(role.name, role.layout.world_size) for role in plan.roles] == [("rollout", 16)]
    text = """python3 -m recipe.fully_async_policy.fully_async_main data.train_batch_size=0 \\
    algorithm.adv_estimator=grpo actor_rollout_ref.hybrid_engine=False \\
    actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.actor.strategy=fsdp2 \\
    actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.rollout.n=8 \\
    async_training.require_batches=4 actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    trainer.nnodes=1 trainer.n_gpus_per_node=4 rollout.nnodes=1 rollout.n_gpus_per_node=4"""
    read = read_plan(text)
    assert read.role("actor").values["global_batch"] == 32 * 4 * 8


ACCELERATE = {
    "mixed_precision": "bf16",
    "num_machines": "2",
    "num_processes": "16",
    "fsdp_activation_checkpointing": "true",
    "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "fsdp_backward_prefetch": "BACKWARD_PRE",
    "fsdp_cpu_ram_efficient_loading": "true",
    "fsdp_min_num_params": "1000",
    "fsdp_offload_params": "false",
    "fsdp_state_dict_type": "SHARDED_STATE_DICT",
    "fsdp_transformer_layer_cls_to_wrap": "LlamaDecoderLayer",
    "fsdp_use_orig_params": "true",
    "fsdp_version": "2",
    "parallelism_config_dp_replicate_size": "2",
    "parallelism_config_dp_shard_size": "4",
    "parallelism_config_tp_size": "2",
}
"""What `accelerate config` writes and `accelerate launch` takes (accelerate 16cb6eb)."""


def test_accelerates_file_and_options_are_the_same_words():
    """And none of them is told as an unread word about sharding."""
    sections = {"fsdp": "fsdp_config", "parallelism": "parallelism_config", "": ""}
    file = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"
    for prefix, section in sections.items():
        names = [
            n for n in ACCELERATE if n.split("_")[0] == prefix or (not prefix and n[0] in "mn")
        ]
        file += f"{section}:\n" if section else ""
        file += "".join(f"{'  ' * bool(section)}{n}: {ACCELERATE[n]}\n" for n in names)
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in ACCELERATE.items())
    command = f"accelerate launch --use_fsdp {options} train.py"
    for read in (parse(file), parse(command)):
        assert not read.unresolved
        assert not read.problems
        assert read.job().layout().mesh.size("tp") == 2
        assert (read.job().nodes, read.job().instances) == (2, 2)
        assert {"engine": "fsdp2", "recompute": "full"}.items() <= training_of(read).items()


def test_a_model_that_fsdp_does_not_cut_is_told():
    read = parse("accelerate launch --num_processes 8 --fsdp_auto_wrap_policy NO_WRAP train.py")
    assert [item.code for item in read.unresolved] == ["unread"]
