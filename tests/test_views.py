"""The page as a pure function: what the Groups view shows, what is refused, and that fixes work."""

from __future__ import annotations

import ast
import html
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import every
from markup import panels, select, text_of, values, written
from pages import refusal_of, shown
from seen import seen

from cli.command import COMMANDS
from descriptions import CONTROLS, LINKS, PAGE, REFUSALS, TYPES, kind_of
from descriptions import VIEWS as WORDS
from groups import LayoutError, fit, rank_groups
from groups.kept import STORE
from groups.megatron.parallel_state import process_groups
from groups.mesh import parse_mesh, require_rank, whole_number
from groups.tables import parsed
from request.context import Context
from request.inputs import FIELDS
from request.resolve import from_preset
from request.state import State, language_of
from request.words import fix_label, sentence
from texts.shapes import GroupType, catalogue
from training.collectives import apply
from views.all import ENDPOINTS
from views.all import VIEWS as ALL_VIEWS
from views.base.html import unparted
from views.export import TABLES
from views.groups.details import MEMBERS, ROWS, details_html, groups_csv, groups_text
from views.page import LONGEST_KEPT, _kept, answer

SETTINGS = list(itertools.product(range(1, 9), repeat=3))
VALID = [(tp, pp, cp) for tp, pp, cp in SETTINGS if 16 % (tp * pp * cp) == 0]
ORIGINAL_TYPES = list(TYPES)[1:12]


def test_the_original_has_512_settings_and_32_of_them_are_valid():
    assert (len(SETTINGS), len(VALID)) == (512, 32)


@every("group_type", ["auto", *ORIGINAL_TYPES])
def test_every_valid_setting_of_the_original_draws_the_right_groups(group_type):
    for tp, pp, cp in VALID:
        shown = answer(State(group_type=group_type, tp=tp, pp=pp, cp=cp))
        assert not shown.status
        mesh = fit(16, tp=tp, pp=pp, cp=cp)
        drawn = panels(shown.picture)
        kinds = TYPES[group_type].kinds
        if group_type == "auto":  # whatever is larger than 1; dp where nothing is
            kinds = tuple(axis.name for axis in mesh.axes if axis.size > 1) or ("dp",)
        assert tuple(drawn) == kinds
        assert [str(seen(State(tp=tp, pp=pp, cp=cp)).mesh)] == [str(mesh)]
        for kind, group in drawn.items():
            assert len(group) == 16
            for index, ranks in enumerate(rank_groups(mesh, kind).tolist()):
                assert np.flatnonzero(group == index).tolist() == ranks


@every("group_type", ORIGINAL_TYPES)
def test_every_other_setting_is_refused_with_fixes_that_work(group_type):
    mended = set()
    # All for one type; of the others each a part, for what is shown changes nothing in a refusal.
    step = 1 if group_type == "dp+tp+pp" else len(ORIGINAL_TYPES)
    refused = sorted(set(SETTINGS) - set(VALID))
    for number, (tp, pp, cp) in enumerate(refused[ORIGINAL_TYPES.index(group_type) % step :: step]):
        controls = State(group_type=group_type, tp=tp, pp=pp, cp=cp)
        shown = answer(controls)
        assert shown.picture is None
        assert shown.details is None
        buttons = select(shown.status, "[data-set]")
        changes = [json.loads(button.attributes["data-set"]) for button in buttons]  # by a click
        assert 1 <= len(changes) <= 3
        assert [*map(written, buttons)] == [fix_label(change, "en") for change in changes]
        if number % 8 == 0:  # whatever is refused is worked out twice then
            fixes = refusal_of(controls).alternatives
            assert changes == [{key: str(size) for key, size in fix.items()} for fix in fixes]
        mended |= {controls.changed(change) for change in changes}
    # What the original has itself is drawn above, group by group.
    drawn = {State(group_type=group_type, tp=tp, pp=pp, cp=cp) for tp, pp, cp in VALID}
    for controls in mended - drawn:
        assert answer(controls).picture is not None


