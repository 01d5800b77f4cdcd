"""The files and commands of many frameworks: what each says, and what it leaves to be asked for.

The texts are written here after the schemas that formats/launch/tables/schemas.toml cites.
"""

from __future__ import annotations

import random
import warnings

import pytest
from launch_answers import check_law

from formats.launch import parse
from formats.launch.schemas import SCHEMAS
from formats.launch.training import training_of
from groups.errors import LayoutError
from texts.sentences import note_text

pytestmark = pytest.mark.usefixtures("nothing_is_executed")

VERL = """
NNODES=4
python3 -m verl.trainer.main_ppo data.train_batch_size=512 \\
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 \\
  actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\
  actor_rollout_ref.ref.megatron.pipeline_model_parallel_size=1 \\
  actor_rollout_ref.rollout.tensor_model_parallel_size=8 \\
  trainer.nnodes=2 trainer.n_gpus_per_node=8
"""

NEMO_RL = """
policy:
  train_global_batch_size: 64
  train_micro_batch_size: 2
  dtensor_cfg: {enabled: true, tensor_parallel_size: 2, context_parallel_size: 1}
  megatron_cfg: {enabled: false, tensor_model_parallel_size: 4, pipeline_model_parallel_size: 8}
cluster: {num_nodes: 2, gpus_per_node: 8}
"""

RECIPE = """
from somewhere import base
TP = 8
def small():
    cfg = base()
    cfg.model.tensor_model_parallel_size = 1
    cfg.train.global_batch_size = 8 * 4
    return cfg
def large(pp: int = 4):
    cfg = small()
    cfg.model.tensor_model_parallel_size = TP
    cfg.model.pipeline_model_parallel_size = pp
    return cfg
"""

TITAN = """
import torchtitan
def debug():
    return Trainer.Config(
        training=TrainingConfig(local_batch_size=2, seq_len=2048),
        parallelism=ParallelismConfig(tensor_parallel_degree=2, pipeline_parallel_degree=4),
    )
"""

OPENRLHF = """
read -r -d '' training_commands <<EOF
openrlhf.cli.train_sft \\
   --data.max_len 2048 --train.batch_size 256 --train.micro_batch_size 2 \\
   --model.model_name_or_path meta-llama/Meta-Llama-3-8B \\
   --ds.ring_attn_size 4 --ds.tensor_parallel_size 2 \\
   --model.gradient_checkpointing_enable
EOF
deepspeed --num_gpus 8 --module $training_commands
"""

PYTORCHJOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: nvcr.io/nvidia/pytorch:24.03-py3
              resources: {limits: {nvidia.com/gpu: 4}}
              command: [/bin/bash, -c]
              args:
                - |
                  TP=8
                  torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \\
                    --tensor-model-parallel-size $TP --context-parallel-size two
"""

SERVED = """
kind: Deployment
spec:
  template:
    spec:
      containers:
      - image: vllm/vllm-openai:v0.8.5
        args: ["--model", "meta-llama/Llama-3.1-70B-Instruct", "--tensor-parallel-size", "8"]
        resources:
          limits:
            nvidia.com/gpu: "4"
"""

SWIFT = """
NPROC_PER_NODE=8 \\
megatron sft \\
    --model Qwen/Qwen3-30B-A3B \\
    --tensor_model_parallel_size 2 --pipeline_model_parallel_size 2 \\
    --expert_model_parallel_size 4 \\
    --max_length 8192
