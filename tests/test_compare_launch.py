"""The views that compare two layouts, read a launch command and write the layout as one."""

from __future__ import annotations

import ast
import html
import json
import re
import string
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every
from markup import cells, known_of, only, panels, select, values, written
from seen import above_one, seen
from selectolax.lexbor import LexborNode

from descriptions import LANGUAGES, LAUNCH_NOTES, PAGE, TARGET_NAMES
from formats.check.script import check_script
from formats.launch import MAX_TEXT, TARGETS, emit, parse
from formats.launch.emit import COMMENTS
from formats.launch.schemas import SCHEMAS
from formats.launch.starts import shared_layers
from groups import LayoutError
from groups.inputs import number_in
from groups.layout import Layout
from groups.presets import PRESETS
from request.context import Context
from request.inputs import FIELDS
from request.link import to_query
from request.named.kept import kept_context
from request.named.launch import read_pasted, with_pasted
from request.resolve import MODEL, from_preset
from request.state import State
from request.words import sentence, value_text
from texts.sentences import note_text
from views.base.html import unparted
from views.launch.view import (
    NEEDS_ANSWER,
    SHOWN_ITEMS,
    check_text,
    counts_as,
    launch_pictures,
    training_or_none,
)
from views.page import answer

DATA = Path(__file__).parent / "data" / "launch_commands.json"
EXAMPLES = {one["id"]: one for one in json.loads(DATA.read_text("utf-8"))["examples"]}


def asks(one):
    """Whether an example leaves open what only its reader knows."""
    return "configured" in one.get("unresolved", ())


def compared(controls: State, kept: object, language: str = "en") -> str:
    return answer(replace(controls, lang=language, view="compare", kept=kept)).picture


def launched(controls: State, paste: object = "", language: str = "en", target: str = "") -> str:
    asked = {"lang": language, "view": "launch", "paste": paste, "target": target}
    return answer(replace(controls, **asked)).picture


def table(page: str, name: str) -> dict[str, list[str]]:
    """The rows of one table of the view, by their first cell; none if it is not there."""
    rows = [[written(cell) for cell in row] for row in cells(page, name)]
    return {row[0]: row[1:] for row in rows}


def by_kind(page: str) -> dict[str, list[str]]:
    """The row of each kind of group; kinds that make the same groups share one."""
    rows = table(page, "moves").items()
    return {name: row for names, row in rows for name in names.split()}


def refusal(page: str) -> str:
    return written(only(page, "p.refusal.line[role=alert]"))


def link(controls: State) -> str:
    return f"?{to_query(controls) or 'v=2'}"


# -- compare: sizes ------------------------------------------------------------------------------


def test_every_size_that_differs_is_listed_and_no_other():
    before, after = State(), State(tp=4, ep=2, etp="1", layers="64", more=("embd",))
    assert table(compared(after, link(before)), "sizes") == {
        "More groups": ["–", "embd"],
        "tp": ["2", "4"],
        "ep": ["1", "2"],
        "etp": ["–", "1"],
        "Transformer layers": ["32", "64"],
        PAGE["dp_size"]["en"]: ["4", "2"],
    }
    as_before = table(compared(State(tp=4, etp="2"), link(before)), "sizes")
    assert "etp" not in as_before  # it is tp where nobody says it, and tp was 2


def test_what_one_of_two_does_not_say_is_what_counts_there():
    said = State(layers="80", model="llama3-8b", global_batch="64", vpp="2", pp=4)
    found = table(compared(State(pp=4), link(said)), "sizes")
    assert found["Transformer layers"] == ["80", "32"]
    assert found["Global batch size"] == ["64", "32"]
    assert found["vpp"] == ["2", "1"]
    assert "Transformer layers" not in table(compared(State(), link(State(layers="32"))), "sizes")


@every("language", LANGUAGES)
def test_two_layouts_that_are_the_same_say_so(language):
    for controls in (State(), State(nodes=4, tp=8), from_preset("bloom-176b")):
        page = compared(controls, link(controls), language)
        assert PAGE["compare_same"][language] in page
        assert PAGE["verdict_same"][language] in page
        assert PAGE["compare_same_groups"][language] in page
        assert table(page, "sizes") == table(page, "moves") == {}


