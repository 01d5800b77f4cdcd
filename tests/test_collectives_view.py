"""The Collectives view as HTML: every operation in every group, refusals, words, what is shown."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import assert_whole, select, text_of, values, written
from sentences import CHINESE, texts_in

from descriptions import ALGORITHM_TEXTS, LANGUAGES, OPERATION_TEXTS, PAGE
from groups import LayoutError
from groups.frameworks import FRAMEWORKS
from request.answers.collectives.inputs import (
    COST_OF,
    MOST_MEMBERS,
    contributors,
    default_shape,
    exchanged,
    places_of,
    resolve_inputs,
)
from request.context import Context
from request.inputs import fields_of
from request.resolve import resolve
from request.state import State
from texts.shapes import catalogue
from training.collectives.algorithms import ALGORITHMS, ring_all_reduce
from training.collectives.operations import OPERATIONS
from training.collectives.transfers import Steps
from views.base.html import unparted
from views.collectives import steps, walkthrough
from views.collectives.buckets import SCHEMES
from views.collectives.view import FORMULAS, collectives_html, collectives_pictures

USUAL = State(tp=4)  # 16 GPUs: tp 4, dp 2, pp 2
NARROW = settings(max_examples=60, deadline=None)


def watching(**inputs) -> State:
    return replace(USUAL, **inputs)


def shown(state=USUAL, language="en") -> str:
    return collectives_html(Context.of(replace(state, lang=language)))


def test_rare_inputs_are_folded_away_until_one_of_them_is_set():
    opened = '<details class="own" open>'
    assert opened not in shown()
    assert opened in shown(watching(collective_shape="8"))
    assert opened in shown(watching(collective_all="1"))


# Every operation.


@every("op", OPERATIONS)
@every("direction", ["forward", "backward"])
def test_every_operation_is_shown_both_ways(op, direction):
    for group in ("tp", "dp", "cp", "tp-dp"):  # 4, 2, 1 and 8 ranks
        asked = watching(collective=op, collective_direction=direction, collective_group=group)
        page = shown(asked)
        assert_whole(page)
        refused = f"{op} has no backward here." in text_of(page)
        assert refused == (direction == "backward" and not OPERATIONS[op].backward)


@every("op", OPERATIONS)
@every("n", range(1, MOST_MEMBERS + 1))
def test_the_shape_that_the_view_takes_by_itself_works(op, n):
    controls = State(nodes=1, gpus_per_node=str(n), tp=n, pp=1)
    for direction in ("forward", "backward" if OPERATIONS[op].backward else "forward"):
        state = replace(
            controls, collective=op, collective_direction=direction, collective_group="tp"
        )
        watched, _, problems = resolve_inputs(resolve(state), state)
        assert not problems
        assert watched.shape == default_shape(OPERATIONS[op], n)
        before, after = exchanged(watched, [watched.members])
        assert len(before) == len(after) == n


def test_every_function_has_a_formula_and_every_text_is_of_something():
    functions = {getattr(o, d) for o in OPERATIONS.values() for d in ("forward", "backward")}
    assert {COST_OF.get(name, name) for name in functions - {""}} == set(FORMULAS)
    assert list(OPERATION_TEXTS) == list(OPERATIONS)
    assert set(ALGORITHM_TEXTS) == set(ALGORITHMS)


# What the numbers say.


def numbers(page: str) -> list[str]:
    """The numbers in the cells of the first picture, from top to bottom, left to right."""
    svg, *_ = select(page, "svg.collectives-exchange, .collectives-exchange svg")
    return [written(text) for text in select(svg, "text[font-size='12']")]


def test_the_numbers_of_an_all_reduce():
    assert numbers(shown()) == [
        "0", "1", "2", "3",      "60", "64", "68", "72",
        "10", "11", "12", "13",  "60", "64", "68", "72",
        "20", "21", "22", "23",  "60", "64", "68", "72",
        "30", "31", "32", "33",  "60", "64", "68", "72",
    ]  # fmt: skip


def test_the_numbers_of_a_scatter_from_the_second_rank():
    asked = watching(
        collective="scatter", collective_group="dp", collective_index="5", collective_root="13"
    )
    page = shown(asked)
    assert numbers(page) == [
        "0", "1",    "10",
        "10", "11",  "11",
    ]  # fmt: skip
    assert "ranks 9, 13" in page


def test_the_published_numbers_of_the_walk_through_can_be_watched():
    state = State(
        nodes=1,
        collective="reduce_from_tensor_model_parallel_region",
        collective_index="3",
        collective_shape="1",
        collective_values="rank",
    )
    assert numbers(shown(state)) == ["6", "13", "7", "13"]


def test_all_seven_functions_are_on_the_page_with_their_numbers():
    page = text_of(shown())
    for example in walkthrough.examples():
        assert example.op in page
    for told in ("6: [6] → [13]", "6: [36] → [85]", "[170], [170]", "7: [2] → [14]",
                 "6: [1, 2] → [1]", "6: [6] → [6, 7]", "7: [7, 7] → [7]"):  # fmt: skip
        assert told in page


def test_contributors_are_those_whose_numbers_come_out():
    asked = watching(collective="reduce", collective_group="tp", collective_root="2")
    watched, _, _ = resolve_inputs(resolve(USUAL), asked)
    _, who = contributors(watched, exchanged(watched, [watched.members])[0])
    assert [{places_of(bits) for bits in of.tolist()} for of in who] == [
        {(0,)},
        {(1,)},
        {(0, 1, 2, 3)},
        {(3,)},
    ]


def test_the_group_of_the_pinned_rank_is_watched_unless_another_is_named():
    assert "ranks 12, 13, 14, 15" in shown(watching(rank="14"))
    assert "ranks 4, 5, 6, 7" in shown(watching(collective_index="1", rank="14"))
    assert "ranks 0, 1, 2, 3" in shown(watching(rank="nonsense"))


def test_several_groups_are_shown_side_by_side():
    page = shown(watching(collective_all="1"))
    assert page.count('class="collectives-exchange"') == 4
    assert PAGE["collectives_apart"]["en"] in page
    assert shown().count('class="collectives-exchange"') == 1
    # Of ranks each group has its own sum: 0 + 1 + 2 + 3, 4 + 5 + 6 + 7 ...
    watched = Context.of(watching(collective_all="1", collective_values="rank"))
    sums = [
        exchange.members[0].after[0][0].text for _, exchange in collectives_pictures(watched)[:-1]
    ]
    assert sums == ["6", "22", "38", "54"]


def test_a_file_says_which_way_the_operation_runs():
    """And, of Megatron's mapping, what the backward of it does."""
    state = watching(collective="all_gather", collective_direction="backward")
    (title, _), *_ = collectives_pictures(Context.of(state))
    assert f"all-gather ({PAGE['collectives_backward']['en']})" in title


