"""Configurations of several roles: what plan each makes, what is assumed, what is asked for."""

from __future__ import annotations

import csv
import io
import json
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from cases import every

from cli.command import run
from descriptions import REFUSALS
from formats.roles import read_plan
from formats.roles.facts import plan_facts
from formats.roles.presets import PLANS, PlanFramework, preset_plan
from formats.roles.read import READERS
from groups.errors import LayoutError
from groups.mesh import MAX_RANKS
from request.answers.roles.moments import moments_read
from request.state import State
from texts.sentences import LAUNCH_NOTES, PLAN_NOTES, note_text
from training.roles import Phase, phases_of

ROOT = Path(__file__).parent.parent

VERL = "python3 -m verl.trainer.main_ppo "

ROLL = """\
num_gpus_per_node: 8
actor_train:
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {tensor_model_parallel_size: 2}
  device_mapping: list(range(0,8))
actor_infer:
  strategy_args: {strategy_name: vllm, strategy_config: {tensor_parallel_size: 2}}
  device_mapping: list(range(8,12))
reference:
  strategy_args:
    strategy_name: megatron_infer
    strategy_config: {tensor_model_parallel_size: 1}
  device_mapping: list(range(0,8))
rewards: {judge: {strategy_args: {strategy_name: hf_infer}, device_mapping: "list([12,14])+[15]"}}
"""

AREAL = """\
cluster: {n_nodes: 2, n_gpus_per_node: 8}
actor: {backend: "megatron:(attn:d1p2t2c2|ffn:d2t1p2e2)", path: Qwen/Qwen3-30B-A3B}
ref: {backend: "${actor.backend}", scheduling_strategy: {type: colocation, target: actor}}
rollout: {backend: "sglang:d2t4"}
"""

GRAPH = """\
kind: DynamoGraphDeployment
spec:
  services:
    Frontend: {replicas: 1}
    decode:
      replicas: 2
      resources: {limits: {gpu: "8"}}
      extraPodSpec: {mainContainer: {args: [python3, -m, dynamo.sglang, --tp, "8"]}}
    prefill:
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "8"}}
      extraPodSpec:
        mainContainer:
          args: ["exec python3 -m dynamo.vllm -tp 1 --data-parallel-size 16 --is-prefill-worker"]
"""

CHART = """\
modelArtifacts: {name: meta-llama/Llama-3.1-8B-Instruct}
decode: {replicas: 2, parallelism: {tensor: 4}, containers: [{args: ["--enforce-eager"]}]}
prefill: {replicas: 4, containers: [{args: ["--enforce-eager"]}]}
"""

PAIR = """\
vllm serve m -tp 2 --kv-transfer-config '{"kv_role":"kv_producer"}' &
vllm serve m -tp 4 --kv-transfer-config '{"kv_role":"kv_consumer"}' &
"""

MIMO = """\
parallelism = MegatronMIMOParallelismConfig(module_parallelisms={
    "language": ModuleParallelismConfig(
        tensor_model_parallel_size=2, pipeline_model_parallel_size=2, data_parallel_size=1,
        rank_offset=4),
    "vision": ModuleParallelismConfig(tensor_model_parallel_size=int(os.environ.get("TP", "2")),
                                      data_parallel_size=2),
})
"""

