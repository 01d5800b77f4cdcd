"""The roles of a plan on the page: one text of a link, the tabs, what each change of them makes."""

from __future__ import annotations

import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import select, values, written

from descriptions import VIEWS
from formats.roles.presets import PLANS, preset_plan
from groups import LayoutError
from request.answers.roles.moments import moments_of, moments_read
from request.context import Context
from request.inputs import FIELDS
from request.link import from_query, to_query
from request.roles.edits import EDITS, NAMES, edited
from request.roles.opened import state_of_plan
from request.roles.pages import cast_of
from request.roles.text import OWN_FIELDS, read_roles
from request.state import State
from training.machine import GIB
from views.page import answer, draw

START = State(nodes=4, tp=4, pp=2, model="qwen3-8b", zero="1")
DAPO = "rollout@0-31:vllm,tp=4;reward@32-39:tp=1,model=qwen3-1.7b"

KEPT = ["stays", "", "weights+cache", "x"]
PLACES = ["0", "8", "12", "0-7,16-39", "x"]

STEPS = st.lists(
    st.sampled_from([*EDITS]).flatmap(
        lambda verb: {
            "to": st.sampled_from(NAMES).map(lambda name: f"to {name}"),
            "gpu": st.integers(0, 47).map(lambda gpu: f"gpu {gpu}"),
            "name": st.sampled_from(["policy", "actor", "a;b"]).map(lambda name: f"name {name}"),
            "first": st.sampled_from(PLACES).map(lambda at: f"first {at}"),
            "keep": st.sampled_from(KEPT).map(lambda one: f"keep {one}"),
        }.get(verb, st.just(verb))
        | st.sampled_from([{"tp": "2"}, {"nodes": "2"}, {"gpus_per_node": "4"}, {"zero": "3"},
                           {"more": "embd"}, {"recompute": "core_attn,mlp"}, {"model": ""}])
    ),
    max_size=8,
)  # fmt: skip
"""What a reader may do one after the other: instructions, and inputs of the role on screen."""


def said(state: State) -> dict[str, tuple[object, ...]]:
    """What a state says of each role."""
    return {one.name: (*one.own().values(), one.spans, one.kept) for one in cast_of(state).members}


@given(STEPS)
@settings(max_examples=40, deadline=None)
def test_whatever_is_on_screen_says_the_same_plan(steps):
    state = START
    for step in steps:
        try:
            state = edited(state.changed({"role_edit": step} if isinstance(step, str) else step))
        except LayoutError:
            continue
        shown = cast_of(state).shown
        if shown.gpus and len(shown.gpus) != shown.count:  # no plan, and stays on screen: below
            continue
        before = said(state)
        for name in before:
            turned = cast_of(state).to(name).state()
            assert said(turned) == before
            assert said(from_query(to_query(turned))) == before
            assert cast_of(turned).state() == turned
            back = cast_of(turned).to(cast_of(state).shown.name).state()
            assert {**vars(back), "rank": ""} == {**vars(cast_of(state).state()), "rank": ""}


def test_a_role_whose_chosen_gpus_are_not_its_machines_stays_on_screen_until_that_is_mended():
    state = edited(edited(START.changed({"role_edit": "add"})).changed({"nodes": "2"}))
    torn = edited(state.changed({"role_edit": "first 0-7,16-39"}))
    for instruction in ("to actor", "add"):
        with pytest.raises(LayoutError) as refused:
            edited(torn.changed({"role_edit": instruction}))
        assert refused.value.code == "gpus-are-not-machines"
        mended = edited(torn.changed(refused.value.alternatives[0]))
        assert cast_of(edited(mended.changed({"role_edit": "to actor"}))).shown.name == "actor"
    assert cast_of(edited(torn.changed({"role_edit": "gpu 16"}))).shown.name == "rollout"


def test_a_job_of_one_role_says_nothing_of_roles():
    assert cast_of(START).state() == START
    two = edited(START.changed({"role_edit": "add"}))
    one = edited(two.changed({"role_edit": "remove"}))
    assert one == START.changed({"view": "roles"})
    assert str(Context.of(START).plan) == "4 x 8 GPUs: actor 0-31"


def test_a_typed_text_says_what_a_person_means():
    plan = Context.of(START.changed({"roles": DAPO})).plan
    assert str(plan) == "5 x 8 GPUs: actor 0-31, rollout 0-31, reward 32-39"
    meshes = {role.name: str(role.layout.mesh) for role in plan.roles}
    assert meshes["rollout"] == "tp4-cp1-pp1-dp8"
    pages = {one.name: one.page for one in cast_of(START.changed({"roles": DAPO})).members}
    assert {name: page.model for name, page in pages.items()} == {
        "actor": "qwen3-8b",
        "rollout": "qwen3-8b",  # as on screen, where it says none
        "reward": "qwen3-1.7b",
    }