def test_without_a_bandwidth_the_links_are_those_of_the_job_s_cluster():
    # GB/s of a GPU, one way: NVLink of an A100 and of an H100
    for cluster, speed in (("dgx-a100", "300 GB/s"), ("dgx-h100", "450 GB/s"), ("", "450 GB/s")):
        assert speed in text_of(shown(watching(cluster=cluster))), cluster


def test_bytes_steps_and_bus_factor_are_told():
    page = text_of(shown(watching(collective_mb="1000", collective_gbs="100")))
    assert "2(n − 1)/n · S = 1.50 GB" in page  # noqa: RUF001
    assert "2(n − 1) = 6" in page  # noqa: RUF001
    assert "Bus factor 1.5" in page
    assert "At full link speed 15.0 ms" in page


@every("group, speed", [("tp", "450 GB/s"), ("pp", "50 GB/s")])
def test_a_group_that_leaves_its_node_has_the_speed_of_the_network(group, speed):
    assert speed in text_of(shown(watching(collective_group=group)))


# Steps.


def states(page: str) -> dict:
    return values(page, "data-states")[0]


def last_state(data: dict) -> list[list[list | None]]:
    """As the page's script works it out."""
    slots = [list(row) for row in data["first"]]
    for step in data["steps"]:
        for place, slot, cell in step["sets"]:
            slots[place][slot] = cell
    return slots


