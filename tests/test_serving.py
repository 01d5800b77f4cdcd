"""Groups of vLLM's and SGLang's servers, against the shapes and examples of their own sources."""

from __future__ import annotations

import io
import itertools
import json
import lzma
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from cli.command import run
from descriptions import PAGE, SERVER
from formats.documents.check import check_document, job_of_document
from formats.documents.exports import groups_json_parts
from formats.launch import emit, read_launch
from groups import LayoutError
from groups.frameworks import FRAMEWORKS
from groups.frameworks.sglang import sglang_groups
from groups.frameworks.trtllm import trtllm_groups
from groups.frameworks.vllm import vllm_groups
from groups.layout import Job, own_groupings
from groups.presets import SERVERS as SERVED_LAYOUTS
from request.answers.groups import layout as layout_endpoint
from request.answers.launch import read_launch as endpoint
from request.context import Context
from request.link import from_query, published, to_query
from request.named.launch import pasted_changes, with_pasted
from request.published import is_still
from request.resolve import fields_of_job, resolve
from request.served import server_facts
from request.state import State
from training.models import MODELS
from training.serving.weights import FORMATS
from views.all import VIEWS
from views.column import column_html
from views.launch.view import SERVER_EXAMPLES
from views.orders.engines import SameServers, engines_summary, shown_of
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


ENGRAM = Path(__file__).parent / "data" / "serving_engram.jsonl.xz"
ENGRAM_ROWS = [json.loads(line) for line in lzma.decompress(ENGRAM.read_bytes()).splitlines()[1:]]
AS_ANOTHER = {"node on gpus": "node", "plain": "none"}
"""Ways of vLLM's whose groups are those of another name here."""


@pytest.mark.parametrize("engram", ENGRAM_ROWS[0]["ways"])
def test_vllm_0_33_makes_these_very_groups_of_engram_tables(engram):
    own = 0
    for row in ENGRAM_ROWS:
        asked = {name: value for name, value in row.items() if name != "ways"}
        found = vllm_groups(**asked, engram=AS_ANOTHER.get(engram, engram))
        groups = {name: sorted_lists(found[name]) for name in ("edp", "etp") if name in found}
        text = json.dumps(groups, separators=(",", ":")).encode()
        sizes, digest = row["ways"][engram]
        assert {name: len(some[0]) for name, some in groups.items()} == sizes, asked
        assert sha256(text).hexdigest()[:16] == digest, asked
        own += bool(sizes)
    assert (own > 0) == (engram not in ("none", "plain"))


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


LAYOUTS = Path(__file__).parent / "data" / "serving_layouts.jsonl.xz"
EVERY = [json.loads(line) for line in lzma.decompress(LAYOUTS.read_bytes()).splitlines()[1:]]
NAMES = {"attn_tp_group": "attention_tp"}
"""What the recorder of SGLang's calls a group, where it is not its name and "_group"."""


def made_of(case):
    """The groups of a recorded layout, by the functions of this project."""
    sizes = {name: case[name] for name in ("tp", "pp", "dcp")}
    if case["engine"] == "vllm":
        sizes |= {name: case[name] for name in ("pcp", "dp", "external_dp")}
        return vllm_groups(moe=True, **sizes)
    sizes |= {name: case[name] for name in ("attn_cp", "ep", "moe_dp")}
    return sglang_groups(dp_attention=True, dp=case["attn_dp"], **sizes)


@pytest.mark.parametrize(("engine", "count"), [("vllm", 163), ("sglang", 295)])
def test_every_recorded_layout_has_these_very_groups(engine, count):
    """Members in the engine's own order, vLLM's dcp with pcp first too."""
    cases = [case for case in EVERY if case["engine"] == engine]
    assert len(cases) == count
    for case in cases:
        made = made_of(case)
        for name, groups in case["groups"].items():
            found = made[NAMES.get(name) or name.removesuffix("_group")]
            assert sorted(lists(found)) == sorted(groups), (name, case)


