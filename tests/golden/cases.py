"""What is asked for the golden answers: every view of every preset, endpoints, commands, links.

Everything is said in forms that stay: links of version 1, names of endpoints, command lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from groups.presets import PRESETS, Preset
from views.base.state import FIELDS

from .ask import command, endpoint, page_of

Case = tuple[str, Callable[[], str]]
"""The name of an answer, and how to get it."""

LONGEST = 80
"""Characters of what is asked that stand in the name of its answer."""

LANGUAGES = ("en", "zh")
FORMATS = ("text", "json", "csv")

# -- views ---------------------------------------------------------------------------------------

SCRIPT = """#!/bin/bash
#SBATCH --nodes=4
GPUS_PER_NODE=8
torchrun --nnodes $SLURM_NNODES --nproc-per-node $GPUS_PER_NODE pretrain_gpt.py \\
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --num-layers 32 \\
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --use-<b>bold</b> 3
"""
TITAN = """[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
pipeline_parallel_degree = "two"
[training]
local_batch_size = 2
"""

TP_GROUP = "PG ID 2 PG GUID 40(TENSOR_MODEL_PARALLEL_GROUP)"
WATCHDOG = f"""[rank0]:[E] [{TP_GROUP} Rank 0] failure detected by watchdog at work sequence id: 7
[rank0]:[E] [{TP_GROUP} Rank 0] PG status: last enqueued work: 7, last completed work: 6
[rank1]:[E] [{TP_GROUP} Rank 1] PG status: last enqueued work: 6, last completed work: 6
"""

SILENT = "\n".join(
    f"[rank{rank}]:[E] [{TP_GROUP} Rank {rank}] Timeout at NCCL work: 7" for rank in (0, 1, 3)
)
"""Of four members one that prints nothing."""

CHANGED: dict[str, list[dict[str, str]]] = {
    "groups": [
        {"group_type": "chosen", "more": "ep,edp,embd", "rank": "3"},
        {"group_type": "cp+dp+tp+pp", "dp_kind": "dp-cp", "rank": "999999"},
        {"group_type": "framework", "more": "mp"},
        {"group_type": "chosen"},
    ],
    "nodes": [],
    "orders": [
        {"versus": "llama3"},
        {"versus": "deepspeed", "rank": "5"},
        {"versus": "dp-tp-cp-ep-pp"},
        {"versus": "tp-<b>"},
    ],
    "ranks": [
        {"rank": "1", "ranks": "0-3"},
        {"rank": "7", "ranks": "[rank3]: Watchdog caught timeout; [rank 5]: same"},
        {"rank": "2.5", "ranks": "0, 8"},
        {"rank": "6", "ranks": "3-x"},
    ],
    "collectives": [
        {"collective": "all_gather", "collective_group": "dp", "collective_shape": "2x2"},
        {"collective": "reduce_scatter", "collective_direction": "backward", "rank": "6"},
        {"collective": "scatter", "collective_root": "1", "collective_values": "rank"},
        {"collective": "gather_from_sequence_parallel_region", "collective_all": "1"},
        {"collective": "all_to_all", "collective_algorithm": "pairwise_all_to_all"},
        {"collective_algorithm": "double_tree_all_reduce", "collective_mb": "512"},
        {"collective_gbs": "0", "collective_group": "none", "collective_index": "9"},
        {"bucket_layers": "12", "bucket_hidden": "8192", "bucket_ms": "3.5"},
    ],
    "pipeline": [
        {"schedule": "gpipe", "against": "1f1b", "micro_batches": "12"},
        {"schedule": "interleaved", "chunks": "3", "micro_batches": "32", "t_send": "0.25"},
        {"schedule": "zb-h1", "against": "zb-h2", "t_w": "0.5", "micro_batches": "16"},
        {"schedule": "zb-v", "micro_batches": "24", "message": "64"},
        {"schedule": "zb-2p", "micro_batches": "24", "t_w": "0.6", "w_share": "0.5"},
        {"schedule": "dualpipe", "micro_batches": "32", "t_pair": "2.5"},
        {"schedule": "dualpipev", "micro_batches": "33", "pipe_group": "1"},
        {"schedule": "bfs", "chunks": "2", "micro_batches": "8", "t_optimizer": "1"},
        {"schedule": "interleaved-zb", "micro_batches": "7", "first_layers": "2"},
        {"micro_batches": "0", "t_f": "-1"},
    ],
    "memory": [
        {"model": "llama3-70b", "zero": "3", "recompute": "full", "capacity": "40"},
        {"model": "deepseek-v3", "precision": "bf16-bf16", "sequence_parallel": "off"},
        {"model": "mixtral-8x7b", "zero": "0", "recompute": "none", "of_rank": "5"},
        {"hidden": "4096", "heads": "33", "memory_schedule": "gpipe"},
        {"sequence": "16384", "spread": "nearly", "zero": "2"},
        {"capacity": "much"},
    ],
    "traffic": [
        {"cluster": "gb200-nvl72", "model": "llama3-8b"},
        {"cluster": "dgx-a100", "cp_algorithm": "all_gather", "model": "deepseek-v3"},
        {"cluster": "hgx-h800", "cp_algorithm": "a2a", "zero": "2"},
        {"cluster": "toaster"},
    ],
    "estimate": [
        {"cluster": "gb200-nvl72", "model": "llama3-8b", "products": "mxfp8"},
        {"cluster": "dgx-a100", "flash": "off", "recompute": "full"},
        {"cluster": "dgx-a100", "products": "fp8"},
        {},
    ],
    "search": [
        {"cluster": "dgx-a100", "model": "llama3-8b", "layers": "", "experts": ""},
        {},
        {"cluster": "hgx-h800", "recompute": "none", "capacity": "60"},
        {},
    ],
    "compare": [
        {"kept": "?v=1"},
        {"kept": "http://host/?v=1&nodes=4&tp=4&cp=2&ep=2"},
        {"kept": "v=1&nodes=4&framework=llama3&order=x", "model": "llama3-8b"},
        {"kept": "v=2"},
        {"kept": "?v=1&tp=3"},
    ],
    "hang": [{"evidence": WATCHDOG}, {"evidence": "rank 3 is silent"}, {}, {}],
    "hosts": [
        {"hosts": "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]", "measures": "0,1\n1,9"},
        {"hosts": "n[0-63]", "objective": "pp-first"},
        {"hosts": "n1 slots=x"},
        {},
    ],
    "launch": [{"paste": SCRIPT}, {"paste": TITAN}, {"paste": "no flags <i>here</i>"}],
}
"""For each view its own inputs, changed in several ways, which the presets take in turn; an empty
one leaves a preset out where an answer takes long. A new view need not have any."""

BOTH = 8
"""Every how many presets each view is asked in both languages; else in one, by turns."""


def views() -> Iterator[Case]:
    """Every view of every preset, at the default and changed."""
    for number, (name, preset) in enumerate(PRESETS.items()):
        for place, (view, ways) in enumerate(CHANGED.items()):
            turn = (number + place) % 2
            start = {"show": view, **said_by(name, preset)}
            for language in LANGUAGES if number % BOTH == 0 else (LANGUAGES[turn],):
                yield _page(f"{view}/{name}/{language}", start, language)
            which = number % max(1, len(ways))
            if not (ways and ways[which]):
                continue
            language = LANGUAGES[1 - turn]
            yield _page(
                f"{view}/{name}/{language}/changed-{which}", {**start, **ways[which]}, language
            )


def _page(name: str, fields: dict[str, str], language: str) -> Case:
    unlinked = {one: fields[one] for one in fields if one in FIELDS and not FIELDS[one].link}
    linked = {one: text for one, text in fields.items() if one not in unlinked}
    query = urlencode({"v": "1", **linked})
    return f"views/{name}", partial(page_of, query, language, unlinked)


def said_by(name: str, preset: Preset) -> dict[str, str]:
    """The fields of a link that shows a preset as the page does where it is chosen."""
    kinds = "moe" if preset.ep > 1 else "cp+dp+tp+pp" if preset.cp > 1 else "dp+tp+pp"
    of_model = ("layers", "vpp", "experts", "micro_batch", "global_batch")
    values = {
        "preset": name,
        "group_type": kinds,
        **{one: getattr(preset, one) for one in ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep")},
        "etp": preset.etp,
        "framework": preset.framework,
        **{one: preset.model.get(one) for one in of_model},
        "account": "1" if preset.model.get("account_for_embedding") else None,
    }
    return {field: str(value) for field, value in values.items() if value is not None}


# -- endpoints -----------------------------------------------------------------------------------

MOE = {"nodes": 4, "tp": 2, "cp": 2, "pp": 2, "ep": 8, "etp": 1}
SMALL: dict[str, Any] = {"nodes": 2, "tp": 2, "pp": 2}
LAYOUTS: list[dict[str, Any]] = [
    {"nodes": 2**17, "instances": 2},
    {},
    SMALL,
    MOE,
    {"nodes": 3, "gpus_per_node": 12, "tp": 3, "pp": 2, "framework": "llama3"},
    {"nodes": 4, "tp": 4, "order": "dp-tp-cp-ep-pp"},
    {"nodes": 2, "tp": 3},
    {"nodes": 2, "ep": 3},
    {"nodes": "2"},
    {"nodes": 2**20},
    {"framework": "mega"},
]
"""Layouts that work and layouts that are refused, for every endpoint that takes one; the first is
none for the oldest, layout."""

TRAINED: list[dict[str, Any]] = [
    {"model": "llama3-8b", "global_batch": 64, **SMALL},
    {"model": "mixtral-8x7b", "global_batch": 128, "changes": '{"sequence": 4096}', **MOE},
    {"model": "llama3-70b", "nodes": 4, "tp": 8, "pp": 2, "vpp": 2, "zero": 2, "global_batch": 32},
    {"model": "gpt3-175b", "nodes": 8, "tp": 8, "pp": 8, "recompute": "full", "zero": 0},
    {"model": "deepseek-v3", "nodes": 8, "pp": 4, "ep": 8, "spread": "nearly"},
    {"model": "gpt3-175b", "nodes": 8, "tp": 8, "pp": 8, "memory_schedule": "dualpipe"},
    {"model": "llama3-8b", "global_batch": 7, **SMALL},
    {"model": "llama9"},
    {"model": "llama3-8b", "changes": '{"layers": "many"}'},
    {"model": "llama3-8b", "changes": "[1]"},
    {"model": "llama3-8b", "zero": 4},
]

OWN: dict[str, list[dict[str, Any]]] = {
    "layout": [
        {"group_type": "moe", **MOE},
        {"group_type": "dp+tp+pp", "more": "embd", **SMALL},
        {"group_type": "cp+dp", "dp_kind": "dp-cp", "nodes": 4, "cp": 2},
        {"group_type": "all"},
        {"more": "nothing"},
        {"etp": 0},
    ],
    "process_groups": [{"names": "ep edp", **MOE}, {"names": "what"}, {"names": 3}],
    "rank_table": [],
    "rank_card": [{"rank": 5, **SMALL}, {"rank": 16, **SMALL}, {"rank": -1}, {"rank": "5"}],
    "node_audit": [],
    "shared_by_ranks": [
        {"ranks": "3, 11", **SMALL},
        {"ranks": "0-3", **MOE},
        {"ranks": "99"},
        {"ranks": "a"},
        {"ranks": WATCHDOG, **SMALL},
        {"ranks": SILENT, "nodes": 1, "tp": 4},
        {"ranks": SILENT, "nodes": 1, "tp": 2, "hosts": "gpu-01"},
    ],
    "launch_command": [
        *({"target": one, **SMALL} for one in ("nemo", "deepspeed", "torchtitan")),
        {"target": "megatron", **MOE},
        {"target": "torchtitan-toml", "tp": 4},
        {"target": "megatron-deepspeed", "framework": "megatron-deepspeed", "tp": 2},
        {"target": "jax"},
        {"model": "llama3-70b", "precision": "bf16-fp32", "zero": 1, "global_batch": 64, **SMALL},
        {"model": "own", "recompute": "all"},
    ],
    "cluster_check": [{"names": "tp dp", "megabytes": 8, **SMALL}, {"megabytes": 0}],
    "read_launch": [
        {"text": text}
        for text in ("", SCRIPT, TITAN, '{"zero_optimization": {"stage": 2}}', "tp: [1", 5)
    ],
    "read_hosts": [
        {"text": "node0 slots=8\nnode1 slots=8", "racks": "SwitchName=s0 Nodes=node[0-1]"},
        {"text": "n[1-2]m[01-02]"},
        {"text": "a:4\na:4"},
        {"text": ""},
        {"text": 5},
    ],
    "better_order": [
        {"hosts": "host,rack\na,r0\nb,r1\nc,r0\nd,r1", **MOE, "nodes": 4, "ep": 16},
        {"hosts": "a\nb", **SMALL},
        {"hosts": "a slots=8", **SMALL},
    ],
    "slow_groups": [
        {"measurements": "rank,ms\n0,10\n1,10\n2,10.1\n3,10\n4,14\n5,14.2", **SMALL},
        {"measurements": "host,0,1\na,3,1\n", "hosts": "a\nb", "worse": "low", **SMALL},
        {"measurements": "rank,ms\n0,1", "worse": "sideways", **SMALL},
        {"measurements": "99,1", **SMALL},
    ],
    "collective": [
        {"operation": "all_reduce", "group": "dp", "shape": "4", **SMALL},
        {"operation": "reduce_scatter", "group": "tp", "values": "ones", **SMALL},
        {"operation": "broadcast", "root": 1, "algorithm": "tree_broadcast", **SMALL},
        {"operation": "gather_from_sequence_parallel_region", "direction": "backward", **SMALL},
        {"operation": "all_to_all", "group": "ep", "megabytes": 64, **MOE},
        {"tensors": "[[0,1],[2,3]]", "nodes": 1, "gpus_per_node": 2},
        {"tensors": "[[0,1],[2]]", "nodes": 1, "gpus_per_node": 2},
        {"operation": "fold"},
        {"shape": "0x4"},
        {"operation": "all_reduce", "root": 1},
    ],
    "pipeline_schedule": [
        *(
            {"schedule": one, "p": 4, "m": 8}
            for one in ("gpipe", "1f1b", "zb-h1", "zb-h2", "zb-2p", "zb-v")
        ),
        *({"schedule": one, "p": 4, "m": 8, "v": 3} for one in ("interleaved", "bfs")),
        *({"schedule": one, "p": 4, "m": 10} for one in ("interleaved-zb", "dualpipe")),
        {"schedule": "dualpipev", "p": 4, "m": 10, "t_pair": 2.5, "t_send": 0.1},
        {"schedule": "1f1b", "p": 64, "m": 512, "ops": False},
        {"schedule": "dualpipe", "p": 3, "m": 8},
        {"schedule": "interleaved", "p": 4, "m": 6, "v": 1},
        {"p": 0},
        {"t_f": -1.0},
    ],
    "memory_per_rank": [{**one, "capacity": 40.0} for one in TRAINED],
    "traffic_per_step": [
        *TRAINED,
        {**TRAINED[1], "cluster": "gb200-nvl72", "cp_algorithm": "a2a"},
        {"cluster": "x"},
    ],
    "estimate": [*TRAINED, {**TRAINED[1], "cluster": "gb200-nvl72", "capacity": 96.0}],
    "better_layouts": [*TRAINED, {**TRAINED[0], "capacity": 24.0, "cluster": "dgx-a100"}],
    "compare": [
        *({**one, "kept": "~zero=3"} for one in TRAINED),
        {"kept": "llama3-405b-1", "model": "llama3-405b", "nodes": 2048, "tp": 8, "pp": 16},
        {"kept": SCRIPT, **SMALL},
        {"kept": "?v=2&tp=3"},
        {"kept": "nothing"},
        {"kept": 5},
    ],
}
"""Arguments of each endpoint that are its own."""

NEEDED = {"shared_by_ranks": {"ranks": "0, 9"}, "compare": {"kept": "?v=2&tp=4"}}
"""What an endpoint needs beside a layout to answer at all."""

WITHOUT_LAYOUT = ("read_launch", "read_hosts", "pipeline_schedule")
"""Endpoints that take no layout."""


def endpoints() -> Iterator[Case]:
    for name, own in OWN.items():
        shared = LAYOUTS[name == "layout" :] if name not in WITHOUT_LAYOUT else ()
        for arguments in (*({**NEEDED.get(name, {}), **one} for one in shared), *own):
            said = ", ".join(f"{one}={value!r}" for one, value in arguments.items())
            yield f"endpoints/{name}({_short(said)})", partial(endpoint, name, arguments)


# -- commands ------------------------------------------------------------------------------------

LOG = "[rank3]: Watchdog caught collective operation timeout\n[rank 11]: same\n"
OF_LAYOUT = ("groups", "ranks", "rank 5", "share 3,11", "audit", "layout", "emit")
ASKED = (
    *("--nodes 2 --tp 2 --pp 2", "--preset deepseek-v3", "--preset bloom-176b"),
    *("--nodes 4 --cp 4 --levels 2x2 --instances 2", "--nodes 2 --tp 3", "--args -"),
)
"""Options of a layout, for each of the commands above."""

COMMANDS: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("--help", ""),
    ("--nodes 2 --tp 2 --pp 2 dp tp", ""),
    ("groups --nodes 2 --tp 2 ep edp --ep 4 --etp 1", ""),
    ("groups --nodes 2 what", ""),
    ("ranks --nodes 1 --tp 2 tp --framework llama3", ""),
    ("ranks --nodes 1 --order dp-tp-cp-ep-pp --tp 2 dp --format json", ""),
    ("rank", ""),
    ("rank 99", ""),
    ("rank 0 --framework gpipe --pp 8", ""),
    ("share - --nodes 2 --tp 8", LOG),
    ("share - --nodes 1", "nothing"),
    ("share 0-7 --nodes 2 --pp 2 --format json", ""),
    ("audit --nodes 9 --tp 8 --domains 8,72", ""),
    ("audit tp --nodes 2 --tp 8 --domains x", ""),
    ("layout --nodes 3 --hybrid --cp 2", ""),
    ("layout --hybrid --pp 2 --nodes 2", ""),
    ("layout extra", ""),
    ("emit torchtitan --nodes 2 --tp 2", ""),
    ("emit torchtitan-toml --nodes 2 --tp 2 --pp 2", ""),
    ("emit nemo --preset llama3-405b-16k", ""),
    ("emit deepspeed --nodes 2", ""),
    ("emit deepspeed --nodes 2 --tp 2", ""),
    ("emit megatron-deepspeed --framework megatron-deepspeed --nodes 2 --tp 2 --pp 2", ""),
    ("emit jax", ""),
    ("emit --format json", ""),
    ("check -", "{}"),
    ("check -", "[" * 50),
    ("check /no/such/file", ""),
    *((f"presets {word} --format {form}", "") for word in ("", "llama") for form in FORMATS),
    *((f"frameworks {word} --format {form}", "") for word in ("", "speed") for form in FORMATS),
    ("--tp", ""),
    ("--tp two", ""),
    ("--nodes 1 --zz", ""),
    ("--preset nobody", ""),
    ("--args - --tp 2", TITAN),
    ("--nodes 99999999", ""),
)


def commands() -> Iterator[Case]:
    forms = itertools.cycle(FORMATS)
    asked = [
        (f"{name} {options} --format {form}", SCRIPT)
        for name, options in itertools.product(OF_LAYOUT, ASKED)
        for form in ((next(forms),) if name != "emit" else ("text",))
    ]
    document = command(["--tp", "2", "--format", "json"]).split("\n", 1)[1]
    checked = ("check -", document.split("\n-- errors")[0])
    for line, stdin in (*asked, *COMMANDS, checked):
        yield f"commands/{_short(line)}", partial(command, line.split(), stdin)


# -- links ---------------------------------------------------------------------------------------


def links() -> Iterator[Case]:
    """Links as people have kept them, good, refused and bad ones, each with a reader's language."""
    for line in (Path(__file__).parent / "links.txt").read_text(encoding="utf-8").splitlines():
        language, _, query = line.partition(" ")
        yield f"links/{language} {_short(query)}", partial(page_of, query, language)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "views": views,
    "endpoints": endpoints,
    "commands": commands,
    "links": links,
}
