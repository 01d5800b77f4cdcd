"""What people paste is read, asked for or remarked on: families of texts with their right answers.

Each row of tests/data/pasted.jsonl is a text, a command, the facts that it has to tell (one of
several sets), and words: ``ask`` of a refusal that is right too, ``remark`` that makes another
reading honest, ``never`` of a sentence that is false. Its ``rule`` has the source.
"""

from __future__ import annotations

import io
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from cli.command import run
from formats.launch import parse
from request.context import Context
from request.named.launch import pasted_changes
from request.state import State
from views.launch.view import launch_html

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "pasted.jsonl").read_text("utf-8").splitlines()
]
ROWS_BY_ID = {row["id"]: row for row in ROWS}
KINDS = sorted({row["id"].split("/")[0] for row in ROWS})


def sizes(text: str | None) -> dict[str, int]:
    return {axis: int(size) for axis, size in re.findall(r"([a-z]+)(\d+)", text or "")}


def of_layout(document: dict) -> dict[str, object]:
    job, meshes = document.get("job", {}), document.get("meshes", {})
    dense, expert = sizes(meshes.get("dense")), sizes(meshes.get("expert"))
    facts = {name: job.get(name) for name in ("nodes", "gpus_per_node", "framework")}
    facts |= {"dcp": job.get("dcp", 1), "world": document.get("world_size")}
    facts |= {axis: dense.get(axis, job.get(axis)) for axis in ("tp", "pp", "cp", "dp")}
    return facts | {axis: expert.get(axis, job.get(axis)) for axis in ("ep", "etp", "edp")}


def of_memory(document: dict) -> dict[str, object]:
    facts = of_layout(document) | document.get("training", {})
    names = ("model", "parameters", "max_model_len", "token_bytes", "weights_format")
    facts |= {name: document.get(name) for name in names}
    if document.get("parameters"):
        facts["parameters_b"] = document["parameters"] / 1e9
    facts["stage_layers"] = [stage.get("layers") for stage in document.get("stages", [])]
    return facts


def of_roles(document: dict) -> dict[str, object]:
    roles, gpus = document.get("roles", []), set()
    facts: dict[str, object] = {"names": sorted(role["name"] for role in roles)}
    for role in roles:
        for first, last in role.get("spans", []):
            gpus |= {*range(first, last + 1)}
        own = {name: role.get(name) for name in ("gpus", "engines", "framework", "first")}
        own = {"etp": 1, **own, **role.get("sizes", {})}
        facts |= {f"{role['name']}.{name}": value for name, value in own.items()}
        facts |= own if len(roles) == 1 else {}
    return facts | {"world": len(gpus)}


def of_share(document: dict) -> dict[str, object]:
    waits = [
        (wait.get("seq"), sorted(wait.get("waiting") or []))
        for link in document.get("chain", [])
        for wait in link.get("waits", [])
    ]
    first = next((fact for fact in document.get("facts", []) if fact.get("op")), {})
    blame = {*document.get("missing", []), *document.get("suspects", [])}
    return {"blame": sorted(blame), "op": first.get("op"), "seq": first.get("seq"), "waits": waits}


def of_slow(document: dict) -> dict[str, object]:
    if verdict := document.get("verdict"):
        return {name: verdict.get(name) for name in ("kind", "ranks")}
    rows = document.get("rows", [])
    top = [row for row in rows if "rank" in str(row.get("names"))] or rows
    return {
        "kind": "rank" if top else "nobody",
        "ranks": [r for row in top[:1] for r in row["ranks"]],
    }


FACTS = {
    **{"layout": of_layout, "memory": of_memory, "roles": of_roles},
    **{"share": of_share, "slow": of_slow},
    "ranks": lambda document: {"host": document.get("placement", {}).get("host")},
}