def test_a_number_as_text_is_the_same_number():
    page = compared(State(nodes="2", tp="4", gpus_per_node=8), "?v=2&tp=4")
    assert PAGE["compare_same"]["en"] in page


@every("language", LANGUAGES)
def test_nothing_kept_says_what_to_do(language):
    for kept in ("", "  ", None):
        assert PAGE["compare_empty"][language] in compared(State(), kept, language)


# -- compare: groups -----------------------------------------------------------------------------

PAIRS = {
    "other sizes": (State(tp=2, pp=2), State(tp=4, pp=2)),
    "another order": (
        State(tp=2, pp=2),
        State(tp=2, pp=2, framework="own", order="dp-tp-cp-ep-pp"),
    ),
    "more nodes": (State(), State(nodes=3)),
    "other nodes": (State(), State(nodes=4, gpus_per_node="4")),
    "another framework": (State(ep=2), State(framework="llama3")),
    "experts": (State(ep=2), State(ep=4, etp="1", cp=2)),
    "thinned groups": (State(tp=1, pp=8, cp=2), State(tp=1, pp=2)),
    "cut groups": (State(tp=1, pp=1, instances=2), State(tp=1, pp=1, instances=4)),
    "groups of one": (State(tp=1, pp=1), State(tp=2, pp=8)),
}


def group_of_each(layout: Layout, name: str) -> dict[int, frozenset[int]]:
    """Each rank's group by its members, from the list of groups."""
    groups = [frozenset(map(int, ranks)) for ranks in layout.every[name].groups()]
    return {rank: group for group in groups for rank in group}


def shape(layout: Layout, name: str) -> str:
    if name not in layout.every:
        return "–"
    groups = [list(ranks) for ranks in layout.every[name].groups()]
    return f"{len(groups)} group{'s' * (len(groups) > 1)} × {max(map(len, groups))}"