def test_a_fix_may_be_more_nodes_so_that_the_sizes_stay():
    with pytest.raises(LayoutError) as refusal:
        seen(State(tp=3, pp=1))
    assert refusal.value.alternatives == ({"tp": 2}, {"tp": 4}, {"nodes": 3})
    assert seen(State(tp=3, pp=1, nodes=3)).world_size == 24


def test_where_both_grids_are_wrong_only_what_mends_both_is_offered():
    for sizes, nodes in (({"cp": 6, "ep": 3}, 3), ({"cp": 6, "etp": "3"}, 3), ({"ep": 3}, 9)):
        state = State(tp=3 if "cp" not in sizes else 1, pp=1).changed(sizes)
        first, *others = refusal_of(state).alternatives
        assert first == {"nodes": nodes}
        assert seen(state.changed(first)).nodes == nodes
        for both in others:
            assert len(both) == 2
            assert seen(state.changed(both)).nodes == 2


@every(
    "changes, control",
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": "many"}, "nodes"),
        ({"nodes": 2.5}, "nodes"),
        ({"nodes": True}, "nodes"),
        ({"nodes": None}, "nodes"),
        ({"nodes": float("nan")}, "nodes"),
        ({"nodes": 10**30}, "nodes"),
        ({"nodes": 10**5000}, "nodes"),
        ({"nodes": [2]}, "nodes"),
        ({"nodes": {"a": 1}}, "nodes"),
        ({"gpus_per_node": "8.5"}, "gpus_per_node"),
        ({"gpus_per_node": ["16"]}, "gpus_per_node"),
        ({"gpus_per_node": ""}, "gpus_per_node"),
        ({"gpus_per_node": "1" * 5000}, "gpus_per_node"),
        ({"tp": "abc"}, "tp"),
        ({"tp": "<img src=x onerror=alert(1)>"}, "tp"),
        ({"pp": -1}, "pp"),
        ({"cp": float("inf")}, "cp"),
        ({"group_type": "experts"}, "group_type"),
        ({"group_type": ["dp"]}, "group_type"),
        ({"order": "pp-dp-cp-tp-xx", "framework": "own"}, "order"),
        ({"order": "<img src=x onerror=alert(1)>", "framework": "own"}, "order"),
        ({"order": ["tp-cp-ep-dp-pp"], "framework": "own"}, "order"),
        ({"order": None, "framework": "own"}, "order"),
        ({"order": "tp-" * 9000, "framework": "own"}, "order"),
        ({"framework": "Megatronic"}, "framework"),
        ({"framework": ["megatron"]}, "framework"),
        ({"framework": None}, "framework"),
        ({"ep": "abc"}, "ep"),
        ({"ep": 0}, "ep"),
        ({"ep": {"a": 1}}, "ep"),
        ({"ep": 10**5000}, "ep"),
        ({"etp": "<img src=x onerror=alert(1)>"}, "etp"),
        ({"etp": [1]}, "etp"),
        ({"etp": -2}, "etp"),
        ({"more": "nothing"}, "more"),
        ({"more": ["<img src=x onerror=alert(1)>"]}, "more"),
        ({"more": [["embd"]]}, "more"),
        ({"more": {"embd": 1}}, "more"),
        ({"more": 7}, "more"),
        ({"more": ["x" * 9000]}, "more"),
        ({"instances": "abc"}, "instances"),
        ({"instances": None}, "instances"),
        ({"instances": [2]}, "instances"),
        ({"instances": 10**5000}, "instances"),
        ({"levels": "2x2", "cp": 1}, "levels"),
        ({"levels": "<img src=x onerror=alert(1)>"}, "levels"),
        ({"levels": [2, 3], "cp": 4, "pp": 1}, "levels"),
        ({"levels": {"a": 1}}, "levels"),
        ({"levels": "2x" * 900}, "levels"),
        ({"dp_kind": None}, "dp_kind"),
    ],
)
@every("language", ["en", "zh"])
def test_a_bad_control_is_named_in_words_and_its_value_is_escaped(changes, control, language):
    shown = answer(State(**changes, lang=language))
    assert shown.picture is None
    assert f'data-control="{control}"' in shown.status
    assert 'role="alert"' in shown.status
    assert "<img" not in shown.status
    assert len(shown.status) < 2500
    for alternative in refusal_of(State(**changes)).alternatives:
        assert answer(State(**changes).changed(alternative)).picture is not None


