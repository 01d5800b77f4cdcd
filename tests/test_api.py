"""The endpoints that programs call, through Gradio's own client and in raw HTTP."""

from __future__ import annotations

import ast
import json
import re

import httpx
import pytest
from documents import ranks_json
from endpoints import RefusedError
from gradio_client import Client
from markupsafe import escape
from pages import from_sent

from descriptions import TYPES
from formats.check.script import check_script
from groups import fit, rank_groups
from groups.layout import Job
from groups.megatron.parallel_state import process_groups
from request.answers.compare.api import SERVING
from request.answers.launch import OPEN_TRAINING
from request.answers.moves.api import PLAN
from request.answers.moves.cache import CACHED
from request.endpoint import LAYOUT
from request.state import texts_of
from request.trained_endpoint import TRAINING
from views.all import ENDPOINTS
from views.page import answer


def layout(client, **changes):
    return json.loads(client("layout", **changes))


def test_the_endpoint_answers_with_megatrons_groups(server, client):
    job = {"group_type": "dp+tp", "nodes": 2, "gpus_per_node": 8, "tp": 2, "pp": 2}
    found = json.loads(Client(server, verbose=False).predict(api_name="/layout", **job))
    assert found == layout(client, **job)
    mesh = fit(16, tp=2, pp=2)
    assert found["mesh"] == str(mesh)
    assert (found["world_size"], found["dp"], found["edp"]) == (16, 4, 4)
    assert found["groups"] == {kind: rank_groups(mesh, kind).tolist() for kind in ("dp", "tp")}
    assert found["nodes_spanned"] == {"dp": [1] * 4, "tp": [1] * 8}


def test_the_joined_group_has_a_name_of_its_own(client):
    found = layout(client, group_type="cp+dp", cp=2, dp_kind="dp-cp")
    assert list(found["groups"]) == ["cp", "dp-cp"]


def test_the_endpoint_knows_experts_frameworks_orders_and_every_group(client):
    more = "embd tp-ep-pp intra-dist-opt"
    found = layout(client, group_type="moe", nodes=4, tp=2, pp=2, ep=8, etp=1, more=more)
    assert (found["mesh"], found["expert_mesh"]) == ("tp2-cp1-dp8-pp2", "etp1-ep8-edp2-pp2")
    assert (found["dp"], found["edp"]) == (8, 2)
    wanted = process_groups(32, tp=2, pp=2, ep=8, etp=1)
    names = [*TYPES["moe"].kinds, *more.split()]
    assert found["groups"] == {name: wanted[name].tolist() for name in names}
    assert found["nodes_spanned"]["ep"] == [1] * 4
    assert found["nodes_spanned"]["tp-ep-pp"] == [2, 2]
    ordered = layout(client, nodes=4, tp=2, pp=2, order="dp-tp-cp-ep-pp")
    assert ordered["mesh"] == "dp8-tp2-cp1-pp2"
    llama = layout(client, nodes=4, tp=2, pp=2, framework="llama3")
    assert (llama["mesh"], llama["expert_mesh"], llama["edp"]) == ("tp2-cp1-pp2-dp8", None, None)
    own = layout(client, group_type="framework", nodes=4, tp=2, pp=2, framework="deepspeed")
    assert own["groups"]["data"] == wanted["dp"].tolist()