REFUSED = {
    "rollout@0:vllm,tp=3": "in-role",
    "rollout:vlm": "no-setting-of-a-role",
    "rollout:tq=3": "no-setting-of-a-role",
    "rollout@0-31:nodes=2": "gpus-are-not-machines",
    "*a;*b": "two-roles-shown",
    "*actor@0:tp=2": "role-on-screen",
    "*actor@0-15;x": "gpus-are-not-ranks",
    "a;a@32": "role-named-twice",
    "@3": "not-a-role",
    "a@3-1": "not-gpus-of-a-role",
    "4x8;x@64": "role-beyond-cluster",
}


@every("text, code", [*REFUSED.items()])
def test_a_text_that_cannot_be_is_refused_with_what_can(text, code):
    state = START.changed({"roles": text})
    with pytest.raises(LayoutError) as refusal:
        Context.of(state)
    error = refusal.value
    assert (error.code, error.control) == (code, "roles")
    assert error.alternatives or error.why
    for fix in error.alternatives:
        assert Context.of(state.changed(fix)).plan


def test_a_tab_answers_the_fields_of_its_role_and_the_text_of_the_others():
    sent = {**vars(START), "roles": DAPO, "role_edit": "to reward", "rank": "9"}
    answered = draw(sent)
    state = State(**answered["state"])
    assert (state.tp, state.model, state.roles) == (
        "1",
        "qwen3-1.7b",
        "actor@0-31:tp=4,pp=2,model=qwen3-8b,zero=1;rollout@0-31:vllm,tp=4,model=qwen3-8b;*reward@32",
    )
    assert 'aria-pressed="true"' in answered["regions"]["roles"]
    refused = draw({**sent, "role_edit": "first many"})
    assert "many" in refused["regions"]["status"]


def test_what_a_role_says_for_itself_is_all_that_differs():
    state = START.changed({"roles": DAPO})
    others = set(vars(state)) - {*OWN_FIELDS, "roles", "rank"}
    turned = cast_of(state).to("rollout").state()
    assert all(getattr(turned, name) == getattr(state, name) for name in others)
    assert str(read_roles(turned.roles)) == turned.roles


@every("name", PLANS)
def test_a_published_plan_opens_as_its_text_reads(name):
    state, plan = from_query(f"preset={name}"), preset_plan(name).plan
    opened = Context.of(state).plan
    assert {role.name: (role.ranks.tolist(), str(role.layout.mesh)) for role in opened.roles} == {
        role.name: (role.ranks.tolist(), str(role.layout.mesh)) for role in plan.roles
    }
    assert [role.name for role in opened.turns] == [role.name for role in plan.turns]
    assert from_query(to_query(state)) == state
    for member in cast_of(state).members:
        turned = cast_of(state).to(member.name).state()
        assert said(turned) == said(state)
        assert turned.preset == name


def test_a_pasted_configuration_opens_as_a_whole_plan_and_asks_what_it_leaves_open():
    text = "python3 -m verl.trainer.main_ppo trainer.nnodes=$N algorithm.adv_estimator=grpo"
    asked = answer(State(view="launch", paste=text)).picture
    assert asked is not None
    assert "trainer.nnodes" in asked
    assert "plan_given" in asked
    state = State(view="launch", paste=text, plan_given="trainer.nnodes=4")
    shown = answer(state).picture
    assert shown is not None
    buttons = [one for one in select(shown, "[data-set]") if "Open all roles" in written(one)]
    (change,) = [change for one in buttons for change in values(one, "data-set")]
    opened = state.changed(change)
    assert str(Context.of(opened).plan) == "4 x 8 GPUs: rollout 0-31, actor 0-31"
    assert opened.view == "roles"


def test_published_plans_fit_with_the_options_of_their_sources_on_the_page_and_in_the_command():
    """One states no recomputation. Phases of frameworks and phases by names have one fullest."""
    over = set()
    for name in PLANS:
        read = preset_plan(name)
        page, command = moments_of(Context.of(state_of_plan(read))), moments_read(read, State())
        assert not page.refused
        assert page.step.phases != command.step.phases
        (one, first), (other, second) = (
            (moments.step.fullest, {note.facts["gpu"] for note in moments.step.crowded(80 * GIB)})
            for moments in (page, command)
        )
        assert (one.phase.name, one.gpu, first) == (other.phase.name, other.gpu, second)
        assert one.total == pytest.approx(other.total)
        if not page.fits:
            over.add(name)
    assert over == {"dapo-deepseek-v3"}


@pytest.mark.parametrize("view", VIEWS)
def test_a_bad_text_is_refused_beside_roles_too(view):
    """Whatever the view is asked with, the page answers; the other roles have no say in it."""
    for name, field in FIELDS.items():
        if field.of in (view, "training", "model", "machine"):
            found = answer(State(view=view, roles="rollout@0-15:vllm,tp=2", **{name: "x"}))
            assert found.picture or "refusal" in found.status, name


def test_the_cluster_is_shown_where_the_memory_of_a_gpu_is_refused():
    picture = answer(State(view="roles", roles=DAPO, nodes="5", capacity="x")).picture
    assert "plan-cluster" in picture
    assert "is not a number of GiB" in picture
