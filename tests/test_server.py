"""What the server takes in and what it refuses, by raw HTTP: statuses, bytes and headers."""

from __future__ import annotations

import gc
import http.client
import inspect
import json
import re
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from guarded import guard_of, run, told

from request.answers.hang.files import log_of
from request.answers.launch import launch_command
from request.inputs import FIELDS
from views.all import ENDPOINTS
from views.server import bodies, guard
from views.server.bodies import LARGEST_BODY, LARGEST_EVIDENCE
from views.server.guard import LARGEST_NAMES, NAMES_ONLY

API = "gradio_api/"
UPLOADS = ("upload", "upload?upload_id=1")
UPLOADS += ("process_recording", "stream/x", "vibe-edit", "../login", "upload/")
POSTS = (
    "component_server",
    "call/layout",
    "queue/join",
    "api/layout",
    "call/v2/layout",
    "cancel",
    "reset",
)
HEADERS = {"content-type": "application/json"}
CLIENT = httpx.Client(timeout=60)


def post(server: str, path: str, content: object, **headers: str) -> httpx.Response:
    body = content if isinstance(content, (bytes, str, Iterator)) else json.dumps(content)
    return CLIENT.post(f"{server}{API}{path}", content=body, headers={**HEADERS, **headers})


SCRIPT = 45
CONTROLS = 11


def ask(state: object = "{}") -> dict[str, object]:
    """What the page's script asks beside the event."""
    return {"data": state, "component_id": SCRIPT, "fn_name": "lens", "session_hash": "x"}


def draw(**settings: object) -> dict[str, object]:
    """The page's event: what its components have at the start, but for these fields."""
    values = [*(CONTROLS - 1) * [None], settings]
    return {"data": values, "fn_index": 0, "session_hash": "x", "trigger_id": None}


def test_the_page_is_wired_by_one_event_whose_inputs_are_what_the_tests_ask(server):
    config = CLIENT.get(f"{server}config").json()
    components = {one["id"]: one["props"] for one in config["components"]}
    (event, told) = [one for one in config["dependencies"] if one["targets"] or not one["api_name"]]
    fields = [components[one].get("props", {}).get("field") for one in event["inputs"]]
    assert components[SCRIPT]["elem_id"] == "page-script"
    sizes = ["nodes", "gpus_per_node", "tp", "pp", "cp"]
    assert fields == ["group_type", "preset", *sizes, "rank", "view", "lang", "settings"]
    assert event["targets"] == [[one, "input"] for one in event["inputs"]]
    assert len(fields) == CONTROLS
    shown = [components[one]["component_class_name"] for one in event["outputs"]]
    assert shown.count("Picture") == shown.count("Settings") == shown.count("ToldBeside") == 1
    assert shown.count("SizeSlider") == len(sizes)
    assert (told["trigger_after"], told["inputs"]) == (event["id"], event["outputs"][-1:])


def files_kept() -> set[str]:
    from gradio.utils import get_upload_folder  # after app, which imports Gradio without its stubs

    return {str(path) for path in Path(get_upload_folder()).rglob("*") if path.is_file()}


@pytest.mark.parametrize("path", POSTS)
def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(server, path):
    connection = http.client.HTTPConnection(urlsplit(server).netloc)
    connection.putrequest("POST", f"/{API}{path}")
    connection.putheader("Content-Length", str(60_000_000))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    limit = LARGEST_NAMES if f"/{API}{path}" in NAMES_ONLY else LARGEST_BODY
    assert f"may have {limit:,} bytes" in json.loads(answer.read())["detail"]
    connection.close()


