"""Groups of vLLM's and SGLang's servers, against the shapes and examples of their own sources."""

from __future__ import annotations

import io
import itertools
import json
import lzma
from pathlib import Path

import pytest

from cli.command import run
from descriptions import PAGE
from formats.launch import emit, read_launch
from groups import LayoutError
from groups.serving import sglang_groups, vllm_groups
from views.base.state import State
from views.launch.api import read_launch as endpoint
from views.page import answer


def lists(grouping):
    return [list(map(int, ranks)) for ranks in grouping.groups()]


RECORDED = Path(__file__).parent / "data" / "serving_groups.jsonl.xz"
CASES = [json.loads(line) for line in lzma.decompress(RECORDED.read_bytes()).splitlines()[1:]]


def sizes_of(case):
    """A recorded case without its engine and its groups."""
    left_out = ("engine", "groups", "aliases", "attention_tp")
    return {name: value for name, value in case.items() if name not in left_out}


def sorted_lists(grouping):
    return sorted(sorted(ranks) for ranks in lists(grouping))


@pytest.mark.parametrize("case", [case for case in CASES if case["engine"] == "vllm"])
def test_vllm_0_32_makes_these_very_groups(case):
    found = vllm_groups(**sizes_of(case))
    assert {name: sorted_lists(one) for name, one in found.items()} == {
        name: sorted(groups) for name, groups in case["groups"].items()
    }


@pytest.mark.parametrize("case", [case for case in CASES if case["engine"] == "sglang"])
def test_sglang_0_5_23_makes_these_very_groups(case):
    """What it takes another group for is here under its own name too."""
    sizes = sizes_of(case)
    sizes["dp"], sizes["shared_experts_tp"] = sizes.pop("attn_dp"), sizes.pop("shared") or 1
    found = sglang_groups(dp_attention=True, **sizes)
    wanted = {**case["groups"], **case["aliases"], "attention_tp": case["attention_tp"]}
    assert {name: sorted_lists(one) for name, one in found.items()} == {
        name: sorted(groups) for name, groups in wanted.items()
    }


def test_cases_of_every_group_are_recorded():
    made = {engine: set() for engine in ("vllm", "sglang")}
    for case in CASES:
        made[case["engine"]] |= case["groups"].keys()
    assert {"ep", "eplb", "dcp"} <= made["vllm"]
    assert {"shared_experts_tp", "pdmux_prefill_tp", "self_pp", "attention_tp"} <= made["sglang"]