def test_too_many_gpus_are_refused_with_the_most_that_fit():
    with pytest.raises(LayoutError) as refusal:
        seen(State(nodes=200000, gpus_per_node=8))
    assert refusal.value.code == "too-many-ranks"
    assert refusal.value.alternatives == ({"nodes": 131_072}, {"gpus_per_node": 5})
    assert answer(State(nodes=131072)).picture is not None


def test_a_refusal_in_chinese_is_chinese_and_names_the_control_as_the_page_does():
    with pytest.raises(LayoutError) as refusal:
        seen(State(gpus_per_node="x"))
    assert sentence(refusal.value, "zh").startswith(CONTROLS["gpus_per_node"].label["zh"])
    with pytest.raises(LayoutError) as refusal:
        seen(State(tp=3))
    assert "不能整除 16" in sentence(refusal.value, "zh")


CP_TYPES = [name for name, text in TYPES.items() if {"cp"} <= set(text.kinds) and name != "moe"]


@every("group_type", CP_TYPES)
def test_in_a_cp_type_the_user_chooses_what_data_parallel_means(group_type):
    controls = State(group_type=group_type, cp=2)
    both = "dp" in TYPES[group_type].kinds
    assert ("data-choose-dp" in answer(controls).derived) == both
    chosen = State(group_type=group_type, cp=2, dp_kind="dp-cp")
    assert ("dp-cp" in seen(chosen).kinds) == both
    assert "dp-cp" not in seen(controls).kinds
    if both:
        assert kind_of("dp-cp").title["en"] in answer(chosen).picture
        assert kind_of("dp").title["en"] not in answer(chosen).picture


@every("group_type", ["dp", "dp+tp", "dp+pp", "dp+tp+pp"])
def test_outside_the_cp_types_dp_is_dp_and_a_hidden_cp_is_said(group_type):
    shown = answer(State(group_type=group_type, cp=2, dp_kind="dp-cp"))
    assert "data-choose-dp" not in shown.derived
    assert "dp-cp" not in panels(shown.picture)
    assert PAGE["cp_hidden"]["en"].format(cp=2) in shown.picture
    assert "dp-cp; a CP type" not in answer(State(group_type=group_type)).picture


def test_groups_that_are_cut_or_thinned_leave_the_other_gpus_in_none():
    more = ("hcp-l0", "hcp-l1", "inter-edp", "intra-dist-opt", "embd", "pos-embd")
    controls = State(
        group_type="chosen", more=more, nodes=4, tp=1, cp=4, pp=4, levels="2x2", instances=2
    )
    wanted = process_groups(
        32,
        cp=4,
        pp=4,
        hierarchical_context_parallel_sizes=(2, 2),
        num_distributed_optimizer_instances=2,
    )
    drawn = panels(answer(controls).picture)
    assert set(drawn) == set(more) - {"pos-embd"}  # beside another grid, not for groups of one
    drawn |= panels(answer(controls.changed({"more": ("pos-embd",)})).picture)
    assert set(drawn) == set(more)
    for kind, group in drawn.items():
        groups = [sorted(int(rank) for rank in ranks) for ranks in wanted[kind]]
        for index, ranks in enumerate(groups):
            assert np.flatnonzero(group == index).tolist() == ranks
        in_none = sorted(set(range(32)) - {rank for ranks in groups for rank in ranks})
        assert np.flatnonzero(group == -1).tolist() == in_none
    assert "20 GPUs in no such group" not in answer(controls).picture
    assert "16 GPUs in no such group" in answer(controls).picture  # embd: two stages of four
    assert "24 GPUs in no such group" in answer(controls).picture  # pos-embd: one of four