BAD = {
    "a size that does not divide": (
        {"tp": 3},
        "does not divide 16 GPUs; try tp 2, tp 4 or nodes 3",
    ),
    "text": ({"tp": "two"}, "tp must be a whole number"),
    "a number as text": ({"tp": "2"}, "tp must be a whole number"),
    "negative": ({"cp": -2}, "cp must be a whole number from 1"),
    "zero": ({"nodes": 0}, "nodes must be a whole number from 1"),
    "half": ({"nodes": 1.5}, "nodes must be a whole number"),
    "huge": ({"nodes": 10**15}, "more than the 131,072"),
    "a boolean": ({"tp": True}, "tp must be a whole number"),
    "nothing": ({"gpus_per_node": None}, "gpus_per_node must be a whole number"),
    "a list": ({"gpus_per_node": [8]}, "gpus_per_node must be a whole number"),
    "an object": ({"nodes": {"a": 1}}, "nodes must be a whole number"),
    "a type that is none": ({"group_type": "zz"}, "'zz' is not a choice of group_type"),
    "a type that is a list": ({"group_type": ["dp"]}, "is not a text"),
    "an order that leaves axes out": ({"order": "pp"}, "does not name it"),
    "an order with an unknown axis": ({"order": "tp-xx-dp-pp"}, "xx is not an axis"),
    "an order that is a list": ({"order": ["tp", "dp", "pp"]}, "is not a text"),
    "a framework that is none": ({"framework": "zz"}, "'zz' is not a choice of framework"),
    "an axis that a framework lacks": ({"framework": "llama3", "ep": 4}, "has no ep"),
    "ep that does not divide": (
        {"ep": 3},
        "ep 3 = 3 does not divide 16 GPUs; try ep 2, ep 4 or nodes 3",
    ),
    "ep as text": ({"ep": "4"}, "ep must be a whole number"),
    "etp as text": ({"etp": "2"}, "etp must be a whole number"),
    "a group that is none": ({"more": "embd nothing"}, "no group 'nothing'"),
    "groups that are numbers": ({"more": [3]}, "no group '3'"),
    "a dp kind that is none": ({"dp_kind": 7}, "'7' is not a choice of dp_kind"),
}


def test_bad_input_is_refused_in_words_and_the_server_goes_on(client):
    cases = {what: ("layout", *case) for what, case in BAD.items()}
    assert client.wrong_refusals(cases) == {}
    assert layout(client)["world_size"] == 16


def test_numbers_that_the_client_would_not_send_are_refused_in_words(client):
    for number in ("NaN", "Infinity", "-Infinity", "1e400", "9" * 4000):
        with pytest.raises(RefusedError, match="tp must be a whole number"):
            client.send(
                "layout", f'["dp", 2, 8, {number}, 1, 1, "", "dp", 1, null, "megatron", ""]'
            )
    assert layout(client)["world_size"] == 16


def test_a_broken_request_does_not_stop_the_server(client):
    for body in ("", "{", "[]", '{"data": 3}', '{"data": []}', '{"data": [[[]]]}'):
        assert "Traceback" not in client.post("layout", body).text
    assert layout(client)["world_size"] == 16


# -- the typed endpoints -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named(server):
    return httpx.get(f"{server}gradio_api/info").json()["named_endpoints"]


def test_only_the_documented_endpoints_are_public(server, named):
    assert list(named) == [f"/{name}" for name in ENDPOINTS]
    assert httpx.get(f"{server}gradio_api/info").json()["unnamed_endpoints"] == {}