def test_tensorrt_llm_makes_the_groups_that_its_own_docstring_lists():
    """From TensorRT-LLM 05ebebb tensorrt_llm/mapping.py, class Mapping."""
    found = trtllm_groups(tp=4, cp=2)
    assert lists(found["tp"]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert lists(found["cp"]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    found = trtllm_groups(tp=8, pp=2, ep=4)
    assert lists(found["moe_tp"])[::3] == [[0, 4], [3, 7], [10, 14]]
    assert lists(found["moe_ep"]) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert lists(found["pp"])[:2] == [[0, 8], [1, 9]]
    found = trtllm_groups(tp=2, pp=2, cp=2)
    assert lists(found["tp"]) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert lists(found["pp"]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert lists(found["cp"]) == [[0, 2], [1, 3], [4, 6], [5, 7]]


SERVERS = {
    "vllm": Job(4, tp=4, pp=2, dp=2, expert_parallel=True, framework="vllm"),
    "sglang": Job(4, tp=16, dp=8, ep=16, framework="sglang"),
    "tensorrt-llm": Job(4, tp=8, dp=8, ep=4, framework="tensorrt-llm"),
    "megatron-inference": Job(4, tp=4, pp=2, ep=2, etp=1, framework="megatron-inference"),
}
MESHES = {
    "vllm": ("tp4-cp1-pp2-dp2-server2", "etp1-ep4-pp2-ep_dp2-server2"),
    "sglang": ("tp2-cp1-dp8-pp1-server2", "etp1-ep16-edp1-pp1-server2"),
    "tensorrt-llm": ("tp1-dp8-cp1-pp1-server4", "ep4-etp2-edp1-pp1-server4"),
    "megatron-inference": ("tp4-cp1-dp4-pp2", "etp1-ep2-edp8-pp2"),
}


@pytest.mark.parametrize("framework", SERVERS)
def test_a_job_of_a_server_is_two_meshes_over_the_same_ranks(framework):
    layout = SERVERS[framework].layout()
    assert (str(layout.mesh), str(layout.expert)) == MESHES[framework]
    assert layout.is_server
    assert layout.has_experts
    for grouping in layout.every.values():
        ranks = sorted(itertools.chain.from_iterable(lists(grouping)))
        assert ranks == [*range(32)][: len(ranks)] or grouping.places
    again = replace(SERVERS[framework], nodes=2).layout()
    for name, grouping in again.every.items():  # servers side by side are the same ones shifted
        if framework != "megatron-inference":
            wide = {tuple(group) for group in lists(layout.every[name])}
            assert {tuple(group) for group in lists(grouping)} <= wide


REFUSED = [
    (Job(framework="sglang", tp=8, dp=3), "dp", "tp_size must be divisible by attn_dp_size"),
    (Job(framework="sglang", tp=8, ep=3), "ep", ""),
    (Job(2, framework="sglang", tp=8, pp=2, cp=2, moe_dp=2), "moe_dp", "PP is not supported"),
    (Job(framework="sglang", tp=8, cp=2, moe_dp=4), "moe_dp", "attn_cp_size != moe_dp_size"),
    (Job(framework="sglang", tp=8, dcp=3), "dcp", "--dcp-size 3 must divide --tp-size 8."),
    (Job(framework="sglang", tp=3), "tp", ""),
    (Job(framework="vllm", tp=4, cp=2, dcp=4), "dcp", "Got TP=4, PCP=2, DCP=4; valid DCP sizes"),
    (Job(framework="vllm", tp=8, dcp=3), "dcp", "tp_size=8 must be divisible by dcp_size=3."),
    (Job(framework="vllm", tp=2, dp=3), "dp", ""),
    (Job(framework="vllm", tp=2, ep=2), "ep", ""),
    (Job(framework="tensorrt-llm", tp=8, ep=3), "ep", "tp_size must equal to moe_tp_size"),
    (Job(framework="tensorrt-llm", tp=4, cp=2, ep=2), "cp", "CP don't support MoE tp/ep yet"),
    (Job(framework="tensorrt-llm", tp=8, dp=4), "dp", ""),
    (Job(framework="megatron", dp=2), "dp", ""),
    (Job(framework="megatron-inference", tp=3), "tp", ""),
]


@pytest.mark.parametrize(("job", "control", "quote"), REFUSED)
def test_a_server_refuses_in_its_own_words_with_fixes_that_work(job, control, quote):
    with pytest.raises(LayoutError) as refusal:
        job.layout()
    error = refusal.value
    assert error.control == control
    assert quote in error.quote
    assert error.alternatives
    for fix in error.alternatives:
        assert replace(job, **fix).layout()
    assert error.speaker != "Megatron" or job.framework.startswith("megatron") or not quote


def test_stops_of_a_slider_are_the_sizes_that_a_server_takes():
    for framework, sizes in {
        "vllm": {"tp": 4, "pp": 1, "cp": 2, "dcp": 2},
        "sglang": {"tp": 16, "pp": 1, "dp": 4, "cp": 2, "ep": 8, "moe_dp": 1, "dcp": 1},
        "tensorrt-llm": {"tp": 8, "pp": 1, "cp": 1, "dp": 8, "ep": 4},
    }.items():
        for name, offered in FRAMEWORKS[framework].stops(sizes, 64).items():
            for size in (1, 2, 3, 4, 8, 16, 32, 64):
                job = Job(8, framework=framework, **{**sizes, name: size})
                try:
                    works = bool(job.layout())
                except LayoutError:
                    works = False
                assert works == (size in offered), (framework, name, size)


def test_three_engines_group_the_same_sizes():
    """SGLang's experts are the reverse of TensorRT-LLM's."""
    context = Context.of(State(framework="sglang", nodes=1, tp=8, pp=1, ep=4, rank="5"))
    page = answer(State(framework="sglang", nodes=1, tp=8, pp=1, ep=4, view="orders", rank="5"))
    same = SameServers(context.layout)
    found = {name: lists(shown_of(layout, "whole")) for name, layout in same.layouts.items()}
    assert found == {
        "vllm": [[0, 1, 2, 3, 4, 5, 6, 7]],
        "sglang": [[0, 2, 4, 6], [1, 3, 5, 7]],
        "tensorrt-llm": [[0, 1, 2, 3], [4, 5, 6, 7]],
    }
    assert "SGLang 1, 3, 5, 7; TensorRT-LLM 4–7" in engines_summary(context)
    assert page.picture.count("<figure") == 3


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"model": "mixtral-8x7b", "expert_parallel": True},
         "GPU 0 shares the experts with: vLLM 0–15; SGLang 0–15; TensorRT-LLM 0–15."),
        ({"model": "mixtral-8x7b"},
         "Every expert is cut over GPU 0 and its group: vLLM 0–15; SGLang 0–15; "
         "TensorRT-LLM 0–15."),
        ({"model": "llama3-70b"},
         "Attention is cut over GPU 0 and its group: vLLM 0–7; SGLang 0–7; TensorRT-LLM 0."),
    ],
)  # fmt: skip
def test_experts_are_shared_only_where_there_are_whole_ones(fields, sentence):
    state = State(framework="vllm", nodes=2, tp=8, pp=1, **fields)
    assert engines_summary(Context.of(state)) == sentence
    table = answer(state.changed({"view": "orders"})).picture.partition("same-servers")[2]
    assert (SERVER["role_ep"]["en"] in table) == ("shares" in sentence)
    assert (SERVER["role_etp"]["en"] in table) == ("cut over" in sentence and "expert" in sentence)


