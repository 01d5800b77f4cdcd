"""The search: all that is valid, timed as the estimate times it, and published layouts in it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import text_of

from benchmarks.published import FIRST, WHY, everything
from groups.errors import LayoutError
from groups.megatron.parallel_state import grids
from request.context import Context
from request.state import State
from training.clusters import CLUSTERS
from training.estimate import Estimate, estimate_of
from training.estimate.memory import CLOSE, FITS
from training.model import Model
from training.models import MODELS
from training.pipeline import SCHEDULES
from training.recipe import Training
from training.recompute import usual
from training.search import SearchJob, order_of, search, software_for, valid_splits
from training.search import quickest as rooms
from training.search.space import copies, dealings, micro_batches, recomputations
from training.search.timed import TimedLayout, Timer
from views.page import answer

law = settings(max_examples=25, deadline=None)

GPT = Model(layers=8, hidden=2048, heads=16, vocabulary=51200, sequence=8192)
EXPERTS = Model(
    layers=6,
    hidden=2048,
    heads=16,
    kv_heads=8,
    vocabulary=32000,
    sequence=8192,
    gated=True,
    experts=8,
    top_k=2,
    expert_ffn=4096,
    shared_expert_ffn=2048,
    dense_layers=1,
)


def job(model: Model = GPT, **more) -> SearchJob:
    given = {"training": Training(), "global_batch": 64, "gpus": 32, "gpus_per_node": 8}
    return SearchJob(model, **{**given, "cluster": "dgx-h100", **more})


jobs = st.builds(
    job,
    model=st.sampled_from([GPT, EXPERTS]),
    training=st.builds(
        Training,
        zero=st.sampled_from([0, 1, 3]),
        schedule=st.sampled_from(sorted(SCHEDULES)),
        products=st.sampled_from(["bf16", "fp8"]),
        flash=st.booleans(),
    ),
    gpus=st.sampled_from([8, 24, 32]),
    global_batch=st.sampled_from([48, 64]),
    gpus_per_node=st.sampled_from([4, 8]),
    capacity=st.sampled_from([4e9, 12e9, 80e9]),
    cluster=st.sampled_from(["dgx-h100", "gb200-nvl72"]),
)


def estimate_of_way(asked: SearchJob, timed: TimedLayout, way: int) -> Estimate | None:
    """None where the schedule refuses it."""
    try:
        return estimate_of(rooms._request(asked, timed, way), software_for(asked.training))
    except LayoutError:
        return None


def all_of(asked: SearchJob) -> list[list[tuple[float, Estimate]]]:
    """Of every layout every way that its schedule takes: the search's seconds, the estimate."""
    found = []
    splits = [*valid_splits(asked)]
    layouts = (Timer(each).timed(splits) for each in rooms._jobs(asked))
    for timed in itertools.chain.from_iterable(layouts):
        ways = [
            (float(timed.seconds.ravel()[way]), estimate_of_way(asked, timed, way))
            for way in range(timed.seconds.size)
            if timed.seconds.ravel()[way] < float("inf")
        ]
        found.append([(seconds, one) for seconds, one in ways if one])
    return found


SMALL = {"gpus": 16, "global_batch": 32}
TIMED = {
    "dense": job(**SMALL),
    "experts": job(EXPERTS, **SMALL, cluster="gb200-nvl72", gpus_per_node=4),
    "scores kept, nothing shared": job(**SMALL, training=Training(zero=0, flash=False)),
    "fully sharded": job(EXPERTS, **SMALL, training=Training(zero=3, products="fp8")),
    "DualPipe": job(EXPERTS, **SMALL, training=Training(schedule="dualpipe")),
    "a V": job(**SMALL, training=Training(schedule="zb-v")),
    "zero bubble, little memory": job(**SMALL, training=Training(schedule="zb-h1"), capacity=6e9),
}