SCHEMA = {int: "integer", str: "string", float: "number", bool: "boolean"}
OWN_PARAMETERS = {
    "process_groups": {"names": str, "hosts": str, "racks": str},
    "rank_table": {"hosts": str, "racks": str, "first": int},
    "rank_card": {"rank": int, "hosts": str, "racks": str},
    "node_audit": {"hosts": str, "racks": str},
    "shared_by_ranks": {"ranks": str, "hosts": str, "racks": str},
    "launch_command": {"target": str},
    "cluster_check": {"names": str, "megabytes": int, "hosts": str, "racks": str},
    "read_launch": {"text": str, "run": str},
    "collective": {
        **dict.fromkeys(("operation", "direction", "group", "tensors", "shape", "values"), str),
        **{"root": int, "algorithm": str, "megabytes": float, "gigabytes_per_second": float},
    },
    "pipeline_schedule": {
        "schedule": str,
        **dict.fromkeys(("p", "m", "v", "group_size"), int),
        **dict.fromkeys(("t_f", "t_i", "t_w", "t_b", "t_pair", "t_send", "w_share"), float),
        **dict.fromkeys(("ops", "trace"), bool),
    },
    "read_hosts": {"text": str, "racks": str},
    "better_order": {
        **dict.fromkeys(("hosts", "racks", "objective", "model", "cluster"), str),
        "global_batch": int,
    },
    "slow_groups": {"measurements": str, "worse": str, "hosts": str},
    "slow_steps": {"traces": str},
    "memory_per_rank": {"capacity": float, "cluster": str},
    "traffic_per_step": {"cluster": str, "cp_algorithm": str},
    "estimate": {"cluster": str, "capacity": float, "cp_algorithm": str, "own_step": str},
    "better_layouts": {"cluster": str, "capacity": float, "cp_algorithm": str},
    "compare": {"kept": str, "cluster": str, "capacity": float, "cp_algorithm": str},
    "moves": {
        **dict.fromkeys(("to", "rule", "by", "cluster"), str),
        "first_rank": int,
        "rank": int,
    },
    "moves_check": {"to": str, "rule": str, "first_rank": int},
    "moves_cache": {
        **dict.fromkeys(("to", "rule"), str),
        **dict.fromkeys(("first_rank", "rank", "tokens"), int),
    },
    "roles": {"plan": str, "given": str, "rank": int},
}
OF_TRAINING = (
    *("memory_per_rank", "traffic_per_step", "estimate", "better_layouts", "compare"),
    *("moves", "moves_check"),
)


def shared_of(name):
    """The parameters that an endpoint has in common with others."""
    if name in ("read_launch", "read_hosts", "pipeline_schedule", "roles"):
        return {}
    training = TRAINING.rows if name in OF_TRAINING else {}
    if name == "moves_cache":
        training = CACHED.rows
    plan = PLAN.rows if name in ("moves", "moves_check") else {}
    more = SERVING.rows if name == "compare" else plan
    return {**(OPEN_TRAINING.rows if name == "launch_command" else training), **LAYOUT.rows, **more}


@pytest.mark.parametrize("name", OWN_PARAMETERS)
def test_an_endpoint_has_typed_parameters_with_defaults_and_a_description(named, name):
    shared = shared_of(name)
    wanted = {**OWN_PARAMETERS[name], **{one: row.kind for one, row in shared.items()}}
    told = named[f"/{name}"]
    assert {one["parameter_name"]: one["type"]["type"] for one in told["parameters"]} == {
        one: SCHEMA[kind] for one, kind in wanted.items()
    }
    assert all(one["parameter_has_default"] for one in told["parameters"])
    assert {
        one["parameter_name"]: one["parameter_default"]
        for one in told["parameters"]
        if one["parameter_name"] in shared
    } == {one: row.start for one, row in shared.items()}
    assert [one["type"]["type"] for one in told["returns"]] == ["string"]
    assert told["description"].startswith((ENDPOINTS[name].__doc__ or "").split("\n")[0])
    for one in wanted:
        assert f"\n    {one}: " in ENDPOINTS[name].__doc__
    assert "(the " not in ENDPOINTS[name].__doc__


SMALL = {"nodes": 2, "gpus_per_node": 4, "tp": 2, "pp": 2}


def test_process_groups_are_megatrons(client):
    wanted = process_groups(8, tp=2, pp=2)
    found = json.loads(client("process_groups", names="dp tp embd", **SMALL))
    assert (found["schema"], found["world_size"]) == ("parallel-groups", 8)
    groups = {name: one["groups"] for name, one in found["groups"].items()}
    assert groups == {name: wanted[name].tolist() for name in ("dp", "tp", "embd")}
    every = json.loads(client("process_groups", **SMALL))["groups"]
    assert list(every) == list(Job(**SMALL).layout().every)