def test_no_layer_of_a_model_without_experts_waits_for_vllms_expert_group():
    state = State(framework="vllm", nodes=2, tp=8, pp=1, view="nodes")
    waits = "A layer waits for this group"
    assert waits not in answer(state.changed({"model": "llama3-70b"})).picture
    assert waits in answer(state.changed({"model": "mixtral-8x7b"})).picture


def test_a_server_is_shown_what_applies_to_it():
    """The map speaks of no traffic, the empty Launch view shows a server's own command, and a
    command about a step names those that apply."""
    for framework, job in SERVERS.items():
        fields = fields_of_job(job)
        nodes = answer(State(**fields, view="nodes")).picture
        assert SERVER["map_note"]["en"] in nodes
        if framework != "megatron-inference":
            launch = answer(State(**fields, view="launch")).picture
            assert SERVER_EXAMPLES[framework].split()[0] in launch
            assert "torchrun" not in launch.partition("</pre>")[0]
            assert read_launch(SERVER_EXAMPLES[framework]).framework.job == framework
    err = io.StringIO()
    asked = ["traffic", "--framework", "vllm", "--nodes", "1", "--tp", "8"]
    assert run(asked, io.StringIO(), io.StringIO(), err) == 2
    assert "memory and compare apply to it" in err.getvalue()
    assert "megatron" not in err.getvalue()


OF_STEP = [name for name, view in VIEWS.items() if view.of_step]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("framework", SERVERS)
def test_every_view_shows_a_server_or_says_why_not(framework, language):
    fields = fields_of_job(SERVERS[framework])
    for view in VIEWS:
        page = answer(State(**fields, view=view, lang=language))
        assert page.picture is not None
        has_sentence = SERVER["no_step"][language][-12:] in page.picture
        assert has_sentence == (view in OF_STEP), view