@every("algorithm", ["ring_all_reduce", "tree_all_reduce", "double_tree_all_reduce"])
def test_after_the_last_step_of_an_all_reduce_everybody_has_everything(algorithm):
    data = states(shown(watching(collective_algorithm=algorithm)))
    everyone = [0, 1, 2, 3]
    for row in last_state(data):
        assert [cell[1] for cell in row] == [everyone] * len(row)
        assert [cell[0] for cell in row] == [str(60 + 4 * slot) for slot in range(len(row))]
    assert len(data["told"]) == len(data["share"]) == len(data["steps"]) + 1
    assert (data["share"][0], data["share"][-1]) == (0, 1)


@every("name", ALGORITHMS)
def test_every_algorithm_can_be_chosen(name):
    op = {"direct_gather": "gather", "direct_scatter": "scatter", "ring_attention": "all_gather",
          "pipeline_forward": "send_recv", "pipeline_backward": "send_recv"}.get(name)  # fmt: skip
    op = op or next(
        op for op in sorted(OPERATIONS, key=len, reverse=True) if name.endswith("_" + op)
    )
    page = shown(watching(collective=op, collective_algorithm=name))
    assert f'data-algorithm="{name}-4-0"' in page
    assert ALGORITHM_TEXTS[name].used["en"] in html.unescape(page)


def test_an_algorithm_for_some_sizes_only_says_so_and_offers_the_others(monkeypatch):
    def powers_of_two(n: int) -> Steps:
        if n & (n - 1):
            raise LayoutError("does-not-divide", f"{n} is no power of two", alternatives=[{"n": 4}])
        return ring_all_reduce(n)

    monkeypatch.setitem(ALGORITHMS, "doubling", ("all_reduce", None, powers_of_two))
    words = {**ALGORITHM_TEXTS, "doubling": ALGORITHM_TEXTS["ring_all_reduce"]}
    monkeypatch.setattr(steps, "ALGORITHM_TEXTS", words)
    asked = {"collective": "all_reduce", "collective_algorithm": "doubling"}
    three = shown(State(view="collectives", nodes=3, gpus_per_node=1, tp=1, pp=1, **asked))
    assert "3 is no power of two" in three
    fixes = three.partition("no power of two")[2][:600]
    assert "ring_all_reduce" in fixes
    assert "Algorithm: Ring<" in fixes  # as the list of algorithms calls it
    four = shown(State(view="collectives", nodes=4, gpus_per_node=1, tp=1, pp=1, **asked))
    assert 'data-algorithm="doubling-4-0"' in four


def test_where_nothing_moves_there_are_no_steps():
    page = shown(watching(collective="split"))
    assert PAGE["collectives_no_steps"]["en"] in page
    assert "collectives-play" not in page
    assert PAGE["collectives_still"]["en"] in page


# Large groups.


def test_of_a_large_group_the_first_ranks_are_shown_and_the_page_says_so():
    controls = State(nodes=1024, tp=2, pp=2)
    page = text_of(shown(replace(controls, collective_group="dp")))
    assert "This dp group has 2,048 ranks." in page
    assert "for a group of the first 8 ranks; the group has 2,048" in page
    assert "2(n − 1) = 4,094" in page  # noqa: RUF001


def test_steps_begin_at_the_first_rank_where_the_root_is_not_among_those_that_are_drawn():
    state = State(nodes=4, tp=1, pp=1, collective="broadcast", collective_root="9")
    assert PAGE["collectives_steps_root"]["en"].format(rank=0) in shown(state)


@every("group", ["dp-cp", "embd", "tp-ep-pp", "intra-dist-opt"])
def test_the_largest_world_is_shown(group):
    controls = State(nodes=16384, tp=8, pp=16, cp=2)
    page = shown(replace(controls, collective_group=group, collective_all="1"))
    assert len(page) < 400_000