def test_a_body_in_chunks_is_counted_while_it_arrives(server):
    def chunks(size: int) -> Iterator[bytes]:
        yield b'{"data": "{}", "component_id": %d, "fn_name": "lens", "event_data": "' % SCRIPT
        yield from (b"x" * 50_000 for _ in range(size // 50_000))
        yield b'"}'

    assert post(server, "component_server", chunks(900_000)).status_code == 200
    assert post(server, "component_server", chunks(1_000_000)).status_code == 413


def test_the_largest_body_is_taken(server):
    body = json.dumps(ask())
    assert post(server, "component_server", body.ljust(LARGEST_BODY)).status_code == 200
    assert post(server, "component_server", body.ljust(LARGEST_BODY + 1)).status_code == 413


def test_a_body_that_never_ends_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(bodies, "LONGEST_WAIT", 0.05)
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
    connection.putrequest("POST", f"/{API}component_server")
    connection.putheader("Content-Length", "100")
    connection.endheaders(b"{")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["connection"]) == (408, "close")  # the rest is not read
    connection.close()


@pytest.mark.parametrize("path", UPLOADS)
def test_no_file_is_taken_from_anybody(server, path):
    before = files_kept()
    files = [("files", (f"{number}.bin", b"0" * 1000)) for number in range(50)]
    url = httpx.URL(f"{server}{API}{path}")
    for headers in ({}, {"Origin": "https://elsewhere.example"}):
        assert CLIENT.post(url, files=files, headers=headers).status_code == 403
    assert files_kept() == before


def test_no_address_makes_the_server_write_a_file(server):
    before = files_kept()
    assert post(server, "run/predict", draw()).status_code == 200
    assert CLIENT.get(f"{server}{API}deep_link?session_hash=x").status_code == 404
    assert files_kept() == before


ADDRESSES = ("", "config", "theme.css", "nothing", f"{API}info", f"{API}upload", f"{API}nothing")


def test_security_headers_go_with_every_answer(server):
    answers = [CLIENT.get(server + address) for address in ADDRESSES]
    answers += [CLIENT.head(server), post(server, "run/predict", draw())]
    answers += [post(server, "run/nothing", draw()), post(server, "upload", b"")]
    answers += [post(server, "component_server", b"x" * (LARGEST_BODY + 1))]
    assert {answer.status_code for answer in answers} == {200, 403, 404, 405, 413}
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        policy = answer.headers["content-security-policy"]
        assert "object-src 'none'" in policy
        assert policy.endswith("frame-ancestors 'self'")


def test_the_page_and_its_answers_are_compressed_and_streams_are_not(server):
    def encoding(answer: httpx.Response) -> str | None:
        return answer.headers.get("content-encoding")

    page = CLIENT.get(server, headers={"accept-encoding": "gzip"})
    assert encoding(page) == "gzip"
    assert page.num_bytes_downloaded < len(page.content) / 5
    assert encoding(CLIENT.get(server, headers={"accept-encoding": "identity"})) is None
    drawn = post(server, "run/predict", draw(), **{"accept-encoding": "gzip"})
    assert encoding(drawn) == "gzip"
    assert drawn.json()["data"][-1]["view"] == "groups"
    event = post(server, "call/layout", {"data": []}).json()["event_id"]
    with CLIENT.stream("GET", f"{server}{API}call/layout/{event}") as stream:
        assert encoding(stream) is None
        assert "event: complete" in stream.read().decode()
    (asset,) = set(re.findall(r'src="./(assets/index-[^"]+.js)"', page.text))
    packed = CLIENT.get(f"{server}{asset}", headers={"accept-encoding": "gzip, br"})
    assert encoding(packed) == "br"  # once, by Gradio


def test_the_page_is_embedded_only_where_its_address_or_a_space_asks_for_it(server, monkeypatch):
    def ancestors(query: str) -> str:
        policy = CLIENT.get(server + query).headers["content-security-policy"]
        return policy.rpartition("frame-ancestors ")[2]

    assert ancestors("?embed=1") == ancestors("?v=1&tp=2&embed=1") == "*"
    assert ancestors("?embed=0") == ancestors("?tp=embed=1") == ancestors("") == "'self'"
    monkeypatch.setenv("SPACE_ID", "somebody/page")
    assert "https://huggingface.co" in ancestors("").split()


JOIN = {"session_hash": "mistakes", "event_data": None, "trigger_id": None}
FILE = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
MISTAKES = {
    "no JSON": ("component_server", b"{", 400),
    "JSON too deep to read": ("queue/join", b"[" * 100_000, 400),
    "a number too long to read": ("component_server", b'{"data": [%s]}' % (b"9" * 9_000), 400),
    "no text at all": ("call/layout", b"\xff\xfe", 400),
    "a list": ("component_server", [1], 422),
    "no values": ("component_server", {}, 404),
    "no list of values": ("queue/join", {**JOIN, "fn_index": 2, "data": {"a": 1}}, 422),
    "too many values": ("call/layout", {"data": [""] * 99}, 422),
    "no text to draw": ("component_server", ask(["{}", 1]), 422),
    "a file in place of a text": ("component_server", ask({"path": "/etc/passwd"}), 422),
    "no function of ours": ("component_server", {**ask(), "fn_name": "postprocess"}, 404),
    "no function by a list": ("component_server", {**ask(), "fn_name": ["lens"]}, 404),
    "no component": ("component_server", {**ask(), "component_id": "1"}, 404),
    "an event that there is not": ("queue/join", {**JOIN, "fn_index": 9_999, "data": []}, 404),
    "an event below zero": ("run/predict", {"fn_index": -1, "data": []}, 404),
    "an event by a text": ("run/predict", {"fn_index": "1", "data": []}, 404),
    "an event by a list": ("run/predict", {"fn_index": [], "data": []}, 404),
    "a name that there is not": ("call/nothing", {"data": []}, 404),
    "a name that there is not, anew": ("call/v2/nothing", {}, 404),
    "a parameter that there is not": ("call/v2/layout", {"colour": "red"}, 400),
    "a file in place of hosts": ("call/read_hosts", {"data": [FILE]}, 422),
    "a file in a list": ("call/read_hosts", {"data": [[[FILE]]]}, 422),
    "a file whose kind is a number": ("call/read_hosts", {"data": [{**FILE, "meta": 3}]}, 422),
    "a file by its parameter's name": ("call/v2/read_hosts", {"text": FILE}, 422),
    "a file by its name in a list": ("call/v2/rank_card", {"rank": [0, {"a": FILE}]}, 422),
    "a file in place of a number": ("queue/join", {**JOIN, "fn_index": 2, "data": [FILE]}, 422),
    "nothing to cancel": ("cancel", {"session_hash": "x", "fn_index": 99, "event_id": "x"}, 200),
    "nothing to reset": ("reset", {}, 422),
}


def test_a_visitors_mistakes_are_answered_in_words_and_leave_no_traceback(server, capfd, caplog):
    wrong = []
    for name, (path, content, status) in MISTAKES.items():
        answer = post(server, path, content)
        if answer.status_code != status:
            wrong.append((name, answer.status_code, answer.text[:200]))
        elif status >= 400 and not answer.json()["detail"]:
            wrong.append((name, answer.text))
    assert not wrong
    logged = "".join(capfd.readouterr()) + caplog.text
    assert "Traceback" not in logged, logged


def test_values_left_out_at_the_end_are_what_their_parameters_say(server):
    given = ["megatron", 4, 8, 2, 4, 1, 1, 0, "megatron", "", 1]  # before it took a training
    event = post(server, "call/launch_command", {"data": given}).json()["event_id"]
    told = CLIENT.get(f"{server}{API}call/launch_command/{event}").text
    said = json.loads(told.partition("data: ")[2].splitlines()[0])
    assert said == [launch_command(nodes=4, tp=2, pp=4)]


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_file_is_refused_by_every_endpoint_in_words(server, name):
    first = next(iter(inspect.signature(ENDPOINTS[name]).parameters))
    by_place = post(server, f"call/{name}", {"data": [FILE]})
    by_name = post(server, f"call/v2/{name}", {first: FILE})
    for answer in (by_place, by_name):
        assert (answer.status_code, first in answer.json()["detail"]) == (422, True)
        assert "send what the file says" in answer.json()["detail"]


def test_half_a_character_in_any_box_is_no_mistake(server):
    for name, row in FIELDS.items():
        for text in ("x\ud800", "\udc00: 1", '{"tp": "\ud800", "a": "\ud800"}'):
            asked = {"show": "launch", name: text, **({} if row.link else {"view": row.of})}
            answer = post(server, "run/predict", draw(**asked))
            assert answer.status_code == 200, (name, answer.text[:200])
            assert "view" in answer.json()["data"][-1]


def test_a_visitor_who_leaves_in_the_middle_leaves_no_traceback(server, capfd, caplog):
    host = urlsplit(server)
    request = f"POST /{API}run/draw HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Type: "
    request += "application/json\r\nContent-Length: {}\r\n\r\n{}"
    body = json.dumps(draw())
    for text in (
        request.format(500, '{"data"'),
        request.format(len(body), body),
        f"GET /{API}heartbeat/gone HTTP/1.1\r\nHost: {host.netloc}\r\n\r\n",
        f"GET /{API}queue/data?session_hash=gone HTTP/1.1\r\nHost: {host.netloc}\r\n\r\n",
        "no HTTP at all\r\n\r\n",
    ):
        with socket.create_connection((host.hostname, host.port)) as visitor:
            visitor.sendall(text.encode())
    assert post(server, "run/predict", draw()).status_code == 200
    logged = "".join(capfd.readouterr()) + caplog.text
    assert "Traceback" not in logged, logged


def test_drawing_keeps_the_session_of_the_last_one_alone(server):
    for number in range(5):
        assert post(server, "run/predict", {**draw(), "session_hash": f"new{number}"}).is_success
    from gradio.state_holder import StateHolder

    gc.collect()
    held = [one for one in gc.get_objects() if isinstance(one, StateHolder)]
    assert held
    assert all(len(one.session_data) <= 1 for one in held)


def test_files_of_a_hang_are_the_one_exception_and_bounded(server):
    log = b"[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"
    head = json.dumps({"files": [["a.log", len(log)]]}).encode()
    large = head + b"\n" + log + b" " * 2 * LARGEST_BODY  # more than any other body may have
    answer = post(server, "evidence", large)
    assert answer.status_code == 200
    assert log_of(json.loads(answer.json())["digest"]).files == 1
    too_large = (b" " * 1_000_000 for _ in range(LARGEST_EVIDENCE // 1_000_000 + 1))
    assert post(server, "evidence", too_large).status_code == 413
    assert "refused" in json.loads(post(server, "evidence", b"no files").json())


def test_a_request_is_known_by_its_path_below_the_servers_and_by_a_length_that_can_be():
    async def evidence(body: bytes) -> str:
        return "read"

    asked = {("/space" + guard.EVIDENCE, b"6"): 200, ("/space/elsewhere", b"6"): 403}
    asked |= {("/space" + guard.EVIDENCE, length): 413 for length in (b"9" * 5000, b"-1", b"six")}

    async def status(path: str, length: bytes) -> int:
        return (await told(guard_of(evidence), path, length, root_path="/space"))[0]["status"]

    assert {one: run(partial(status, *one)) for one in asked} == asked


def test_an_answer_that_breaks_off_is_ended_and_what_is_no_request_passes():
    passed = []

    async def broken(scope: dict, receive: Callable, send: Callable) -> None:
        passed.append(scope["type"])
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise ValueError

    one = guard.Guard(broken)
    said = run(partial(told, one, "/", method="GET"))
    assert [message["type"] for message in said] == ["http.response.start", "http.response.body"]
    assert run(partial(told, one, "/", type="lifespan")) == []
    assert passed == ["http", "lifespan"]