"""

TEXTS: dict[str, tuple[str, str, dict[str, object]]] = {
    "verl": (
        VERL,
        "verl",
        {"nodes": 2, "gpus_per_node": 8, "tp": 4, "pp": 2, "micro_batch": 2, "global_batch": 512},
    ),
    "FlagScale": (
        "system:\n  tensor_model_parallel_size: 4\n  decoder_first_pipeline_num_layers: 13\n"
        "  pipeline_model_parallel_size: 4\nmodel: {num_layers: 64, seq_length: 4096}",
        "flagscale",
        {"tp": 4, "pp": 4, "layers": 64, "first": 13, "seq": 4096},
    ),
    "ChatLearn": (
        "models:\n  policy_trainer: {num_gpu: 16, tensor_model_parallel_size: 4}\n"
        "  policy: {num_gpu: 16, tensor_parallel_size: 8}",
        "chatlearn",
        {"tp": 4, "framework": "megatron"},
    ),
    "PaddleNLP": (
        "python -m paddle.distributed.launch --nnodes 2 --devices 0,1,2,3 run.py "
        "--tensor_parallel_degree 4 --sharding stage1 --sharding_parallel_degree 2",
        "paddle-fleet",
        {"nodes": 2, "gpus_per_node": 4, "tp": 4},
    ),
    "ColossalAI": (
        "colossalai run --nproc_per_node 8 --host a,b benchmark.py --plugin 3d --tp 4 --pp 2",
        "colossalai",
        {"nodes": 2, "gpus_per_node": 8, "tp": 4, "pp": 2},
    ),
    "Lightning": (
        "import lightning as L\ntrainer = L.Trainer(devices=8, num_nodes=2, strategy='ddp')",
        "lightning",
        {"nodes": 2, "gpus_per_node": 8, "framework": "device-mesh"},
    ),
    "Hugging Face Trainer": (
        "deepspeed --num_gpus 8 run.py --model_name_or_path a/b --gradient_checkpointing False "
        "--per_device_train_batch_size 2",
        "hf-trainer",
        {"gpus_per_node": 8, "micro_batch": 2, "framework": "device-mesh"},
    ),
    "verl on FSDP": (
        "python -m verl.trainer.main_ppo trainer.nnodes=1 trainer.n_gpus_per_node=8\\\n"
        "  actor_rollout_ref.rollout.tensor_model_parallel_size=2",
        "verl",
        {"nodes": 1, "gpus_per_node": 8, "framework": "device-mesh"},
    ),
    "NeMo-RL, the back end that is on": (
        NEMO_RL,
        "nemo-rl",
        {"nodes": 2, "gpus_per_node": 8, "tp": 2, "cp": 1, "micro_batch": 2, "global_batch": 64},
    ),
    "slime": (
        "ray start --head --num-gpus 4\n"
        "python3 train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 "
        "--tensor-model-parallel-size 2 --sequence-parallel",
        "slime",
        {"nodes": 2, "gpus_per_node": 8, "tp": 2},
    ),
    "ROLL": (
        "num_gpus_per_node: 8\nactor_infer:\n  strategy_args: {strategy_name: vllm, "
        "strategy_config: {tensor_parallel_size: 4}}\nactor_train:\n  training_args:\n"
        "    per_device_train_batch_size: 2\n  strategy_args:\n    strategy_name: megatron_train\n"
        "    strategy_config: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2}\n",
        "roll",
        {"gpus_per_node": 8, "tp": 2, "pp": 2, "micro_batch": 2},
    ),
    "gpt-neox": (
        '{\n  # sizes\n  "pipe-parallel-size": 0,\n  "model-parallel-size": 2,\n'
        '  "train_micro_batch_size_per_gpu": 4,\n}',
        "gpt-neox",
        {"tp": 2, "pp": 1, "micro_batch": 4},
    ),
    "nanotron": (
        "parallelism: {dp: 2, tp: 4, pp: 2, pp_engine: 1f1b}\n"
        "tokens: {micro_batch_size: 3, batch_accumulation_per_replica: 5, sequence_length: 128}",
        "nanotron",
        {"tp": 4, "pp": 2, "micro_batch": 3, "global_batch": 30, "seq": 128},
    ),
    "Primus": (
        "modules:\n  pre_trainer:\n    framework: megatron\n    overrides:\n"
        "      tensor_model_parallel_size: 2\n      pipeline_model_parallel_size: ${PP:1}\n",
        "primus",
        {"tp": 2},
    ),
    "OpenRLHF": (
        OPENRLHF,
        "openrlhf",
        {"gpus_per_node": 8, "tp": 2, "cp": 4, "micro_batch": 2, "global_batch": 256, "seq": 2048},
    ),
    "OpenRLHF with its rollout": (
        "python3 -m openrlhf.cli.train_ppo_ray --actor.num_nodes 2 --actor.num_gpus_per_node 4 "
        "--vllm.tensor_parallel_size 2 --critic.num_gpus_per_node 8",
        "openrlhf",
        {"nodes": 2, "gpus_per_node": 4},
    ),
    "a pod of vLLM": (SERVED, "vllm", {"nodes": 2, "gpus_per_node": 4, "tp": 8}),
    "a job of Ray": (
        "kind: RayJob\nspec:\n  entrypoint: python -m sglang.launch_server --model-path m --tp 8\n",
        "sglang",
        {"tp": 8},
    ),
    "ms-swift on Megatron": (
        SWIFT,
        "megatron-swift",
        {"gpus_per_node": 8, "tp": 2, "pp": 2, "ep": 4, "seq": 8192},
    ),
    "ms-swift": (
        "NNODES=2 NPROC_PER_NODE=8 swift sft --deepspeed zero3 --sequence_parallel_size 4 "
        "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_length 4096",
        "ms-swift",
        {"nodes": 2, "gpus_per_node": 8, "cp": 4, "seq": 4096, "framework": "device-mesh"},
    ),
    "ms-swift-pt": (
        "NNODES=2 NPROC_PER_NODE=8 swift pt --sequence_parallel_size 4 --max_length 4096",
        "ms-swift-pt",
        {"nodes": 2, "gpus_per_node": 8, "cp": 4, "seq": 4096, "framework": "device-mesh"},
    ),
    "torchtune": (
        "model: {_component_: torchtune.models.llama3.llama3_70b}\ntensor_parallel_dim: 8\n"
        "batch_size: 4\n",
        "torchtune",
        {"tp": 8, "micro_batch": 4},
    ),
    "axolotl": (
        "base_model: m\ndatasets: [{path: d}]\ntensor_parallel_size: 4\ndp_shard_size: 2\n"
        "micro_batch_size: 1",
        "axolotl",
        {"tp": 4, "micro_batch": 1},
    ),
    "LLaMA-Factory": (
        "stage: sft\nfinetuning_type: lora\nper_device_train_batch_size: 2\ncutoff_len: 2048",
        "llama-factory",
        {"micro_batch": 2, "seq": 2048},
    ),
    "Accelerate": (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 2\n"
        "num_processes: 16\nparallelism_config: {parallelism_config_tp_size: 4}",
        "accelerate",
        {"nodes": 2, "gpus_per_node": 8, "tp": 4},
    ),
    "llm-foundry": (
        "max_seq_len: 2048\ndevice_train_microbatch_size: 2\nglobal_train_batch_size: 64\n"
        "fsdp_config: {sharding_strategy: FULL_SHARD}",
        "llm-foundry",
        {"seq": 2048, "micro_batch": 2, "global_batch": 64},
    ),
    "NeMo Automodel": (
        "step_scheduler: {local_batch_size: 2, global_batch_size: 64}\n"
        "distributed: {strategy: fsdp2, tp_size: 2, ep_size: 4}",
        "nemo-automodel",
        {"tp": 2, "ep": 4, "micro_batch": 2, "global_batch": 64},
    ),
    "torchtitan's recipe": (
        TITAN,
        "torchtitan",
        {"tp": 2, "pp": 4, "seq": 2048},
    ),
    "Megatron-Bridge's own options": (
        "python scripts/training/run_recipe.py -tp 4 -pp 2 -mb 1 -gb 64",
        "megatron",
        {"tp": 4, "pp": 2, "micro_batch": 1, "global_batch": 64},
    ),
    "vLLM": (
        "vllm serve some/model -tp 4 --pipeline-parallel-size 2 --data-parallel-size 2",
        "vllm",
        {"tp": 4, "pp": 2},
    ),
    "SGLang": (
        "python3 -m sglang.launch_server --model-path m --tp-size 8 --nnodes 2 --node-rank 0",
        "sglang",
        {"nodes": 2, "gpus_per_node": 4, "tp": 8},
    ),
    "TensorRT-LLM": (
        "trtllm-serve m --tp_size 8 --ep_size 4 --gpus_per_node 4",
        "tensorrt-llm",
        {"nodes": 2, "gpus_per_node": 4, "tp": 8, "ep": 4},
    ),
    "a script of DeepSpeed": (
        "deepspeed --num_nodes 2 --num_gpus 4 train.py --deepspeed --model-parallel-size 2",
        "deepspeed",
        {"nodes": 2, "gpus_per_node": 4, "tp": 2},
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_framework_is_read_by_its_own_table(name):
    text, framework, values = TEXTS[name]
    parsed = parse(text)
    check_law(parsed)
    assert parsed.framework is not None
    assert parsed.framework.name == framework
    assert {key: parsed.values.get(key) for key in values} == values
    sizes = {"tp", "pp", "cp", "ep", "nodes", "gpus_per_node"}
    assert sizes & set(parsed.values) <= set(values) | {"framework"}


def test_accelerate_hands_a_job_to_megatron_where_its_type_says_so():
    text = "compute_environment: x\nnum_processes: 8\ndistributed_type: "
    jobs = [parse(text + kind).framework.job for kind in ("MEGATRON_LM", "FSDP")]
    assert jobs == ["megatron", "device-mesh"]


def test_what_a_framework_does_where_its_text_is_silent_is_said_to_be_assumed():
    """modelscope/ms-swift 3602360 swift/megatron/arguments/megatron_args.py: experts are not cut
    by tp, so eight GPUs hold tp 2 x pp 2 with ep 4; Megatron itself would need sixteen."""
    parsed = parse(SWIFT)
    assumed = {"cp": 1, "etp": 1, "nodes": 1, "micro_batch": 1, "global_batch": 16}
    trained = {"recompute": "selective", "zero": 1, "attention": "flash"}
    trained |= {"sequence_parallel": False}
    assert parsed.assumed == assumed | trained
    facts = [note.facts for note in parsed.missing]
    assert {"field": "etp", "assumed": 1} in facts
    assert {"field": "recompute", "assumed": "selective"} in facts
    said = "--recompute_granularity none --use_distributed_optimizer false --micro_batch_size 2"
    parsed = parse(f"{SWIFT.rstrip()} {said}")
    del assumed["micro_batch"]
    assert parsed.assumed == assumed | {"attention": "flash", "sequence_parallel": False}
    assert parse("megatron sft --tensor_model_parallel_size 4").assumed.get("etp") is None
    assert "etp" not in parse(f"{SWIFT.rstrip()} --expert_tensor_parallel_size 2").assumed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("swift sft --deepspeed zero3_offload", {"zero": 3, "offload": "parameters"}),
        ("swift sft --deepspeed mine/zero3.json", {"zero": 3}),  # with a remark
        ("finetuning_type: full\ndeepspeed: examples/deepspeed/ds_z2_config.json", {"zero": 2}),
        ("base_model: m\nsequence_len: 8\ndeepspeed: deepspeed_configs/zero1.json", {"zero": 1}),
        ("train.py --actor-num-nodes 2 --tensor-model-parallel-size 2", {"zero": 1}),
    ],
)
def test_zero_has_the_stage_of_a_file_that_the_framework_brings_along(text, said):
    found = training_of(parse(text))
    assert {name: found[name] for name in ("zero", "offload") if name in found} == said


def test_the_sizes_of_a_rollout_engine_are_none_of_the_trainers():
    """modelscope/ms-swift 3602360 examples/train/grpo/, THUDM/slime 624b824 scripts/."""
    for option in ("--vllm_tensor_parallel_size 4", "--sglang-dp-size 8"):
        parsed = parse(f"NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo {option}")
        assert (parsed.asks, parsed.assumed["tp"]) == ((), 1)
        assert [item.code for item in parsed.ignored] == ["unknown", "not-drawn"]


def test_one_process_a_node_that_mpirun_starts_says_nothing_of_its_gpus():
    """As awslabs' sbatch files print the names of their nodes before srun starts the job."""
    text = "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node 8\nmpirun -N {} bash -c 'hostname'"
    assert parse(text.format(1)).values["gpus_per_node"] == 8
    assert parse("mpirun -np 16 -npernode 4 x.py").values["gpus_per_node"] == 4