def test_an_endpoint_takes_every_parameter_of_a_layout(client):
    job = {"nodes": 4, "tp": 2, "pp": 2, "ep": 4, "etp": 1, "instances": 2}
    found = json.loads(client("process_groups", names="ep intra-dist-opt", **job))
    every = Job(**job).layout().every
    assert {name: one["groups"] for name, one in found["groups"].items()} == {
        name: every[name].groups().tolist() for name in ("ep", "intra-dist-opt")
    }
    own = json.loads(client("rank_card", rank=1, order="dp-tp-cp-ep-pp", **SMALL))
    assert own["dense"] == {"dp": 1, "tp": 0, "cp": 0, "pp": 0}
    llama = json.loads(client("rank_card", rank=7, framework="llama3", **SMALL))
    assert (llama["dense"], llama["expert"]) == ({"tp": 1, "cp": 0, "pp": 1, "dp": 1}, None)


def test_the_rank_table_has_every_rank(client):
    found = json.loads(client("rank_table", **SMALL))
    assert found["schema"] == "parallel-ranks"
    assert found == json.loads(ranks_json(Job(**SMALL).layout()))
    assert len(found["ranks"]) == 8


def test_the_rank_table_has_so_many_first_ranks_as_asked(client, named):
    whole, part = (json.loads(client("rank_table", first=count, **SMALL)) for count in (0, 3))
    assert part["ranks"] == whole["ranks"][:3]
    assert part.pop("first") == 3
    assert {**part, "ranks": 0} == {**whole, "ranks": 0}
    *_, last = named["/rank_table"]["parameters"]
    assert (last["parameter_name"], last["parameter_default"]) == ("first", 0)  # nothing moves
    with pytest.raises(RefusedError, match="first must be"):
        client("rank_table", first=9, **SMALL)


def test_the_card_of_a_rank(client):
    found = json.loads(client("rank_card", rank=6, **SMALL))
    assert (found["rank"], found["node"], found["local_rank"]) == (6, 1, 2)
    assert found["dense"] == {"tp": 0, "cp": 0, "dp": 1, "pp": 1}
    assert found["expert"] == {"etp": 0, "ep": 0, "edp": 1, "pp": 1}
    assert (found["pipeline_before"], found["pipeline_after"]) == (2, 2)
    wanted = process_groups(8, tp=2, pp=2)
    for name in ("tp", "dp", "pp", "mp", "embd"):
        (index,) = [i for i, ranks in enumerate(wanted[name].tolist()) if 6 in ranks]
        assert found["groups"][name] == {"index": index, "ranks": wanted[name][index].tolist()}


def test_a_rank_in_no_group_of_a_kind_says_so(client):
    found = json.loads(client("rank_card", rank=3, gpus_per_node=8, nodes=1, pp=4))
    assert found["groups"]["embd"] == {"index": None, "ranks": []}


def test_the_audit_counts_the_groups_that_leave_a_node(client):
    found = json.loads(client("node_audit", **SMALL))
    assert found["pp"]["4"] == {
        **{"groups": 4, "crossing": 4, "most_domains": 2},
        "waits_for_links": False,
    }
    assert found["tp"]["4"]["crossing"] == found["dp"]["4"]["crossing"] == 0
    assert {"4", "8", "16", "32", "72"} == set(found["tp"])


def test_the_groups_that_ranks_share(client):
    found = json.loads(client("shared_by_ranks", ranks="[rank5]: stuck, rank 7", **SMALL))
    assert found["ranks"] == [5, 7]
    first = found["together"][0]
    assert ("dp" in first["names"], first["ranks"]) == (True, [5, 7])
    assert (found["apart"]["tp"], found["apart"]["pp"]) == (2, 2)


def test_of_a_log_s_numbers_only_global_ranks_count(client):
    line = (
        "[rank5]: [PG ID 2 PG GUID 9(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Timeout at NCCL work: 7"
    )
    found = json.loads(client("shared_by_ranks", ranks=line, **SMALL))
    assert (found["ranks"], found["missing"]) == ([5], [])


