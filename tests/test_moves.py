"""What moves between layouts, against the planners of Megatron, vLLM and SGLang, and its laws."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups.errors import LayoutError
from groups.layout import Job
from tests.cases import every
from training.clusters import CLUSTERS
from training.kinds import LayerRun
from training.model import Model
from training.models import MODELS
from training.moves import Shards, hand_over, kv_moves, weight_moves
from training.moves.cost import USUAL, seconds_of
from training.moves.published import measured_updates
from training.moves.senders import CHOOSING, GATHERING, RULES
from training.moves.sharded import ShardedModel
from training.moves.tensors import full_name, tensors_of
from training.parameters import total_parameters
from training.split import Dealing

RECORDED = Path(__file__).parent / "data" / "moves.jsonl.xz"
CASES = [json.loads(line) for line in lzma.decompress(RECORDED.read_bytes()).splitlines()[1:]]


def recorded(kind):
    found = [case for case in CASES if case["kind"] == kind]
    assert len(found) == {"weights": 18, "kv": 12, "engine": 175}[kind]
    return found


def model_of(case):
    sizes = {"sequence": 64, "rms_norm": True, **case["model"]}
    if sizes["experts"]:
        sizes |= {"top_k": 2, "expert_ffn": sizes["ffn"]}
    return Model(**sizes)


def layout_of(sizes):
    named = {name: sizes[name] for name in ("tp", "pp", "ep", "etp")}
    return Job(nodes=sizes["world"] // 8, **named).layout()


@every("case", recorded("weights"))
def test_slices_are_those_of_megatrons_planner(case):
    first = case["target_first_rank"]
    source, target = layout_of(case["source"]), layout_of(case["target"])
    moves = weight_moves(model_of(case), source, target, first_rank=first, rule="megatron")
    found = [[*row[:3], [list(part) for part in row.parts]] for row in moves.rows()]
    assert found == case["transfers"]


@every("case", recorded("kv"))
def test_rectangles_are_those_of_megatrons_kv_planner(case):
    sides = (
        Shards(**{name: case[side][name] for name in ("tp", "pp", "copies", "first_rank")})
        for side in ("source", "target")
    )
    rows = kv_moves(case["layers"], case["kv_heads"], *sides)
    assert [list(row) for row in rows] == case["transfers"]


@every("case", recorded("engine"))
def test_engines_hand_over_heads_as_their_own_functions_say(case):
    engine, heads = case["engine"].split()[0], case.get("kv_heads", 1)
    prefill = Shards(tp=case["prefill_tp"], dcp=case.get("prefill_dcp", 1))
    decode = Shards(case["decode_tp"], first_rank=100, dcp=case.get("decode_dcp", 1))
    rows = kv_moves(4, heads, prefill, decode, rule=engine, mla=case.get("mla", False))
    for wanted in case["rows"]:
        rank = wanted["decode_rank"]
        received = [row for row in rows if row.target == 100 + rank]
        if engine == "vllm":
            assert [row.source for row in received] == wanted["reads"]
            held = decode.heads(rank, heads)[1] - decode.heads(rank, heads)[0]
            start = received[0].first_head - prefill.heads(received[0].source, heads)[0]
            assert start // held == wanted["offset_factor"]
        else:
            slices = [
                {
                    "prefill_rank": row.source,
                    "src_head_start": row.first_head - prefill.heads(row.source, heads)[0],
                    "heads": row.after_head - row.first_head,
                    "dst_head_start": row.first_head - decode.heads(rank, heads)[0],
                }
                for row in received
            ]
            assert slices == wanted["slices"]


@every("name", MODELS)
def test_tensors_add_up_to_the_parameters_of_the_model(name):
    model = MODELS[name].model
    ends = ["embedding", "final"] + ["mtp"] * bool(model.mtp_layers)
    ends += ["output"] * (not model.tied)
    tensors = [
        tensor for place in (*range(model.layers), *ends) for tensor in tensors_of(model, place)
    ]
    counts = (tensor.elements * (model.experts if tensor.expert else 1) for tensor in tensors)
    assert sum(counts) == total_parameters(model)


# -- laws, with real numbers ---------------------------------------------------------------------

SIZES = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 3, 4, 6]),
        "pp": st.sampled_from([1, 2]),
        "cp": st.sampled_from([1, 2]),
        "ep": st.sampled_from([1, 2, 3, 4]),
        "etp": st.sampled_from([1, 2, 3]),
        "nodes": st.sampled_from([1, 2]),
    }
)
SHAPES = st.fixed_dictionaries(
    {
        "gated": st.booleans(),
        "tied": st.booleans(),
        "rms_norm": st.booleans(),
        "mtp_layers": st.sampled_from([0, 1]),
        "learned_positions": st.booleans(),
        "biases": st.sampled_from(["none", "qkv", "all"]),
        "attention": st.sampled_from(["grouped", "latent", "latent queries"]),
        "experts": st.sampled_from([0, 6]),
        "vocabulary": st.sampled_from([24, 31]),
    }
)
WHERE = st.sampled_from(["here", "behind", 7, "before"])
FSDP = st.tuples(st.booleans(), st.booleans())
LATENT = {"kv_lora_rank": 3, "qk_nope_head_dim": 1, "qk_rope_head_dim": 1, "v_head_dim": 1}


def drawn_model(attention, experts, **sizes):
    if attention != "grouped":
        sizes |= {**LATENT, "q_lora_rank": 2 * (attention == "latent queries")}
    if experts:
        sizes |= {"experts": experts, "top_k": 1, "expert_ffn": 12, "dense_layers": 1}
        sizes["shared_expert_ffn"] = 12
    return Model(layers=3, hidden=12, heads=12, kv_heads=0 if attention != "grouped" else 6,
                 ffn=12, sequence=4, **sizes)  # fmt: skip


def drawn_layout(sizes):
    try:
        return Job(gpus_per_node=6, **sizes).layout()
    except LayoutError:
        return None


def whole(model, rows=None):
    """Every tensor of a model, filled with numbers that differ; rows: of the vocabulary."""
    tensors, number = {}, 0
    places = ["embedding", "final", "output", *range(model.layers)]
    for place in places + ["mtp"] * bool(model.mtp_layers):
        for tensor in tensors_of(model, place):
            for expert in range(model.experts) if tensor.expert else (None,):
                values = number + np.arange(tensor.elements, dtype=np.int64)
                number += tensor.elements
                if tensor.of_vocabulary and model.tied:
                    values = 10**9 + np.arange(tensor.elements, dtype=np.int64)  # one table
                tensors[full_name(place, tensor, expert)] = tensor, values.reshape(tensor.shape)
    return tensors


def held(side: ShardedModel, tensors):
    """What every rank of a side holds: {rank: {name: array}}, cut as the tensor's own rule says."""
    ranks = {}
    for at in range(side.ranks):
        own = ranks[side.first_rank + at] = {}
        for place in side.places[side.pp_at[at]]:
            for tensor in tensors_of(side.model, place):
                experts = side.experts_of(int(side.ep_at[at])) if tensor.expert else (None,)
                for expert in experts:
                    name = full_name(place, tensor, expert)
                    own[name] = cut(side, at, tensor, tensors[name][1])
    return ranks