@pytest.mark.parametrize("framework", SERVERS)
def test_links_and_documents_of_a_server_open_the_same(framework):
    state = State(**fields_of_job(SERVERS[framework]))
    layout = resolve(state)
    assert layout.job == SERVERS[framework].layout().job
    assert resolve(from_query(to_query(state))) == layout
    document = "".join(groups_json_parts(layout, None))
    assert check_document(document)
    assert job_of_document(document).layout().every == layout.every


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
    with pytest.raises(LayoutError, match="dcp 3 is none of 1, pcp 2 and tp x pcp 8"):
        vllm_groups(tp=4, pcp=2, dcp=3)
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


SGLANG = "python -m sglang.launch_server --model-path m"
READ = {
    f"{SGLANG} --tp-size 8 --attn-cp-size 2 --pp-size 2": {"tp": 8, "cp": 2, "pp": 2},
    f"{SGLANG} --tp 8 --attn-cp-size 2 --dp 2 --enable-dp-attention": {"tp": 8, "cp": 2, "dp": 2},
    f"{SGLANG} --tp 16 --attn-dp-size 8 --ep 4": {"tp": 16, "dp": 8, "ep": 4},
    f"{SGLANG} --tp 4 --dp 2": {"tp": 4},  # servers beside each other
    f"{SGLANG} --tp 16 --moe-a2a-backend deepep": {"tp": 16, "ep": 16},
    f"{SGLANG} --tp 8 --ep-size 2 --moe-a2a-backend mooncake": {"tp": 8, "ep": 8},
    "trtllm-serve m --tp_size 8 --pp_size 2 --ep_size 4": {"tp": 8, "pp": 2, "ep": 4},
    "mpirun trtllm-serve serve m --tp_size 4 --cp_size 2 --gpus_per_node 4": {
        "tp": 4,
        "cp": 2,
        "nodes": 2,
        "gpus_per_node": 4,
    },
    "trtllm-serve m --tp_size 4 --gpus_per_node 8": {"tp": 4, "nodes": 1, "gpus_per_node": 4},
    "vllm serve m -tp 4 -pcp 2 -dcp 2": {"tp": 4, "cp": 2, "dcp": 2, "dp": 1},
    "vllm serve m -tp 4 -pp 2 -dcp 2 -dp 2": {"tp": 4, "pp": 2, "dcp": 2, "dp": 2},
    "vllm serve m -tp 8 --enable-expert-parallel": {"tp": 8, "dp": 1, "expert_parallel": True},
}


STARTED = {"sglang": "sglang", "vllm": "vllm", "trtllm-serve": "tensorrt-llm"}


@pytest.mark.parametrize("text", READ)
def test_a_command_is_the_server_that_it_starts_and_is_written_so(text):
    """Its layout has the engine's own groups; what is written for it is read back equal."""
    read = read_launch(text)
    job, engine = read.job(), read.framework.job
    assert engine == next(own for word, own in STARTED.items() if word in text)
    assert {"framework": engine, **READ[text]}.items() <= vars(job).items()
    layout, groups = job.layout(), read.served_groups()
    assert layout.every.keys() - groups.keys() <= {"ep"}  # vLLM's is of models with experts
    for name in layout.every.keys() & groups.keys():
        assert sorted_lists(layout.every[name]) == sorted_lists(groups[name])
    written = emit(job, framework=engine)
    assert "does not start" not in written
    assert read_launch(written).job().layout() == layout
    opened = State(paste=text)
    assert resolve(with_pasted(opened, read)).job == job


def test_deepep_spreads_the_experts_of_sglang_over_all_of_tp():
    read = read_launch(f"{SGLANG} --tp 16 --moe-a2a-backend deepep")
    assert [note.facts["ep"] for note in read.missing if note.code == "experts-span-tp"] == [16]
    assert lists(read.served_groups()["moe_ep"]) == [[*range(16)]]
    none = read_launch(f"{SGLANG} --tp 16 --moe-a2a-backend none")
    assert none.job().ep == 1