def test_a_command_is_written_and_read(client):
    text = client("launch_command", target="nemo", **SMALL)
    assert "model.tensor_model_parallel_size=2" in text
    found = json.loads(client("read_launch", text=text))
    assert found["framework"] == "nemo"
    assert {name: found["values"][name] for name in SMALL} == SMALL
    assert found["problems"] == found["unresolved"] == []
    unread = ["model.virtual_pipeline_model_parallel_size=null", "--recipe"]
    assert [one["text"].split()[0] for one in found["ignored"]] == unread
    assert json.loads(client("read_launch"))["values"] == {}


SAID_OF_TRAINING = [
    {"model": "llama3-70b", "global_batch": 512, "micro_batch": 2, "zero": 0},
    {"precision": "fp16-fp16", "recompute": "partial", "products": "fp8", "zero": 3},
    {"sequence_parallel": "on", "vpp": 4, "account": True, "model": "bloom-176b"},
    {"sequence_parallel": "off", "recompute": "none"},
    {"sequence_parallel": True, "zero": 1},
    {"model": "own", "changes": {"hidden": 4096, "layers": 24, "gated": True}},
    {"changes": {"layers": "Ett|ttL", "heads": 32}, "model": "llama3-8b"},
    {"model": "deepseek-v3", "schedule": "interleaved", "changes": {"sequence": 128}},
]


def test_the_command_says_of_the_training_what_the_page_s_launch_view_does(client):
    """The same values as parameters and as the page's fields; alone, the options of a layout."""
    wrong = []
    bare = client("launch_command", **SMALL)
    for said in SAID_OF_TRAINING:
        given = {("memory_schedule" if name == "schedule" else name): said[name] for name in said}
        given |= {"changes": json.dumps(said["changes"])} if "changes" in said else {}
        stated = {name: value for name, value in said.items() if name != "changes"}
        fields = texts_of(stated | said.get("changes", {}))
        fields |= {"account": "1"} if "account" in said else {}
        page = from_sent(json.dumps({**fields, **SMALL, "view": "launch"}))
        copies = re.findall(r"<pre[^>]*>(.*?)</pre>", answer(page).picture, re.DOTALL)
        text = client("launch_command", **given, **SMALL)
        if escape(text) not in copies or text == bare:
            wrong.append((said, text, copies[0]))
    assert not wrong


def test_what_is_read_says_where_it_stands(client):
    text = "torchrun --nnodes 2 train.py \\\n    --tensor-model-parallel-size eight $MORE --lr 1"
    found = json.loads(client("read_launch", text=text))
    shown = {
        part: [(one["line"], one["column"], one["text"]) for one in found[part]]
        for part in ("understood", "ignored", "unresolved", "problems")
    }
    assert shown == {
        "understood": [(1, 10, "--nnodes 2")],
        "ignored": [(2, 46, "--lr 1")],
        "unresolved": [(2, 40, "$MORE")],
        "problems": [(2, 34, "eight")],
    }
    (problem,) = found["problems"]
    assert problem["sentence"] == "--tensor-model-parallel-size must be a whole number, not eight."
    # What the text tried to say is asked for, never assumed.
    assert "tp is not given, and nothing says what it is: give it." in found["missing"]
    assert "pp is not given: 1 is assumed." in found["missing"]


def test_the_check_is_a_script_about_the_job(client):
    text = client("cluster_check", names="tp pp", megabytes=1, **SMALL)
    ast.parse(text)
    assert text == check_script(Job(**SMALL).layout(), ["tp", "pp"], megabytes=1)
    assert "\nWORLD_SIZE = 8\n" in text