def test_a_group_that_is_chosen_and_belongs_to_the_type_is_shown_once():
    assert seen(State(more=("tp", "embd", "tp"))).kinds == ("tp", "dp", "pp", "embd")
    own = State(group_type="framework", more=("tp", "edp"))
    assert seen(own).kinds == ("tp", "cp", "dp", "pp", "etp", "ep", "edp")


@every("language", ["en", "zh"])
@every("nodes", [2, 2048])
def test_texts_beside_the_picture_are_those_of_its_type_and_kinds(language, nodes):
    for name, group_type in TYPES.items():
        more = ("embd", "tp-ep-pp", "intra-dist-opt") if name == "chosen" else ()
        controls = State(group_type=name, nodes=nodes, ep=2, etp=1, more=more)
        picture = html.unescape(answer(replace(controls, lang=language)).picture)
        assert group_type.title[language] in picture
        assert unparted(group_type.body[language]) in picture
        kinds = seen(controls).kinds
        assert kinds[: len(group_type.kinds)] == group_type.kinds
        assert len(kinds) >= 1
        for kind in kinds:
            assert kind_of(kind).title[language] in picture
            assert kind_of(kind).body[language] in picture
        for url in read_in(group_type, language):
            assert f'href="{url}"' in picture


def read_in(group_type: GroupType, language: str) -> list[str]:
    """The addresses of further reading: in the language of the page, else those of any."""
    pages = [LINKS[name] for name in group_type.reading]
    own = [page.url for page in pages if (page.language or "en") == language]
    return own or [page.url for page in pages if not page.language]


@every("world, nodes", [(264, 33), (1024, 128), (131_072, 16_384)])
def test_above_256_gpus_the_pinned_rank_is_told(world, nodes):
    """The script marks it."""
    shown = answer(State(nodes=nodes, rank=world - 1))
    assert 'class="panel"' not in shown.picture
    assert shown.picture.count('class="job plain"') == 1
    assert shown.picture.count('class="overview"') == 1
    assert f"Who is grouped with GPU {world - 1}?" in shown.picture
    gone = answer(State(nodes=nodes, rank=world))
    assert "Who is grouped with GPU 0?" in gone.picture


def test_the_pages_script_gets_the_mesh_that_python_used():
    controls = State(
        group_type="cp+dp",
        cp=2,
        pp=2,
        ep=4,
        etp=1,
        dp_kind="dp-cp",
        instances=2,
        more=("edp", "inter-edp", "embd", "intra-dist-opt"),
    )
    assert script_data(answer(controls).picture) == {
        "grids": [
            [["tp", 2], ["cp", 2], ["dp", 2], ["pp", 2]],
            [["etp", 1], ["ep", 4], ["edp", 2], ["pp", 2]],
        ],
        "kinds": [
            ["tp", "tp", 0, ["tp"], 0, 1, [], 1],
            ["cp", "cp", 0, ["cp"], 0, 1, [], 1],
            ["dp", "dp", 0, ["dp"], 0, 1, [], 1],
            ["pp", "pp", 0, ["pp"], 0, 1, [], 1],
            ["ep", "ep", 1, ["ep"], 0, 1, [], 1],
            ["edp", "dp", 1, ["edp"], 0, 1, [], 1],
            ["dp-cp", "ep", 0, ["cp", "dp"], 0, 1, [], 1],
            ["inter-edp", "tp", 1, ["edp"], 2, 1, [], 1],
            ["embd", "tp", 0, ["pp"], 0, 1, [0, 1], 1],
            ["intra-dist-opt", "cp", 1, ["etp", "ep", "pp"], 0, 1, [], 1],
        ],
        "told": 10,
        "spoken": [["tp", 0], ["cp", 1], ["ep", 4], ["pp", 3], ["dp", 6]],
        "layers": ["0–23", "24–47"],
        "gpusPerNode": 8,
        "world": 16,
    }


def script_data(picture: str) -> dict:
    return values(picture, "data-mesh")[0]