def test_openrlhf_trains_with_zero_2_in_bf16_where_its_command_is_silent():
    parsed = parse(OPENRLHF)
    assert (parsed.assumed["zero"], parsed.assumed["precision"]) == (2, "bf16")
    assert parsed.training["recompute_whole"] is True
    parsed = parse(OPENRLHF.replace("--ds.ring", "--ds.zero_stage 3 --ds.lora.rank 8 --ds.ring"))
    assert ("zero" in parsed.assumed, parsed.training["zero"]) == (False, 3)
    assert training_of(parsed)["lora_rank"] == 8


def test_a_trainers_batch_of_a_device_makes_the_global_batch_of_its_replicas():
    parsed = parse(TEXTS["ms-swift"][0])
    assert (parsed.assumed["micro_batch"], parsed.assumed["global_batch"]) == (2, 2 * 4 * 16 // 4)
    text = "base_model: m\ndatasets: []\nmicro_batch_size: 2\ngradient_accumulation_steps: 8"
    assert "global_batch" not in parse(text).assumed  # nothing says on how many GPUs


ADAPTED = [
    ("megatron sft --tensor_model_parallel_size 2 --tuner_type lora", (8, "all-linear", None)),
    ("swift sft --train_type full --model m", None),
    ("swift sft --model m", (8, "all-linear", None)),
    ("swift pt --model m", None),
    (
        "swift sft --model m --train_type lora --lora_rank 16 --target_modules q_proj v_proj "
        "--quant_bits 4 --quant_method bnb",
        (16, "q_proj,v_proj", "nf4"),
    ),
    ("base_model: m\nmicro_batch_size: 1\nadapter: qlora\nlora_r: 32", (32, "all-linear", "nf4")),
    (
        "base_model: m\nmicro_batch_size: 1\nadapter: lora\nload_in_8bit: true\nlora_r: 32\n"
        "lora_target_modules:\n  - q_proj\n  - down_proj",
        (32, "q_proj,down_proj", "int8"),
    ),
    ("base_model: m\nmicro_batch_size: 1\nadapter:\nlora_r:", None),
    ("base_model: m\nmicro_batch_size: 1\nlora_r: 32", None),
    (
        "model_name_or_path: m\ncutoff_len: 2048\nfinetuning_type: lora\nlora_target: all\n"
        "quantization_bit: 4",
        (8, "all-linear", "nf4"),
    ),
    ("model_name_or_path: m\ncutoff_len: 2048\nfinetuning_type: full\nlora_rank: 8", None),
    (
        "python -m verl.trainer.main_ppo actor_rollout_ref.model.lora_rank=32 "
        "actor_rollout_ref.model.target_modules=all-linear",
        (32, "all-linear", None),
    ),
    ("python -m verl.trainer.main_ppo actor_rollout_ref.model.lora_rank=0", None),
    (
        "torchrun --nproc-per-node 8 sft.py --use_peft --lora_r 16 --load_in_4bit",
        (16, "all-linear", "nf4"),
    ),
]


@pytest.mark.parametrize(("text", "adapters"), ADAPTED)
def test_adapters_of_a_text_are_those_that_are_trained(text, adapters):
    parsed = parse(text)
    found = training_of(parsed)
    if adapters is None:
        assert not found.get("lora_rank")
    else:
        assert tuple(map(found.get, ("lora_rank", "lora_targets", "frozen"))) == adapters
    assert not any(item.code == "part-trained" for item in parsed.unresolved)


@pytest.mark.parametrize(
    "text",
    [
        "model_name_or_path: m\ncutoff_len: 2048\nfinetuning_type: freeze",
        "python3 scripts/run_recipe.py --peft_scheme lora",
        "swift sft --model m --train_type lora --target_modules '^(?!.*visual).*(q_proj)$'",
    ],
)
def test_a_text_that_trains_a_part_in_another_way_is_told_that_all_weights_are_counted(text):
    parsed = parse(text)
    assert [item.code for item in parsed.unresolved] == ["part-trained"]
    assert not training_of(parsed).get("lora_rank")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_script_of_a_pod_is_read_where_it_stands(newline):
    parsed = parse(PYTORCHJOB.replace("\n", newline))
    check_law(parsed)
    assert {"nodes": 2, "gpus_per_node": 8, "tp": 8}.items() <= parsed.values.items()
    places = {item.name: parsed.text[item.start : item.end] for item in parsed.problems}
    limit = "spec.pytorchReplicaSpecs.Worker.template.spec.containers.0.resources.limits."
    assert places == {
        "--context-parallel-size": "two",
        f"{limit}nvidia.com/gpu": "nvidia.com/gpu: 4",
    }


def test_every_table_is_reached():
    assert {*SCHEMAS} <= {framework for _, framework, _ in TEXTS.values()}


def test_a_role_may_be_chosen():
    found = parse(VERL)
    assert (found.run, [run.name for run in found.runs]) == (
        "actor",
        ["actor", "reference", "rollout"],
    )
    assert parse(VERL, "rollout").values["tp"] == 8


def test_nemo_rl_asks_where_the_file_it_inherits_from_decides():
    text = "defaults: base.yaml\n" + NEMO_RL.replace("enabled: true, ", "").replace(
        "enabled: false, ", ""
    )
    parsed = parse(text)
    assert not {"tp", "pp", "cp", "ep"} & set(parsed.values)
    assert parsed.asks == ("tp", "pp", "cp", "ep")


# -- nothing is what is left over ----------------------------------------------------------------

OPEN = {
    "no framework": ("torchrun --nnodes 2 --nproc-per-node 8 train.py", ("tp", "pp", "cp", "ep")),
    "another framework's size": (
        "torchrun train.py --tensor_parallel_degree_of_mine 2 --my-tensor-parallel-size 4",
        ("tp", "pp", "cp", "ep", "nodes", "gpus_per_node"),
    ),
    "a file that is taken in": (
        "source CONFIG.sh\ntorchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py "
        "--tensor-model-parallel-size 4",
        ("pp", "cp", "ep"),
    ),
    "a file that the program reads": (
        "llamafactory-cli train llama.yaml cutoff_len=2048",
        ("tp", "pp", "cp", "nodes", "gpus_per_node"),
    ),
    "a variable from elsewhere": (
        "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size $TP",
        ("tp", "nodes"),
    ),
    "a file that is inherited": (
        "modules: {pre_trainer: {config: base.yaml, overrides: {tensor_model_parallel_size: 2}}}",
        ("pp", "cp", "ep", "nodes", "gpus_per_node"),
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_nobody_says_is_asked_for_at_once(name):
    text, asks = OPEN[name]
    parsed = parse(text)
    check_law(parsed)
    assert parsed.asks == asks
    with pytest.raises(LayoutError) as refusal:
        parsed.job()
    assert refusal.value.facts["fields"] == ", ".join(asks)


MEGATRONS = [
    "torchrun --nproc_per_node 8 pretrain_t5.py",
    "torchrun --nproc_per_node 8 /opt/Megatron-LM/pretrain_gpt.py --num-layers 12 --bf16",
    "python3 -m torch.distributed.run --nproc-per-node=8 pretrain_mamba.py --micro-batch-size 4",
    "python -m torch.distributed.launch --nproc_per_node 8 pretrain_bert.py --data-path $DATA",
]


@pytest.mark.parametrize("text", MEGATRONS)
def test_a_program_of_megatron_has_sizes_of_1_where_its_command_is_silent(text):
    parsed = parse(text)
    check_law(parsed)
    ones = dict.fromkeys(("tp", "pp", "cp", "ep"), 1)
    assert (parsed.asks, parsed.framework.name, parsed.values["framework"]) == (
        *((), "megatron"),
        "megatron",
    )
    assert {axis: parsed.assumed[axis] for axis in ones} == ones
    assert str(parsed.job().layout().mesh) == "tp1-cp1-dp8-pp1"
    (note,) = (note for note in parsed.missing if note.code == "megatron-program")
    assert note.facts["name"] in text
    assert [note_text(note, language)[-2:] for language in ("en", "zh")] == ["1.", "1。"]


def test_a_program_of_megatron_says_no_sizes_that_others_may_say():
    """Of options that are kept elsewhere nothing is known, and other frameworks speak first."""
    axes = {"tp", "pp", "cp", "ep"}
    for options in ("$MEGATRON_ARGS", "--config-file model.yaml"):
        assert axes <= {*parse(f"torchrun --nproc_per_node 8 pretrain_gpt.py {options}").asks}
    deepspeed = parse("deepspeed --num_gpus 8 pretrain_gpt.py --deepspeed --zero-stage 1")
    assert deepspeed.framework.name == "deepspeed"
    assert parse("cp pretrain_gpt.py there").framework is None


def test_a_product_is_not_the_gpus_of_a_node():
    text = "NNODES=2\nNGPU=$((NNODES * 8))\ntrain.py --tensor-model-parallel-size 2"
    assert "gpus_per_node" not in parse(text).values
    assert parse(text.replace("$((NNODES * 8))", "4")).values["gpus_per_node"] == 4


def test_a_text_of_no_framework_says_so():
    parsed = parse("hello: world\nlist: [1, 2]\n")
    assert (parsed.framework, parsed.missing[0].code) == (None, "unknown-framework")
    assert parsed.missing[0].facts == {"form": "yaml"}


def test_a_programs_own_files_are_no_open_question():
    text = f"{VERL.strip()} --config-name={{}} critic.megatron.tensor_model_parallel_size=2"
    own, other = (parse(text.format(name)) for name in ("ppo_megatron_trainer", "mine"))
    assert (own.asks, other.asks) == ((), ("cp", "ep"))


def test_scripts_that_prepare_the_machine_are_no_open_question():
    text = "source ~/venv/bin/activate\ntorchrun pretrain.py --tensor-model-parallel-size 2"
    assert parse(text).asks == ()


def test_a_helper_of_one_node_does_not_beat_the_job():
    text = "#SBATCH --nodes=4\nsrun -N 1 hostname\nsrun train.py --tensor-model-parallel-size 2"
    assert parse(text).values["nodes"] == 4


# -- several runs --------------------------------------------------------------------------------

TWICE = (
    "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 4\n"
    "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 8 --num-layers 4\n"
)


def test_several_runs_are_a_choice():
    parsed = parse(TWICE)
    assert [run.values["tp"] for run in parsed.runs] == [2, 8]
    assert "tp" in parsed.asks
    assert parsed.values.keys() & {"tp", "layers", "gpus_per_node"} == {"layers", "gpus_per_node"}
    for run in parsed.runs:
        chosen = parse(TWICE, run.name)
        assert (chosen.run, chosen.values["tp"], chosen.asks) == (run.name, run.values["tp"], ())


def test_a_recipe_takes_over_what_another_of_its_file_says():
    parsed = parse(RECIPE)
    assert [run.name for run in parsed.runs] == ["small", "large"]
    assert not {"tp", "pp"} & set(parsed.values)
    large = parse(RECIPE, "large")
    assert (large.values["tp"], large.values["pp"], large.values["global_batch"]) == (8, 4, 32)
    assert "base" in [item.name for item in large.unresolved]
    assert "cp" in large.asks  # base() may set it


STATEMENTS = [
    ("cfg.model.num_layers = 4", {"layers": 4}),
    ("x(model={'num_layers': 4, **a}, n='é'); cfg.data.seq_length = 2", {"layers": 4, "seq": 2}),
    ("with f():\n        cfg.model.num_layers = 4", {"layers": 4}),
    ("cfg.model.num_layers = n", {"layers": 6}),
    ("cfg.model.num_layers = keyword", {"layers": 7}),
    ("cfg.model.num_layers = (n - 2) * 9 // 4", {"layers": 9}),
    ("cfg.train.global_batch_size = -1", {}),
    ("cfg.model.hybrid_context_parallel = True", {"hybrid": True}),
    ("cfg.model.num_layers = None", {}),
    ("cfg.model.hierarchical_context_parallel_sizes = [2, 4]", {"levels": (2, 4)}),
    ("return f(cfg)", {}),
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("statement", "values"), STATEMENTS)
def test_a_statement_of_a_recipe(statement, values, end):
    whole = f"import a\ndef f(n=6, /, m=5, *, keyword=7, o):\n    {statement}\n"
    text = whole.replace("\n", end)
    parsed = parse(text)
    check_law(parsed)
    assert {name: value for name, value in parsed.values.items() if name != "framework"} == values
    last = [text[item.start : item.end] for item in parsed.understood][-1:]
    assert all(statement.rstrip("]").endswith(shown) for shown in last)


OPEN_STATEMENTS = {
    "if x:\n        cfg.model.num_layers = 4": ("decided-by-condition", "4"),
    "if x:\n        pass\n    else:\n        cfg.model.num_layers = 4": (
        "decided-by-condition",
        "4",
    ),
    "for x in y:\n        cfg.model.num_layers = 4": ("decided-by-condition", "4"),
    "cfg.model.num_layers = args.layers": ("size-unresolved", "args.layers"),
    "cfg.model.num_layers = layers(args)": ("size-unresolved", "layers(args)"),
    "cfg.model.num_layers = layers": ("size-unresolved", "layers"),
    "layers = layers\n    cfg.model.num_layers = layers": ("size-unresolved", "layers"),
    "cfg.model.num_layers = 4 // 0": ("size-unresolved", "4 // 0"),
}


@pytest.mark.parametrize("text", OPEN_STATEMENTS)
def test_what_a_recipe_works_out_elsewhere_is_open(text):
    whole = f"import a\ndef f():\n    {text}\n"
    parsed = parse(whole)
    check_law(parsed)
    (item,) = [item for item in parsed.unresolved if item.sets == "layers"]
    assert (item.code, whole[item.start : item.end].split(" = ")[-1]) == OPEN_STATEMENTS[text]


def test_a_recipe_that_calls_itself_takes_over_nothing():
    parsed = parse("import a\ndef f():\n    f()\n    cfg = f()\n    cfg.model.num_layers = 4\n")
    assert (parsed.values["layers"], parsed.unresolved) == (4, ())


# -- training ------------------------------------------------------------------------------------


def test_what_is_said_of_the_training_is_typed():
    text = (
        "pretrain_gpt.py --tensor-model-parallel-size 2 --hidden-size 4096 --ffn-hidden-size 11008 "
        "--num-attention-heads 32 --num-query-groups 8 --sequence-parallel --bf16 "
        "--use-distributed-optimizer --recompute-granularity full --recompute-method uniform "
        "--recompute-num-layers 2 --untie-embeddings-and-output-weights --seq-length 4096"
    )
    parsed = parse(text)
    assert parsed.training == {
        "hidden": 4096,
        "ffn": 11008,
        "heads": 32,
        "kv_heads": 8,
        "sequence_parallel": True,
        "distributed_optimizer": True,
        "bf16": True,
        "recompute": "full",
        "recompute_method": "uniform",
        "recompute_layers": 2,
        "tied": False,
    }
    assert parsed.values["seq"] == 4096


SAYS = {
    "x.py --disable-bias-linear --add-qkv-bias": {"linear_biases": False, "qkv_biases": True},
    "disable-bias-linear: false\n--disable-bias-linear: false": {"linear_biases": True},
    '{"pipe-parallel-size": 1, "no-weight-tying": false}': {"tied": True},
    '{"pipe-parallel-size": 1, "no-weight-tying": true}': {"tied": False},
    "x.py --recompute-modules core_attn moe --swiglu": {
        **{"recompute_modules": "core_attn moe", "gated": True},
    },
    "model: {recompute_modules: [mlp, moe]}": {"recompute_modules": "mlp moe"},
}


@pytest.mark.parametrize("text", SAYS)
def test_switches_that_say_no_and_lists_of_words(text):
    assert parse(text).training == SAYS[text]


# -- whatever is done to them --------------------------------------------------------------------


def test_mutated_files_are_answered():
    """1,000 texts with pieces cut out, doubled, moved or replaced: each has an answer."""
    chance = random.Random(17)
    texts = [text for text, _, _ in TEXTS.values()] + [RECIPE, TWICE]
    signs = "\t\0'\"${}[]():=\\\n#-<|&*!@ é"
    for _ in range(1000):
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 6)):
            low, high = sorted(chance.randint(0, len(text)) for _ in "ab")
            piece = chance.choice(
                ("", text[low:high] * 2, chance.choice(signs), chance.choice(texts)[:40])
            )
            text = text[:low] + piece + text[min(high, low + 30) :]
        check_law(parse(text))


def test_python_warns_nobody_of_what_was_pasted():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse("import torch\nsize = 0or 1\npath = '\\d'\n" + RECIPE)


# -- several runs, several roles -----------------------------------------------------------------


def test_the_roles_of_a_job_are_a_choice():
    """verl: the actor is shown; the reference follows it; the rollout is a server of its own."""
    found = {role: parse(VERL, role) for role in ("", "actor", "reference", "rollout")}
    assert [run.name for run in found[""].runs] == ["actor", "reference", "rollout"]
    sizes = {role: (one.run, one.values["tp"], one.values.get("pp")) for role, one in found.items()}
    assert sizes == {
        "": ("actor", 4, 2),
        "actor": ("actor", 4, 2),
        "reference": ("reference", 4, 1),
        "rollout": ("rollout", 8, None),
    }
    assert found["rollout"].framework.job == "vllm"
    assert found["rollout"].values["nodes"] == 2


def test_a_back_end_that_is_off_can_still_be_looked_at():
    assert parse(NEMO_RL).run == "dtensor"
    other = parse(NEMO_RL, "megatron")
    assert (other.values["tp"], other.values["pp"], other.framework.job) == (4, 8, "megatron")


def test_an_actor_on_fsdp_stands_beside_its_rollout():
    text = (
        "python -m verl.trainer.main_ppo trainer.nnodes=1 trainer.n_gpus_per_node=8\\\n"
        "  actor_rollout_ref.rollout.tensor_model_parallel_size=2"
    )
    assert [run.name for run in parse(text).runs] == ["actor", "rollout"]
    assert parse(text).framework.job == "device-mesh"
    assert parse(text, "rollout").values["tp"] == 2


def test_a_run_that_is_not_there_is_refused():
    with pytest.raises(LayoutError) as refusal:
        parse(VERL, "teacher")
    assert (refusal.value.code, refusal.value.control) == ("not-a-choice", "run")
    assert "actor" in refusal.value.facts["choices"]
    with pytest.raises(LayoutError) as refusal:
        parse("torchrun x.py --tensor-model-parallel-size 2", "actor")
    assert (refusal.value.code, refusal.value.control) == ("no-such-run", "run")


AUTOMODEL = """recipe: TrainFinetuneRecipeForNextTokenPrediction
step_scheduler: {{global_batch_size: 64, local_batch_size: 2}}
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained
  pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B
distributed:
  strategy: fsdp2
  dp_size: {dp}
  tp_size: 2
  cp_size: 1
  pp_size: 1
  ep_size: 8
  activation_checkpointing: true
dataset: {{seq_length: 2048}}
packed_sequence: {{packed_sequence_size: {packed}}}
"""


def test_nemo_automodels_experts_are_spread_over_a_stage():
    """NVIDIA-NeMo/Automodel 36044ad distributed/mesh_utils.py: ep divides dp x cp x tp."""
    read = parse(AUTOMODEL.format(dp=8, packed=0))
    job = read.job()
    assert not read.unresolved
    assert (job.nodes * job.gpus_per_node, job.tp, job.ep) == (16, 2, 8)
    groups = job.layout().every["ep"].groups()
    assert [list(group) for group in groups] == [[*range(8)], [*range(8, 16)]]
    assert (read.values["seq"], read.values["micro_batch"]) == (2048, 2)
    training = training_of(read)
    assert (training["zero"], training["recompute"]) == (3, "full")
    open_ = parse(AUTOMODEL.format(dp="none", packed=8192))
    assert not open_.unresolved
    assert not open_.asks
    assert open_.values["seq"] == 8192


def test_a_degree_of_automodel_that_is_not_read_is_asked_about():
    text = AUTOMODEL.format(dp="none", packed=0).replace("  ep_size", "  sp_size: 4\n  ep_size")
    assert [item.code for item in parse(text).unresolved] == ["unknown-size"]
