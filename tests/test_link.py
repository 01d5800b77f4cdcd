"""The state of the page as an address: there and back, and links that nobody's page wrote."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pages import from_sent, preset_states, to_sent
from seen import seen

from descriptions import DP_KINDS, LANGUAGES, TYPES, VIEWS
from groups import LayoutError
from groups.frameworks import FRAMEWORKS, OWN
from groups.presets import PRESETS
from request.inputs import FIELDS, fields_of
from request.link import (
    LONGEST_QUERY,
    LONGEST_VALUE,
    as_far_as_known,
    from_query,
    from_values,
    to_query,
)
from request.resolve import from_preset
from request.state import State
from request.words import sentence
from views.base import form
from views.page import answer, draw
from views.parts.compared import AUTO

EXAMPLES = Path(__file__).parent / "data" / "launch_commands.json"


def again(state: State) -> State:
    query = to_query(state)
    assert query.isascii()
    assert len(query) <= LONGEST_QUERY
    assert not set(query) & set("\"'<> \n?#")
    return from_query(query)


def outcome(controls: State):
    """The layout, or the refusal as the page says it."""
    try:
        return seen(controls)
    except LayoutError as error:
        return error.code, error.control, sentence(error, "en"), error.alternatives


def bad_link(query: object) -> LayoutError:
    with pytest.raises(LayoutError) as refusal:
        from_query(query)
    error = refusal.value
    assert (error.code, error.control) == ("bad-link", "link")
    for language in LANGUAGES:
        assert error.facts["value"] in sentence(error, language)
    return error


# -- there and back ------------------------------------------------------------------------------


@every("language", LANGUAGES)
@every("preset", PRESETS)
def test_a_preset_is_the_same_layout_from_its_link(preset, language):
    controls = from_preset(preset)
    found = again(replace(controls, lang=language))
    assert seen(found) == seen(controls)
    assert {name: str(value) for name, value in vars(found).items() if name != "lang"} == {
        name: str(value) for name, value in vars(controls).items() if name != "lang"
    }
    assert found.language == language


ASKED = {
    "roles": ["rollout@0-15:vllm,tp=2;reward@16-23", "4x8;*a@8;b:tp=4", "x;;@&é\0"],
    "preset": ["deepseek-v3", "playground-16"],
    "view": [*VIEWS],
    "rank": ["0", "13", "many"],
    "moment": ["0", "4125"],
    "lines": ["dp-cp", "pp", "zz"],
    "target": ["torchtitan", "vllm", "zz"],
    "versus": [AUTO, *FRAMEWORKS],
    "ranks": ["3, 11, 16-23", "[rank 3]: stuck\n[rank 5]: too", "", "a&b=c#d?e%20+"],
    "objective": ["pp-first", "x"],
    "worse": ["low", "x"],
    "moves_rule": ["first", "x"],
    "moves_first": ["behind", "x"],
    "moves_tensor": ["decoder.layers.0.mlp.linear_fc2.weight", "x"],
    "moves_cell": ["0-4", "x"],
    "moves_what": "kv",
    "moves_kv_rule": "vllm",
    "moves_other": ["~tp=4;pp=1", "x"],
    "kept": ["?v=1", "?v=1&tp=4&more=embd,pp&lang=zh", "https://host/x?v=1&order=tp-cp-ep-dp-pp"],
}


def test_all_that_views_ask_is_tried():
    unlinked = {name for name, row in FIELDS.items() if not row.link}
    assert {*ASKED, *unlinked} == {*FIELDS} - {*OF_VIEWS, *fields_of("job"), "lang"}


@every("language", LANGUAGES)
@every("name, value", [(name, value) for name, values in ASKED.items() for value in values])
def test_what_a_view_asks_comes_back(name, value, language):
    state = State(tp=4, **{name: value}, lang=language)
    found = again(state)
    assert replace(found, lang=language) == state
    assert found.lang == ("" if language == "en" else language)
    assert answer(found) == answer(state)


OWNERS = ("collectives", "pipeline", "model", "training", "machine", "memory", "traffic")
OWNERS += ("estimate",)
OF_VIEWS = [name for name in fields_of(*OWNERS) if FIELDS[name].link]
INPUTS = [name for name in OF_VIEWS if not FIELDS[name].row.input.ticked]
TICKED = {*OF_VIEWS} - {*INPUTS}


@every("name", INPUTS)
@every("text", ["4", "no such & thing=1", "é\0\u2028|*"])
def test_every_input_of_every_view_comes_back(name, text):
    state = State(**{name: text})
    assert state != State()
    assert again(state) == state
    assert from_sent(to_sent(replace(state, lang="zh"))) == replace(state, lang="zh")


@every("name", TICKED)
def test_a_box_that_is_ticked_comes_back(name):
    state = State(**{name: True})
    assert to_query(state) == f"v=2&{name}=1"
    assert again(state) == from_query(f"{name}=true") == state
    assert from_sent(to_sent(replace(state, lang="zh"))) == replace(state, lang="zh")


CHANGED = {
    "group_type": [*TYPES],
    "more": [("embd",), ("embd", "tp-ep-pp"), ("no such, group",)],
    "dp_kind": [*DP_KINDS],
    "nodes": [1, 4, 0, -3, 2.5, "many", "", 10**11],
    "gpus_per_node": ["4", "72", "8.5", "x", ""],
    "tp": [1, 3, 16, "abc", "<img src=x onerror=alert(1)>", "é\0\u2028", -1],
    "pp": [1, 5],
    "cp": [2, 7],
    "ep": [4, "auto"],
    "etp": ["1", "2", "zero", 0],
    "framework": [*FRAMEWORKS, OWN],
    "order": ["dp-tp-cp-ep-pp", "pp-xx", "tp-" * 500],
    "instances": ["2", "3", "two"],
    "hpz": ["4", "3", "two"],
    "levels": ["2x4", "2 4", "x"],
    "hybrid": [True],
    "gtp": ["2", "3", "two"],
    "egtp": ["2", "0"],
    "gathers": [True],
    "dp": ["2", "x"],
    "dcp": ["2", "0"],
    "moe_dp": ["2", "many"],
    "engram": ["node", "across"],
    "expert_parallel": [True],
    "layers": ["96", "Et*3|(tt|)*14,L", "&#?+% /"],
    "vpp": ["2", "-"],
    "first_layers": ["7", "few"],
    "last_layers": ["7", "0"],
    "pipe_layout": ["Et*3|t*3L", "layers"],
    "account": [True],
    "experts": ["64"],
    "micro_batch": ["1"],
    "global_batch": ["2048"],
    "micro_batches": ["12", "-"],
    "schedule": ["zb-v", "later"],
    "group_size": ["6", "six"],
}


def test_every_control_is_tried():
    assert list(CHANGED) == [*fields_of("job")]


@every("name, value", [(name, value) for name, values in CHANGED.items() for value in values])
def test_a_control_comes_back_as_it_was_typed_refused_or_not(name, value):
    controls = replace(State(), **{name: value})
    found = again(controls)
    assert getattr(found, name) == FIELDS[name].row.text(value)
    assert found == controls
    assert outcome(found) == outcome(controls)


@every("query", ["v=1", "v=1&tp=4", "?v=1&lang=zh"])
def test_a_link_of_version_1_without_a_type_still_shows_dp_tp_and_pp(query):
    linked = from_query(query)
    assert linked.group_type == "dp+tp+pp"
    assert seen(linked).kinds == ("dp", "tp", "pp")
    assert from_query(f"{query}&group_type=moe").group_type == "moe"
    kept = to_query(linked)
    assert kept.startswith("v=2&group_type=dp%2Btp%2Bpp")
    assert from_query(kept) == linked


def test_a_link_that_a_person_types_needs_no_version():
    assert from_query("?tp=4&lang=zh") == from_query("v=2&tp=4&lang=zh")
    assert "'tq'" in sentence(bad_link("tq=4"), "en")


@every("name", PRESETS)
def test_a_link_that_only_names_a_published_layout_opens_it_whole(name):
    whole = from_query(f"v=2&preset={name}&show=nodes")
    chosen = from_values({**preset_states()[name], "preset": name, "view": "nodes"})
    assert to_query(whole) == to_query(chosen)
    assert from_query(f"preset={name}&show=nodes") == whole
    assert again(whole) == whole
    assert from_query(f"v=1&preset={name}").nodes == "2"


def test_what_a_person_types_counts_over_the_published_layout():
    """A link that the page wrote says all that its layout has: what it lacks is as at the start."""
    typed = from_query("preset=deepseek-v3&pp=8&show=memory")
    assert typed == replace(from_query("preset=deepseek-v3"), pp=8, view="memory")
    assert (typed.ep, typed.model) == ("64", "deepseek-v3")
    written = from_query("v=2&preset=deepseek-v3&pp=8&show=memory")
    assert written == State(preset="deepseek-v3", pp=8, view="memory")
    assert again(written) == written


@every("name", PRESETS)
def test_a_published_layout_of_which_nothing_is_left_is_named_and_not_opened(name):
    assert again(State(preset=name)) == State(preset=name)
    assert again(State(preset=name, tp="2", rank="3")) == State(preset=name, rank="3")


@every("show", ["groups", "ranks"])
def test_a_link_of_version_1_with_two_counts_of_a_batch_counts_samples(show):
    """Only its pipeline read the micro-batches; today the two would contradict each other."""
    linked = from_query(f"v=1&micro_batches=8&global_batch=64&show={show}")
    assert (linked.micro_batches, linked.global_batch) == ("", "64")


@every("query", ["", "?", "v=2", "?v=2", "__theme=dark", "v=2&__theme=dark"])
def test_an_empty_query_is_the_page_as_it_starts(query):
    assert from_query(query) == State()


def test_only_what_differs_from_the_start_is_written():
    assert to_query(State()) == ""
    assert to_query(State(lang="zh")) == "v=2&lang=zh"
    query = to_query(State(nodes=4, more=("embd",), hybrid=True, rank="3"))
    assert query == "v=2&more=embd&nodes=4&hybrid=1&rank=3"
    assert to_query(State(nodes="2", gpus_per_node=8, tp=2, rank="")) == ""


def test_what_was_pasted_is_in_no_link():
    secret = "torchrun --nnodes 2 train.py --api-key hunter2"
    query = to_query(State(view="launch", paste=secret))
    assert query == "v=2&show=launch"
    assert from_query(query).paste == ""
    assert "paste" in bad_link("v=1&paste=x").facts["value"]
    for one in json.loads(EXAMPLES.read_text("utf-8"))["examples"]:
        assert to_query(State(paste=one["text"])) == ""


def test_what_is_too_long_for_an_address_is_left_out():
    assert to_query(State(tp=4, order="x" * (LONGEST_VALUE + 1))) == "v=2&tp=4"
    wide = "\u4e2d" * LONGEST_VALUE  # nine characters each in an address
    assert to_query(State(tp=4, order=wide)) == ""
    state = State(tp=4, ranks="1," * (LONGEST_VALUE // 2))
    assert again(state) == state


@every("name", ["nodes", "tp", "order", "layers", "etp"])
def test_what_only_a_program_sends_does_not_stop_the_page(name):
    for value in (10**5000, "\ud800", None, [1], {"a": 1}, float("nan"), b"\0"):
        controls = replace(State(), **{name: value})
        again(controls)
        found = answer(controls)
        assert found.status or found.picture


def test_half_a_character_that_a_program_sends_is_drawn_as_it_is():
    assert "\ud800" in drawn(view="launch", paste="\ud800")["regions"]["picture"]


# -- links that nobody's page wrote --------------------------------------------------------------

TAMPERED = {
    "an unknown name": ("v=1&tpp=4", "'tpp'"),
    "a name of Python's": ("v=1&__class__x=1&changed=4", "'changed'"),
    "a name in capitals": ("v=1&TP=4", "'TP'"),
    "a name with a NUL": ("v=1&t%00p=4", r"'t\x00p'"),
    "a name in Chinese": ("v=1&张量=4", "'张量'"),
    "an empty name": ("v=1&=4", "''"),
    "the field instead of its short name": ("v=1&view=nodes", "'view=nodes'"),
    "both names of a field": ("v=1&show=nodes&view=orders", "'view=orders'"),
    "another version": ("v=3&tp=4", "'v=3&tp=4'"),
    "a version that is no number": ("v=one&tp=4", "'v=one&tp=4'"),
    "a name twice": ("v=1&tp=4&tp=2", "'tp=2'"),
    "the version twice": ("v=1&v=1", "'v=1'"),
    "a type that is none": ("v=1&group_type=zz", "'group_type=zz'"),
    "a framework that is none": ("v=1&framework=caffe", "'framework=caffe'"),
    "a dp kind that is none": ("v=1&dp_kind=tp", "'dp_kind=tp'"),
    "a view that is none": ("v=1&show=zz", "'show=zz'"),
    "Gradio's view": ("v=1&show=api", "'show=api'"),
    "a language that is none": ("v=1&lang=fr", "'lang=fr'"),
    "an empty choice": ("v=1&framework=", "'framework='"),
    "a choice with a NUL": ("v=1&framework=megatron%00", r"'framework=megatron\x00'"),
    "a check that is yes": ("v=1&hybrid=yes", "'hybrid=yes'"),
    "a check that is 2": ("v=1&account=2", "'account=2'"),
    "a check that is empty": ("v=1&account=", "'account='"),
    "a check in other digits": ("v=1&hybrid=%EF%BC%91", "'hybrid=１'"),  # noqa: RUF001
    "a value that is too long": (f"v=1&tp={'4' * (LONGEST_VALUE + 1)}", "'tp=4444"),
    "a thousand fields": ("v=1&" + "&".join(f"tp{n}=4" for n in range(1000)), "'v=1&tp0=4"),
    "a link that is too long": ("v=1&order=" + "x" * 100_000, "'v=1&order=xxx"),
    "a word alone": ("hello", "'hello'"),
    "no equals sign": ("v=1&tp", "'v=1&tp'"),
    "ampersands": ("v=1&&tp=4", "'v=1&&tp=4'"),
    "percent signs": ("%%%", "'%%%'"),
    "percent garbage in a name": ("v=1&%zz=1", "'%zz'"),
    "bytes that are no text": ("v=1&%ff%fe=1", "'\ufffd\ufffd'"),
    "percent garbage in a choice": ("v=1&lang=%e4%b8", "'lang=\ufffd'"),
    "NULs": ("\0\0", r"'\x00\x00'"),
    "a script": ("v=1&<script>alert(1)</script>=1", "'<script>"),
    "no text": (None, "None"),
    "a number": (7, "7"),
    "a huge number": (10**5000, "an integer of"),
    "a list": (["v=1"], "['v=1']"),
    "an object": ({"v": "1"}, "{'v': '1'}"),
}


@every("case", TAMPERED)
def test_a_tampered_link_is_refused_by_the_part_that_is_wrong(case):
    query, named = TAMPERED[case]
    error = bad_link(query)
    assert error.facts["value"].startswith(named.rstrip("'")), error.facts["value"]
    assert len(str(error)) < 200
    assert error.facts["value"] in str(error)


@every("text", ["%zz", "\0", "%00", "%ff", "é", "2;3", "0x10", "1e9"])
def test_garbage_in_a_size_is_a_state_that_the_page_refuses(text):
    found = from_query(f"v=1&tp={text}")
    with pytest.raises(LayoutError) as refusal:
        seen(found)
    assert refusal.value.control == "tp"
    assert "refusal" in answer(found).status
    assert again(found) == found


# -- names that there are not --------------------------------------------------------------------


def notice(link: str, language: str = "en") -> str:
    return html.unescape(drawn(link=f"{link}&lang={language}", lang=language)["regions"]["notice"])


def offered(text: str) -> list[dict]:
    """What the buttons of a notice set, or open."""
    sets = [json.loads(marks) for marks in re.findall(r'data-set="(\{[^>]*\})"', text)]
    opens = [{"link": link} for link in re.findall(r'data-query="([^"]*)"', text)]
    return sets + opens


@every("language", LANGUAGES)
def test_a_published_layout_that_there_is_not_offers_the_nearest_and_keeps_the_rest(language):
    link = "preset=llama3-405b&pp=8&show=memory"
    said = notice(link, language)
    assert "llama3-405b" in said
    (error,) = as_far_as_known(link)[1]
    assert sentence(error, language) in said
    near = [from_query(choice["link"]) for choice in offered(said)]
    assert [state.preset for state in near] == [f"llama3-405b-{row}" for row in (1, 2, 3)]
    for state in near:
        published = preset_states()[state.preset]
        assert (str(state.tp), state.model) == (published["tp"], published["model"])
        assert (state.pp, state.view, state.language) == ("8", "memory", language)
    shown = drawn(link=link)["state"]
    assert (shown["pp"], shown["view"], shown["preset"]) == ("8", "memory", "")


UNKNOWN_NAMES = {
    "model=llama3-8&tp=4": {"model": "llama3-8b"},
    "model=GPT 18.4B&tp=4": {"model": "gpt-18.4b"},
    "cluster=dgx-h10&tp=4": {"cluster": "dgx-h100"},
    "framework=megatronn&tp=4": {"framework": "megatron"},
    "show=pipelin&tp=4": {"view": "pipeline"},
    "v=1&show=pipelin&tp=4": {"view": "pipeline"},
    "v=2&group_type=mo&tp=4": {"group_type": "moe"},
}


@every("language", LANGUAGES)
@every("link", UNKNOWN_NAMES)
def test_any_name_in_a_link_that_there_is_not_offers_the_nearest(link, language):
    wanted = UNKNOWN_NAMES[link]
    found = offered(notice(link, language))
    assert found[0] == wanted
    assert drawn(link=link)["state"]["tp"] == "4"
    for name, value in (pair for fix in found for pair in fix.items()):
        assert as_far_as_known(f"{FIELDS[name].link}={value}")[1] == []


def test_several_names_are_told_one_by_one_and_what_is_near_to_none_offers_none():
    said = notice("framework=caffe&cluster=abacus&tp=4")
    assert said.count('class="refusal"') == 2
    assert offered(said) == []
    # What the page wrote says the layout itself: another name would open nothing.
    assert offered(notice("v=2&tp=4&preset=llama3-405b")) == []
    assert offered(notice("v=2&preset=llama3-405b"))
    hostile = drawn(link="show=%3Cscript%3E&tp=4")["regions"]["notice"]
    assert "<script" not in hostile


# -- fuzz ----------------------------------------------------------------------------------------

NAMES = [*FIELDS]
PARTS = st.sampled_from(
    [
        *(f"{name}=" for name in (*NAMES, "v", "show", "lang", "__theme")),
        *("v=1", "&", "&&", "=", "?", "#", "%", "%00", "%zz", "%ff", ";", "+", " ", ",", "\0"),
        *(
            "1",
            "0",
            "4",
            "zh",
            "moe",
            "own",
            "dp-cp",
            "nodes",
            "embd",
            "é",
            "\ud800",
            "'",
            '"',
            "<",
        ),
    ]
)
SURROGATES = st.characters(categories=["Cs", "L", "N", "P", "Z", "C"])
TEXT = st.text() | st.text(SURROGATES) | st.lists(PARTS, max_size=30).map("".join)


def linked_or_refusal(text: str) -> State | LayoutError:
    try:
        return from_query(text)
    except LayoutError as error:
        return error


@given(TEXT | TEXT.map("v=1&{}".format))
@example("?" * 100)
@example("v=1&" * 63)
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_state_or_a_bad_link(text):
    found = linked_or_refusal(text)
    if isinstance(found, LayoutError):
        assert found.code == "bad-link"
        assert sentence(found, "zh")
        return
    assert found.lang in (*LANGUAGES, "")
    assert found.view in VIEWS
    written = again(found)
    assert again(written) == written
    if text.isascii():
        assert replace(written, lang=found.lang) == found


@given(st.none() | st.integers() | st.floats() | st.binary() | st.lists(st.text()) | st.booleans())
@settings(max_examples=50, deadline=None)
def test_what_is_no_text_is_a_bad_link(value):
    bad_link(value)


TYPED = st.text(max_size=40) | st.integers() | st.sampled_from([0.5, 2.0]) | TEXT
CHOSEN = {
    "group_type": st.sampled_from(sorted(TYPES)),
    "framework": st.sampled_from([*FRAMEWORKS, OWN]),
    "dp_kind": st.sampled_from(sorted(DP_KINDS)),
    "view": st.sampled_from(sorted(VIEWS)),
    "preset": st.sampled_from(["", *PRESETS]),
    "lang": st.sampled_from(["", *LANGUAGES]),
    "hybrid": st.booleans(),
    "gathers": st.booleans(),
    "account": st.booleans(),
    "more": st.lists(st.text(max_size=20), max_size=5).map(tuple),
}


STATES = st.fixed_dictionaries({}, optional={name: CHOSEN.get(name, TYPED) for name in FIELDS}).map(
    lambda given: State(**given)
)


@given(STATES)
@settings(max_examples=80, deadline=None)
def test_what_the_page_writes_can_always_be_read(state):
    found = again(state)
    assert again(found) == found


# -- in the page ---------------------------------------------------------------------------------


def drawn(**sent: str) -> dict:
    return draw(json.dumps(sent))


def test_what_was_changed_since_a_link_was_opened_counts_above_it():
    sent = json.dumps({"link": "v=2&tp=4&pp=1&show=nodes", "tp": "8", "lang": "zh"})
    assert from_sent(sent) == State(tp=8, pp=1, view="nodes", lang="zh")
    state = drawn(link="v=2&tp=4&pp=1", tp="8")["state"]
    assert (state["tp"], state["pp"]) == ("8", "1")
    assert "state" not in drawn(tp="8")


def test_a_link_that_shows_nothing_has_the_first_picture_in_its_own_view_and_language():
    for link, view in (("v=2&tp=3&show=nodes", "nodes"), ("v=2&tp=8&strange=1", "groups")):
        found = drawn(link=link, lang="zh")
        first = answer(State(lang="zh", view=view))
        assert found["view"] == view
        assert found["regions"]["picture"] == first.picture, link
        assert found["regions"]["notice" if view == "groups" else "status"], link
    assert "picture" not in drawn(tp="3")["regions"]  # the last one stays


HOSTILE = ['"><script>alert(1)</script>', "' onmouseover='alert(1)", "&quot;&lt;", "</div>", "\0\n"]


@every("text", HOSTILE)
@every("nodes", [2, 0])
def test_a_link_stays_inside_its_attribute(text, nodes):
    controls = State(nodes=nodes, layers=text, etp="", order=text)
    query = to_query(replace(controls, rank=text, ranks=text, kept=text, versus=text))
    page = form.opener(query, "open")
    (attribute,) = re.findall(r'data-query="([^"]*)"', page)
    assert html.unescape(attribute) == query
    assert not set(attribute) & set("<>'\n\0")
    found = from_query(query)
    assert (found.layers, found.ranks, found.kept) == (text,) * 3
    assert "<script" not in page