def test_the_same_request_is_answered_alike_and_another_users_differs():
    mine, theirs = State(tp=2), State(tp=4)
    first = answer(mine)
    assert answer(theirs) != first
    assert answer(mine) == first


def test_answers_are_kept_for_whoever_says_the_very_same_and_of_nothing_that_was_pasted():
    _kept.cache_clear()
    answer(State(tp=2, tour="1")), answer(State(tp=2.0)), answer(State(tp=True))
    assert STORE.count_of(_kept) == 3
    assert answer(State(tp=2, tour="1")) is answer(State(tp=2, tour="1"))
    pasted = {"evidence": "[rank3]: x", "hosts": "node-a", "paste": "--nodes 2", "measures": "1"}
    for name, text in (*pasted.items(), ("order", "x" * LONGEST_KEPT)):
        answer(State(**{name: text}))
    assert STORE.count_of(_kept) == 3


def test_the_table_and_the_list_hold_the_groups():
    shown = details_html(Context.of(State(group_type="dp+tp+pp")))
    rows = [[written(cell) for cell in select(row, "td")] for row in select(shown, "tbody tr")]
    assert rows[0] == ["dp", "0", "0, 2, 4, 6", "1"]
    assert rows[-1] == ["pp", "7", "7, 15", "2"]
    assert len(select(shown, "td:nth-child(2) > button")) == len(rows)
    assert len(rows) == 4 + 8 + 8
    assert "pp group 7: [7, 15]" in shown


def test_a_long_table_says_how_many_there_are_and_the_files_have_all():
    context = Context.of(from_preset("llama3-405b-3").changed({"group_type": "cp+dp+tp+pp"}))
    shown = details_html(context)
    assert shown.count("<tr><td>tp</td>") == ROWS
    assert "2,048" in written(select(shown, ".more")[0])
    text = groups_text(context)
    assert "tp group 2047: [16376, 16377" in text
    lines = groups_csv(context).splitlines()
    assert lines[0] == "kind,group,nodes_spanned,ranks"
    assert len(lines) == 1 + 1024 + 2048 + 2048 + 1024
    assert f"dp,2047,8,{' '.join(map(str, range(2047, 16384, 2048)))}" in lines


def test_a_long_group_is_cut_in_the_list_and_whole_in_the_file():
    context = Context.of(State(group_type="dp", nodes=1024, tp=1, pp=1))
    page = details_html(context)
    assert "…" in re.search(r"dp group 0: \[([^\]]*)\]", page)[1]
    whole = re.search(r"dp group 0: \[([^\]]*)\]", groups_text(context))[1]
    assert len(whole.split(", ")) == 8192 > MEMBERS


def handed_on(functions: list[list[ast.AST]]) -> Iterator[tuple[ast.Tuple, set[str]]]:
    """Code, control and facts that a function gives to who refuses, and the names of the facts."""
    for within in functions:
        for node in within:
            part = getattr(node, "value", None) if isinstance(node, (ast.Yield, ast.Return)) else 0
            if not isinstance(part, ast.Tuple) or len(part.elts) != 3:
                continue
            code, _, facts = part.elts
            if isinstance(code, ast.Constant) and code.value in REFUSALS:
                assigned = (one for one in within if isinstance(one, ast.Assign))
                named = {ast.unparse(one.targets[0]): one.value for one in assigned}
                yield part, keys_of(facts, named)


def keys_of(facts: ast.expr, named: dict[str, ast.expr]) -> set[str]:
    """The keys of a dict that is written out, be it by its name; of those within it too."""
    facts = named.get(ast.unparse(facts), facts)
    assert isinstance(facts, ast.Dict), ast.unparse(facts)
    keys = {key.value for key in facts.keys if isinstance(key, ast.Constant)}
    within = [value for key, value in zip(facts.keys, facts.values) if key is None]
    return keys.union(*(keys_of(value, named) for value in within))


def english_refusals() -> dict[str, str]:
    """What refusals.toml of each room says under a code."""
    rooms = ("groups", "training", "diagnosis", "formats", "request")
    files = (parsed(Path(room, "refusals.toml")) for room in rooms)
    return {code: " ".join(parts.values()) for file in files for code, parts in file.items()}


