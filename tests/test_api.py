"""The endpoint that programs call, through Gradio's own client and through raw HTTP."""

from __future__ import annotations

import json

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from groups import fit, rank_groups


@pytest.fixture(scope="module")
def client(server):
    return Client(server, verbose=False)


def layout(client, **changes):
    return json.loads(client.predict(api_name="/layout", **changes))


def test_the_endpoint_answers_with_megatrons_groups(client):
    found = layout(client, group_type="dp+tp", nodes=2, gpus_per_node=8, tp=2, pp=2)
    mesh = fit(16, tp=2, pp=2)
    assert found["mesh"] == str(mesh)
    assert (found["world_size"], found["dp"]) == (16, 4)
    assert found["groups"] == {kind: rank_groups(mesh, kind).tolist() for kind in ("dp", "tp")}
    assert found["nodes_spanned"] == {"dp": [1] * 4, "tp": [1] * 8}


def test_the_joined_group_has_a_name_of_its_own(client):
    found = layout(client, group_type="cp+dp", cp=2, dp_kind="dp-cp")
    assert list(found["groups"]) == ["cp", "dp-cp"]


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
    "an order that is none": ({"order": "pp"}, "'pp' is not a choice of order"),
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
    body = f'{{"data": ["dp", 2, 8, {number}, 1, 1, "tp-cp-dp-pp", "dp"]}}'
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