def cut(side, at, tensor, values):
    if tensor.axis is None:
        return run_of(side, at, tensor, values)
    part = (side.etp_at if tensor.expert else side.tp_at)[at]
    short = side.length(tensor) - values.shape[tensor.axis]
    padding = [(0, short if axis == tensor.axis else 0) for axis in range(values.ndim)]
    blocks = np.split(np.pad(values, padding, constant_values=-1), tensor.blocks, tensor.axis)
    parts = [np.split(block, side.parts(tensor), tensor.axis)[part] for block in blocks]
    return run_of(side, at, tensor, np.concatenate(parts, tensor.axis))


def run_of(side, at, tensor, values):
    """Of rows the run that torch.chunk gives a rank where data parallelism cuts."""
    if not side.fsdp:
        return values
    stages = side.pp * (side.ep * side.etp if tensor.expert else side.tp)
    each = -(-len(values) // (side.ranks // stages))
    place = int((side.expert_copy if tensor.expert else side.dense_copy)[at])
    return values[place * each : (place + 1) * each]


def moved(moves, before, shapes):
    """The tensors of the target as the rows make them of what the source's ranks hold."""
    after, counts = {}, {}
    for row in moves.rows():
        shape, vocabulary = shapes[row.target][row.tensor].shape, "word_emb" in row.tensor
        array, count = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=int)
        for number, (sender, *slices) in enumerate(row.parts):
            name = row.tensor
            if name not in before[sender]:
                assert name == "output_layer.weight"
                name = "embedding.word_embeddings.weight"
            values = before[sender][name]
            if row.axis is None:
                array[...], count = values, count + 1
                continue
            start, to, length = slices
            index = [slice(None)] * array.ndim
            index[row.axis] = slice(to, to + length)
            if row.bands:
                first, row_to, rows = row.bands[number]
                values, index[0] = values[first : first + rows], slice(row_to, row_to + rows)
            array[tuple(index)] = np.take(values, range(start, start + length), row.axis)
            count[tuple(index)] += 1
        after.setdefault(row.target, {})[row.tensor] = array
        counts[row.target, row.tensor] = count, vocabulary or "output" in row.tensor
    return after, counts