def keys_handed_on(functions: list[list[ast.AST]]) -> dict[ast.Call, set[str | None]]:
    """Of every call the keys of the dicts that it is given with **, as the function names them."""
    by_call = {}
    for within in functions:
        dicts: dict[str, set[str | None]] = {}
        for node in within:
            if isinstance(node, (ast.Assign, ast.AugAssign)) and isinstance(node.value, ast.Dict):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                keys = {getattr(key, "value", None) for key in node.value.keys}
                dicts.setdefault(ast.unparse(target), set()).update(keys)
        for call in (node for node in within if isinstance(node, ast.Call)):
            starred = [ast.unparse(one.value) for one in call.keywords if one.arg is None]
            by_call[call] = set().union(*(dicts.get(name, set()) for name in starred))
    return by_call


def refusing(nodes: list[ast.AST]) -> Iterator[tuple[ast.Call, str, str]]:
    """Every call that refuses with a code that is written out: the call, its function, the code."""
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        name, values = getattr(call.func, "id", ""), call.args
        if name == "partial" and ast.unparse(values[0]) == "refusal":  # made where it counts
            name, values = "refusal", values[1:]
        is_refusal = name in ("LayoutError", "refusal", "_refusal")
        if is_refusal and values and isinstance(values[0], ast.Constant):
            yield call, name, values[0].value


def test_every_refusal_has_its_sentence_in_chinese_too_made_of_its_facts():
    rooms = ("groups", "training", "diagnosis", "formats", "cli", "request", "views")
    source = "".join(path.read_text() for room in rooms for path in Path(room).rglob("*.py"))
    nodes, english = [*ast.walk(ast.parse(source))], english_refusals()
    functions = [[*ast.walk(node)] for node in nodes if isinstance(node, ast.FunctionDef)]
    parts = dict(handed_on(functions))  # of refusals that are made elsewhere
    calls = [*refusing(nodes)]
    codes = {code for _, _, code in calls} | {part.elts[0].value for part in parts}
    assert not codes.union(english) - {*REFUSALS}, "texts/refusals.toml lacks them"
    for left in {*REFUSALS} - codes:  # chosen by a condition, not next to the error
        assert f'"{left}"' in source

    def blanks(code: str, *more: str) -> set[str]:
        return set(re.findall(r"{(\w+)", "".join((REFUSALS[code]["zh"], *more))))

    for part, given in parts.items():
        code = part.elts[0].value
        assert blanks(code, english.get(code, "")) <= given, ast.unparse(part)
    by_call = keys_handed_on(functions)
    for call, name, code in calls:
        said = {one.arg: one.value for one in call.keywords}
        facts = said.get("facts", ast.Dict([], []))
        if name != "LayoutError":
            text = english.get(code, "")
            given = said.keys() | ({"control"} if "{control}" in text else set())
            given |= by_call.get(call, set())
            given |= {"span"} if {"minimum", "maximum"} <= given else set()  # `sentence` says it
            assert blanks(code, text) <= given, ast.unparse(call)
        elif isinstance(facts, ast.Dict) and None not in facts.keys:
            assert blanks(code) <= {key.value for key in facts.keys}, ast.unparse(call)


def test_a_state_has_the_fields_of_the_table_alone():
    with pytest.raises(TypeError, match="tpp"):
        State(tp=4, tpp=2)


@every("value", ["fr", None, ["zh"], 3])
def test_an_unknown_language_is_answered_in_english(value):
    assert language_of(value) == "en"


def test_the_list_of_views_is_that_of_the_words_and_the_folders():
    folders = {path.parent.name for path in Path("views").glob("*/view.py")} - {"base"}
    assert {*ALL_VIEWS} == {*WORDS}
    assert {view.within or name for name, view in ALL_VIEWS.items()} == folders
    assert all(name == view.name for name, view in ALL_VIEWS.items())
    owners = {row.of for row in FIELDS.values()} - {"job", "model", "training", "machine", "page"}
    assert owners <= {*ALL_VIEWS}