def test_sglang_makes_the_groups_that_its_own_example_lists():
    """From sglang 0005973 parallel_state.py: attention cp 2, tp 4; experts ep 4, dp 2; 8 GPUs."""
    found = sglang_groups(tp=8, attn_cp=2, ep=4, moe_dp=2)
    assert lists(found["tp"]) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert lists(found["attn_cp"]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert lists(found["attention_tp"]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert lists(found["moe_ep"]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert lists(found["moe_dp"]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert sorted(lists(sglang_groups(tp=2, pp=4)["pp"])) == [[0, 2, 4, 6], [1, 3, 5, 7]]


@pytest.mark.parametrize(
    ("dp", "cp", "ep", "moe_dp"), [(2, 1, 4, 1), (4, 2, 2, 2), (8, 1, 8, 1), (1, 2, 2, 1)]
)
def test_sglang_counts_inside_each_tensor_parallel_group(dp, cp, ep, moe_dp):
    """The loops of the same function, as ranges."""
    tp, pp = 16, 2
    attn_tp, moe_tp = tp // dp // cp, tp // ep // moe_dp
    starts = range(0, tp * pp, tp)
    wanted = {
        "attention_tp": [list(range(s, s + attn_tp)) for s in range(0, tp * pp, attn_tp)],
        "attn_cp": [
            list(range(s + d * attn_tp * cp + t, s + (d + 1) * attn_tp * cp + t, attn_tp))
            for s, d, t in itertools.product(starts, range(dp), range(attn_tp))
        ],
        "moe_ep": [
            list(range(s + d * ep * moe_tp + t, s + (d + 1) * ep * moe_tp + t, moe_tp))
            for s, d, t in itertools.product(starts, range(moe_dp), range(moe_tp))
        ],
        "moe_tp": [list(range(s, s + moe_tp)) for s in range(0, tp * pp, moe_tp)],
    }
    found = sglang_groups(tp, pp, dp, True, cp, ep, moe_dp)
    for name, groups in wanted.items():
        assert sorted(lists(found[name])) == sorted(groups), name
    if cp > moe_dp:  # there the group of data parallel experts is the one of context parallelism
        assert lists(found["moe_dp"]) == lists(found["attn_cp"])


def test_a_command_says_its_servers_groups():
    text = "python -m sglang.launch_server --tp 8 --dp 4 --enable-dp-attention --ep-size 8"
    found = read_launch(text).served_groups()
    assert lists(found["attention_tp"])[0] == [0, 1]
    assert "attn_dp" not in found  # its ranks share no process group
    assert read_launch(text).serving == {"dp_served": 4, "dp_attention": True, "served_ep": 8}
    apart = read_launch("python -m sglang.launch_server --tp 2 --dp 4").served_groups()
    assert "dp" not in apart  # servers of their own
    assert lists(apart["tp"]) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert read_launch("torchrun x.py --tensor-model-parallel-size 4").served_groups() == {}
    answered = json.loads(endpoint("vllm serve m -tp 8 -dcp 4"))
    assert answered["groups"]["dcp"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_sizes_that_a_server_refuses_are_refused():
    with pytest.raises(LayoutError, match="dp 3 = 3 does not divide tp 8"):
        sglang_groups(tp=8, dp=3, dp_attention=True)
    with pytest.raises(LayoutError, match="dcp 3 = 3 does not divide tp 8"):
        vllm_groups(tp=8, dcp=3)
    with pytest.raises(LayoutError, match="dcp 4 is none of 1, pcp 2 and tp x pcp 8") as refusal:
        vllm_groups(tp=4, pcp=2, dcp=4)
    assert [fix["dcp"] for fix in refusal.value.alternatives] == [1, 2, 8]
    with pytest.raises(LayoutError, match="more than"):
        vllm_groups(tp=1 << 20, pp=8)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("vllm serve deepseek-ai/DeepSeek-V3 -tp 8", {"ep"}),  # also where experts are cut like tp
        ("vllm serve meta-llama/Llama-3.1-70B -tp 8", set()),
        ("vllm serve m -tp 8 --enable-expert-parallel", {"ep"}),
        ("vllm serve m -tp 8 --enable-expert-parallel --enable-eplb", {"ep", "eplb"}),
        ("python -m sglang.launch_server --tp 8 --shared-experts-tp-size 2", {"shared_experts_tp"}),
        ("python -m sglang.launch_server --tp 8 --enable-pdmux", {"pdmux_prefill_tp"}),
    ],
)
def test_a_command_makes_the_groups_that_its_options_ask_for(text, names):
    optional = {"ep", "eplb", "shared_experts_tp", "pdmux_prefill_tp"}
    assert optional & read_launch(text).served_groups().keys() == names


def test_attention_s_context_parallel_ranks_of_sglang_are_read_and_written():
    """SGLang's tp holds them; they stand where vLLM's prefill context parallel ranks do."""
    read = read_launch("python -m sglang.launch_server --tp-size 8 --attn-cp-size 2 --pp-size 2")
    job = read.job()
    assert (job.tp, job.cp, job.pp, job.nodes * job.gpus_per_node) == (4, 2, 2, 16)
    layout, groups = job.layout(), read.served_groups()
    for name, own in (("tp", "attention_tp"), ("cp", "attn_cp"), ("pp", "pp")):
        assert sorted_lists(layout.every[name]) == sorted_lists(groups[own])
    written = emit(job, framework="sglang")
    assert "--tp-size 8" in written
    assert "--attn-cp-size 2" in written
    assert "does not start" not in written
    assert read_launch(written).job() == job
    inside = read_launch(
        "python -m sglang.launch_server --tp 8 --attn-cp-size 2 --dp 2 --enable-dp-attention"
    )
    assert (inside.job().tp, inside.job().cp) == (8, 1)  # three sizes inside of tp
    assert lists(inside.served_groups()["attn_cp"])[:2] == [[0, 2], [1, 3]]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_lists_the_groups_of_a_server(language):
    def shown(text):
        return answer(State(view="launch", paste=text, lang=language)).picture

    page = shown("vllm serve m -tp 8 -dcp 4 -dp 2 --enable-expert-parallel")
    assert PAGE["served_title"][language] in page
    assert "0–3 · 4–7" in page
    assert PAGE["served_title"][language] not in shown("vllm serve m")
    assert "3" in shown("vllm serve m -tp 8 -dcp 3")


def test_the_command_line_lists_the_groups_of_a_server(tmp_path):
    file = tmp_path / "serve.sh"
    file.write_text("vllm serve m -tp 4 -dcp 2")
    out, err = io.StringIO(), io.StringIO()
    assert run(["serve", str(file), "--format", "json"], io.StringIO(), out, err) == 0
    rows = json.loads(out.getvalue())["rows"]
    assert {"name": "dcp", "index": 1, "ranks": [2, 3]} in rows
    file.write_text("torchrun x.py")
    assert run(["serve", str(file)], io.StringIO(), out, err) == 2
    assert "starts no vLLM or SGLang server" in err.getvalue()