def leaving(layout: Layout, name: str) -> str:
    """As a cell of the table says it, after the number and the size of the groups."""
    groups = [list(ranks) for ranks in layout.every[name].groups()]
    nodes = [{int(rank) // layout.gpus_per_node for rank in ranks} for ranks in groups]
    count = sum(len(one) > 1 for one in nodes)
    return f"{count} of {len(groups)} leave their node" if count else "none leaves its node"


def told(layout: Layout, name: str) -> str:
    return f"{shape(layout, name)}; {leaving(layout, name)}" if name in layout.every else "–"


def moved(one: Layout, other: Layout, name: str) -> str:
    both = name in one.every and name in other.every
    if not both or one.world_size != other.world_size:
        return "–"
    before, after = group_of_each(one, name), group_of_each(other, name)
    return str(sum(before.get(rank) != after.get(rank) for rank in range(one.world_size)))


@every("before, after", PAIRS.values(), ids=PAIRS)
@every("swapped", [False, True])
def test_groups_moved_ranks_and_crossings_are_those_of_the_lists(before, after, swapped):
    """Of the kinds that differ, and no other."""
    before, after = (after, before) if swapped else (before, after)
    one, other = seen(before), seen(after)
    names = dict.fromkeys((*one.every, *other.every))
    rows = {name: [told(one, name), told(other, name), moved(one, other, name)] for name in names}
    differ = {
        name: row
        for name, row in rows.items()
        if row[0] != row[1] or row[2] not in ("0", "–")
        if any(
            len(list(ranks)) > 1
            for layout in (one, other)
            if name in layout.every
            for ranks in layout.every[name].groups()
        )
    }
    found = by_kind(compared(after, link(before)))
    assert {name: row for name, row in found.items() if name in differ} == differ
    same = {name: row for name, row in found.items() if name not in differ}
    assert not same or one.gpus_per_node != other.gpus_per_node


def test_kinds_that_make_the_same_groups_in_both_layouts_share_a_row():
    """Without pipelines mp is tp; where one of the layouts has them it is not."""
    one, two, three = State(tp=8, pp=1), State(tp=4, pp=1), State(tp=4, pp=2)
    (joined,) = [row for row in table(compared(one, link(two)), "moves") if "tp" in row.split()]
    assert "mp" in joined.split()
    rows = [row.split() for row in table(compared(one, link(three)), "moves")]
    assert not any({"tp", "mp"} <= set(row) for row in rows)


def test_the_kinds_that_differ_are_drawn_side_by_side():
    page = compared(State(tp=4), link(State()))
    before, after = select(page, "div.grid")
    for side, layout in ((before, seen(State())), (after, seen(State(tp=4)))):
        groups = panels(side)
        assert [*groups] == [name for name in layout.kinds if name != "pp"]  # the same in both
        for kind, shown in groups.items():
            assert shown.tolist() == layout.every[kind].index().tolist()


def jobs_of(page: str) -> list[LexborNode]:
    return select(only(page, "div.jobs"), "figure")


def test_both_jobs_are_drawn_and_marked_by_the_script_where_they_have_the_same_ranks():
    first, second = jobs_of(compared(State(tp=4), link(State())))
    assert [written(bold) for bold in select(first, "b")] == ["tp 2 pp 2 dp 4"]
    assert [written(bold) for bold in select(second, "b")] == ["tp 4 pp 2 dp 2"]
    for figure in (first, second):
        assert not select(figure, ".still, .j")
    known, *_ = values(compared(State(tp=4), link(State())), "data-mesh")
    for figure, sizes in (
        (first, [["tp", 2], ["cp", 1], ["dp", 4], ["pp", 2]]),
        (second, [["tp", 4], ["cp", 1], ["dp", 2], ["pp", 2]]),
    ):
        numbers = known_of(figure)["kinds"]
        kinds = [known["kinds"][number] for number in numbers]
        assert [kind[0] for kind in kinds] == ["tp", "dp", "pp"]
        assert all(known["grids"][kind[2]] == sizes for kind in kinds)


def test_a_job_of_other_ranks_is_marked_by_the_server():
    """Pictures of other ranks have none in common that could light up."""
    first, second = jobs_of(compared(State(nodes=4, rank="5"), link(State())))
    assert select(first, ".still")
    assert not select(second, ".still")
    assert written(only(first, ".j.me text")) == "5"
    groups = {name: seen(State()).every[name].members(5).tolist() for name in ("tp", "dp", "pp")}
    by_tone = [path.attributes for path in select(first, '[fill^="var(--tint-"]')]
    assert {path["fill"]: path["d"].count("M") for path in by_tone} == {
        f"var(--tint-{name})": len(ranks) - 1 for name, ranks in groups.items()
    }


def test_large_worlds_have_both_jobs_and_no_panels():
    before, after = State(nodes=256, tp=8, pp=4), State(nodes=256, tp=4, pp=8)
    page = compared(after, link(before))
    assert not select(page, ".panel")
    assert [len(select(figure, "svg.job.plain")) for figure in jobs_of(page)] == [1, 1]
    assert by_kind(page)["tp"] == [
        "256 groups × 8; none leaves its node",
        "512 groups × 4; none leaves its node",
        "2,048",
    ]
    smaller, _ = jobs_of(compared(after, link(State(nodes=128, tp=8, pp=4))))
    assert select(smaller, ".still")
    assert select(smaller, '.marks[href^="data:image/png"]')


# -- compare: what was kept ----------------------------------------------------------------------


@every(
    "kept",
    [
        "v=2&tp=4",
        "?v=2&tp=4",
        "  ?v=2&tp=4\n",
        "http://127.0.0.1:7860/?v=2&tp=4",
        "https://host.example/a/b?v=2&tp=4#place",
        "https://host.example/?v=2&tp=4&lang=zh&show=nodes&rank=3&__theme=dark",
    ],
)
def test_a_layout_is_kept_as_an_address_or_its_query(kept):
    before = kept_context(Context.of(State(kept=kept)))
    assert before.state == State(tp=4, kept=kept)
    assert table(compared(State(), kept), "sizes")["tp"] == ["4", "2"]


def test_the_bare_address_is_the_page_as_it_starts():
    for kept in ("https://host.example/", "?", "?v=2"):
        assert kept_context(Context.of(State(tp=4, kept=kept))).state == State(kept=kept)


HOSTILE = [
    *("hello", "v=3&tp=4", "tq=4", "?v=1&zz=1", "<script>alert(1)</script>", "\0", "\ud800?"),
    *("http://[?v=1&x=1", "http://\u2100?v=1", "//[", "%%%", "?" * 100_000, "x" * 1_000_000),
    *([], ["?v=2"], {}, {"v": "2"}, 10**5000, 1.5, float("nan"), True, b"v=1"),
]


@every("language", LANGUAGES)
def test_what_is_no_link_is_said_in_words(language):
    for kept in HOSTILE:
        page = compared(State(), kept, language)
        with pytest.raises(LayoutError) as error:
            kept_context(Context.of(State(kept=kept)))
        assert error.value.code == "bad-link"
        assert refusal(page) == sentence(error.value, language)
        assert "<script" not in page
        assert table(page, "sizes") == table(page, "moves") == {}


@every("language", LANGUAGES)
def test_a_kept_layout_that_cannot_be_is_said_in_words_and_by_megatron(language):
    page = compared(State(), "?v=2&tp=3", language)
    with pytest.raises(LayoutError) as error:
        seen(State(tp=3))
    assert error.value.quote
    said = f"{PAGE['megatron_says'][language]} {error.value.quote}"
    assert written(only(page, ".refusal > code")) == error.value.quote
    assert refusal(page) == f"{unparted(sentence(error.value, language))} {said}"


# -- launch: what the reader says ----------------------------------------------------------------


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_the_page_says_what_the_reader_can_say():
    for code, text in LAUNCH_NOTES.items():
        assert placeholders(text["zh"]) == placeholders(text["en"]), code
    frameworks = {*SCHEMAS}
    assert {*TARGETS, "megatron-pp-dp", *frameworks} == {*TARGET_NAMES}


def report(page: str) -> str:
    """What the view says of the pasted text, before it writes the layout as commands."""
    return page.split("<h2>")[1]


def listed(page: str, title: str, language: str) -> list[list[str]]:
    """The rows under one heading of the report."""
    title = PAGE["numbered"][language].format(title=PAGE[title][language], count="COUNT")
    before, after = title.split("COUNT")
    for fold in select(page, "details"):
        summary = written(only(fold, "summary"))
        if summary.startswith(before):
            rows = [[written(cell) for cell in select(row, "td")] for row in select(fold, "tr")]
            assert len(select(fold, "td:first-child > code:only-child")) == len(rows)
            count = int(summary.removeprefix(before).removesuffix(after))
            assert len(rows) == min(count, SHOWN_ITEMS)
            return rows
    return []


TEXT = (
    "torchrun --nnodes 2 --nproc-per-node=8 train.py \\\n"
    "  --tensor-model-parallel-size $TP --lr 1e-4 \\\n"
    "  --num-layers 32 '--fancy-<b>new</b>' 3 $EXTRA \\\n"
    "  --context-parallel-size '<i>eight</i>'"
)


def test_the_whole_report_of_one_command():
    page = report(launched(State(), TEXT))
    assert "Framework: Megatron-LM. Understood: 3; ignored: 2; unresolved: 2; wrong: 1." in page
    assert listed(page, "launch_understood", "en") == [
        ["--nnodes", "2 → Nodes"],
        ["--nproc-per-node", "8 → GPUs per node"],
        ["--num-layers", "32 → Transformer layers"],
    ]
    assert listed(page, "launch_unresolved", "en") == [
        [
            "--tensor-model-parallel-size",
            "--tensor-model-parallel-size is $TP, which the text does not work out.",
        ],
        ["$EXTRA", "$EXTRA may hold more options; the text does not say."],
    ]


@every("language", LANGUAGES)
@every("key", EXAMPLES)
def test_a_script_as_published_is_reported(key, language):
    text = EXAMPLES[key]["text"]
    found, page = parse(text), report(launched(State(), text, language))
    for part in ("understood", "unresolved", "missing", "ignored"):
        items = getattr(found, part)
        rows = listed(page, f"launch_{part}", language)
        if part == "missing":
            rows = [*listed(page, "launch_asked", language), *rows]
            items = sorted(items, key=lambda one: one.code not in NEEDS_ANSWER)
        assert len(rows) == min(len(items), SHOWN_ITEMS)
        for item, (name, said) in zip(items, rows, strict=False):
            assert name == getattr(item, "name", "")
            if part == "understood":
                written = f"{item.value} → " if item.value else ""
                control, _, to = said.partition(PAGE["colon"][language])
                assert control == written + counts_as(item.sets, language)
                assert not to.isdigit()
            elif language == "en" and part != "missing":
                assert said == note_text(item)
            assert "{" not in said.replace(name, "").replace("${", "")
    assert "<mark>" not in page
    assert TARGET_NAMES[found.framework.name][language] in page


BAD = {
    "a word for a size": (
        "srun -N 2 x.py \\\n  --tensor-model-parallel-size eight --lr 1",
        "eight",
        (2, 32),
    ),
    "a size below 1": ("x.py --pipeline-model-parallel-size -2", "-2", (1, 37)),
    "HTML for a size": (
        "x.py\ntorchrun x.py --expert-model-parallel-size '<b>&4'",
        "<b>&4",
        (2, 45),
    ),
    "no value": (
        "x.py --tensor-model-parallel-size",
        "--tensor-model-parallel-size",
        (1, 6),
    ),
}


@every("language", LANGUAGES)
@every("text, marked, place", BAD.values(), ids=BAD)
def test_a_bad_value_is_marked_where_it_stands(text, marked, place, language):
    page = report(launched(State(), text, language))
    shown = only(page, "pre")
    assert written(only(shown, "mark")) == marked
    line, column = place
    whole = written(shown)
    assert whole == text.split("\n")[line - 1]
    assert whole[column - 1 :].startswith(marked)
    assert unparted(PAGE["launch_place"][language].format(line=line, column=column)) in page
    assert "<b>" not in page


def test_only_the_line_round_a_bad_value_is_shown():
    text = (
        "#" + "a" * 500 + "\nx.py " + "b" * 500 + " --tensor-model-parallel-size eight " + "c" * 500
    )
    shown = only(report(launched(State(), text)), "pre")
    assert len(written(shown)) < 200
    assert written(only(shown, "mark")) == "eight"


@every("language", LANGUAGES)
def test_an_option_that_is_read_and_counts_nowhere_is_said_to(language):
    page = launched(
        State(), "x.py --recompute-method uniform --tensor-model-parallel-size 2", language
    )
    unused, used = (f"→ {counts_as(name, language)}" for name in ("recompute_method", "tp"))
    assert unused.removeprefix("→ ") == PAGE["launch_unused"][language]
    assert f"uniform {unused}" in html.unescape(page)
    assert f"2 {used}" in html.unescape(page)


@every("language", LANGUAGES)
def test_a_pasted_job_that_cannot_be_says_why_where_its_layout_would_stand(language):
    text = "torchrun --nnodes 2 --nproc-per-node 8 x.py --tensor-model-parallel-size 3"
    page = launched(State(), text, language)
    with pytest.raises(LayoutError) as error:
        Context.of(with_pasted(State(), parse(text)))
    assert html.escape(unparted(sentence(error.value, language))) in page
    assert PAGE["use_pasted"][language] in page  # for the column says how to mend it


@every("language", LANGUAGES)
def test_html_in_a_pasted_text_is_text(language):
    for text in (
        TEXT,
        "<script>alert(1)</script>",
        '--a="<img src=x onerror=alert(1)>" {"<i>": 1}',
    ):
        page = launched(State(), text, language).partition("<h2>")[2]
        assert not select(page, "script, img, b, i")


@every("language", LANGUAGES)
def test_nothing_pasted_says_what_to_do(language):
    for paste in ("", " \n", None):
        assert PAGE["launch_empty"][language] in launched(State(), paste, language)


@every("language", LANGUAGES)
def test_what_is_no_text_is_said_in_words(language):
    for paste in ([], ["--a"], {}, {"a": 1}, 10**5000, 1.5, True, b"x"):
        with pytest.raises(LayoutError):
            parse(paste)
        assert titles_of(launched(State(), paste, language), language)  # the page has texts only
    long = "x" * (MAX_TEXT + 1)
    with pytest.raises(LayoutError) as error:
        read_pasted(State(paste=long))
    page = launched(State(), long, language)
    assert refusal(page) == unparted(sentence(error.value, language))


@every("language", LANGUAGES)
def test_any_text_is_reported(language):
    texts = (
        *("\0", "\ud800", "{", '{"a": [', "a:\n\tb", "$((", "'", "<<EOF", "{x}{}", "--{name} {0}"),
        *("--nnodes {value}", "[parallelism]\n", "--pipeline-model-parallel-layout 'Ett|zz'"),
        "x.py --pipeline-model-parallel-layout Ett|ttL --num-layers 3",
    )
    for text in texts:
        assert titles_of(launched(State(), text, language), language)


def titles_of(page, language):
    """What of the two answers to a pasted text a page has."""
    titles = (PAGE[name][language] for name in ("launch_asked", "launch_missing"))
    return [title for title in titles if title in report(page)]


# -- launch: the controls ------------------------------------------------------------------------

OTHERWISE = State(
    nodes=5,
    gpus_per_node="3",
    tp=7,
    pp=9,
    cp=3,
    ep=5,
    etp="11",
    instances="2",
    levels="3x1",
    hybrid=True,
)
"""A state that has nothing of the commands; the sizes do not even fit."""


@every("before", [State(), OTHERWISE], ids=["from the start", "from others"])
@every("key", [key for key, one in EXAMPLES.items() if not asks(one)])
def test_the_controls_become_the_job_that_a_command_means(key, before):
    one = EXAMPLES[key]
    parsed = parse(one["text"])
    controls, layout = with_pasted(before, parsed), parsed.job().layout()
    if parsed.defaulted:  # the page's nodes count, and are asked for
        assert controls.nodes == before.nodes
        controls = replace(controls, nodes=layout.nodes)
    shown = seen(controls)
    assert (shown.mesh, shown.expert, shown.every) == (layout.mesh, layout.expert, layout.every)
    assert (shown.gpus_per_node, shown.framework) == (layout.gpus_per_node, layout.framework)
    for name, value in one["values"].items():
        if name != "seq":
            assert getattr(controls, name) == FIELDS[name].row.text(value)


def test_a_command_says_nothing_of_what_is_shown():
    shown = replace(State(), group_type="moe", more=("embd",), dp_kind="dp-cp")
    found = with_pasted(shown, parse("x.py --tensor-model-parallel-size 4 --nnodes 4"))
    assert found == replace(shown, tp=4, pp=1, nodes=4)


def test_levels_and_switches_become_what_their_controls_hold():
    text = (
        "torchrun --nnodes 4 --nproc-per-node 8 x.py --context-parallel-size 8"
        " --hierarchical-context-parallel-sizes 2 4 --account-for-embedding-in-pipeline-split"
        " --account-for-loss-in-pipeline-split"
    )
    found = with_pasted(State(), parse(text))
    assert (found.cp, found.levels, found.account, found.hybrid) == ("8", "2x4", "1", "0")
    assert "hcp-l1" in seen(found).every


# -- launch: the layout as commands --------------------------------------------------------------


def test_what_cannot_say_the_layout_stands_behind_what_can():
    page = launched(State(), "")
    silent = ["silent" in button.attributes.values() for button in select(page, ".targets button")]
    assert silent == sorted(silent)
    assert {*silent} == {True, False}
    assert len(silent) == len(TARGETS)


@every("target", ["", *TARGETS])
def test_one_command_is_shown_and_its_framework_is_the_one_that_is_pressed(target):
    page = launched(State(framework="torchtitan", pp=1), "", target=target)
    (title,) = sections(page)
    pressed = only(page, "[aria-pressed=true][id^=target-]").id.removeprefix("target-")
    assert pressed == (target or "torchtitan")
    assert title == TARGET_NAMES[pressed]["en"]


def test_a_framework_that_there_is_not_is_refused_with_a_way_back():
    page = launched(State(), "", target="zz")
    assert not sections(page)
    assert "zz" in page


def sections(page: str) -> dict[str, LexborNode]:
    """The section of each framework's name."""
    return {written(only(part, "h3")): part for part in select(page, "section.command")}


def model_of(controls: State) -> dict[str, object]:
    model = {name: number_in(getattr(controls, name)) for name in MODEL if getattr(controls, name)}
    return {**model, "account": True} if controls.value("account") else model


def command_or_refusal(controls: State, target: str) -> str | LayoutError:
    try:
        return emit(seen(controls).job, model_of(controls), target)
    except LayoutError as error:
        return error


SHOWN = {
    "the start": State(),
    "experts": State(nodes=4, ep=4, etp="1", experts="64"),
    "levels": State(nodes=4, cp=8, tp=1, levels="2x4", instances="2"),
    "a model": State(layers="32", vpp="2", micro_batch="1", global_batch="64", account=True),
    "a layout by hand": State(layers="Ett|(tt|)*2,ttL", pp=4),
    "an order": State(framework="own", order="dp-tp-cp-ep-pp"),
    "torchtitan": State(framework="torchtitan"),
    "deepspeed": State(framework="deepspeed", pp=1),
    "llama 3": State(framework="llama3"),
    **{key: from_preset(key) for key in list(PRESETS)[::6]},
}


@every("language", LANGUAGES)
@every("controls", SHOWN.values(), ids=SHOWN)
def test_each_framework_says_the_layout_or_why_it_cannot(controls, language):
    said = 0
    for target in TARGETS:
        ((title, body),) = sections(launched(controls, "", language, target)).items()
        text = command_or_refusal(controls, target)
        assert title == TARGET_NAMES[target][language]
        if isinstance(text, LayoutError):
            assert written(only(body, "h3 + p.note:last-child")) == sentence(text, language)
            continue
        for name, said_in_english in COMMENTS.items():  # the rest of it is no one's language
            for english, own in zip(
                re.split(r"\{\w+\}", said_in_english),
                re.split(r"\{\w+\}", PAGE[f"emit_{name}"][language]),
                strict=True,
            ):
                text = text.replace(english, own) if english.strip() else text
        assert written(only(body, "pre[tabindex='0']")) == text
        assert PAGE["copy_text"][language] in body.html
        again, layout = seen(with_pasted(OTHERWISE, parse(text))), seen(controls)
        assert (again.nodes, again.gpus_per_node) == (layout.nodes, layout.gpus_per_node)
        assert above_one(again) == above_one(layout)
        said += 1
    assert said or controls.framework in ("own", "llama3")


def test_a_command_of_megatrons_makes_the_very_same_groups():
    for controls in SHOWN.values():
        if controls.framework == "megatron":
            text = emit(seen(controls).job, model_of(controls))
            again = with_pasted(controls, parse(text))
            assert seen(again) == seen(controls)
            asked = {"micro_batch": 1, **model_of(controls)}
            shared = shared_layers(seen(controls).job, asked)  # as Megatron starts with them
            if "layout" in shared:
                chunks = {"vpp": asked.get("vpp")}  # which the layout has
                asked = {**asked, **shared, "layers": shared["layout"], "layout": None, **chunks}
            assert model_of(again) == {name: said for name, said in asked.items() if said}


def test_a_framework_without_words_for_the_layout_says_for_what():
    def said(language: str, target: str, **sizes: object) -> str:
        (body,) = sections(launched(State(**sizes), "", language, target)).values()
        return written(only(body, "h3 + :last-child"))

    deepspeed = said("en", "deepspeed", pp=2), said("zh", "deepspeed", pp=2)
    assert deepspeed[0] == "DeepSpeed's configuration has no option for pp 2."
    assert deepspeed[1] == "DeepSpeed 的配置文件无法表达 pp 2。"
    own = {"framework": "own", "order": "dp-tp-cp-ep-pp"}
    wanted = "Megatron-LM has no option for the order dp-tp-cp-ep-pp."
    assert said("en", "megatron", **own) == wanted


def test_a_layout_that_no_framework_has_words_for_has_no_file():
    context = Context.of(State(framework="own", order="pp-dp-tp-cp-ep"))
    with pytest.raises(LayoutError) as refused:
        launch_pictures(context)
    assert refused.value.what == "Megatron-LM has no option for the order pp-dp-tp-cp-ep"


def test_what_is_written_is_escaped():
    page = launched(State(layers="<script>t</script>"))
    assert "<script" not in page


# -- launch: the check ---------------------------------------------------------------------------


@every("controls", SHOWN.values(), ids=SHOWN)
def test_the_check_is_a_script_about_the_layout_on_screen(controls):
    layout, page = seen(controls), launched(controls)
    title = PAGE["check_show"]["en"]
    (fold,) = [one for one in select(page, "details") if written(one.first_child) == title]
    text = written(only(fold, "pre[tabindex='0']"))
    training = training_or_none(Context.of(controls))
    assert text == check_text(layout, training=training)
    ast.parse(text)
    wanted = check_script(layout, training=training)
    facts = [line for line in text.splitlines() if not line.startswith("# ")]
    assert facts == [line for line in wanted.splitlines() if not line.startswith("# ")]
    assert f"\nWORLD_SIZE = {layout.world_size}\n" in text


TWO_RUNS = """
torchrun --nnodes 2 --nproc-per-node 8 pretrain.py --tensor-model-parallel-size 2
torchrun --nnodes 4 --nproc-per-node 8 pretrain.py --tensor-model-parallel-size 8
"""


def test_one_of_several_runs_is_chosen_on_the_page():
    def shown(run, language="en"):
        return answer(State(lang=language, view="launch", paste=TWO_RUNS, run=run))

    first, second = (one.name for one in parse(TWO_RUNS).runs)
    open_page = shown("").picture
    assert 'data-field="run"' in open_page
    assert PAGE["choose_run"].en in open_page
    assert PAGE["launch_asked"].en in open_page
    for run, tp in ((first, "2"), (second, "8")):
        page = shown(run).picture
        assert PAGE["choose_run"].en not in html.unescape(page)
        assert only(page, "[data-field=run] option[selected]").attributes["value"] == run
        assert values(page, "data-set")[0].get("tp", "2") == tp
    assert PAGE["choose_run"].zh in shown("of another text", "zh").picture


def test_a_run_stands_in_no_link():
    assert "run" not in to_query(State(paste=TWO_RUNS, run="2: pretrain.py"))


# -- what is read, and what it is compared with ---------------------------------------------------

PASTED = """torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 4
 --pipeline-model-parallel-size 2 --num-experts 8 --expert-model-parallel-size 2 --num-layers 32
 --hidden-size 4096 --num-attention-heads 32 --position-embedding-type rope --disable-bias-linear
""".replace("\n", "\\\n")


@every("language", LANGUAGES)
def test_what_is_read_says_to_what_an_option_sets_its_control(language):
    """ "rope → Learned positions" and "--disable-bias-linear → Biases" read as the opposite."""
    page = answer(State(view="launch", lang=language, paste=PASTED)).picture
    said = dict(listed(page, "launch_understood", language))
    off, none = (value_text(*one, language) for one in (("tied", "off"), ("biases", "none")))
    assert said["--position-embedding-type"].startswith("rope → ")
    assert said["--position-embedding-type"].endswith(PAGE["colon"][language] + off)
    assert said["--disable-bias-linear"].endswith(PAGE["colon"][language] + none)


@every("etp, is_shown", [("", True), ("4", True), ("1", False), ("2", False)])
def test_a_text_without_etp_asks_for_that_of_tp(etp, is_shown):
    """Its dense mesh alone was compared, and etp was taken to be 1."""
    state = State(view="launch", nodes=4, tp=4, pp=2, ep=2, etp=etp, experts=8, paste=PASTED)
    page = answer(state).picture
    assert ("The page shows what the text asks for" in written(page)) == is_shown
    assert bool(select(page, ".given-back")) == (not is_shown)