# Inputs that cannot be.


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("collective", "allreduce", "not-a-choice"),
        ("collective", ["all_reduce"], "not-a-choice"),
        ("collective_direction", "up", "not-a-choice"),
        ("collective_group", "tpp", "not-a-choice"),
        ("collective_index", "4", "out-of-range"),
        ("collective_index", "1.5", "not-a-whole-number"),
        ("collective_index", "-1", "out-of-range"),
        ("collective_root", "9", "not-in-group"),
        ("collective_root", "one", "not-a-whole-number"),
        ("collective_shape", "6", "does-not-split"),
        ("collective_shape", "4x", "not-a-shape"),
        ("collective_shape", "0", "not-a-shape"),
        ("collective_shape", "1x1x1x1", "not-a-shape"),
        pytest.param("collective_shape", 10**5000, "not-a-shape", id="a long number"),
        ("collective_shape", "64x64", "too-many-numbers"),
        ("collective_values", "twos", "not-a-choice"),
        ("collective_mb", "0", "not-positive"),
        ("collective_mb", float("nan"), "not-positive"),
        ("collective_gbs", "-3", "not-positive"),
        ("collective_gbs", "1e99", "not-positive"),
        ("collective_algorithm", "hypercube", "not-a-choice"),
    ],
)
def test_an_input_that_cannot_be_is_refused_and_the_rest_is_shown(field, value, code):
    asked = replace(watching(collective="scatter"), **{field: value})
    _, counting, problems = resolve_inputs(resolve(USUAL), asked)
    assert [(problem.code, problem.control) for problem in problems] == [(code, field)]
    assert getattr(counting, field) == ""
    page = shown(asked)
    assert page.count('class="refusal"') == 1
    assert "collectives-exchange" in page
    assert "<b>" not in page.replace("<b>In training", "").replace(
        "<b>", "", page.count("<dd>") * 9
    )


@every("field", ["bucket_layers", "bucket_hidden", "bucket_ms", "bucket_scheme"])
@every("value", ["0", "many", 1e99, [3], True])
def test_an_input_of_the_timeline_that_cannot_be_is_refused(field, value):
    page = shown(watching(**{field: value}))
    assert page.count('class="refusal"') == 1
    assert "collectives-lanes" in page


def hinted(page: str) -> dict[str, str]:
    """What the boxes of the timeline say while they are empty."""
    boxes = select(page, "[placeholder][id^=field-bucket_]")
    return {box.id.removeprefix("field-"): box.attributes["placeholder"] for box in boxes}


def test_the_timeline_is_of_the_model_that_the_job_trains():
    """Llama 3 70B has 80 layers and hidden size 8,192; tp 2 cuts its matrices, not its norms."""
    page = shown(watching(model="llama3-70b", tp=2, pp=4))
    assert hinted(page)["bucket_layers"] == "20"
    assert hinted(page)["bucket_hidden"] == "8192"
    each = (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672) // 2 + 2 * 8192
    assert f"Layers on a rank: 20 (Llama 3 70B), of {each:,} parameters each." in page
    slow, quick = (
        float(hinted(shown(watching(cluster=cluster)))["bucket_ms"])
        for cluster in ("dgx-a100", "dgx-h100")
    )
    assert slow > 1.5 * quick


def test_what_is_typed_counts_instead_of_the_job():
    """A typed size is that of a whole GPT layer, and asks nothing of a model."""
    typed = {"bucket_layers": "12", "bucket_hidden": "2048", "bucket_ms": "3.5"}
    page = shown(watching(model="own", layers="", **typed))
    assert page.count('class="refusal"') == 0
    assert f"Layers on a rank: 12 (h = 2,048), of {12 * 2048**2 + 13 * 2048:,} parameters" in page
    assert page.count('class="bar backward"') == 1 + 12  # the legend, and a bar for each layer


def test_without_a_model_the_timeline_asks_for_one():
    page = shown(watching(model="own", layers=""))
    assert page.count('class="refusal"') == 1
    assert "The shape of this model is not known" in page
    assert "collectives-lanes" not in page


def fixes(page: str) -> list[dict[str, str]]:
    """The changes of the buttons beside problems."""
    return values(page, "data-set", "div.refusal *")


@every(
    "asked",
    [
        watching(collective="reduce_scatter", collective_shape="7"),
        watching(collective="all_to_all_sp2hp", collective_shape="2x6"),
        watching(collective="broadcast", collective_root="12"),
        watching(collective_index="44"),
        watching(collective="_reduce", collective_direction="backward"),
        watching(collective="gather", collective_shape="999"),
        watching(collective="all_gather", collective_shape="40"),  # 160 numbers after it
    ],
)
def test_every_button_mends_what_it_stands_beside(asked):
    offered = fixes(shown(asked))
    assert offered
    for change in offered:
        assert fixes(shown(replace(asked, **change))) == []


