"""What programs may ask about what groups do, through Gradio's own client and in raw HTTP."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from endpoints import RefusedError
from gradio_client import Client

from groups import LayoutError
from groups.layout import Job
from groups.megatron.parallel_state import process_groups
from request.answers.collectives.api import MOST_NUMBERS
from request.state import State
from request.trained import trained_of
from training.clusters import CLUSTERS
from training.collectives.operations import OPERATIONS
from training.models import MODELS
from training.pipeline import SCHEDULES
from training.recipe import Training
from views.all import ENDPOINTS

TESTS = Path(__file__).parent
OURS = (
    *("collective", "pipeline_schedule", "memory_per_rank", "traffic_per_step"),
    *("estimate", "better_layouts", "compare", "moves"),
)


def facts(name):
    return json.loads((TESTS / "data" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def ask(client):
    def ask(name, **given):
        # Strict: NaN and Infinity are no JSON.
        return json.loads(client(name, **given), parse_constant=_no_number)

    return ask


def _no_number(text):
    raise AssertionError(f"{text} in an answer")


# -- what they are called and told ---------------------------------------------------------------


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_tool_s_schema_tells_every_parameter_in_one_whole_line(name):
    from gradio.utils import get_function_description

    description, parameters, *_ = get_function_description(ENDPOINTS[name])
    assert description.split(". ")[0] in (ENDPOINTS[name].__doc__ or "").replace("\n", " ")
    annotations = ENDPOINTS[name].__annotations__
    assert set(parameters) == set(annotations) - {"return"}
    assert set(annotations.values()) <= {int, str, float, bool, int | None}
    for text in parameters.values():
        assert text.endswith("."), text


def test_what_can_be_chosen_is_named_in_the_description():
    told = {name: ENDPOINTS[name].__doc__ or "" for name in OURS}
    for schedule in SCHEDULES:
        assert f'"{schedule}"' in told["pipeline_schedule"]
    for operation in ("all_reduce", "send_recv", "gather_from_sequence_parallel_region"):
        assert operation in OPERATIONS
        assert f'"{operation}"' in told["collective"]
    for cluster in CLUSTERS:
        assert f'"{cluster}"' in told["traffic_per_step"]
        assert f'"{cluster}"' in told["better_layouts"]
        assert f'"{cluster}"' in told["estimate"]
        assert f'"{cluster}"' in told["compare"]
        assert f'"{cluster}"' in told["moves"]


def test_every_call_of_the_readme_is_answered(server, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (TESTS.parent / "README.md").read_text(), re.S)
    (block,) = [text for text in blocks if "Client(" in text]
    called = re.findall(r'api_name="/(\w+)"', block)
    assert set(ENDPOINTS) <= set(called)
    answers = []

    class Told(Client):
        def predict(self, *values, **named):
            answers.append(super().predict(*values, **named))

    monkeypatch.setattr("gradio_client.Client", Told)
    exec(block.replace("http://127.0.0.1:7860", server), {})
    assert len(answers) == len(called)
    assert all(answers)


# -- collectives ---------------------------------------------------------------------------------

EIGHT = {"nodes": 1, "gpus_per_node": 8, "tp": 2, "pp": 2}
RANKS = json.dumps([[float(rank)] for rank in range(8)])


def test_the_published_walkthrough_of_reduce_split_and_gather(ask):
    measured = {one["what"]: one["measured"] for one in facts("seed_cases")["checks"]}
    reduced = ask("collective", operation="_reduce", group="tp", tensors=RANKS, **EIGHT)["after"]
    assert reduced[:2] == measured["_reduce(tensor([rank])) in group [0,1]"]
    assert reduced[6:] == measured["_reduce(tensor([rank])) in group [6,7]"]
    gathered = ask("collective", operation="_gather", group="tp", tensors=RANKS, **EIGHT)["after"]
    assert gathered[:2] == measured["_gather(tensor([rank])) in group [0,1]"]
    pairs = json.dumps([[0.0, 1.0]] * 8)
    halves = ask("collective", operation="_split", group="tp", tensors=pairs, **EIGHT)["after"]
    assert halves[0::2] == measured["_split(tensor([0,1])), even ranks"]
    assert halves[1::2] == measured["_split(tensor([0,1])), odd ranks"]


def test_every_group_of_the_kind_runs_on_its_own_tensors(ask):
    found = ask("collective", group="dp", shape="2", values="rank", nodes=2, tp=2, pp=2)
    assert (found["groups"], found["group_size"], found["runs"]) == (4, 4, "all_reduce")
    assert found["before"] == [[rank, rank] for rank in range(16)]
    sums = {
        rank: sum(group)
        for group in process_groups(16, tp=2, pp=2)["dp"].tolist()
        for rank in group
    }
    assert found["after"] == [[sums[rank]] * 2 for rank in range(16)]


def test_backward_the_tensors_are_gradients_of_the_output(ask):
    mapping = "gather_from_tensor_model_parallel_region"
    given = json.dumps([[6, 6], [7, 7]])
    job = {"nodes": 1, "gpus_per_node": 2, "tp": 2}
    found = ask("collective", operation=mapping, direction="backward", tensors=given, **job)
    assert (found["runs"], found["after"]) == ("split", [[6], [7]])
    # Without tensors the gradients have the shape that the forward leaves.
    found = ask("collective", operation="all_gather", direction="backward", shape="1", **job)
    assert found["before"] == [[0, 1], [10, 11]]
    assert found["after"] == [[10], [12]]


def test_ranks_in_no_group_have_no_tensor(ask):
    found = ask("collective", group="embd", shape="1", nodes=1, gpus_per_node=4, pp=4)
    assert found["before"] == [[0], None, None, [10]]
    assert found["after"] == [[10], None, None, [10]]


def test_the_root_is_a_place_in_the_group(ask):
    job = {"nodes": 1, "gpus_per_node": 4, "tp": 2, "group": "tp", "shape": "1"}
    found = ask("collective", operation="broadcast", root=1, **job)
    assert found["after"] == [[10]] * 4
    found = ask("collective", operation="reduce", root=1, **job)
    assert found["after"] == [[0], [10], [0], [10]]


IN_A_NODE = [row for row in facts("collectives")["ring_vectors"] if row["n"] <= 8]


@pytest.mark.parametrize("row", IN_A_NODE, ids=str)
def test_bytes_of_a_rank_are_those_of_the_ring(ask, row):
    job = {"nodes": 1, "gpus_per_node": row["n"], "tp": row["n"]}
    found = ask("collective", operation=row["op"], megabytes=row["S"] / 1e6, **job)["cost"]
    assert found["bytes_per_rank"] == pytest.approx(row["sent_bytes_per_rank"], rel=1e-12)
    assert found["bytes_per_rank"] == found["bus_factor"] * found["buffer_bytes"]
    assert found["link_bytes_per_second"] == CLUSTERS["dgx-h100"].nvlink
    assert found["least_seconds"] == found["bytes_per_rank"] / found["link_bytes_per_second"]


def test_the_speed_of_a_link_can_be_said(ask):
    found = ask("collective", megabytes=200, gigabytes_per_second=10)["cost"]
    assert found["least_seconds"] == pytest.approx(2 * 15 / 16 * 0.2e9 / 10e9)
    assert found["steps"] == 30


def test_the_messages_of_an_algorithm_are_listed_step_by_step(ask):
    job = {"nodes": 1, "gpus_per_node": 3, "tp": 3, "megabytes": 3}
    found = ask("collective", algorithm="ring_all_reduce", **job)["algorithm"]
    assert (found["chunks"], found["message_bytes"]) == (3, 1e6)
    assert [
        [(one["from"], one["to"], one["chunk"]) for one in step] for step in found["steps"]
    ] == [
        [(0, 1, 0), (1, 2, 1), (2, 0, 2)],
        [(0, 1, 2), (1, 2, 0), (2, 0, 1)],
        [(0, 1, 1), (1, 2, 2), (2, 0, 0)],
        [(0, 1, 0), (1, 2, 1), (2, 0, 2)],
    ]
    assert [{one["adds"] for one in step} for step in found["steps"]] == [{True}] * 2 + [
        {False}
    ] * 2
    assert ask("collective", **job)["algorithm"] is None


# -- pipelines -----------------------------------------------------------------------------------

RECORDED = {one["id"]: one for one in facts("schedules")["schedules"]}


@pytest.mark.parametrize("name", RECORDED)
def test_ops_are_those_of_the_software_that_was_run(ask, name):
    one = RECORDED[name]
    schedule = name.split("-p")[0].replace("zbv-torch", "zb-v")
    found = ask("pipeline_schedule", schedule=schedule, **{size: one[size] for size in "pmv"})
    assert [[op for op, _, _ in row] for row in found["ops"]] == one["order"]


def test_the_times_and_figures_of_1f1b(ask):
    found = ask("pipeline_schedule", schedule="1f1b", p=2, m=2)
    assert found["ops"] == [
        [["0F0", 0, 1], ["0F1", 1, 2], ["0B0", 4, 6], ["0B1", 7, 9]],
        [["1F0", 1, 2], ["1B0", 2, 4], ["1F1", 4, 5], ["1B1", 5, 7]],
    ]
    assert (found["makespan"], found["stages"]) == (9, 2)
    rank = found["ranks"][0]
    assert (rank["busy"], rank["idle"]) == (6, 3)
    assert [one["peak_activations"] for one in found["ranks"]] == [2, 1]
    assert [one["activation_sends"] for one in found["ranks"]] == [2, 0]
    assert [one["gradient_sends"] for one in found["ranks"]] == [0, 2]


@pytest.mark.parametrize(("p", "m", "v"), [(4, 8, 1), (8, 16, 1), (4, 8, 2), (8, 32, 4)])
def test_both_bubbles_are_the_published_ones(ask, p, m, v):
    name = {"schedule": "interleaved", "v": v} if v > 1 else {"schedule": "1f1b"}
    found = ask("pipeline_schedule", p=p, m=m, ops=False, **name)
    assert found["bubble_of_ideal"] == pytest.approx((p - 1) / (v * m))  # arXiv:2104.04473, 2.2
    assert found["bubble_of_total"] == pytest.approx((p - 1) / (v * m + p - 1))
    assert "ops" not in found


def test_zb_2p_has_the_rate_of_its_paper(ask):
    times = {"t_f": 18.513, "t_i": 18.086, "t_w": 9.331, "t_send": 0.626, "w_share": 0.366}
    found = ask("pipeline_schedule", schedule="zb-2p", p=8, m=32, ops=False, **times)
    assert round(found["bubble_of_span"], 4) == 0.0039  # arXiv:2401.10241, Table 5


def test_durations_are_of_a_whole_rank(ask):
    given = {"t_f": 2.0, "t_i": 3.0, "t_w": 1.0}
    found = ask("pipeline_schedule", schedule="interleaved", p=2, m=2, v=2, **given)
    assert {op[1]: end - start for op, start, end in found["ops"][0]} == {"F": 1, "B": 2}
    longer = ask("pipeline_schedule", p=2, m=2, t_b=7.0, t_send=0.5)
    assert {op[1]: end - start for op, start, end in longer["ops"][0]} == {"F": 1, "B": 7}
    # Rank 1 gets the first forward at 1.5 and has run both micro-batches at 17.5; back at 18.
    assert longer["makespan"] == 18 + 7
    pair = ask("pipeline_schedule", schedule="dualpipe", p=2, m=4, t_pair=2.5)
    times = {end - start for row in pair["ops"] for op, start, end in row if "&" in op}
    assert times == {2.5}


# -- memory --------------------------------------------------------------------------------------

VECTORS = facts("memory")["megatron_distributed_optimizer"]["vectors"]


@pytest.mark.parametrize("row", VECTORS, ids=str)
def test_model_states_are_megatrons_bytes_a_parameter(ask, row):
    formats = {"fp16_fp16": "fp16-fp16", "bf16_fp32": "bf16-fp32", "fp32_fp32": "fp32-fp32"}
    for name, precision in formats.items():
        found = ask("memory_per_rank", nodes=row["d"], tp=8, precision=precision)
        (stage,) = found["stages"]
        states = sum(stage["bytes"][part] for part in ("weights", "gradients", "optimizer"))
        assert states / stage["parameters"] == pytest.approx(row[name])


def test_a_stage_is_told_part_by_part_and_fits_or_not(ask):
    found = ask("memory_per_rank", model="llama3-70b", nodes=8, tp=8, pp=4)
    assert (found["parameters"], found["ranks_per_stage"]) == (MODELS["llama3-70b"].parameters, 16)
    assert [one["layers"] for one in found["stages"]] == [20] * 4
    assert [one["micro_batches_in_flight"] for one in found["stages"]] == [4, 3, 2, 1]
    for one in found["stages"]:
        assert one["total_bytes"] == sum(one["bytes"].values())
    fullest = max(found["stages"], key=lambda one: one["total_bytes"])
    assert (found["fullest_stage"], found["fullest_bytes"]) == (0, fullest["total_bytes"])
    assert (found["capacity_bytes"], found["fits"]) == (CLUSTERS["dgx-h100"].memory, True)
    small = ask("memory_per_rank", model="llama3-70b", nodes=8, tp=8, pp=4, capacity=24.5)
    assert (small["capacity_bytes"], small["fits"]) == (24.5 * 2**30, False)


def test_what_is_not_stated_is_told(ask):
    found = ask("memory_per_rank", nodes=1, tp=4, pp=2)
    assert (found["model"], found["changed"]) == ("llama3-8b", [])
    untold = {name: value for name, value in vars(Training()).items() if value is not None}
    assert found["training"] == {**untold, "global_batch": 8, "micro_batches": 8}
    chunks = ask("memory_per_rank", nodes=1, tp=4, pp=2, vpp=2, global_batch=4)["training"]
    assert (chunks["schedule"], chunks["micro_batches"]) == ("interleaved", 4)


def test_a_model_of_one_s_own_starts_from_a_published_one(ask):
    changes = {"layers": 4, "sequence": 4096, "gated": False, "biases": "all", "experts": 0}
    found = ask("memory_per_rank", changes=json.dumps(changes), nodes=1)
    assert sorted(found["changed"]) == ["biases", "gated", "layers", "sequence"]
    assert found["stages"][0]["layers"] == 4


# -- traffic -------------------------------------------------------------------------------------

GPT3 = {"model": "gpt3-175b", "nodes": 8, "tp": 8, "pp": 8}


def sent(found, kind, *purposes):
    rows = [row for row in found["rows"] if row["kind"] == kind]
    return sum(row["sent_bytes_per_rank"] for row in rows if row["purpose"] in purposes)


def test_volumes_are_the_published_ones(ask):
    vectors = facts("comm_traffic")
    (layer,) = [one for one in vectors["tp"] if (one["h"], one["t"]) == (12288, 8)]
    found = ask("traffic_per_step", recompute="none", **GPT3)
    passes = 96 / 8 * found["training"]["micro_batches"]
    assert sent(found, "tp", "forward") / passes == layer["sp"]["fwd"]
    assert sent(found, "tp", "backward", "regather") / passes == layer["sp"]["bwd"]
    plain = ask("traffic_per_step", recompute="none", sequence_parallel=False, **GPT3)
    assert sent(plain, "tp", "forward", "backward") / passes == layer["no_sp"]["total"]
    for one in vectors["pp"]:
        if (one["h"], one["t"]) == (12288, 8):
            rows = (found if one["sp"] else plain)["rows"]
            buffers = {row["buffer_bytes"] for row in rows if row["kind"] == "pp"}
            assert buffers == {one["bytes_per_microbatch_per_direction_per_rank"]}


def test_rows_add_up_and_are_in_order(ask):
    found = ask("traffic_per_step", model="deepseek-v3", nodes=16, tp=2, pp=8, ep=8, etp=1,
                spread="nearly", cluster="hgx-h800")  # fmt: skip
    rows = found["rows"]
    assert {"tp", "pp", "ep", "dp-cp", "edp"} <= {row["kind"] for row in rows}
    for total in ("total_bytes", "across_bytes"):
        assert found[total] == pytest.approx(sum(row[total] for row in rows))
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds, reverse=True)
    assert sum(found["parts_seconds"].values()) == pytest.approx(found["step_seconds"])
    assert found["low_seconds"] < found["step_seconds"] < found["high_seconds"]
    for row in rows:
        assert 0 <= row["across_bytes"] <= row["total_bytes"]
        assert row["meaning"]
    assert found["network_bytes_per_second"] == CLUSTERS["hgx-h800"].nic


def test_dualpipe_computes_as_much_as_one_copy_of_the_model(ask):
    job = {"model": "gpt3-175b", "nodes": 8, "tp": 8, "pp": 8, "global_batch": 32}
    one = ask("traffic_per_step", **job)["computation_seconds"]
    twice = ask("traffic_per_step", memory_schedule="dualpipe", **job)["computation_seconds"]
    assert twice == pytest.approx(one, rel=0.05)  # the output layer is on another rank too


# -- better layouts ------------------------------------------------------------------------------


def test_the_best_layouts_are_what_the_other_endpoints_say_of_them(ask):
    job = {"nodes": 2, "global_batch": 64}
    found = ask("better_layouts", tp=8, pp=2, **job)
    assert found["complete"]
    assert len(found["best"]) == 10
    seconds = [one["step_seconds"] for one in found["best"]]
    assert seconds == sorted(seconds)
    assert seconds[0] <= found["given"]["step_seconds"]
    assert found["given_is_refused"] == ""
    for one in [*found["best"][:3], found["given"]]:
        assert one["tp"] * one["cp"] * one["pp"] * one["dp"] == found["world_size"] == 16
        names = ("tp", "cp", "pp", "ep", "etp", "vpp", "spread", "account", "memory_schedule")
        names += ("micro_batch", "recompute")
        sizes = {name: one[name] for name in names}
        memory = ask("memory_per_rank", **sizes, **job)
        assert memory["needed_bytes"] == one["needed_bytes"] <= found["capacity_bytes"]
        traffic = ask("traffic_per_step", **sizes, **job)
        assert traffic["parts_seconds"] == pytest.approx(one["parts_seconds"])
        assert one["step_seconds"] == pytest.approx(sum(one["parts_seconds"].values()))
        assert one["reasons"]
        assert all(reason["code"] and "{" not in reason["words"] for reason in one["reasons"])


def test_a_layout_that_the_model_refuses_is_told_beside_the_better_ones(ask):
    found = ask("better_layouts", nodes=3, tp=24)
    assert found["given"] is None
    assert found["given_is_refused"].startswith("sequence 8192 is not a multiple of")
    assert found["best"]


def test_without_memory_those_that_lack_least_are_told(ask):
    found = ask("better_layouts", nodes=1, capacity=1.0)
    assert not any(one["fits"] for one in found["best"])
    memory = [one["needed_bytes"] for one in found["best"]]
    assert memory == sorted(memory)


# -- the time of a step --------------------------------------------------------------------------


def test_a_step_is_told_with_its_interval_its_memory_and_the_nearest_runs(ask):
    job = {"nodes": 8, "tp": 8, "pp": 2, "model": "llama3-70b", "global_batch": 128}
    found = ask("estimate", **job)
    assert found["low_seconds"] < found["step_seconds"] < found["high_seconds"]
    assert sum(found["parts_seconds"].values()) == pytest.approx(found["step_seconds"])
    assert found["needed_bytes"] == ask("memory_per_rank", **job)["needed_bytes"]
    assert found["step_seconds"] == ask("traffic_per_step", **job)["step_seconds"]
    assert len(found["nearest"]) == 5
    assert all(run["measured_seconds"] > 0 and run["source"] for run in found["nearest"])


FIT = ("fit", "fits", "memory_low_bytes", "memory_high_bytes", "needed_bytes", "memory_bytes")


@pytest.mark.parametrize(
    ("filled", "fit"), [(0.85, "fits"), (0.95, "close"), (1.02, "close"), (1.1, "over")]
)
def test_every_endpoint_says_the_same_of_three_verdicts(ask, filled, fit):
    """filled: what is needed over what a GPU has; the limit is within the error of 0.9 to 1.03."""
    job = {"nodes": 8, "tp": 8, "pp": 2, "model": "llama3-70b", "global_batch": 128}
    job["capacity"] = ask("estimate", **job)["needed_bytes"] / 2**30 / filled
    found = ask("estimate", **job)
    assert (found["fit"], found["fits"]) == (fit, fit != "over")
    assert found["memory_low_bytes"] < found["needed_bytes"] < found["memory_high_bytes"]
    others = [
        ask("memory_per_rank", **job),
        ask("better_layouts", **job)["given"],
        ask("compare", kept="~tp=4;pp=4", **job)["second"],
    ]
    for other in others:
        assert {name: other[name] for name in FIT} == {name: found[name] for name in FIT}


# -- refusals ------------------------------------------------------------------------------------

ONES = ", ".join(["1"] * 15)
REFUSED = {
    # operations
    "no operation": (
        "collective",
        {"operation": "zz"},
        "'zz' is not a choice of operation: choose all_reduce",
    ),
    "nearly one": ("collective", {"operation": "allreduce"}, "try operation all_reduce"),
    "a list": ("collective", {"operation": ["all_reduce"]}, "operation must be a text"),
    "no group": ("collective", {"group": "zz"}, "'zz' is not a choice of group: choose tp, cp, dp"),
    "a direction": ("collective", {"direction": "up"}, "choose forward, backward"),
    "no backward": (
        "collective",
        {"operation": "_reduce", "direction": "backward"},
        "_reduce has no backward here; try direction forward",
    ),
    "values": ("collective", {"values": "twos"}, "choose count, rank, ones"),
    "a shape": ("collective", {"shape": "2x0"}, "'2x0' is not a shape"),
    "a shape that does not split": (
        "collective",
        {"operation": "reduce_scatter", "group": "tp", "tp": 4, "shape": "6"},
        "does not split over 4 ranks; try shape 4 or shape 8",
    ),
    "a large shape": ("collective", {"shape": "9x9"}, "makes more numbers than can be read"),
    "an algorithm": ("collective", {"algorithm": "hypercube"}, "choose ring_all_reduce"),
    "another operation's algorithm": (
        "collective",
        {"algorithm": "tree_broadcast"},
        "'tree_broadcast' is not a choice of algorithm: choose ring_all_reduce",
    ),
    "steps where nothing moves": (
        "collective",
        {"operation": "split", "algorithm": "ring_all_reduce"},
        "is not a choice of algorithm",
    ),
    "steps of many": ("collective", {"nodes": 9, "algorithm": "ring_all_reduce"}, "not of 72"),
    "a root of none": ("collective", {"root": 1}, "all_reduce has no option 'root'"),
    "a root outside": ("collective", {"operation": "broadcast", "root": 16}, "from 0 to 15"),
    "a root as text": ("collective", {"operation": "broadcast", "root": "1"}, "whole number"),
    "megabytes": ("collective", {"megabytes": 0}, "0 is not a number above 0"),
    "a speed": ("collective", {"gigabytes_per_second": -1}, "-1 is not a number above 0"),
    "tensors and a shape": ("collective", {"tensors": "[1]", "shape": "1"}, "not both"),
    "too few tensors": (
        "collective",
        {"tensors": "[1, 2]"},
        "2 tensors are not one for each of 16",
    ),
    "tensors that are words": ("collective", {"tensors": "many"}, "is not a JSON list"),
    "tensors that are an object": ("collective", {"tensors": "{}"}, "is not a JSON list"),
    "tensors that are very deep": ("collective", {"tensors": "[" * 50_000}, "is not a JSON list"),
    "a tensor of words": ("collective", {"tensors": f'["x", {ONES}]'}, "not an array of numbers"),
    "a tensor of nothing": (
        "collective",
        {"tensors": f"[null, {ONES}]"},
        "not an array of numbers",
    ),
    "a ragged tensor": ("collective", {"tensors": f"[[[1], [1, 2]], {ONES}]"}, "not an array of"),
    "tensors that differ": ("collective", {"tensors": f"[[1], {ONES}]"}, "of the same group one"),
    "no number": ("collective", {"tensors": f"[NaN, {ONES}]"}, "holds a number beyond"),
    "an infinite number": ("collective", {"tensors": f"[1e999, {ONES}]"}, "holds a number beyond"),
    "a huge number": ("collective", {"tensors": f"[{'9' * 400}, {ONES}]"}, "not an array of"),
    "a number that would overflow": (
        "collective",
        {"tensors": f"[{2**62}, {ONES}]"},
        "the tensor of rank 0 holds a number beyond 1,000,000,000,000",
    ),
    "many ranks": ("collective", {"nodes": 2**15}, "more than the 131,072 that can be shown"),
    "many numbers": (
        "collective",
        {"nodes": 2048, "operation": "all_gather", "shape": "1"},
        f"268,451,840 numbers are more than the {MOST_NUMBERS:,} of one answer",
    ),
    # schedules
    "no schedule": (
        "pipeline_schedule",
        {"schedule": "zz"},
        "'zz' is not a choice of schedule: choose gpipe",
    ),
    "a schedule that is a list": (
        "pipeline_schedule",
        {"schedule": ["1f1b"]},
        "is not a text",
    ),
    "no ranks": ("pipeline_schedule", {"p": 0}, "p must be a whole number from 1"),
    "ranks as text": ("pipeline_schedule", {"p": "4"}, "p must be a whole number"),
    "half a micro-batch": ("pipeline_schedule", {"m": 2.5}, "m must be a whole number"),
    "chunks of 1F1B": ("pipeline_schedule", {"v": 2}, "1, not 2; try v 1"),
    "chunks below none": ("pipeline_schedule", {"v": -1}, "v must be a whole number from 0"),
    "groups of 1F1B": ("pipeline_schedule", {"group_size": 4}, "groups of a chosen size"),
    "a small last group": (
        "pipeline_schedule",
        {"schedule": "interleaved", "m": 5},
        "leave a last group of 1, fewer than the 4 pipeline ranks; try m 4, m 8",
    ),
    "a time below 0": ("pipeline_schedule", {"t_f": -1}, "t_f must be a number from 0"),
    "a time that is a word": ("pipeline_schedule", {"t_w": "long"}, "t_w must be a number from 0"),
    "a time that is a flag": ("pipeline_schedule", {"t_b": False}, "t_b must be a number from 0"),
    "a flag that is a number": ("pipeline_schedule", {"ops": 1}, "choose False, True"),
    "a long pipeline": ("pipeline_schedule", {"p": 2000}, "2,000 pipeline ranks are more than"),
    "many ops": ("pipeline_schedule", {"p": 64, "m": 1024}, "of one answer; try ops False"),
    "too many ops": ("pipeline_schedule", {"p": 64, "m": 10**6}, "ops, more than the 2,000,000"),
    # models
    "no model": ("memory_per_rank", {"model": "zz"}, "'zz' is not a choice of model"),
    "a model that is a list": ("memory_per_rank", {"model": ["zz"]}, "is not a text"),
    "changes that are words": ("memory_per_rank", {"changes": "many"}, "is not a JSON object"),
    "changes that are a list": ("memory_per_rank", {"changes": "[1]"}, "is not a JSON object"),
    "changes that are a number": ("memory_per_rank", {"changes": 3}, "changes must be a text"),
    "a field that is none": ("memory_per_rank", {"changes": '{"width": 1}'}, "choose layers"),
    "a size that is a word": (
        "memory_per_rank",
        {"changes": '{"hidden": "wide"}'},
        "hidden must be a whole number",
    ),
    "a size that is infinite": (
        "memory_per_rank",
        {"changes": '{"layers": 1e999}'},
        "layers must be a whole number from 1 to 10,000, not 'inf'",
    ),
    "heads that do not divide": (
        "memory_per_rank",
        {"tp": 16, "changes": '{"heads": 8}'},
        "heads 8 is not a multiple of tp 16; try tp 8",
    ),
    "layers that do not divide": (
        "memory_per_rank",
        {"pp": 2, "changes": '{"layers": 33}'},
        "33 layers over 2 stages is not a whole number each; try spread nearly",
    ),
    "a batch that does not divide": (
        "memory_per_rank",
        {"tp": 8, "global_batch": 3},
        "global_batch 3 is not a multiple of micro_batch 1 x dp 2 = 2; try global_batch 2",
    ),
    "micro-batches that whole rounds would take beyond the limit": (
        "traffic_per_step",
        {
            **{"memory_schedule": "interleaved-zb", "nodes": 16, "pp": 128, "vpp": 2},
            **{"global_batch": 1_000_000, "changes": '{"layers": 768}'},
        },
        "1000000 micro-batches do not make 7812 equal rounds; try global_batch ",
    ),
    "a batch as text": ("memory_per_rank", {"global_batch": "8"}, "global_batch must be a whole"),
    "a batch beyond all": (
        "better_layouts",
        {"global_batch": 10**9},
        "global_batch must be a whole number from 1 to 16,000,000, not 1000000000; "
        "try global_batch 16000000",
    ),
    "no micro-batch": ("memory_per_rank", {"micro_batch": 0}, "micro_batch must be a whole"),
    "a stage of ZeRO": ("memory_per_rank", {"zero": 4}, "'4' is not a choice of zero"),
    "a format": ("memory_per_rank", {"precision": "fp8"}, "'fp8' is not a choice of precision"),
    "a flag in words": ("memory_per_rank", {"sequence_parallel": "on"}, "choose False, True"),
    "another flag": ("memory_per_rank", {"account": 1}, "1 is not a choice of account"),
    "no memory": ("memory_per_rank", {"capacity": -1}, "-1 is not a number of GiB"),
    "a schedule": ("memory_per_rank", {"memory_schedule": "zz"}, "'zz' is not a choice of memory"),
    "chunks without stages": ("memory_per_rank", {"vpp": 2}, "needs more than one pipeline stage"),
    "a layout that cannot be": ("memory_per_rank", {"tp": 3}, "does not divide 16 GPUs; try tp 2"),
    "too many GPUs": (
        "memory_per_rank",
        {"nodes": 20_000},
        "more than the 131,072 that can be shown; try nodes 16384 or gpus_per_node 6",
    ),
    "instances": ("memory_per_rank", {"instances": 3}, "try instances 2 or instances 4"),
    # clusters
    "a cluster": ("traffic_per_step", {"cluster": "zz"}, "'zz' is not a choice of cluster"),
    "a cluster that is none": ("better_layouts", {"cluster": 3}, "'3' is not a choice of cluster"),
    "a ring": ("traffic_per_step", {"cp_algorithm": "zz"}, "not a choice of cp_algorithm"),
    **{
        f"experts without any, of {name}": (
            name,
            {"ep": 2, "model": "llama3-8b"},
            "ep 2 spreads experts, and the model has none; try ep 1",
        )
        for name in ("memory_per_rank", "traffic_per_step")
    },
    "experts without sequence parallelism": (
        "traffic_per_step",
        {"model": "mixtral-8x7b", "tp": 2, "ep": 8, "sequence_parallel": False},
        "try sequence_parallel True",
    ),
    "memory below none": ("better_layouts", {"capacity": -1}, "-1 is not a number of GiB"),
}


def test_an_endpoint_refuses_in_words_and_the_server_goes_on(client, ask):
    assert client.wrong_refusals(REFUSED) == {}
    assert ask("pipeline_schedule", p=1, m=1)["makespan"] == 3


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(
            ("pipeline_schedule", {"schedule": schedule, "m": m})
            for schedule in SCHEDULES
            for m in (10**9, 10**6, 99_999)
        ),
        ("pipeline_schedule", {"m": 10**6, "trace": True}),
        ("pipeline_schedule", {"p": 1024}),
        ("traffic_per_step", {"ep": 10**6}),
        ("traffic_per_step", {"ep": 3}),
        ("traffic_per_step", {"ep": 10**6, "model": "deepseek-v3"}),
        ("memory_per_rank", {"nodes": 3, "gpus_per_node": 6, "tp": 3, "pp": 2}),
    ],
)
def test_every_fix_is_answered(name, given):
    with pytest.raises(LayoutError) as refusal:
        ENDPOINTS[name](**given)
    assert refusal.value.alternatives
    for fix in refusal.value.alternatives:
        assert answered(name, tuple(sorted({**given, **fix}.items())))


@cache  # several sizes that are too large lead to the same largest one
def answered(name, given):
    return ENDPOINTS[name](**dict(given))


def test_numbers_that_the_client_would_not_send_are_refused_in_words(client, ask):
    start = [json.dumps(value) for value in client.starts["pipeline_schedule"].values()]
    for at, name in enumerate(client.starts["pipeline_schedule"]):
        if name in ("p", "m", "v", "t_f", "t_send"):
            for number in ("NaN", "Infinity", "-Infinity", "1e400", "9" * 4000, "[]"):
                values = [*start[:at], number, *start[at + 1 :]]
                with pytest.raises(RefusedError, match="number") as refusal:
                    client.send("pipeline_schedule", f"[{', '.join(values)}]")
                assert "Traceback" not in str(refusal.value)
    assert ask("pipeline_schedule", p=1, m=1)["makespan"] == 3


@pytest.mark.parametrize("changes", [{"tp": 32}, {"global_batch": 3}, {"vpp": 3}, {"zero": 9}])
def test_the_sentence_is_that_of_the_page(client, changes):
    job = {"nodes": 4, "tp": changes.get("tp", 8)}
    layout = Job(**job, pp=1).layout()
    given = {name: str(size) for name, size in changes.items() if name != "tp"}
    with pytest.raises(LayoutError) as page:
        trained_of(layout, State(**given, heads="48", hidden="6144")).stages()
    model = json.dumps({"heads": 48, "hidden": 6144})
    with pytest.raises(RefusedError) as refusal:
        client("memory_per_rank", changes=model, **{**job, **changes})
    assert str(refusal.value).startswith(page.value.what)
