"""Groups of vLLM's and SGLang's servers, against the shapes and examples of their own sources."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest

from cli.command import run
from descriptions import PAGE
from formats.launch import read_launch
from groups import LayoutError
from groups.serving import sglang_groups, vllm_groups
from views.base.state import State
from views.launch.api import read_launch as endpoint
from views.page import answer


def lists(grouping):
    return [list(map(int, ranks)) for ranks in grouping.groups()]


@pytest.mark.parametrize(
    ("tp", "pp", "pcp", "dp", "dcp"), [(8, 1, 1, 2, 4), (4, 2, 2, 2, 2), (2, 3, 1, 4, 1)]
)
def test_vllm_makes_its_groups_of_one_array(tp, pp, pcp, dp, dcp):
    """As vllm 0c175ae parallel_state.py: external dp x dp x pp x pcp x tp, the last fastest."""
    ranks = np.arange(tp * pp * pcp * dp).reshape(1, dp, pp, pcp, tp)
    wanted = {
        "tp": ranks.reshape(-1, tp),
        "dcp": ranks.reshape(-1, dcp),
        "pcp": ranks.transpose(0, 1, 2, 4, 3).reshape(-1, pcp),
        "pp": ranks.transpose(0, 1, 4, 3, 2).reshape(-1, pp),
        "dp": ranks.transpose(0, 4, 2, 3, 1).reshape(-1, dp),
        "ep": ranks.transpose(0, 2, 1, 3, 4).reshape(-1, dp * pcp * tp),
    }
    found = vllm_groups(tp, pp, pcp, dp, dcp, experts=True)
    assert {name: sorted(lists(one)) for name, one in found.items()} == {
        name: sorted(array.tolist()) for name, array in wanted.items()
    }


def test_sglang_makes_the_groups_that_its_own_example_lists():
    """From sglang 0005973 parallel_state.py: attention cp 2, tp 4; experts ep 4, dp 2; 8 GPUs."""
    found = sglang_groups(tp=8, attn_cp=2, ep=4, moe_dp=2)
    assert lists(found["tp"]) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert lists(found["attn_cp"]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert lists(found["attn_tp"]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
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
        "attn_tp": [list(range(s, s + attn_tp)) for s in range(0, tp * pp, attn_tp)],
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
    assert lists(found["attn_dp"])[0] == [0, 2, 4, 6]
    assert read_launch(text).serving == {"dp_served": 4, "dp_attention": True, "served_ep": 8}
    apart = read_launch("python -m sglang.launch_server --tp 2 --dp 4").served_groups()
    assert lists(apart["dp"]) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert read_launch("torchrun x.py --tensor-model-parallel-size 4").served_groups() == {}
    answered = json.loads(endpoint("vllm serve m -tp 8 -dcp 4"))
    assert answered["groups"]["dcp"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_sizes_that_a_server_refuses_are_refused():
    with pytest.raises(LayoutError, match="dp 3 = 3 does not divide tp 8"):
        sglang_groups(tp=8, dp=3, dp_attention=True)
    with pytest.raises(LayoutError, match="dcp 3 = 3 does not divide tp 8"):
        vllm_groups(tp=8, dcp=3)
    with pytest.raises(LayoutError, match="more than"):
        vllm_groups(tp=1 << 20, pp=8)


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