REFUSED = {
    "a size that does not divide": (
        "process_groups",
        {"tp": 3},
        "does not divide 16 GPUs; try tp 2 or tp 4. "
        "Megatron says: world_size (16) is not divisible by 3",
    ),
    "text": ("rank_table", {"tp": "two"}, "tp must be a whole number"),
    "zero": ("node_audit", {"nodes": 0}, "nodes must be a whole number from 1"),
    "nothing": ("node_audit", {"etp": None}, "etp must be a whole number from 0"),
    "a boolean": ("rank_table", {"instances": True}, "instances must be a whole number"),
    "too many GPUs": ("rank_table", {"nodes": 20_000}, "more than the 131,072 that can be shown"),
    "huge": (
        "process_groups",
        {"nodes": 10**15},
        "more than the 131,072 that can be shown; try nodes 16384",
    ),
    "an order of one long name": ("layout", {"order": "a" * 200_000}, "… is not an axis"),
    "a run that is a list": ("read_launch", {"run": []}, "[] is not a text"),
    "a cluster, though no model asks": (
        "better_order",
        {"hosts": "host,rack\na,r0\nb,r1", "cluster": "zz"},
        "'zz' is not a choice of cluster",
    ),
    "a batch, though no model asks": (
        "better_order",
        {"hosts": "host,rack\na,r0\nb,r1", "global_batch": -3},
        "global_batch must be a whole number from 0",
    ),
    "a framework that is none": ("rank_card", {"framework": "zz"}, "'zz' is not a choice of"),
    "a framework that is a list": ("rank_card", {"framework": ["megatron"]}, "is not a text"),
    "an axis that a framework lacks": ("rank_table", {"framework": "llama3", "ep": 2}, "no ep"),
    "an order that is a list": ("rank_table", {"order": ["tp"]}, "is not a text"),
    "a group that is none": ("process_groups", {"names": "dp zz"}, "no group 'zz'"),
    "names that are a list": ("process_groups", {"names": ["dp"]}, "is not a list of group names"),
    "names that are none": ("cluster_check", {"names": None}, "is not a list of group names"),
    "a check of nothing": ("cluster_check", {"names": "zz"}, "no group 'zz'"),
    "a size of a buffer": ("cluster_check", {"megabytes": -1}, "from 0 to 65,536"),
    "a rank that there is not": ("rank_card", {"rank": 16}, "there is no rank 16"),
    "a rank as text": ("rank_card", {"rank": "1"}, "rank must be a whole number"),
    "ranks that are none": ("shared_by_ranks", {"ranks": "all"}, "'all' is not a list of ranks"),
    "no ranks": ("shared_by_ranks", {}, "is not a list of ranks"),
    "ranks beyond the world": ("shared_by_ranks", {"ranks": "3, 16"}, "there is no rank 16"),
    "a ZeRO stage of a command that is none": (
        "launch_command",
        {"zero": 7},
        "'7' is not a choice of zero",
    ),
    "a switch that is none": (
        "launch_command",
        {"sequence_parallel": "yes"},
        "'yes' is not a choice of sequence_parallel",
    ),
    "a size of a model that no model has": (
        "launch_command",
        {"changes": '{"hidden": -1}'},
        "hidden must be a whole number from 1",
    ),
    "a target that is none": ("launch_command", {"target": "zz"}, "'zz' is not a choice of target"),
    "a target that is a list": (
        "launch_command",
        {"target": ["nemo"]},
        "is not a choice of target",
    ),
    "a target without words": (
        "launch_command",
        {"target": "deepspeed", "pp": 2},
        "option for pp 2",
    ),
    "a command that is a number": ("read_launch", {"text": 3}, "3 is not a text"),
    "a command that is too long": ("read_launch", {"text": "x" * 200_001}, "more than 200,000"),
}


def test_an_endpoint_refuses_in_words_and_the_server_goes_on(client):
    assert client.wrong_refusals(REFUSED) == {}
    assert layout(client)["world_size"] == 16


def test_the_servers_settings_stand():
    from app import LAUNCH

    assert LAUNCH["run_history"] is False
    assert LAUNCH["show_error"] is False
    assert LAUNCH["state_session_capacity"] <= 200