def test_of_two_servers_in_a_text_one_is_chosen(tmp_path):
    text = f"{SGLANG} --tp 8 --dp 4 --enable-dp-attention\nvllm serve m -tp 8 -dp 2\n"
    read = read_launch(text)
    assert [run.name for run in read.runs] == ["1: python", "2: vllm"]
    assert read.run == ""
    for name, framework, dp in (("1: python", "sglang", 4), ("2: vllm", "vllm", 2)):
        chosen = read_launch(text, name)
        assert (chosen.framework.job, chosen.job().dp) == (framework, dp)
        assert not chosen.problems
    file = tmp_path / "serve.sh"
    file.write_text(text)
    out, err = io.StringIO(), io.StringIO()
    assert run(["serve", str(file)], io.StringIO(), out, err) == 2
    assert "holds 2 runs: give --run, one of 1: python, 2: vllm" in err.getvalue()
    for name in ("2: vllm", "2"):
        assert run(["serve", str(file), "--run", name], io.StringIO(), out, err) == 0
    shown = out.getvalue()
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    assert run(["serve", str(file), "--run", "3"], io.StringIO(), out, err) == 2


SERVES = {  # the model, the format of its weights, the longest request, GPUs that share experts
    "vllm serve Qwen/Qwen3-235B-A22B-FP8 -tp 4 --max-model-len 8192": (
        "qwen3-235b-a22b",
        "fp8",
        8192,
        4,
    ),
    "vllm serve Qwen/Qwen3-235B-A22B -tp 8": ("qwen3-235b-a22b", "bf16", 40960, 8),
    "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --dp 16"
    " --enable-dp-attention --moe-a2a-backend deepep --mem-fraction-static 0.8": (
        "deepseek-v3",
        "fp8",
        163840,
        16,
    ),
}


@pytest.mark.parametrize("text", SERVES)
def test_a_server_that_is_opened_holds_weights_and_a_cache_and_no_training(text):
    """In the format that the checkpoint's name says, whatever the page served before."""
    before = State(served_weights="int4", served_length="77", served_share="", zero="3")
    opened = replace(before, **pasted_changes(before, read_launch(text)))
    facts = server_facts(Context.of(opened))
    name, kept, length, ranks = SERVES[text]
    found = tuple(facts[key] for key in ("model", "weights_format", "max_model_len"))
    assert found == (name, kept, length)
    (stage,) = facts["stages"]
    parts = ["attention", "mlp", "experts", "tables", "activations", "outside", "graphs"]
    assert [*stage["bytes"]] == parts
    model = MODELS[name].model
    layers = model.layers - model.dense_layers
    experts = layers * model.experts * 3 * model.hidden * model.expert_ffn
    assert stage["bytes"]["experts"] == experts * FORMATS[kept] / ranks
    assert stage["weights_bytes"] == sum(stage["bytes"][part] for part in parts[:4])
    assert facts["tokens"] > 0


def test_servers_that_no_command_starts_together_are_not_written():
    with pytest.raises(LayoutError, match="2 servers side by side"):
        emit(Job(2, tp=8, framework="tensorrt-llm"), framework="tensorrt-llm")
    with pytest.raises(LayoutError, match="2 servers side by side"):
        emit(Job(2, tp=8, dp=4, framework="sglang"), framework="sglang")


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
    assert "starts no server of vLLM, SGLang or TensorRT-LLM" in err.getvalue()


@pytest.mark.parametrize("name", SERVED_LAYOUTS)
def test_a_published_server_is_drawn_as_its_source_states_it(name):
    preset = SERVED_LAYOUTS[name]
    state = replace(State(**published(name)), preset=name)
    layout = resolve(state)
    assert layout.is_server
    assert layout.world_size == preset.world_size
    assert preset.model_id in MODELS
    assert preset.source
    assert is_still(name, state)
    assert preset.name in column_html("en")["preset"]
    assert resolve(from_query(f"preset={name}")) == layout
    assert server_facts(Context.of(state))["requests"] > 1  # it fits on the GPUs of its source
    for command in ("layout", "memory", "emit"):
        out, err = io.StringIO(), io.StringIO()
        assert run([command, "--preset", name], io.StringIO(), out, err) == 0
    written = read_launch(out.getvalue()).job().layout()
    assert (written.mesh, written.expert) == (layout.mesh, layout.expert)
    for page in (answer(state), answer(replace(state, view="memory", lang="zh"))):
        assert page.picture is not None


def test_deepseek_serves_as_its_report_says():
    """arXiv:2412.19437 section 3.4: attention on tp 4, dp 8 and 80; experts on ep 32 and 320."""
    for name, (dp, ep) in {"prefill": (8, 32), "decode": (80, 320)}.items():
        layout = resolve(State(**published(f"serve-deepseek-v3-{name}")))
        assert (layout.mesh.size("tp"), layout.mesh.size("dp")) == (4, dp)
        assert layout.kind("ep").size == ep == layout.world_size
    assert len(SERVED_LAYOUTS) >= 8