@pytest.mark.parametrize("name", TIMED)
def test_every_way_takes_as_long_as_the_estimate_says_and_none_better_is_missed(name):
    asked = TIMED[name]
    every = all_of(asked)
    wrong = [
        (one.request, seconds, one.seconds)
        for ways in every
        for seconds, one in ways
        if seconds != pytest.approx(one.seconds)
    ]
    assert not wrong
    fitting: dict[tuple[int, ...], float] = {}
    surely = []
    for one in (one for ways in every for _, one in ways):
        is_hidden = one.request.training.ep_overlap
        room = rooms.ROOM_OF_EXCHANGE * asked.bytes_of_gpu if is_hidden else asked.usable
        if one.fits and one.fit.needed <= room:
            sizes = rooms.sizes_of(one.request.split)
            fitting[sizes] = min(one.seconds, fitting.get(sizes, one.seconds))
            surely += [one.seconds] if one.verdict == FITS else []
    quickest = sorted(fitting.values())[:5]
    found = search(asked, most=5)
    if quickest:
        taken = [one.seconds for one in found.best]
        if all(one.verdict == CLOSE for one in found.best[:-1]) and surely:
            assert min(taken[-1], min(surely)) == pytest.approx(min(surely))
            taken, quickest = taken[:-1], quickest[: len(taken) - 1]
        assert taken == pytest.approx(quickest)
        assert all(one.fits for one in found.best)
        assert not surely or any(one.verdict == FITS for one in found.best)
    else:
        assert not any(one.fit.needed <= asked.usable for one in found.best)


def test_chunks_that_fill_a_gpu_are_timed_nearly_as_the_estimate_says():
    chunks = Training(zero=3, offload="chunks")
    for capacity, least in ((160e9, 0.999), (8e9, 0.85)):
        every = all_of(job(gpus=8, training=chunks, capacity=capacity))
        shares = [seconds / one.seconds for ways in every for seconds, one in ways]
        assert least < min(shares)
        assert max(shares) < 1.01


@law
@given(jobs)
def test_every_layout_found_divides_its_world_its_model_and_its_batch(asked):
    for split in valid_splits(asked):
        model, sizes = asked.model, (split.tp, split.cp, split.dp, split.pp)
        assert split.tp * split.cp * split.dp * split.pp == asked.gpus
        assert split.etp * split.ep * split.edp * split.pp == asked.gpus
        assert not [size for size in sizes if size < 1]
        assert model.heads % split.tp == 0
        assert model.kv_heads % split.tp == 0 or split.tp % model.kv_heads == 0
        assert split.etp in (1, split.tp)
        assert (model.experts or split.ep) % split.ep == 0
        assert asked.global_batch % split.dp == 0
        assert split.pp <= model.layers
        grids(asked.gpus, tp=split.tp, cp=split.cp, pp=split.pp, ep=split.ep, etp=split.etp)


def test_numbers_that_the_gpus_do_not_multiply_are_refused():
    with pytest.raises(LayoutError) as caught:
        search(job(training=Training(products="fp8"), cluster="dgx-a100"))
    assert caught.value.code == "no-such-numbers"


def test_all_valid_sizes_are_tried():
    tiny = replace(GPT, layers=2, heads=2, kv_heads=2, sequence=2048)
    told = {(one.tp, one.cp, one.pp, one.dp) for one in valid_splits(job(tiny, gpus=8))}
    assert told == {  # tp, cp, pp, dp: two heads, two layers, a sequence too short to cut
        (1, 1, 1, 8),
        (1, 1, 2, 4),
        (2, 1, 1, 4),
        (2, 1, 2, 2),
    }


def test_short_pieces_of_a_sequence_are_tried_only_where_they_are_used():
    def sizes(cp: int) -> set[int]:
        return {one.cp for one in valid_splits(job(replace(GPT, sequence=4096), cp=cp))}

    assert sizes(1) == {1}
    assert sizes(4) == {1, 2, 4}


