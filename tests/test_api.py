"""The endpoint that programs call, through Gradio's own client and through raw HTTP."""

from __future__ import annotations

import json

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from descriptions import TYPES
from groups import fit, rank_groups
from groups.megatron import process_groups


@pytest.fixture(scope="module")
def client(server):
    return Client(server, verbose=False)


def layout(client, **changes):
    return json.loads(client.predict(api_name="/layout", **changes))


def test_the_endpoint_answers_with_megatrons_groups(client):
    found = layout(client, group_type="dp+tp", nodes=2, gpus_per_node=8, tp=2, pp=2)
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
    "huge": ({"nodes": 10**15}, "more than the 1,048,576"),
    "a boolean": ({"tp": True}, "tp must be a whole number"),
    "nothing": ({"gpus_per_node": None}, "gpus_per_node must be a whole number"),
    "a list": ({"gpus_per_node": [8]}, "gpus_per_node must be a whole number"),
    "an object": ({"nodes": {"a": 1}}, "nodes must be a whole number"),
    "a type that is none": ({"group_type": "zz"}, "'zz' is not a choice of group_type"),
    "a type that is a list": ({"group_type": ["dp"]}, "is not a choice of group_type"),
    "an order that leaves axes out": ({"order": "pp"}, "does not name it"),
    "an order with an unknown axis": ({"order": "tp-xx-dp-pp"}, "xx is not an axis"),
    "an order that is a list": ({"order": ["tp", "dp", "pp"]}, "is not axis names"),
    "a framework that is none": ({"framework": "zz"}, "'zz' is not a choice of framework"),
    "an axis that a framework lacks": ({"framework": "llama3", "ep": 4}, "has no ep"),
    "ep that does not divide": (
        {"ep": 3},
        "ep 3 = 3 does not divide 16 GPUs; try ep 2, ep 4 or nodes 3",
    ),
    "ep as text": ({"ep": "4"}, "ep must be a whole number"),
    "etp as text": ({"etp": "2"}, "etp must be a whole number"),
    "a group that is none": ({"more": "embd nothing"}, "no group 'nothing'"),
    "groups that are numbers": ({"more": [3]}, "is not a list of group names"),
    "a dp kind that is none": ({"dp_kind": 7}, "7 is not a choice of dp_kind"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_words_and_the_server_goes_on(client, changes, message):
    with pytest.raises(AppError) as refusal:
        layout(client, **changes)
    assert message in str(refusal.value)
    assert "Traceback" not in str(refusal.value)
    assert layout(client)["world_size"] == 16


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 4000])
def test_numbers_that_the_client_would_not_send_are_refused_in_words(server, client, number):
    body = f'{{"data": ["dp", 2, 8, {number}, 1, 1, "", "dp", 1, null, "megatron", ""]}}'
    headers = {"content-type": "application/json"}
    call = httpx.post(f"{server}gradio_api/call/layout", content=body, headers=headers)
    event = call.json()["event_id"]
    told = httpx.get(f"{server}gradio_api/call/layout/{event}", timeout=30).text
    assert "event: error" in told
    assert "tp must be a whole number" in told
    assert layout(client)["world_size"] == 16


@pytest.mark.parametrize("body", ["", "{", "[]", '{"data": 3}', '{"data": []}', '{"data": [[[]]]}'])
def test_a_broken_request_does_not_stop_the_server(server, client, body):
    headers = {"content-type": "application/json"}
    reply = httpx.post(f"{server}gradio_api/call/layout", content=body, headers=headers)
    assert "Traceback" not in reply.text
    assert layout(client)["world_size"] == 16


def test_only_the_documented_endpoint_is_public(server):
    info = httpx.get(f"{server}gradio_api/info").json()
    assert list(info["named_endpoints"]) == ["/layout"]
    assert info["unnamed_endpoints"] == {}


def test_the_page_keeps_no_uploads(server):
    files = {"files": ("big.bin", b"0" * 100_000)}
    assert httpx.post(f"{server}gradio_api/upload", files=files).status_code in (400, 413, 500)


def test_the_servers_settings_stand():
    from app import LAUNCH

    assert LAUNCH["run_history"] is False
    assert LAUNCH["show_error"] is False
    assert LAUNCH["state_session_capacity"] <= 200