@settings(max_examples=40, deadline=None)
@given(
    SHAPES,
    SIZES,
    SIZES,
    st.sampled_from(RULES),
    WHERE,
    FSDP,
)
def test_every_element_arrives_once_from_a_rank_that_has_it(
    shape, sizes, others, rule, where, fsdp
):
    model, source, target = drawn_model(**shape), drawn_layout(sizes), drawn_layout(others)
    if source is None or target is None:
        return
    begin = target.world_size if where == "before" else 0
    first = {"here": 0, "before": 0, "behind": source.world_size}.get(where, where)
    try:
        moves = weight_moves(model, source, target, first, rule, fsdp=fsdp, source_rank=begin)
    except LayoutError:
        return  # an odd tp of an even width
    tensors = whole(model)
    before, wanted = held(moves.source, tensors), held(moves.target, tensors)
    after, counts = moved(moves, before, wanted)
    assert after.keys() == wanted.keys()
    for rank, own in wanted.items():
        assert own.keys() == after[rank].keys()
        for name, values in own.items():
            count, is_padded = counts[rank, name]
            np.testing.assert_array_equal(after[rank][name], values)
            assert (count == 1).all() or (is_padded and (count <= 1).all())


@settings(max_examples=40, deadline=None)
@given(
    SHAPES,
    SIZES,
    SIZES,
    st.sampled_from(CHOOSING),
    WHERE,
    FSDP,
)
def test_totals_are_the_sums_of_the_slices(shape, sizes, others, rule, where, fsdp):
    model, source, target = drawn_model(**shape), drawn_layout(sizes), drawn_layout(others)
    if source is None or target is None:
        return
    begin = target.world_size if where == "before" else 0
    first = {"here": 0, "before": 0, "behind": source.world_size}.get(where, where)
    try:
        moves = weight_moves(model, source, target, first, rule, fsdp=fsdp, source_rank=begin)
    except LayoutError:
        return
    summed = np.zeros((moves.ranks, moves.ranks), dtype=np.int64)
    for row in moves.rows():
        for part, size in zip(row.parts, row.sizes):
            summed[part[0], row.target] += size
    by_rank, by_node = moves.matrix(by="rank"), moves.matrix()
    if (
        rule == "first" and not moves.is_fsdp
    ):  # copies pass on: who receives how much is the same, from whom is not
        assert (by_rank.sum(axis=0) == summed.sum(axis=0)).all()
        assert (by_rank.diagonal() == summed.diagonal()).all()
    else:
        assert (by_rank == summed).all()
    nodes = moves.nodes
    assert sum(moves.bytes) == by_rank.sum() == by_node.sum()
    assert moves.bytes.same_gpu == by_rank.trace()
    assert moves.bytes.between_nodes == by_node.sum() - by_node.trace()
    away = by_rank - np.diag(by_rank.diagonal())
    for axis, told in ((1, moves.sent), (0, moves.received)):
        assert (told(far=True) + told(far=False) == away.sum(axis=axis)).all()
    assert moves.least.into_gpu == away.sum(axis=0).max() or rule == "megatron"
    assert moves.least.into_gpu <= away.sum(axis=0).max()
    into = np.zeros(nodes.max() + 1, dtype=np.int64)
    np.add.at(into, nodes, moves.received(far=True))
    assert moves.least.into_node <= into.max()


@given(SHAPES, SIZES, st.sampled_from(CHOOSING), st.booleans())
@settings(max_examples=40, deadline=None)
def test_from_a_layout_to_itself_nothing_leaves_a_gpu(shape, sizes, rule, cut):
    model, layout = drawn_model(**shape), drawn_layout(sizes)
    if layout is None:
        return
    try:
        moves = weight_moves(model, layout, layout, rule=rule, fsdp=(cut, cut))
    except LayoutError:
        return
    assert moves.bytes[1:] == (0, 0)
    assert moves.least == (0, 0)