def tells(facts: dict[str, object], right: dict[str, object]) -> bool:
    """Whether facts hold a whole set of right ones; ranges of a share or of billions are met."""
    right = dict(right)
    wait = (right.get("seq"), sorted(right.get("waiting", [])))
    if "waiting" in right and wait in (facts.get("waits") or []):
        del right["waiting"], right["seq"]
    for name, value in right.items():
        found = facts.get(name)
        if name.endswith("_b") and isinstance(value, list):
            if found is None or not value[0] <= found <= value[1]:
                return False
        elif found != (sorted(value) if name in ("blame", "names", "ranks") else value):
            return False
    return True


def answer(row: dict, folder: Path) -> tuple[int, str, str]:
    path = folder / row["file"]
    path.write_bytes(row["text"].encode())
    out, err = io.StringIO(), io.StringIO()
    start = {"order": "--hosts", "ranks": "--hosts", "share": "", "slow": ""}
    option = start.get(row["command"], "--args")
    argv = [row["command"], *filter(None, (option,)), str(path), *row["flags"], "--format", "json"]
    status = run(argv, io.StringIO(), out, err)
    return status, out.getvalue().replace(str(path), "F"), err.getvalue().replace(str(path), "F")


def wrong(row: dict, folder: Path) -> str:
    """Why the answer to a row is not right; empty if it is."""
    status, out, err = answer(row, folder)
    if row.get("never") and (match := re.search(row["never"], out + err)):
        return f"says {match[0]!r}"
    if status:
        asks = row.get("ask") and re.search(row["ask"], err)
        return "" if asks and "Traceback" not in err else f"refuses: {err.strip()[:300]}"
    document = json.loads(out)
    remarked = row.get("remark") and re.search(row["remark"], err + out)
    if row["command"] == "order":
        hosts, racks = document["hosts"], row["racks"]
        hops = sum(racks[a] != racks[b] for a, b in pairwise(hosts))
        return "" if hops == row["right"][0]["hops"] else f"{hops} hops"
    if "right" not in row:
        return "" if remarked else "answers where it must ask"
    facts = FACTS[row["command"]](document)
    return "" if any(tells(facts, one) for one in row["right"]) or remarked else f"tells {facts}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_of_the_layout_is_read_asked_or_named(kind, tmp_path):
    found = {
        f"{row['id']} {row['command']}": why
        for row in ROWS
        if row["id"].split("/")[0] == kind and (why := wrong(row, tmp_path))
    }
    assert not found


def test_a_script_is_given_back_with_every_option_of_the_plan_on_screen():
    """Not only sizes: etp, virtual stages, recomputation and overlap, as Megatron calls them."""
    text = ROWS_BY_ID["dialect_layers/moe_layer_freq"]["text"]
    state = State(paste=text)
    state = state.changed(pasted_changes(state, parse(text)))
    changes = {"tp": "2", "etp": "1", "recompute": "full", "ep_overlap": "on", "vpp": "2"}
    shown = str(launch_html(Context.of(state.changed(changes))))
    for option in (
        "--expert-tensor-parallel-size 1",
        "--num-virtual-stages-per-pipeline-rank 2",
        "--recompute-granularity full",
        "--overlap-moe-expert-parallel-comm",
    ):
        assert option in shown, option


def test_roles_of_one_node_move_weights_within_it(tmp_path):
    """A role's own number of GPUs is not the node: the actor is on GPUs 0-1, the engines on 2-5."""
    path = tmp_path / "run.sh"
    path.write_text(
        "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 2 --rollout-num-gpus 4"
        " --tensor-model-parallel-size 2 --rollout-num-gpus-per-engine 1"
        " --hf-checkpoint Qwen/Qwen3-8B"
    )
    out, err = io.StringIO(), io.StringIO()
    argv = ["moves", "--from", str(path), "--to", "role:rollout", "--format", "json"]
    assert run(argv, io.StringIO(), out, err) == 0, err.getvalue()
    moved = json.loads(out.getvalue())["bytes"]
    assert moved["between_nodes"] == 0 < moved["in_node"]