def test_more_tensor_parallel_ranks_than_kv_heads_are_tried():
    few = replace(GPT, kv_heads=2)
    assert {one.tp for one in valid_splits(job(few))} == {1, 2, 4, 8}


def test_of_each_layout_chunks_micro_batches_and_recomputation_are_tried():
    asked = job(replace(GPT, layers=14))
    told = {(one.vpp, one.account, one.spread) for one in dealings(asked, 2)}
    assert {
        (1, False, "equal"),
        (7, False, "equal"),
        (2, True, "equal"),
        (4, True, "equal"),
    } <= told
    assert {(3, False, "nearly"), (3, True, "nearly")} <= told
    (split,) = (s for s in valid_splits(asked) if (s.tp, s.cp, s.pp) == (2, 1, 2))
    assert micro_batches(asked, split) == [1, 2, 4, 8]
    assert recomputations(asked) == usual(asked.model)
    held = replace(asked, fixed=frozenset({"vpp", "micro_batch", "recompute"}), vpp=7)
    assert [one.vpp for one in dealings(held, 2)] == [7]
    assert micro_batches(held, split) == [1]
    assert recomputations(held) == ("selective",)


def test_with_pp_before_dp_both_grids_have_the_same_replicas():
    order = {"dense": ("tp", "cp", "pp", "dp"), "expert": ("etp", "ep", "pp", "edp")}
    found = list(valid_splits(job(EXPERTS, **order)))
    assert found
    assert all(one.dp == one.edp for one in found)


def test_axes_that_a_framework_does_not_have_stay_one():
    found = list(valid_splits(job(EXPERTS, dense=("dp", "pp"), expert=())))
    assert found
    assert {(one.tp, one.cp, one.ep) for one in found} == {(1, 1, 1)}
    assert search(job(EXPERTS, dense=("dp", "pp"), expert=())).best


def test_stages_next_to_each_other_send_over_nvlink():
    """tp-pp-dp puts the stages of a pipeline into one node."""
    split = next(s for s in valid_splits(job(gpus=64)) if (s.tp, s.cp, s.pp) == (1, 1, 8))
    training = Training(micro_batches=8)
    orders = ("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp")
    requests = [job(gpus=64, dense=order).request(split, training) for order in orders]
    far, near = (estimate_of(one, "megatron") for one in requests)
    assert near.parts["pp"] < far.parts["pp"]


def test_a_layout_that_fills_more_of_a_gpu_than_the_room_for_it_is_not_among_the_best():
    needed = search(job(**SMALL)).best[0].fit.needed
    for filled, verdicts in ((0.89, {FITS}), (0.97, {FITS, CLOSE}), (1.0, {FITS, CLOSE})):
        asked = job(**SMALL, capacity=needed / filled)
        best = search(asked).best
        assert max(one.fit.needed for one in best) <= asked.usable, filled
        assert {one.verdict for one in best} <= verdicts | {CLOSE}
        is_there = [one.fit.needed == needed for one in best]
        assert any(is_there) == (needed < asked.usable)
        if any(is_there):
            assert best[is_there.index(True)].verdict == (FITS if filled < 0.9 else CLOSE)


def test_where_nothing_fits_those_that_lack_least_come_first():
    found = search(job(capacity=1e8))
    needed = [one.fit.needed for one in found.best]
    assert needed == sorted(needed)
    assert needed[0] > 1e8


def test_a_layout_knows_its_place_among_all():
    found = search(job(EXPERTS))
    assert [found.place(one.seconds) for one in found.best[:3]] == [1, 2, 3]
    assert found.place(1e9) == len(found.seconds) + 1
    assert {one.software for one in found.best} == {software_for(Training())}


# -- published layouts ---------------------------------------------------------------------------


