"""Layers on stages against megatron-core and DeepSpeed, and what else a rank holds and reads."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
from cases import every
from hypothesis import assume, given
from hypothesis import strategies as st
from reference.partitions import partition_balanced, partition_uniform

from groups import LayoutError
from groups.stages.holdings import local_experts, sample_starts, sequence_chunks
from groups.stages.layers import stage_layers
from groups.stages.layout_strings import (
    LETTERS,
    parse_layout,
    stage_layers_of_layout,
)

DATA = Path(__file__).parent / "data"


def cases(file: str, *kinds: str):
    """Parameters: every recorded case of these kinds, named by its id.

    Embedding and loss count both or none: one alone is not drawn, and said (test_launch_args.py).
    """
    recorded = json.loads((DATA / file).read_text(encoding="utf-8"))["cases"]
    found = [case for case in recorded if case["kind"] in kinds]
    found = [case for case in found if "'loss'" in str(case) or "'emb'" not in str(case)]
    assert found
    return pytest.mark.parametrize("case", found, ids=[case["id"] for case in found])


def answer(config: dict) -> list:
    """stage_layers or stage_layers_of_layout, from the settings of a recorded case: by rank."""
    sizes = {"layers": config["n"], "pp": config["pp"], "vpp": config.get("vpp", 1)}
    if "layout" in config:
        layout = written(config["layout"])
        sizes["vpp"] = config.get("vpp") or len(parse_layout(layout)) // config["pp"]
        stages = stage_layers_of_layout(layout, **sizes)
    else:
        ends = {name: config.get(name) for name in ("first", "last")}
        stages = stage_layers(**sizes, account=config.get("emb", False), **ends)
    return [stages[rank :: config["pp"]] for rank in range(config["pp"])]


def written(layout: str | list[list[str]]) -> str:
    """A layout, which Megatron takes as lists of names too, as its string."""
    if isinstance(layout, str):
        return layout
    letters = {name: letter for letter, name in LETTERS.items()}
    return "|".join("".join(map(letters.__getitem__, stage)) for stage in layout)


# --- megatron-core --------------------------------------------------------------------------------


@cases("pipeline_layers.json", "layers")
def test_stages_hold_the_layers_that_megatron_gives_them(case):
    assert answer(case["config"]) == case["decoder_layers_0based"]


@cases("pipeline_layers.json", "layers")
def test_a_layout_is_read_as_megatron_reads_it(case):
    if "layout" in case:
        stages, pp = parse_layout(written(case["config"]["layout"])), case["config"]["pp"]
        assert [stages[rank::pp] for rank in range(pp)] == case["layout"]


@cases("pipeline_layers.json", "error")
def test_what_megatron_refuses_is_refused_with_its_words(case):
    with pytest.raises(LayoutError) as refused:
        answer(case["config"])
    assert refused.value.quote
    assert refused.value.quote in case["error"]["message"]


@cases("pipeline_layers.json", "layout_string")
def test_a_layout_string_has_the_stages_that_megatron_reads(case):
    if "stages" in case:
        assert parse_layout(case["layout"]) == case["stages"]
        return
    with pytest.raises(LayoutError) as refused:
        parse_layout(case["layout"])
    assert refused.value.quote
    assert refused.value.quote in case["error"]["message"]


def test_megatrons_own_example_of_a_layout():
    stages = parse_layout("Et*3|(tt|)*29,m|L")
    assert stages[::16] == [["embedding", "decoder", "decoder", "decoder"], ["decoder", "decoder"]]
    assert stages[14::16] == [["decoder", "decoder"], ["mtp"]]
    assert stages[15::16] == [["decoder", "decoder"], ["loss"]]
    held = stage_layers_of_layout("Et*3|(tt|)*29,m|L", layers=61, pp=16, vpp=2)
    assert held[::16] == [[0, 1, 2], [33, 34]]
    assert held[15::16] == [[31, 32], []]


# --- Laws of stage_layers -------------------------------------------------------------------------


@st.composite
def even_splits(draw):
    """Sizes that an even split accepts, with or without the embedding and the loss."""
    pp, per_chunk = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    vpp = draw(st.integers(1, 4)) if pp > 1 else 1
    account = draw(st.booleans())
    layers = pp * vpp * per_chunk - 2 * account
    assume(layers > 0)
    return layers, pp, vpp, account


@st.composite
def uneven_splits(draw):
    """Sizes that a split with first or last accepts."""
    vpp, middle = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    first, last = (draw(st.none() | st.integers(1, 4).map(lambda n: n * vpp)) for _ in range(2))
    ends = [count for count in (first, last) if count is not None]
    pp = middle + len(ends)
    if pp == 1:
        vpp = 1
    layers = sum(ends) + middle * vpp * draw(st.integers(1, 3))
    return layers, pp, vpp, first, last


@given(even_splits())
def test_an_even_split_starts_each_chunk_where_megatrons_formula_does(sizes):
    """Chunk v of rank p starts at v * (L / vpp) + p * (L / pp / vpp), L with the embedding and
    the loss counted; an embedding shifts all but the first by one."""
    layers, pp, vpp, account = sizes
    stages = stage_layers(layers, pp, vpp, account=account)
    counted = layers + 2 * account
    for place, stage in enumerate(stages):
        v, p = divmod(place, pp)
        start = v * (counted // vpp) + p * (counted // pp // vpp)
        assert not stage or stage[0] == start - account * (place > 0)
    in_turn(stages, layers, pp, vpp)


@given(uneven_splits())
def test_first_and_last_hold_what_they_are_given(sizes):
    layers, pp, vpp, first, last = sizes
    stages = stage_layers(layers, pp, vpp, first=first, last=last)
    in_turn(stages, layers, pp, vpp)
    held = [sum(map(len, stages[rank::pp])) for rank in range(pp)]
    assert first in (None, held[0])
    assert last in (None, held[-1])
    assert len(set(held[first is not None : pp - (last is not None)])) == 1


def in_turn(stages: list, layers: int, pp: int, vpp: int) -> None:
    """Every layer once, through chunk 0 of all ranks, then chunk 1 of all ranks ..."""
    assert len(stages) == pp * vpp
    assert [layer for stage in stages for layer in stage] == list(range(layers))


sizes = st.integers(1, 24)
maybe = st.none() | st.integers(1, 8)


@given(sizes, st.integers(1, 6), st.integers(1, 8), st.booleans(), maybe, maybe)
def test_every_request_is_answered_with_all_layers_or_refused_with_cures_that_work(
    layers, pp, vpp, account, first, last
):
    request = {"layers": layers, "pp": pp, "vpp": vpp, "first": first, "last": last}
    answered = refusal = None
    try:
        answered = stage_layers(**request, account=account)
    except LayoutError as error:
        refusal = error
    if refusal is None:
        in_turn(answered, layers, pp, vpp)
        return
    assert refusal.control in request
    assert len(refusal.alternatives) <= 3
    for change in refusal.alternatives:
        stage_layers(**{**request, **change}, account=account)


# --- Refusals of stage_layers ---------------------------------------------------------------------


REFUSED = [
    (
        {"layers": 30, "pp": 4},
        "layers-do-not-divide",
        "30 layers over 4 stages is not a whole number each; try layers 28, layers 32 or pp 5",
        "num_layers should be divisible by pipeline_model_parallel_size",
    ),
    (
        {"layers": 12, "pp": 4, "vpp": 2},
        "chunks-do-not-divide",
        "3 layers of a stage do not make 2 equal chunks; try vpp 1, vpp 3 or layers 16",
        "num_layers_per_pipeline_rank 3",
    ),
    (
        {"layers": 16, "pp": 1, "vpp": 2},
        "interleaving-needs-stages",
        "vpp 2 needs more than one pipeline stage, and pp is 1; try vpp 1 or pp 2",
        "pipeline-model-parallel size should be greater than 1 with interleaved schedule",
    ),
    (
        {"layers": 8, "pp": 2, "vpp": 2, "first": 4, "last": 4},
        "chunks-need-middle-stages",
        "vpp 2 with first and last needs a stage between them, and pp is 2; try vpp 1",
        "ZeroDivisionError",
    ),
    (
        {"layers": 4, "pp": 4, "first": 3, "last": 3},
        "ends-leave-wrong",
        "first and last take 6 of 4 layers, which leaves 0 to the other 2 stages; try layers 8",
        "",
    ),
    (
        {"layers": 6, "pp": 4, "first": 3, "last": 3},
        "ends-leave-wrong",
        "first and last take 6 of 6 layers, which leaves 0 to the other 2 stages; "
        "try first 1, layers 8 or pp 2",
        "Mismatch: 0 middle layers remaining but 2 middle PP stages available.",
    ),
    (
        {"layers": 12, "pp": 4, "vpp": 2, "first": 3},
        "not-a-multiple",
        "first 3 is not a multiple of vpp 2; try first 6 or vpp 3",
        "number of layers at first stage: 3must be divisible by virtual pipelineparallel degree 2",
    ),
    (
        {"layers": 10, "pp": 1, "first": 2, "last": 3},
        "one-stage-has-no-ends",
        "first and last are two stages, and pp is 1; try pp 3",
        "",
    ),
    (
        {"layers": 8, "pp": 4, "first": 2, "account": True},
        "ends-with-accounted",
        "first and last do not go with accounting for the embedding or the loss",
        "num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage cannot beset at "
        "the same time with account_for_embedding_in_pipeline_split",
    ),
    (
        {"layers": 0, "pp": 4},
        "out-of-range",
        "layers must be a whole number from 1 to 10,000, not 0; try layers 4",
        "",
    ),
    (
        {"layers": 16, "pp": 2.5},
        "not-a-whole-number",
        "pp must be a whole number from 1 to 1,048,576, not 2.5",
        "",
    ),
    (
        {"layers": 16, "pp": None},
        "not-a-whole-number",
        "pp must be a whole number from 1 to 1,048,576, not None",
        "",
    ),
]


@every("request_, code, sentence, quote", REFUSED)
def test_a_refusal_says_what_and_the_nearest_that_works(request_, code, sentence, quote):
    with pytest.raises(LayoutError) as refused:
        stage_layers(**request_)
    assert (refused.value.code, str(refused.value)) == (code, sentence)
    assert refused.value.quote == quote


# --- Refusals of a layout -------------------------------------------------------------------------


@every(
    "layout, sizes, code, alternatives",
    [
        ("Ett|tt|ttL", {"layers": 6, "pp": 2}, "layout-does-not-divide", [{"pp": 3}]),
        ("Ett|ttL", {"layers": 4, "pp": 1, "vpp": 2}, "interleaving-needs-stages", []),
        ("EttttL", {"layers": 4, "pp": 1, "vpp": 2}, "layout-has-other-vpp", [{"vpp": 1}]),
        ("Et|t|t|tL", {"layers": 4, "pp": 2, "vpp": 4}, "layout-has-other-vpp", [{"vpp": 2}]),
        ("Ett|ttL", {"layers": 5, "pp": 2}, "layout-has-other-layers", [{"layers": 4}]),
        ("Ett|ttL", {"layers": 0, "pp": 2}, "layout-has-other-layers", [{"layers": 4}]),
        ("Ett|ttL", {"layers": "four", "pp": 2}, "layout-has-other-layers", [{"layers": 4}]),
        ("E(t)*0|L", {"layers": 4, "pp": 2}, "layout-has-other-layers", []),
        ("", {"layers": 1, "pp": 1}, "layout-first-is-not-embedding", []),
        ("t|EtL", {"layers": 2, "pp": 2}, "layout-first-is-not-embedding", []),
        ("EEt|tL", {"layers": 2, "pp": 2}, "layout-repeats", []),
        ("Et|m||L", {"layers": 1, "pp": 2, "vpp": 2}, "layout-mtp-not-in-last-chunk", []),
        ("Et||m|mL", {"layers": 1, "pp": 2, "vpp": 2}, "layout-mtp-in-two-stages", []),
        ("E|(t|)*3,m|m||L", {"layers": 3, "pp": 8}, "layout-mtp-in-two-stages", []),
        ("E|m|t|L", {"layers": 1, "pp": 4}, "layout-mtp-too-early", []),
        ("E t|tL", {"layers": 2, "pp": 2}, "bad-layout", []),
        ("E(tt)|tL", {"layers": 3, "pp": 2}, "bad-layout", []),
        ("Et*99999L", {"layers": 3, "pp": 1}, "layout-too-long", []),
        ("Et*" + "9" * 2000, {"layers": 3, "pp": 1}, "layout-too-long", []),
        ("(" * 9999, {"layers": 3, "pp": 1}, "layout-too-long", []),
    ],
)
def test_a_layout_that_cannot_be_is_refused(layout, sizes, code, alternatives):
    with pytest.raises(LayoutError) as refused:
        stage_layers_of_layout(layout, **{"vpp": 1, **sizes})
    assert refused.value.code == code
    assert list(refused.value.alternatives) == alternatives
    for change in alternatives:
        stage_layers_of_layout(layout, **{"vpp": 1, **sizes, **change})


@given(st.lists(st.text("tEmL", max_size=4), min_size=1, max_size=6))
def test_a_layout_without_repeats_is_its_letters(stages):
    names = [[LETTERS[letter] for letter in stage] for stage in stages]
    assert parse_layout("|".join(stages)) == names
    assert parse_layout(",".join("|".join(stages))) == names


@given(st.integers(1, 5), st.integers(2, 5), st.integers(1, 3))
def test_a_layout_of_equal_stages_is_the_even_split(per_stage, pp, vpp):
    bars = pp * vpp - 1
    layout = f"E(t*{per_stage}|)*{bars}t*{per_stage}L".replace(f"t*{per_stage}", "t" * per_stage)
    layers = per_stage * pp * vpp
    assert stage_layers_of_layout(layout, layers, pp, vpp) == stage_layers(layers, pp, vpp)


# --- DeepSpeed ------------------------------------------------------------------------------------


@cases("partitions.json", "partition_uniform")
def test_an_even_cut_is_deepspeeds(case):
    assert partition_uniform(case["num_items"], case["num_parts"]) == case["bounds"]


@cases("partitions.json", "partition_balanced")
def test_a_weighted_cut_is_deepspeeds(case):
    assert partition_balanced(case["weights"], case["num_parts"]) == case["bounds"]


@given(st.integers(0, 50), st.integers(1, 12))
def test_an_even_cut_gives_the_remainder_to_the_first_parts(items, parts):
    bounds = partition_uniform(items, parts)
    counts = [end - start for start, end in pairwise(bounds)]
    assert (bounds[0], bounds[-1], len(counts)) == (0, items, parts)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] - counts[-1] <= 1


@given(st.lists(st.integers(0, 9), min_size=3, max_size=7), st.integers(1, 3))
def test_a_weighted_cut_has_the_least_spread_that_its_steps_find(weights, parts):
    """Against the recurrence written with plain loops: best of the first i weights in j parts."""
    bounds = partition_balanced(weights, parts)
    if len(weights) <= parts:
        assert bounds == partition_uniform(len(weights), parts)
        return
    best = {(0, 0): (0.0, math.inf, [0])}  # heaviest, lightest, bounds
    for j in range(1, parts + 1):
        for i in range(j, len(weights) + 1):
            for k in range(j - 1, i):
                if (k, j - 1) not in best:
                    continue
                most, least, cut = best[k, j - 1]
                part = sum(weights[k:i])
                found = (max(most, part), min(least, part), [*cut, i])
                old = best.get((i, j))
                if old is None or found[0] - found[1] <= old[0] - old[1]:
                    best[i, j] = found
    assert bounds == best[len(weights), parts][2]


@every("weight", [-1, math.nan, math.inf, "1", None])
def test_a_weight_is_a_number_from_zero_up(weight):
    with pytest.raises(LayoutError, match="is not a weight"):
        partition_balanced([1, weight, 1], 2)


# --- Sequences, experts, samples ------------------------------------------------------------------


@given(st.integers(1, 32))
def test_a_context_parallel_group_holds_every_chunk_once_in_balanced_pairs(cp):
    pairs = [sequence_chunks(cp, rank) for rank in range(cp)]
    assert sorted(chunk for pair in pairs for chunk in pair) == list(range(2 * cp))
    assert {sum(pair) for pair in pairs} == {2 * cp - 1}


@given(st.integers(1, 16), st.integers(1, 16))
def test_an_expert_parallel_group_holds_every_expert_once_in_order(held, ep):
    ranges = [local_experts(held * ep, ep, rank) for rank in range(ep)]
    assert [expert for part in ranges for expert in part] == list(range(held * ep))


def test_experts_that_ep_does_not_divide_are_refused_with_the_nearest_multiples():
    with pytest.raises(LayoutError) as refused:
        local_experts(10, ep=4, ep_rank=0)
    assert str(refused.value) == "num_experts 10 is not a multiple of ep 4; " + (
        "try num_experts 8 or num_experts 12"
    )
    assert refused.value.control == "num_experts"


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5))
def test_samples_are_dealt_as_a_sampler_that_fills_a_batch_deals_them(dp, micro_batch, steps):
    """Fill a list with micro_batch * dp samples; each rank takes its slice; start anew."""
    batch = dp * micro_batch * steps
    for rank in range(dp):
        expected, filled = [], []
        for sample in range(batch):
            filled.append(sample)
            if len(filled) == dp * micro_batch:
                expected.append(filled[rank * micro_batch : (rank + 1) * micro_batch])
                filled = []
        starts = sample_starts(dp, rank, micro_batch, batch)
        assert [list(range(first, first + micro_batch)) for first in starts] == expected
        assert len(starts) == steps