OF_NO_VIEW = {"model", "check", "presets", "frameworks"}
"""Commands about what the project reads and knows, not about a layout."""


def test_a_view_says_which_endpoints_and_commands_tell_what_it_shows():
    functions = [function.__name__ for view in ALL_VIEWS.values() for function in view.endpoints]
    assert len(functions) == len({*functions}) == len(ENDPOINTS)
    told = {name for view in ALL_VIEWS.values() for name in view.commands}
    assert told == {*COMMANDS} - OF_NO_VIEW


def test_every_text_of_a_view_stands_beside_it():
    """Its title, and the words of the inputs that it alone asks for."""
    for name, view in ALL_VIEWS.items():
        held = view.within or name
        own = catalogue(held)
        assert {*own["VIEWS"]} == {one for one in ALL_VIEWS if held in (one, ALL_VIEWS[one].within)}
        assert view.label == own["VIEWS"][name]
        lacking = {*view.inputs} & {*CONTROLS} - {*own.get("CONTROLS", {})}
        assert not lacking, f"views/{name}/words.toml, CONTROLS, lacks {sorted(lacking)}"


def test_every_form_of_file_is_offered_by_a_view_that_has_it():
    offered = {name: {*view.files} for name, view in ALL_VIEWS.items()}
    assert set().union(*offered.values()) == {*TABLES}
    assert [name for name, forms in offered.items() if "trace" in forms] == ["pipeline"]
    assert [name for name, forms in offered.items() if "roles" in forms] == ["roles"]
    assert offered["groups"] == {*TABLES} - {"trace", "roles"}


def test_dp_with_cp_is_a_choice_where_both_are_shown_and_no_experts_are():
    for group_type, wanted in (("cp+dp", {"cp", "dp-cp"}), ("dp", {"dp"}), ("moe", {"cp", "dp"})):
        context = Context.of(State(cp=2, group_type=group_type, dp_kind="dp-cp"))
        assert {one.name for one in context.visible} & {"cp", "dp", "dp-cp"} == wanted


@pytest.mark.parametrize(
    ("refuse", "en", "zh"),
    [
        (
            lambda: fit(2**20, tp=3072),
            "= 3,072 does not divide 1,048,576",
            "= 3,072 不能整除 1,048,576",
        ),
        (lambda: whole_number(131073, "nodes", maximum=131072), "131,072, not 131073", "是 131073"),
        (lambda: whole_number("4096 x 2", "nodes"), "not '4096 x 2'", "而不是 '4096 x 2'"),
        (
            lambda: require_rank(parse_mesh("tp4096"), 5000),
            "rank 5000: ranks go from 0 to 4095",
            "4095",
        ),
        (
            lambda: process_groups(32, cp=32, hierarchical_context_parallel_sizes=(4, 4)),
            "4 × 4 = 16",
            "各级 4 × 4",
        ),
        (
            lambda: apply("all_gather", [np.ones((2, 8192)), np.ones(1)], [[0, 1]]),
            "(2, 8192)",
            "(2, 8192)",
        ),
    ],
)
def test_a_refusal_has_commas_and_what_was_typed_as_typed(refuse, en, zh):
    with pytest.raises(LayoutError) as refused:
        refuse()
    assert en in sentence(refused.value, "en")
    assert zh in sentence(refused.value, "zh")


@pytest.mark.parametrize("view", sorted({*ALL_VIEWS} - {"launch"}))  # which shows programs
def test_numbers_in_brackets_have_those_of_their_language(view):
    half, full = r"\(\d[\d.,–%]*\)", "\uff08" r"\d[\d.,–%]*" "\uff09"
    for kept in ("", "v=2&tp=4"):
        chinese = text_of(shown(State(kept=kept), view, "zh"))
        assert not re.findall(half, chinese)
        english = text_of(shown(State(kept=kept), view, "en"))
        assert not re.findall(full, english)
