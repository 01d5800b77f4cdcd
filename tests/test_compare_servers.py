"""Two servers beside each other, and a server beside a training job."""

import io
import json
from urllib.parse import quote

import pytest

from cli.command import run
from descriptions import SERVER
from groups import LayoutError
from request.answers.compare.api import compare
from request.answers.compare.sides import comparison_of, settings_that_differ
from request.context import Context
from request.link import from_query
from request.named.kept import query_to_keep
from request.served import server_facts
from request.state import State
from views.compare.view import SERVER_PAIRS, compare_slide
from views.page import answer

TP4 = "vllm serve meta-llama/Llama-3.1-70B-Instruct --max-model-len 8192 --tensor-parallel-size 4"
TP8 = TP4.replace("size 4", "size 8")
KEPT = "?framework=vllm&nodes=1&tp=4&pp=1"
WITH_GROUPS = ("groups", "nodes", "orders", "ranks", "collectives")
ON_SCREEN = State(framework="vllm", nodes=1, tp=8, pp=1, model="llama3-70b", view="compare")


def printed(tmp_path, *words):
    """What the command prints: its lines, and the numbers of each row of its table."""
    out, err = io.StringIO(), io.StringIO()
    for name, text in {"tp4": TP4, "tp8": TP8}.items():
        (tmp_path / name).write_text(text)
    words = [str(tmp_path / word) if word in ("tp4", "tp8") else word for word in words]
    assert run(["compare", *words], io.StringIO(), out, err) == 0, err.getvalue()
    return out.getvalue(), err.getvalue()


def test_two_servers_are_compared_by_what_memory_says_of_each(tmp_path):
    text, _ = printed(tmp_path, "tp8", "tp4", "--format", "json")
    facts = json.loads(text)
    for at, tp in (("first", 8), ("second", 4)):
        state = State(framework="vllm", nodes=1, gpus_per_node=tp, tp=tp, pp=1, model="llama3-70b")
        known = server_facts(Context.of(state))
        assert known.items() <= facts[at].items()
        assert facts[at]["tokens_per_gpu"] == known["tokens"] / tp
        assert facts[at]["groups"]["tp"] == {
            "count": 1, "size": tp, "leave_node": 0, "most_nodes": 1,
        }  # fmt: skip
    assert facts["better"] is None
    ratio = facts["first"]["tokens_per_gpu"] / facts["second"]["tokens_per_gpu"]
    assert f"tp 8 has room for {ratio:.1f} times as many tokens per GPU" in facts["verdict"]
    text, _ = printed(tmp_path, "tp8", "tp4")
    assert f"\ngpu_tokens    {facts['first']['tokens_per_gpu']:.0f}  " in text


def test_a_kept_server_keeps_how_it_serves():
    """Whatever is changed on screen afterwards; also where nothing was set."""
    kept = query_to_keep(ON_SCREEN)
    now = ON_SCREEN.changed({"kept": f"?{kept}", "served_weights": "fp8"})
    found = comparison_of(Context.of(now))
    assert settings_that_differ(found.first.context, found.second.context, "en") == [
        ("served_weights", "bf16", "fp8")
    ]
    assert found.first.served.tokens < found.second.served.tokens


def test_requests_of_all_data_parallel_ranks_and_servers_count():
    facts = json.loads(compare(kept=KEPT, framework="vllm", nodes=1, tp=2, model="llama3-8b"))
    second = facts["second"]
    assert second["servers"] == 1
    assert second["all_tokens"] == 4 * second["tokens"]
    assert second["tokens_per_gpu"] == second["tokens"] / 2


def test_of_a_server_and_a_training_job_each_says_what_it_alone_has(tmp_path):
    for words in (("tp8", "llama3-405b-1"), ("llama3-405b-1", "tp8")):
        text, _ = printed(tmp_path, *words)
        assert "only a server has a KV cache, only a training job has a step" in text
        rows = [line.split("  ") for line in text.splitlines()]
        named = {cells[0]: cells[-1].strip() for cells in rows if len(cells) > 1}
        assert named["gpu_tokens"] == "only a server has it"
        assert named["step_seconds"] == "only a training job has it"
    assert (
        "settings that differ: nodes 1,024 / 1; pp 16 / 1; framework Llama 3 trainer / vLLM" in text
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "link", [*SERVER_PAIRS.values(), f"show=compare&nodes=1&kept={quote(KEPT)}"]
)
def test_the_page_shows_memory_and_tokens_side_by_side(link, language):
    state = from_query(link).changed({"lang": language})
    page = answer(state)
    for name in ("fact_weights", "fact_cache", "fact_gpu_tokens", "fact_leaving"):
        assert SERVER[name][language] in page.picture
    assert 'role="alert"' not in page.picture
    context = Context.of(state)
    ((_, chart),) = compare_slide(context)
    assert len(chart.rows) == (9 if context.layout.is_server else 18)


def test_a_server_that_does_not_fit_is_compared_by_its_groups(tmp_path):
    facts = json.loads(compare(kept=KEPT, framework="vllm", nodes=2, tp=16, model="llama3-405b"))
    assert facts["second"]["refused"] == ""
    assert "nothing is left for the KV cache" in facts["first"]["refused"]
    assert (facts["better"], facts["decided_by"]) == ("second", "refused")
    assert facts["second"]["groups"]["tp"]["leave_node"] == 1


def test_the_endpoint_takes_how_the_second_one_serves():
    asked = {"kept": "~tp=4", "framework": "vllm", "nodes": 1, "tp": 8, "model": "llama3-70b"}
    plain, changed = (
        json.loads(compare(**asked, **more))
        for more in ({}, {"weights": "fp8", "max_model_len": 4096})
    )
    assert [plain["second"]["weights_format"], changed["second"]["weights_format"]] == [
        "bf16",
        "fp8",
    ]
    assert changed["max_model_len"] == changed["first"]["max_model_len"] == 4096
    with pytest.raises(LayoutError, match="fp3"):
        compare(**asked, weights="fp3")


def test_the_command_names_no_group_of_experts_without_experts(tmp_path):
    assert "\ngroups that differ: tp\n" in printed(tmp_path, "tp8", "tp4")[0] + "\n"


@pytest.mark.parametrize(("model", "has_ep"), [("llama3-70b", False), ("mixtral-8x7b", True)])
def test_vllm_has_a_group_of_experts_only_for_a_model_with_experts(model, has_ep):
    state = ON_SCREEN.changed({"model": model, "nodes": 2, "dp": 2, "group_type": "framework"})
    facts = json.loads(compare(f"{KEPT}&model={model}", nodes=2, dp=2, tp=8, pp=1,
                               framework="vllm", model=model))  # fmt: skip
    assert ("ep" in [row["kind"] for row in facts["groups"]]) == has_ep
    kept = state.changed({"kept": f"{KEPT}&model={model}"})
    pages = {view: answer(kept.changed({"view": view})) for view in ("compare", *WITH_GROUPS)}
    named = {view: ">ep<" in page.picture or '"ep"' in page.picture for view, page in pages.items()}
    assert named == dict.fromkeys(named, has_ep)