def test_published_layouts_are_among_the_first_of_their_own_search_or_a_sentence_says_why_not():
    told = {one.name: one for one in everything()}
    assert len(told) >= 30
    late = {name for name, one in told.items() if not 0 < one.place <= FIRST}
    assert late == set(WHY), {name: told[name].place for name in late ^ set(WHY)}
    assert len(late) <= len(told) / 5
    for name, (parts, _) in WHY.items():  # the parts that are named are those that cost it
        first, own = told[name].found.best[0], told[name].own
        lost = sum(own.parts[part] - first.parts[part] for part in parts)
        assert lost >= own.seconds - first.seconds, name


def test_what_runs_on_eighty_gigabytes_does_not_fit_into_sixteen():
    found = search(job(MODELS["llama3-405b"].model, global_batch=2048, gpus=16_384, capacity=8e9))
    assert not any(one.fits for one in found.best)


def test_a_schedule_that_is_counted_is_tried_in_the_lengths_that_can_be():
    deep = job(replace(GPT, layers=1024), training=Training(schedule="interleaved-zb"))
    assert max(dealt.vpp for dealt in dealings(deep, 128)) == 4  # of 8, too many ops
    assert dealings(deep, 1024) == ()
    published = job(replace(GPT, layers=1024), training=Training(schedule="interleaved"))
    assert 8 in {dealt.vpp for dealt in dealings(published, 128)}


def test_pipelines_of_an_odd_length_deal_out_layers_that_they_do_not_divide():
    """DualPipe needs an even number of stages: 9 of them run 1F1B, over 105 layers."""
    training = Training(schedule="dualpipe", micro_batches=16, sequence_parallel=False)
    job = SearchJob(MODELS["gpt-529.6b"].model, training, 432, 216, 72, "dgx-h100")
    assert {3, 9} <= {split.pp for split in valid_splits(job)}
    assert search(job).best


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_says_how_much_of_a_gpu_a_layout_may_need(language):
    """The shares that the search goes by, of layouts with and without buffers of an exchange."""
    page = answer(State(view="search", lang=language)).picture
    assert "99.4%" in page
    assert "88%" in page


def test_places_that_no_layout_is_surely_behind_the_first_of_are_said_to_be_equal():
    context = Context.of(State(view="search"))
    best = search(context.trained.job(context.layout)).best
    sure = [order_of(best[0], other).share for other in best[1:]]
    last = 1 + next((at for at, share in enumerate(sure) if share >= 0.8), len(sure))
    assert last > 1
    page = text_of(answer(State(view="search")).picture)
    assert f"Take places 1 to {last} as equal" in page


# -- copies of what FSDP cuts --------------------------------------------------------------------


def with_copies(name: str, network: float = 1.0, **more) -> SearchJob:
    """A job of torchtitan's on 8 nodes; network: the share of its cards' speed that it has."""
    machine = CLUSTERS["dgx-h100"]
    machine = replace(machine, nic=network * machine.nic)
    training = Training(engine="fsdp2", zero=3, units="torchtitan", **more)
    return SearchJob(MODELS[name].model, training, 512, 64, 8, machine)


def test_a_copy_a_node_wins_where_the_network_is_slow_and_not_where_it_is_quick():
    slow, quick = (search(with_copies("llama3-8b", share)).best[0] for share in (0.02, 1.0))
    assert slow.request.training.instances == 8
    assert quick.request.training.instances == 1
    held = search(replace(with_copies("llama3-8b", 0.02), fixed=frozenset({"instances"}))).best[0]
    assert slow.seconds < held.seconds


def test_copies_are_of_programs_that_have_them_and_that_can_hold_them():
    assert copies(with_copies("llama3-8b")) == (1, 8)
    assert copies(with_copies("llama3-8b", instances=4)) == (1, 4, 8)
    assert copies(with_copies("llama3-70b")) == (1,)  # 1.1 TB of states, a node has 0.7
    megatron = replace(with_copies("llama3-8b"), training=Training(instances=2))
    assert copies(megatron) == (2,)
    held = replace(with_copies("llama3-8b", instances=4), fixed=frozenset({"instances"}))
    assert copies(held) == (4,)