@given(SHAPES, SIZES, SIZES, st.sampled_from(GATHERING), WHERE, st.booleans())
@settings(max_examples=40, deadline=None)
def test_where_tensors_are_gathered_every_gpu_ends_with_the_whole_model(
    shape, sizes, others, rule, where, cut
):
    """verl: each rank that trains; slime: its stage, where the servers have GPUs of their own."""
    model, source, target = drawn_model(**shape), drawn_layout(sizes), drawn_layout(others)
    if source is None or target is None:
        return
    begin = target.world_size if where == "before" else 0
    first = {"here": 0, "before": 0, "behind": source.world_size}.get(where, where)
    try:
        moves = weight_moves(
            model, source, target, first, rule, fsdp=(cut, False), source_rank=begin
        )
    except LayoutError:
        return
    tensors_whole, trains = whole(model), range(begin, begin + source.world_size)
    tensors = [
        (place, tensor, moves.source.length(tensor) * tensor.elements
         // tensor.shape[tensor.axis or 0] * (model.experts if tensor.expert else 1))
        for place in {place for places in moves.source.places for place in places}
        for tensor in tensors_of(model, place)
    ]  # fmt: skip
    in_stage = [
        sum(size for place, _, size in tensors if place in places) for places in moves.source.places
    ]
    everything, got = sum(size for *_, size in tensors), moves.matrix(by="rank").sum(axis=0) // 2
    arrays = held(moves.source, tensors_whole)
    own = {rank: sum(values.size for values in arrays[rank].values()) for rank in trains}
    servers = set(range(first, first + target.world_size))
    apart = rule == "slime" and not servers <= set(trains)
    for rank in trains:
        stage = int(moves.source.pp_at[rank - begin])
        ends = got[rank] + (0 if rank in servers else own[rank])
        assert ends == (in_stage[stage] if apart else everything)
    assert all(got[rank] == everything for rank in servers - set(trains))
    sent = moves.sent(far=False) + moves.sent(far=True)
    assert sent.sum() == (moves.received(far=False) + moves.received(far=True)).sum()


def test_the_first_rank_of_each_stage_sends_whole_tensors_as_slime_does():
    model = MODELS["llama3-8b"].model
    source, target = Job(nodes=2, tp=4, pp=2).layout(), Job(nodes=1, tp=8).layout()
    moves = weight_moves(model, source, target, first_rank=16, rule="slime")
    sent = moves.matrix(by="rank")
    assert np.flatnonzero(sent[:16, 16:].sum(axis=1)).tolist() == [0, 8]
    assert sent[16, 17] == sent[22, 23] == sent[0, 16] + sent[8, 16]
    assert sent[3, 0] > 0 == sent[0, 8]  # tp groups are rings; stages hand nothing on
    verl = weight_moves(model, source, target, first_rank=16, rule="verl").matrix(by="rank")
    assert np.flatnonzero(verl[:16, 16:].sum(axis=1)).tolist() == [0]
    final_norm = 4096 * 2
    assert verl[8, 0] - final_norm == verl[0, 8] > 0


@pytest.mark.parametrize("rule", RULES)
def test_there_and_back_is_the_identity(rule):
    model = drawn_model("latent queries", 12, gated=True, mtp_layers=1, vocabulary=24)
    one = Job(nodes=2, gpus_per_node=6, tp=3, pp=2, ep=2, etp=1).layout()
    other = Job(nodes=2, gpus_per_node=6, tp=2, cp=2, ep=6, etp=2).layout()
    there = weight_moves(model, one, other, rule=rule)
    back = weight_moves(model, other, one, rule=rule)
    tensors = whole(model)
    start, between = held(there.source, tensors), held(there.target, tensors)
    arrived, _ = moved(there, start, between)
    returned, _ = moved(back, arrived, start)
    for rank, own in start.items():
        assert own.keys() == returned[rank].keys()
        for name in own:
            np.testing.assert_array_equal(own[name], returned[rank][name])


@pytest.mark.parametrize("placement", ["loop", "V", "both ways"])
def test_chunks_and_pipelines_that_run_both_ways_are_followed(placement):
    model = Model(layers=8, hidden=8, heads=4, vocabulary=16, sequence=8, tied=True)
    source = Job(nodes=1, tp=2, pp=2).layout()
    dealing = Dealing(2, vpp=2 if placement == "loop" else 1, placement=placement)
    moves = weight_moves(model, source, Job(tp=4).layout(), dealings=(dealing, None))
    tensors = whole(model)
    before, wanted = held(moves.source, tensors), held(moves.target, tensors)
    after, _ = moved(moves, before, wanted)
    for rank, own in wanted.items():
        for name, values in own.items():
            np.testing.assert_array_equal(after[rank][name], values)
    assert moves.source.homes[5] == {"loop": (0,), "V": (1,), "both ways": (0, 1)}[placement]


def test_experts_that_a_rank_does_not_hold_are_not_copied_from_itself():
    """As Megatron's planner does where both sides have the same data parallel groups."""
    model = MODELS["qwen3-30b-a3b"].model
    source, target = Job(nodes=1, ep=2).layout(), Job(nodes=1, ep=4).layout()
    moves = weight_moves(model, source, target)
    row = next(row for row in moves.rows(rank=1) if row.tensor.endswith("linear_fc1.weight32"))
    assert row.parts == ((0,),)


def test_gate_and_up_are_cut_each_by_itself_where_etp_changes():
    model = Model(layers=1, hidden=4, heads=4, vocabulary=8, sequence=8, gated=True,
                  experts=2, top_k=1, expert_ffn=8)  # fmt: skip
    source, target = Job(ep=2, etp=2, tp=2).layout(), Job(ep=2, etp=1).layout()
    (row,) = (
        row
        for row in weight_moves(model, source, target).rows(rank=1)
        if "fc1.weight1" in row.tensor
    )
    assert row.parts == ((2, 0, 0, 4), (3, 0, 4, 4), (2, 4, 8, 4), (3, 4, 12, 4))


def test_rows_that_only_the_targets_padding_has_are_sent_by_nobody():
    model = Model(layers=1, hidden=4, heads=4, vocabulary=100, sequence=8)
    one, other = Job(gpus_per_node=2).layout(), Job(gpus_per_node=2, tp=2).layout()
    moves = weight_moves(model, one, other, padded=True)
    tables = [next(moves.rows(rank=rank)).parts for rank in (0, 1)]
    assert tables == [((0, 0, 0, 128),), ()]  # 128 and 256 rows
    assert [next(weight_moves(model, one, other).rows(rank=rank)).parts for rank in (0, 1)] == [
        ((0, 0, 0, 50),),
        ((1, 50, 0, 50),),
    ]


def test_nearest_takes_its_own_node_then_its_rack_and_shares_the_rest_evenly():
    model = MODELS["llama3-8b"].model
    source, target = Job(nodes=8, tp=4).layout(), Job(nodes=8, tp=8).layout()
    nearest = weight_moves(model, source, target, rule="nearest")
    assert nearest.bytes.between_nodes == 0 < nearest.bytes.same_gpu
    stages = Job(nodes=8, tp=4, pp=4, order="tp-cp-ep-pp-dp", framework="own").layout()
    there = weight_moves(model, stages, target, rule="nearest")
    racked = weight_moves(model, stages, target, rule="nearest", rack=16)
    racks = np.arange(8) // 2
    outside = racks[:, None] != racks
    assert racked.matrix()[outside].sum() == 0 < there.matrix()[outside].sum()
    apart = weight_moves(model, source, target, first_rank=64, rule="nearest")
    assert len(set(apart.sent(far=True)[:64].tolist())) == 1


def test_first_sends_each_shard_once_and_copies_pass_it_on():
    model = MODELS["llama3-8b"].model
    source, target = Job(nodes=1).layout(), Job(nodes=1).layout()
    moves = weight_moves(model, source, target, first_rank=8, rule="first")
    assert {part[0] for row in moves.rows() for part in row.parts} == {0}
    sent = moves.matrix(by="rank")
    assert sent[0, 8] == sent[8, 9] == sent[14, 15] == sum(moves.bytes) // 8


def test_deepseek_goes_from_2048_gpus_to_the_320_that_decode():
    """Experts that ep does not divide: the first 256 ranks have one, as vLLM deals them."""
    model = MODELS["deepseek-v3"].model
    source = Job(nodes=256, pp=16, ep=64, etp=1).layout()
    target = Job(nodes=40, ep=320, etp=1).layout()
    moves = weight_moves(model, source, target, first_rank=2048)
    counts = Counter(
        sum(".experts." in row.tensor for row in moves.rows(rank=2048 + rank))
        for rank in (0, 255, 256)
    )
    assert counts == {116: 2, 0: 1}
    experts = 58 * 256 * 3 * 2048 * 7168
    per_rank = total_parameters(model) - experts
    assert sum(moves.bytes) == 2 * (experts + 320 * per_rank)


def test_llama_goes_from_16384_gpus_to_servers_of_8():
    model = MODELS["llama3-405b"].model
    moves = weight_moves(
        model, Job(nodes=2048, tp=8, pp=16).layout(), Job(nodes=2048, tp=8).layout()
    )
    assert moves.matrix().shape == (2048, 2048)
    assert moves.matrix().sum() == sum(moves.bytes)
    names = {row.tensor for row in moves.rows(rank=16_383)}
    assert len(names) == 3 + 6 * 126
    assert sum(sum(row.sizes) for row in moves.rows(rank=5)) * 16_384 == sum(moves.bytes)


REFUSED = {
    "rule": (
        {"rule": "random"},
        "'random' is not a choice of rule: choose nearest, megatron, first, verl, slime",
    ),
    "rank": (
        {"first_rank": -1},
        "first_rank must be a whole number from 0 to 1,048,560, not -1; try first_rank 0",
    ),
    "rank behind": (
        {"first_rank": 1_048_561},
        "first_rank must be a whole number from 0 to 1,048,560, not 1048561; "
        "try first_rank 1048560",
    ),
    "nodes": (
        {"target": Job(nodes=4, gpus_per_node=4).layout()},
        "the nodes of the two layouts have [4, 8] GPUs, so they do not stand on one cluster; "
        "try first_rank 16",
    ),
    "tp": (
        {"target": Job(nodes=3, tp=3).layout()},
        "tp 3 does not cut self_attention.linear_proj.weight evenly: it has 4096 rows or columns",
    ),
    "gtp": (
        {"target": Job(nodes=2, gtp=2).layout()},
        "weights that gtp cuts further are not followed from one layout to another; try gtp 1",
    ),
}


@every("name", REFUSED)
def test_refusals_say_what_why_and_what_works(name):
    changes, sentence = REFUSED[name]
    layout = Job(nodes=2).layout()
    inputs = {"source": layout, "target": layout, **changes}
    with pytest.raises(LayoutError) as refused:
        weight_moves(MODELS["llama3-8b"].model, **inputs)
    assert str(refused.value) == sentence
    for fix in refused.value.alternatives if name != "gtp" else ():
        weight_moves(MODELS["llama3-8b"].model, **{**inputs, **fix})


@every("name", ["rank", "rank behind", "nodes"])
def test_a_handed_over_cache_begins_where_weights_may(name):
    changes, sentence = REFUSED[name]
    layout = Job(nodes=2).layout()
    with pytest.raises(LayoutError) as refused:
        hand_over(MODELS["llama3-8b"].model, **{"source": layout, "target": layout, **changes})
    assert str(refused.value) == sentence


def test_a_rank_or_matrix_that_is_not_there_is_refused():
    model, layout = MODELS["llama3-8b"].model, Job(nodes=1024).layout()
    moves = weight_moves(model, layout, layout, first_rank=8192)
    with pytest.raises(LayoutError, match="there is no rank 5: ranks go from 8192 to 16383"):
        next(moves.rows(rank=5))
    with pytest.raises(LayoutError, match="a matrix by rank has 16,384 rows, of at most 4,096"):
        moves.matrix(by="rank")
    with pytest.raises(LayoutError, match="choose node, rank"):
        moves.matrix(by="rack")


# -- KV caches -----------------------------------------------------------------------------------


@given(
    st.sampled_from([4, 12]), st.sampled_from([1, 2, 4, 8]),
    *[st.tuples(*[st.sampled_from([1, 2, 4])] * 3)] * 2, st.sampled_from(["megatron", "vllm"]),
)  # fmt: skip
def test_every_head_of_every_layer_arrives_once(layers, heads, source, target, rule):
    sides = [Shards(*sizes, first_rank=first) for sizes, first in ((source, 0), (target, 64))]
    try:
        rows = kv_moves(layers, heads, *sides, rule=rule)
    except LayoutError:
        assert rule == "megatron"
        assert heads < max(source[0], target[0])
        return
    counts = {
        rank: np.zeros((layers, heads), dtype=int) for rank in range(64, 64 + sides[1].world_size)
    }
    for row in rows:
        counts[row.target][row.first_layer : row.after_layer, row.first_head : row.after_head] += 1
    for tp_rank, pp_rank in product(range(sides[1].tp), range(sides[1].pp)):
        first, after = sides[1].heads(tp_rank, heads)
        each = layers // sides[1].pp
        wanted = np.zeros((layers, heads), dtype=int)
        wanted[pp_rank * each : (pp_rank + 1) * each, first:after] = 1
        for rank in sides[1].ranks(tp_rank, pp_rank):
            assert (counts[rank] == wanted).all()


REFUSED_KV = {
    "kv_heads 8 is not a multiple of tp 16; try tp 8": ((24, 8, Shards(16), Shards()), {}),
    "layers 24 is not a multiple of pp 5; try pp 4 or pp 6": ((24, 8, Shards(pp=5), Shards()), {}),
    "neither of tp 3 and tp 2 divides the other; try tp 1 or tp 3": (
        (24, 6, Shards(3), Shards(2)), {"rule": "vllm"},
    ),
    "SGLang hands over from pp 4 to pp 4 or pp 1, not to pp 2; try pp 1 or pp 4": (
        (24, 8, Shards(pp=4), Shards(pp=2)), {"rule": "sglang"},
    ),
    "'nixl' is not a choice of rule: choose megatron, vllm, sglang": (
        (24, 8, Shards(), Shards()), {"rule": "nixl"},
    ),
}  # fmt: skip


@every("sentence", REFUSED_KV)
def test_caches_that_no_engine_hands_over_are_refused(sentence):
    arguments, named = REFUSED_KV[sentence]
    with pytest.raises(LayoutError) as refused:
        kv_moves(*arguments, **named)
    assert str(refused.value) == sentence


LAYOUTS_OF_UPDATE = {
    "Qwen3-30B-A3B": ("qwen3-30b-a3b", 2, {"tp": 4, "ep": 8}, {"tp": 8, "ep": 8}),
    "Qwen3-235B-A22B": ("qwen3-235b-a22b", 8, {"tp": 4, "pp": 4, "cp": 2, "ep": 16},
                        {"tp": 32, "ep": 32}),
    "Kimi-K2": ("kimi-k2", 32, {"tp": 8, "pp": 8, "cp": 4, "ep": 32}, {"tp": 32, "ep": 32}),
}  # fmt: skip


def test_usual_times_are_what_updates_of_known_layouts_took_over_link_speed():
    factors = {way: [] for way in USUAL}
    for name, (model, nodes, actor, rollout) in LAYOUTS_OF_UPDATE.items():
        source, target = (Job(nodes=nodes, etp=1, **sizes).layout() for sizes in (actor, rollout))
        element = 1 if model == "kimi-k2" else 2  # served in fp8
        for update in measured_updates():
            if (update.system, update.model) == ("miles", name):
                ways = {"gathered": "first", "whole": "slime"}
                for way, rule in ({"direct": "nearest"} if update.is_direct else ways).items():
                    moves = weight_moves(
                        MODELS[model].model, source, target, source.world_size, rule,
                        element_bytes=element,
                    )  # fmt: skip
                    factors[way].append(update.seconds / seconds_of(moves, CLUSTERS["dgx-h100"]))
    for way, (low, high) in USUAL.items():
        assert len(factors[way]) == 3
        assert low == pytest.approx(min(factors[way]), rel=0.04)
        assert high == pytest.approx(max(factors[way]), rel=0.04)


ENGINES = st.sampled_from(["megatron", "vllm", "sglang"])


def with_windows(model, window):
    """The model with a window of tokens in every other layer; 0: in none."""
    (layer,) = model.kinds
    (attention,) = layer.mixers
    short = replace(attention, reach="sliding", window=window) if window else attention
    layers = [replace(layer, mixers=(short,)), layer] * model.layers
    return replace(model, runs=tuple(LayerRun(layer) for layer in layers[: model.layers]))


@settings(max_examples=30, deadline=None)
@given(SIZES, SIZES, ENGINES, ENGINES, st.sampled_from([0, 3]), st.sampled_from([0, 12]))
def test_each_copy_that_decodes_receives_every_head_of_every_layer_once(
    sizes, others, here, there, window, first
):
    model = with_windows(drawn_model("grouped", 0, vocabulary=24, gated=True), window)
    names = [name if name in ("vllm", "sglang") else None for name in (here, there)]
    try:
        source, target = (
            Job(
                gpus_per_node=6, framework=name,
                **{axis: size[axis] for axis in ("tp", "pp", "nodes")},
            ).layout()
            for size, name in zip((sizes, others), names)
        )  # fmt: skip
        found = hand_over(model, source, target, first, tokens=8)
    except LayoutError:
        return
    assert found.rule == there
    before, after = found.source, found.target
    for rank in after.ranks.tolist():
        stage, part = after.place_of(rank)
        each = model.layers // after.shards.pp
        head, last = after.shards.heads(part, found.heads)
        got = np.zeros((model.layers, found.heads), dtype=int)
        for move in found.received(rank):
            got[move.first_layer : move.after_layer, move.first_head : move.after_head] += 1
            stage_of, part_of = before.place_of(move.source)
            held = before.shards.heads(part_of, found.heads)
            assert held[0] <= move.first_head < move.after_head <= held[1]
            layers = model.layers // before.shards.pp
            assert (
                stage_of * layers <= move.first_layer < move.after_layer <= (stage_of + 1) * layers
            )
        wanted = np.zeros_like(got)
        wanted[stage * each : (stage + 1) * each, head:last] = 1
        copied = there == "sglang" and before.shards.tp > found.heads
        assert (got >= wanted).all()
        assert copied or (got == wanted).all()
    per_token = 2 * found.heads * model.head_dim * 2
    kept = [8 if not window or (layer + 1) % 2 == 0 else 3 for layer in range(model.layers)]
    assert found.cache == per_token * sum(kept)
    if after.shards.tp <= found.heads and not copied:
        copy = found.of_copy(int(after.ranks[0]))
        assert sum(move.bytes for move in copy) == found.cache


def test_ranks_of_a_server_are_those_of_its_own_order():
    layout = Job(nodes=1, tp=2, pp=2, framework="vllm").layout()
    model = MODELS["llama3-8b"].model
    found = hand_over(model, layout, layout)
    groups = layout.every["tp"].groups().tolist()
    for rank in range(8):  # layers of a stage, heads of a part: of its own copy's places
        stage, part = found.target.place_of(rank)
        assert part == next(group.index(rank) for group in groups if rank in group)
        assert stage == next(
            group.index(rank) for group in layout.every["pp"].groups().tolist() if rank in group
        )


def torchtitan(**sizes):
    return Job(framework="torchtitan", **sizes).layout()


HSDP = {
    "same": (torchtitan(nodes=4, instances=4), torchtitan(nodes=4, instances=4)),
    "copies to one": (torchtitan(nodes=4, instances=4), torchtitan(nodes=4)),
    "one to copies": (torchtitan(nodes=4), torchtitan(nodes=4, instances=4)),
    "to tp": (torchtitan(nodes=2, instances=2), torchtitan(nodes=2, tp=2, instances=2)),
    "to whole": (torchtitan(nodes=2, instances=2), torchtitan(nodes=1, tp=4)),
}


@pytest.mark.parametrize("name", HSDP)
def test_each_rank_receives_its_part_of_a_copy_whole(name):
    source, target = HSDP[name]
    cut = (True, name != "to whole")
    llama = MODELS["llama3-8b"].model
    moves = weight_moves(llama, source, target, fsdp=cut)
    copies = target.job.instances if cut[1] else 1
    shards = target.world_size // target.mesh.size("tp") // copies if cut[1] else 1
    by_rank = [sum(sum(row.sizes) for row in moves.rows(rank)) for rank in range(target.world_size)]
    assert sum(by_rank) == sum(moves.bytes)
    # Norms are whole on each tp rank, and rows that do not divide are padded.
    whole = 2 * total_parameters(llama) / target.mesh.size("tp") / shards
    assert by_rank == pytest.approx([whole] * len(by_rank), rel=2e-3)


def test_a_copy_that_a_gpu_is_in_is_its_own_source():
    for name, between in (("same", 0), ("copies to one", 0)):
        source, target = HSDP[name]
        assert (
            weight_moves(
                MODELS["llama3-8b"].model, source, target, fsdp=(True, True)
            ).bytes.between_nodes
            == between
        )
    source, target = HSDP["one to copies"]
    moves = weight_moves(MODELS["llama3-8b"].model, source, target, fsdp=(True, True))
    assert moves.bytes.between_nodes / sum(moves.bytes) == pytest.approx(3 / 4, rel=1e-3)
