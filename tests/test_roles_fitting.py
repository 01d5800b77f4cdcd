"""What would make a plan of roles fit, each way tried."""

from dataclasses import replace

import pytest

from formats.roles.read import read_plan
from request.answers.roles.api import read_facts
from request.answers.roles.said import changes_of, found_of, ways_of
from request.context import Context
from request.state import State
from views.memory.server import server_html
from views.roles.step import step_html

TEXT = """python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \
--tensor-model-parallel-size 2 --sequence-parallel --rollout-num-gpus-per-engine 2 \
--hf-checkpoint Qwen/Qwen3-8B --rollout-batch-size 32 --n-samples-per-prompt 8 \
--global-batch-size 256 --sglang-mem-fraction-static {share} --no-offload-train"""


SIZES = {"nodes": "4", "tp": "4", "pp": "2", "ep": "8", "etp": "1", "recompute": "full"}
ROLES = (
    "rollout@0-31:vllm,tp=4,dp=1,model=qwen3-30b-a3b,served_weights=bf16,served_share=0.8,"
    "served_length=10240;*actor@0:stays"
)


@pytest.fixture
def page() -> State:
    batch = {"micro_batch": "1", "global_batch": "256"}
    return State(model="qwen3-30b-a3b", view="roles", roles=ROLES, **SIZES, **batch)


def test_every_way_makes_the_plan_fit_and_the_milder_share_would_not(page):
    context = Context.of(page)
    found, ways = found_of(context), ways_of(context)
    assert not found.fits
    assert ways
    for way in ways:
        after = Context.of(page.changed(changes_of(way, context)))
        assert found_of(after).fits
        assert found_of(after).step.fullest.total == way.bytes <= found.capacity
    assert str(step_html(context)).count('class="fix"') == len(ways)
    (share,) = [one for way in ways for one in way.changes if "served_share" in one.fields]
    more = f"{float(share.fields['served_share']) + 0.05:g}"
    other = context.cast.named(share.role)
    milder = context.cast.with_(other, other.changed({"served_share": more})).state()
    assert not found_of(Context.of(milder)).fits


def test_the_engines_memory_is_not_green_while_the_plan_does_not_fit(page):
    rollout = page.changed({"role_edit": "to rollout", "view": "memory"})
    assert 'class="verdict over"' in str(server_html(Context.of(rollout)))
    (way, *_) = ways_of(Context.of(page))
    mended = page.changed(changes_of(way, Context.of(page)))
    rollout = mended.changed({"role_edit": "to rollout", "view": "memory"})
    assert 'class="verdict fits"' in str(server_html(Context.of(rollout)))


def test_programs_are_told_too_and_a_plan_that_fits_needs_nothing():
    facts = read_facts(read_plan(TEXT.format(share=0.9)), State())
    told = [change for way in facts["would_fit"] for change in way["changes"]]
    assert {"role": "actor", "fields": {"recompute": "full"}, "away": False} in told
    mended = TEXT.format(share=0.3) + " --recompute-granularity full"
    assert read_facts(read_plan(mended), State())["would_fit"] == []


def test_a_role_that_nothing_makes_small_enough_has_no_way(page):
    assert ways_of(Context.of(replace(page, capacity="4"))) == ()