@pytest.mark.parametrize("framework", SERVERS)
def test_the_endpoint_of_groups_takes_the_sizes_of_a_server(framework):
    job = SERVERS[framework]
    said = {name: value for name, value in vars(job).items() if value != getattr(Job, name, None)}
    answered = json.loads(layout_endpoint(group_type="framework", **said))
    made = {grouping.name: lists(grouping) for grouping in own_groupings(job.layout())}
    assert answered["groups"] == made


def test_a_view_of_a_step_refuses_a_server_in_files_and_endpoints():
    with pytest.raises(LayoutError, match="a server has no training step: vLLM"):
        Context.of(State(framework="vllm", pp=1)).trained.stages()
    said = ["estimate", "--framework", "sglang", "--tp", "8"]
    out, err = io.StringIO(), io.StringIO()
    assert run(said, io.StringIO(), out, err) == 2
    assert "SGLang has no gradients" in err.getvalue()


def test_two_servers_are_compared_by_their_groups():
    kept = "?preset=serve-kimi-k2-tp"
    state = replace(State(**published("serve-kimi-k2-dp")), view="compare", kept=kept)
    picture = answer(state).picture
    assert "Kimi K2" in picture
    assert picture.count("<svg") >= 2


V41 = "vllm serve deepseek-ai/DeepSeek-V4.1 -tp 2 -dp 8"
QWEN4 = "vllm serve Qwen/Qwen4-Exp -tp 2 -dp 8"


@pytest.mark.parametrize(
    ("text", "engram"),
    [
        (V41, "node"),
        (V41 + " --engram-config '{}'", "node"),
        (V41 + " --engram-config '{\"embedding_across_dp\": true}'", "across"),
        (
            V41 + ' --engram-config \'{"embedding_across_dp": true, "cpu_offload": false}\'',
            "across-gpu",
        ),
        (QWEN4, "none"),
        (QWEN4 + " --engram-config '{\"embedding_across_dp\": true}'", "across-plain"),
        ("vllm serve deepseek-ai/DeepSeek-V3 -tp 2 -dp 8", "none"),
    ],
)
def test_a_command_says_where_engram_tables_lie(text, engram):
    read = read_launch(text)
    assert not read.problems
    assert read.job().engram == engram
    named = {"node": {"edp"}, "none": set(), "across-plain": {"etp"}}.get(engram, {"etp", "edp"})
    assert read.served_groups().keys() & {"etp", "edp"} == named
    assert {"etp", "edp"} & read.job().layout().every.keys() == named


def test_a_config_of_tables_for_a_model_that_names_none_is_remarked_on():
    read = read_launch("vllm serve /m/mine -tp 2 -dp 8 --engram-config '{}'")
    assert [note.code for note in read.missing if note.code == "engram-model"]
    assert read.job().engram == "node"
    bad = read_launch(V41 + " --engram-config across")
    assert [item.code for item in bad.problems] == ["bad-value"]


@pytest.mark.parametrize("engram", ["none", "node", "across", "across-gpu"])
def test_a_command_that_is_written_says_so_too(engram):
    job = Job(nodes=2, tp=2, dp=8, framework="vllm", engram=engram)
    assert read_launch(emit(job, None, "vllm")).job().engram == engram


def test_tables_that_no_option_tells_apart_and_no_server_has_are_refused():
    with pytest.raises(LayoutError, match="across-plain"):
        emit(Job(nodes=2, tp=2, dp=8, framework="vllm", engram="across-plain"), None, "vllm")
    with pytest.raises(LayoutError, match="has no engram to set"):
        Job(engram="node").layout()
    with pytest.raises(LayoutError, match="across-gpu"):
        Job(framework="vllm", engram="everywhere").layout()


def test_the_page_draws_and_explains_the_groups_of_tables():
    state = State(framework="vllm", nodes=2, tp=2, pp=1, engram="across")
    names = [one.name for one in Context.of(state).visible]
    assert names == ["tp", "dp", "etp", "edp"]
    assert "Engram tables, cut" in str(answer(state))
    assert "节点内共享" in str(answer(state.changed({"lang": "zh"})))
    plain = State(framework="vllm", nodes=2, tp=2, pp=1)
    assert [one.name for one in Context.of(plain).visible] == ["tp", "dp"]