def test_a_group_of_one_says_so_and_offers_larger_groups():
    asked = watching(collective_group="cp")
    page = shown(asked)
    assert PAGE["collectives_one"]["en"].format(kind="cp") in text_of(page)
    assert {"collective_group": "tp"} in fixes(page)
    for change in fixes(page):
        assert fixes(shown(replace(asked, **change))) == []


STRANGE = st.one_of(
    st.text(max_size=12), st.integers(), st.floats(), st.none(), st.booleans(),
    st.lists(st.integers(), max_size=3), st.sampled_from([*OPERATIONS, "tp", "4", "2x4", "1"]),
)  # fmt: skip


@NARROW
@given(st.fixed_dictionaries(dict.fromkeys(fields_of("collectives"), STRANGE)))
def test_whatever_is_asked_is_answered(given_values):
    page = shown(watching(**given_values))
    assert_whole(page)


def test_what_a_person_typed_is_escaped():
    asked = State(**dict.fromkeys(fields_of("collectives"), '"><script>alert(1)</script>'))
    assert "<script" not in shown(asked)


@every("framework", FRAMEWORKS)
def test_every_framework_has_a_group_to_watch(framework):
    for tp, pp in ((2, 2), (1, 1), (1, 16)):
        controls = State(framework=framework, tp=tp, pp=pp, group_type="framework")
        try:
            resolve(controls)
        except LayoutError:  # it has no such axis
            continue
        assert "collectives-exchange" in shown(controls)
        return
    raise AssertionError("no layout of this framework was shown")


# Words.

OWN_TEXTS = {
    where: text
    for name, root in (
        *catalogue("collectives").items(),
        ("OPERATIONS", OPERATION_TEXTS),
        ("ALGORITHMS", ALGORITHM_TEXTS),
    )
    for where, text in texts_in(root, name)
}
SAME = ("PyTorch DDP", "ZeRO-3", "reduce-scatter", "all-gather", "{index}")


@every("text", OWN_TEXTS.values(), ids=OWN_TEXTS)
def test_both_languages_say_the_same(text):
    blanks = [sorted(re.findall(r"\{(\w+)\}", text[language])) for language in LANGUAGES]
    assert blanks[0] == blanks[1]
    assert not CHINESE.search(text["en"])
    assert CHINESE.search(text["zh"]) or any(same in text["zh"] for same in SAME)
    # Chinese sentences have Chinese punctuation.
    assert not re.search(r"[\u4e00-\u9fff][,;:.?!]", text["zh"])
    assert not re.search(r"\s[\uff0c\u3002\uff1b\uff1a]", text["zh"])


def test_every_word_of_the_view_is_used():
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in sorted((Path(__file__).parent.parent / "views" / "collectives").glob("*.py"))
    )
    built = {f"buckets_{one}" for one in SCHEMES} | {f"buckets_about_{one}" for one in SCHEMES}
    built |= {f"buckets_{what}" for what in
              ("forward", "backward", "all_reduce", "reduce_scatter", "all_gather")}  # fmt: skip
    built |= {f"buckets_sync_{when}" for when in ("every", "last", "replicas")}
    built |= {f"collectives_values_{one}" for one in ("count", "rank", "ones")}
    built |= {f"collectives_{one}" for one in
              ("title", "body", "forward", "backward", "back", "next", "play", "stop",
               "read_forward", "read_backward")}  # fmt: skip
    unused = {
        name
        for name in catalogue("collectives")["PAGE"]
        if f'"{name}"' not in code and f"'{name}'" not in code
    }
    assert unused <= built


def test_every_input_is_named_in_both_languages():
    assert set(fields_of("collectives")) == set(catalogue("collectives")["CONTROLS"])


@every("scheme", SCHEMES)
def test_every_scheme_has_its_timeline(scheme):
    page = shown(watching(bucket_scheme=scheme), language="zh")
    assert unparted(PAGE[f"buckets_about_{scheme}"]["zh"]) in page
    assert page.count('class="bar backward"') >= 12