TEXTS = {
    "Megatron, a grid for each module": (
        MIMO,
        "1 x 8 GPUs: language 4-7, vision 0-3",
        ["language", "vision"],
        {"language": (2, 2), "vision": (2, 1)},
    ),
    "ROLL": (
        ROLL,
        "2 x 8 GPUs: actor_train 0-7, actor_infer 8-11, reference 0-7, judge 3 chosen",
        ["actor_infer", "reference", "actor_train", "judge"],
        {"actor_train": (2, 1), "actor_infer": (2, 1), "reference": (1, 1), "judge": (1, 1)},
    ),
    "AReaL": (
        AREAL,
        "2 x 8 GPUs: actor 0-7, reference 0-7, rollout 8-15",
        ["reference", "actor", "rollout"],
        {"actor": (2, 2), "reference": (2, 2), "rollout": (4, 1)},
    ),
    "OpenRLHF, all together": (
        "python3 -m openrlhf.cli.train_ppo_ray --actor.num_nodes 1 --actor.num_gpus_per_node 4 "
        "--ref.num_nodes 1 --ref.num_gpus_per_node 4 --vllm.num_engines 2 "
        "--vllm.tensor_parallel_size 2 --train.colocate_all --reward.remote_url http://host "
        "--algo.advantage.estimator rloo",
        "1 x 4 GPUs: actor 0-3, rollout 0-3, reference 0-3",
        ["rollout", "reference", "actor"],
        {"actor": (1, 1), "rollout": (2, 1), "reference": (1, 1)},
    ),
    "Dynamo": (
        GRAPH,
        "4 x 8 GPUs: decode 0-15, prefill 16-31",
        ["decode", "prefill"],
        {"decode": (8, 1), "prefill": (1, 1)},
    ),
    "llm-d": (
        CHART,
        "2 x 8 GPUs: prefill 0-3, decode 4-11",
        ["prefill", "decode"],
        {"prefill": (1, 1), "decode": (4, 1)},
    ),
    "vLLM, a server of each kind": (
        PAIR,
        "1 x 8 GPUs: prefill 0-1, decode 2-5",
        ["prefill", "decode"],
        {"prefill": (2, 1), "decode": (4, 1)},
    ),
    "verl, prefill apart": (
        VERL
        + "trainer.nnodes=1 algorithm.adv_estimator=grpo actor_rollout_ref.actor.strategy=fsdp "
        "actor_rollout_ref.rollout.disaggregation.enabled=True "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1 "
        "actor_rollout_ref.rollout.disaggregation.decode_replicas=3",
        "1 x 8 GPUs: actor 0-7, prefill 2 chosen, decode 6 chosen",
        ["prefill", "decode", "actor"],
        {"actor": (1, 1), "prefill": (1, 1), "decode": (1, 1)},
    ),
    "verl, all in one pool": (
        VERL + "trainer.nnodes=2 trainer.n_gpus_per_node=8 algorithm.adv_estimator=grpo "
        "actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.use_kl_loss=True "
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 "
        "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=8",
        "2 x 8 GPUs: actor 0-15, rollout 0-15, reference 0-15",
        ["rollout", "reference", "actor"],
        {"actor": (4, 2), "rollout": (8, 1), "reference": (4, 2)},
    ),
    "verl, reward in its own pool": (
        VERL + "trainer.nnodes=1 algorithm.adv_estimator=gae reward.reward_model.enable=True "
        "reward.reward_model.enable_resource_pool=True reward.reward_model.nnodes=1 "
        "reward.reward_model.n_gpus_per_node=4 actor_rollout_ref.actor.strategy=fsdp",
        "2 x 8 GPUs: actor 0-7, rollout 0-7, critic 0-7, reward 8-11",
        ["rollout", "critic", "actor", "reward"],
        {"actor": (1, 1), "rollout": (2, 1), "critic": (1, 1), "reward": (2, 1)},
    ),
    "verl, rollout apart": (
        VERL + "trainer.nnodes=1 trainer.n_gpus_per_node=4 trainer.v1.trainer_mode=separate_async "
        "algorithm.adv_estimator=grpo actor_rollout_ref.rollout.nnodes=1",
        "1 x 8 GPUs: actor 0-3, rollout 4-7, hybrid-rollout 0-3",
        ["rollout", "hybrid-rollout", "actor"],
        {"actor": (1, 1), "rollout": (2, 1), "hybrid-rollout": (2, 1)},
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_configuration_opens_as_a_whole_plan(name):
    text, plan, turns, sizes = TEXTS[name]
    read = read_plan(text)
    assert str(read.plan) == plan
    assert [role.name for role in read.plan.turns] == turns
    jobs = {role.name: role.layout.job for role in read.plan.roles}
    assert {own: (job.tp, job.pp) for own, job in jobs.items()} == sizes
    for note in read.assumed:
        assert {language: note_text(note, language) for language in ("en", "zh")}
        assert note.code in PLAN_NOTES or note.code in LAUNCH_NOTES


ASKED = [
    # what the text leaves open, or has wrong, and the first answer that works
    (VERL + "trainer.nnodes=$NODES", "setting-open", {"trainer.nnodes": 1}),
    (
        "vllm serve m -tp 2\nsglang serve m --disaggregation-mode decode",
        "kinds-unknown",
        {"roles": "prefill,decode"},
    ),
    (
        "rollout: {backend: d4t2}\nactor: {backend: 'fsdp:d4'}",
        "setting-wrong",
        {"rollout.backend": "sglang:d4t2"},
    ),
    (VERL + "trainer.nnodes=two", "setting-wrong", {"trainer.nnodes": 1}),
    (VERL + "trainer.v1.trainer_mode=fast", "not-a-choice", {"trainer.v1.trainer_mode": "sync"}),
    (
        VERL + "reward.reward_model.enable_resource_pool=1",
        "setting-missing",
        {"reward.reward_model.nnodes": 1},
    ),
    (
        VERL + "actor_rollout_ref.rollout.name=mine",
        "not-a-choice",
        {"actor_rollout_ref.rollout.name": "vllm"},
    ),
    (
        VERL + "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=$TP",
        "role-asks",
        {"actor.tp": 1},
    ),
    (
        VERL + "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=3",
        "does-not-divide",
        {"actor.tp": 2},
    ),
]


@pytest.mark.parametrize(("text", "code", "fix"), ASKED, ids=[f"{row[2]}"[:60] for row in ASKED])
def test_what_is_not_known_is_asked_by_name_and_an_answer_opens_the_plan(text, code, fix):
    with pytest.raises(LayoutError) as caught:
        read_plan(text)
    error = caught.value
    assert error.code == code
    assert REFUSALS[code]["zh"].format(**{"control": "", **error.facts})
    assert error.alternatives[0] == fix
    read_plan(text, {name: str(value) for name, value in fix.items()})


def test_the_batch_of_an_update_is_prompts_times_samples():
    text = VERL + "data.train_batch_size=512 actor_rollout_ref.rollout.n=16 "
    read = read_plan(text + "actor_rollout_ref.actor.ppo_mini_batch_size=32")
    actor = read.role("actor")
    assert (actor.values["global_batch"], actor.updates) == (8192, 16)
    assert "global_batch" not in read.role("rollout").values


def test_one_job_is_a_plan_of_one_role():
    read = read_plan("torchrun --nnodes 2 --nproc-per-node 8 t.py --tensor-model-parallel-size 4")
    assert str(read.plan) == "2 x 8 GPUs: job 0-15"


def test_every_code_of_a_plan_has_a_sentence_and_is_used():
    folders = (
        (ROOT / "formats/roles").glob("*.py"),
        (ROOT / "groups").glob("plan*.py"),
        [ROOT / "training/roles.py"],
    )
    source = "".join(path.read_text("utf-8") for paths in folders for path in paths)
    parts = {code: code.removesuffix("-and-others-wait") for code in PLAN_NOTES}
    assert [code for code, own in parts.items() if f'"{own}"' not in source] == []


@every("name", TEXTS)
def test_every_role_works_in_a_phase_and_only_named_models_have_a_memory(name):
    read = read_plan(TEXTS[name][0])
    assert {role.name for role in read.plan.roles} == {n for one in read.phases for n in one.roles}
    moments = moments_read(read, State())
    assert {*moments.refused} >= {r.name for r in read.roles if not r.training.get("model")}
    assert {*moments.refused}.isdisjoint(moments.step.work)


def test_a_role_of_which_no_phase_is_stated_works_by_its_name():
    roll = ROLL.replace("judge:", "llm_judge:").replace("actor_train:", "student_train:")
    phases = [(phase.name, phase.roles) for phase in read_plan(roll).phases]
    assert phases[-2:] == [("update", ("student_train",)), ("weights", ("actor_infer",))]
    assert phases_of(read_plan(roll).plan)[2] == Phase("reward", ("llm_judge",))


def test_roles_that_do_not_fit_together_are_warned_of_at_their_fullest_moment():
    text = VERL + (
        "trainer.nnodes=1 algorithm.adv_estimator=grpo actor_rollout_ref.actor.strategy=fsdp "
        "actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B "
        "actor_rollout_ref.rollout.gpu_memory_utilization=0.8 "
    )
    kept, away = (
        read_plan(text),
        read_plan(
            text
            + " ".join(
                f"actor_rollout_ref.actor.fsdp_config.{part}_offload=True"
                for part in ("param", "optimizer")
            )
        ),
    )
    (note,) = moments_read(kept, State()).step.crowded(80 * 2**30)
    # 12 bytes of each of 30.5e9 parameters on 8 GPUs (weights in 32 bits, two moments), beside 0.8
    # of the GPU: gradients are let go.
    assert (note.facts["phase"], note.facts["roles"]) == ("rollout", "actor, rollout")
    assert note.facts["needed"] == pytest.approx(64 + 30.5e9 * 12 / 8 / 2**30, rel=0.02)
    assert [*moments_read(away, State()).step.crowded(80 * 2**30)] == []


HOSTILE = [
    VERL + "trainer.nnodes=999999999999 trainer.n_gpus_per_node=99999",
    VERL + "trainer.nnodes=1048576 trainer.n_gpus_per_node=8",
    VERL + "trainer.n_gpus_per_node=0",
    VERL + "=" * 500 + " trainer.nnodes= actor_rollout_ref.rollout.n=-1",
    ROLL.replace("list(range(0,8))", "list(range(0,99999999))"),
    ROLL.replace("list(range(0,8))", "__import__('os').system('x')"),
    ROLL.replace("list(range(0,8))", "list([" + "1," * 50_000 + "])"),
    AREAL.replace("d2t4", "d999999t999999"),
    GRAPH.replace("replicas: 2", "replicas: 1000000"),
    GRAPH.replace("limits", "requests").replace("gpu", "cpu"),
    MIMO.replace('"TP", "2"', '"TP", "' + "9" * 30 + '"'),
    MIMO.replace("rank_offset=4", "rank_offset=1if 2else 3"),
    MIMO.replace("rank_offset=4", "rank_offset=" + "(" * 300 + "1" + ")" * 300),
    ROLL.replace("list(range(0,8))", "list([" + "1" * 5_000 + "x"),
    "python3 train.py --actor-num-nodes 3 --rollout-num-gpus 7 --rollout-num-gpus-per-engine 99999",
    "defaults: grpo_math_1B.yaml\ncluster.num_nodes: [1, 2]",
    "defaults: [grpo_math_1B.yaml, " + "x, " * 2_000 + "y]",
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_texts_get_a_plan_or_a_refusal_soon(number):
    started = time.process_time()  # not of the clock on the wall: others share the machine
    with suppress(LayoutError):  # and nothing else
        assert read_plan(HOSTILE[number]).plan.world_size <= MAX_RANKS
    assert time.process_time() - started < 5


# -- public files ----------------------------------------------------------------------------------

PUBLIC = Path(__file__).parent / "data/roles/public.jsonl"
"""What public files say of their roles, by setting, and the roles that follow (not from here)."""


def text_of(row):
    """The settings of a public file, as one of its format."""
    settings = row["settings"].items()
    if row["format"] == "slime":
        words = (f"--{name}" + ("" if value is True else f" {value}") for name, value in settings)
        return " ".join(["python3 train.py", *words])
    return "\n".join(f"{name}: {json.dumps(value)}" for name, value in settings)


def test_public_files_are_read_exactly_or_asked_for_and_none_silently_wrong():
    found = Counter()
    for line in PUBLIC.read_text("utf-8").splitlines():
        row = json.loads(line)
        try:
            read = read_plan(text_of(row))
            roles = plan_facts(read.plan, read.phases)["roles"]
        except LayoutError:
            found["asked"] += 1
            continue
        flat = [{**role, **role.pop("sizes")} for role in roles]
        is_exact = len(flat) == len(row["roles"]) and all(
            own.items() <= role.items() for own, role in zip(row["roles"], flat)
        )
        found["exact" if is_exact else row["path"]] += 1
    assert found == {"exact": 23}


# -- presets and the command -----------------------------------------------------------------------


def answered(*argv, text=""):
    out, err = io.StringIO(), io.StringIO()
    status = run(["roles", *argv], io.StringIO(text), out, err)
    return status, out.getvalue(), err.getvalue()


def test_published_plans_are_those_of_their_sources():
    """GPUs of each role, and of an engine, as the files at their addresses say."""
    expected = {
        "dapo-qwen2-5-32b": {"actor": (128, None), "rollout": (128, 32)},
        "dapo-deepseek-v3": {"actor": (512, None), "rollout": (512, 16)},
        "slime-glm4-5": {"actor": (64, None), "rollout": (64, 2)},
        "slime-qwen3-30b-a3b": {"actor": (8, None), "rollout": (8, 1)},
        "slime-deepseek-r1": {"actor": (128, None), "rollout": (128, 2)},
        "nemo-rl-deepseek-v3": {"policy": (256, None), "generation": (256, 8)},
        "nemo-rl-qwen3-235b": {"policy": (128, None), "generation": (128, 8)},
        "openrlhf-llama3-70b": {
            **{"actor": (4, None), "rollout": (4, 2), "reference": (2, None)},
            **{"critic": (4, None), "reward": (2, None)},
        },
    }
    found = {}
    assert set(get_args(PlanFramework)) == set(READERS)
    for name, preset in PLANS.items():
        assert preset.url.startswith("https://github.com/"), name
        read = preset_plan(name)
        roles = plan_facts(read.plan, read.phases)["roles"]
        found[name] = {role["name"]: (role["gpus"], role["engines"]) for role in roles}
    assert found == expected


def test_the_command_prints_the_plan_its_ranks_and_what_it_assumes():
    status, out, _ = answered("--preset", "slime-glm4-5", "--format", "json")
    document = json.loads(out)
    assert (status, document["schema"]) == (0, "parallel-roles")
    rollout = document["roles"][1]
    assert {key: rollout[key] for key in ("name", "first", "gpus", "engines")} == {
        **{"name": "rollout", "first": 0, "gpus": 64, "engines": 2}
    }
    assert rollout["sizes"] == {"tp": 32, "pp": 1, "cp": 1, "ep": 1, "dp": 4}
    _, out, _ = answered("--preset", "slime-glm4-5", "--format", "csv")
    rows = [*csv.DictReader(io.StringIO(out))]
    assert len(rows) == 128
    assert {key: rows[70][key] for key in ("rank", "node", "role", "role_rank")} == {
        **{"rank": "6", "node": "0", "role": "rollout", "role_rank": "6"}
    }
    assert rows[6]["groups"].split()[:2] == ["tp=0", "cp=6"]
    status, out, _ = answered("--args", "-", text=VERL + "trainer.nnodes=2")
    assert status == 0
    assert ["rollout", "0-15", "16", "8", "vllm", "tp2"] in [
        line.split() for line in out.split("\n")
    ]
    assert "assumed: data.train_batch_size is not given: assumed 1024" in out


def test_the_command_refuses_in_one_line_and_words_answer():
    text = VERL + "trainer.nnodes=$NODES"
    status, _, err = answered("--args", "-", text=text)
    assert (status, err) == (
        2,
        "python -m groups: the text does not work out trainer.nnodes, which is $NODES; "
        "try trainer.nnodes 1\n",
    )
    status, out, _ = answered("trainer.nnodes=4", "--args", "-", text=text)
    assert (status, "4 x 8 GPUs" in out) == (0, True)
    for argv in (["nnodes", "--args", "-"], ["--preset", "dapo"], []):
        status, _, err = answered(*argv, text=text)
        assert (status, err.count("\n")) == (2, 1)


def test_a_connector_that_hands_over_between_equal_sizes_only_refuses_others():
    """vllm-project/vllm kv_connector/v1/p2p/p2p_nccl_connector.py: only symmetric TP."""
    side = "vllm serve meta-llama/Llama-3.1-8B -tp {} --kv-transfer-config "
    side += '\'{{"kv_connector":"{}","kv_role":"{}"}}\' &\n'
    text = side.format(4, "{0}", "kv_producer").replace("{0}", "P2pNcclConnector")
    other = side.format(2, "P2pNcclConnector", "kv_consumer")
    with pytest.raises(LayoutError) as refused:
        read_plan(text + other)
    assert refused.value.code == "connector-wants-equal"
    assert refused.value.facts["axis"] == "tp"
    assert read_plan(text + other.replace("-tp 2", "-tp 4")).plan.nodes == 1
    nixl = (text + other).replace("P2pNccl", "Nixl")
    assert [role.layout.job.tp for role in read_plan(nixl).plan.roles] == [4, 2]


HANDOVERS = [
    ("NixlConnector", (4, 1), (2, 1), ""),
    ("NixlConnector", (3, 1), (2, 1), "connector-wants-divides"),
    ("NixlConnector", (2, 2), (2, 1), ""),
    ("NixlPushConnector", (2, 1), (2, 2), "connector-wants-one"),
    ("MooncakeConnector", (4, 2), (2, 1), ""),
    ("MooncakeConnector", (4, 1), (6, 1), "connector-wants-divides"),
    ("MoRIIOConnector", (6, 1), (4, 1), "connector-wants-divides"),
    ("LMCacheConnectorV1", (6, 1), (4, 2), ""),
    ("P2pNcclConnector", (4, 2), (4, 1), "connector-wants-equal"),
    ("sglang", (4, 2), (8, 1), ""),
    ("sglang", (4, 2), (4, 2), ""),
    ("sglang", (4, 1), (6, 1), ""),
    ("sglang", (4, 1), (4, 2), "connector-wants-equal-or-one"),
]
"""A connector, tp and pp of who prefills and who decodes, and the refusal: formats/roles/handover
names the lines of vLLM 0.33.0 and SGLang 0.5.23 that raise."""


@pytest.mark.parametrize(("connector", "prefill", "decode", "code"), HANDOVERS)
def test_sizes_that_a_connector_raises_for_are_refused_and_no_others(
    connector, prefill, decode, code
):
    if connector == "sglang":
        command = "python -m sglang.launch_server --model-path m --tp {} --pp-size {} "
        command += "--disaggregation-mode {}\n"
        kinds = ("prefill", "decode")
    else:
        command = "vllm serve m -tp {} -pp {} --kv-transfer-config "
        command += f'\'{{{{"kv_connector":"{connector}","kv_role":"{{}}"}}}}\' &\n'
        kinds = ("kv_producer", "kv_consumer")
    text = "".join(command.format(*sizes, kind) for sizes, kind in zip((prefill, decode), kinds))
    if not code:
        jobs = [role.layout.job for role in read_plan(text).plan.roles]
        assert [(job.tp, job.pp) for job in jobs] == [prefill, decode]
        return
    with pytest.raises(LayoutError) as refused:
        read_plan(text)
    assert refused.value.code == code


def test_areals_micro_batches_hold_tokens_not_samples():
    """inclusionAI/AReaL 4aef98d areal/utils/data.py: max_tokens_per_mb of each role."""
    text = """actor:
  backend: "fsdp:d4c2"
  path: Qwen/Qwen3-8B
{spec}rollout: {{backend: "sglang:d4t2"}}
cluster: {{n_nodes: 2, n_gpus_per_node: 8}}
"""
    bounded = read_plan(text.format(spec="  mb_spec: {max_tokens_per_mb: 16384}\n"))
    actor = bounded.role("actor")
    assert (actor.training["sequence"], actor.values["micro_batch"]) == (16384, 1)
    facts = [note.facts for note in bounded.assumed if note.code == "token-budget"]
    assert facts == [{"tokens": 8192, "cp": 2, "all": 16384}]
    unbounded = read_plan(text.format(spec=""))
    assert "sequence" not in unbounded.role("actor").training
    assert "no-token-budget" in [note.code for note in unbounded.assumed]
