"""Documents of groups and ranks: what they say, that it is read back, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every
from documents import groups_csv, groups_json, ranks_csv, ranks_json

from cli.command import run
from formats.documents.check import check_document
from formats.documents.exports import (
    VERSION,
    groups_by_name,
    groups_csv_parts,
    groups_json_parts,
    groups_text_parts,
    meshes,
    quoted_cell,
    ranks_csv_parts,
    ranks_json_parts,
)
from formats.documents.schema import FILE, NAMES, documents_schema
from groups import LayoutError, coordinates, parse_mesh
from groups.audit import spans_of
from groups.frameworks import FRAMEWORKS, OWN
from groups.grouping import Grouping
from groups.layout import Job, own_groupings
from groups.megatron.parallel_state import family
from groups.presets import LAYOUT, PRESETS

SCHEMA = Path(__file__).parent.parent / "docs" / "schema.md"

JOBS = {
    "one GPU": Job(gpus_per_node=1),
    "dense": Job(nodes=2, tp=2, pp=2),
    "experts": Job(nodes=2, tp=2, cp=2, pp=2, ep=8, etp=1),
    "instances": Job(nodes=2, tp=2, instances=2),
    "levels": Job(nodes=2, cp=8, levels=(2, 4)),
    "uneven runs": Job(nodes=1, gpus_per_node=10, hybrid=True),
    "pp before dp": Job(nodes=2, tp=2, pp=2, framework="megatron-pp-dp"),
    "own order": Job(nodes=2, tp=2, cp=2, pp=2, ep=2, framework=OWN, order="cp-ep-tp-dp-pp"),
    "short order": Job(nodes=2, tp=2, framework=OWN, order="dp-tp"),
    "four nodes of four": Job(nodes=4, gpus_per_node=4, tp=8, pp=2),
    "deepspeed": Job(nodes=2, tp=2, pp=2, ep=2, framework="deepspeed"),
    "torchtitan": Job(nodes=2, tp=2, cp=2, pp=2, ep=4, framework="torchtitan"),
    "fairscale": Job(nodes=2, tp=2, pp=2, framework="fairscale"),
    "llama3": Job(nodes=2, tp=2, cp=2, pp=2, framework="llama3"),
    "all pipeline": Job(nodes=1, pp=8, framework="gpipe"),
    "machines": Job(nodes=2, framework="horovod"),
}


def lists(grouping: Grouping) -> list[list[int]]:
    groups = grouping.groups()
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), strict=True))


@pytest.fixture(params=JOBS, ids=str)
def job(request) -> Job:
    return JOBS[request.param]


# -- groups --------------------------------------------------------------------------------------


def test_the_json_has_every_group_that_is_made(job):
    layout = job.layout()
    document = check_document(groups_json(layout))
    assert document == json.loads(groups_json(layout))
    assert set(layout.every) <= set(document["groups"])
    for name, grouping in groups_by_name(layout).items():
        entry = document["groups"][name]
        assert entry["groups"] == lists(grouping)
        assert entry["nodes_spanned"] == spans_of(grouping, job.gpus_per_node).tolist()
        assert parse_mesh(document["meshes"][entry["grid"]]) == grouping.mesh
        assert entry["kind"] == grouping.kind
        if name in layout.every:
            assert entry["parallel_state"] == family(name).parallel_state
            assert entry["carries"] == family(name).carries
        else:
            assert entry["parallel_state"] is None


def test_the_job_of_a_document_makes_the_same_groups_again(job):
    layout = job.layout()
    document = json.loads(groups_json(layout))
    again = Job(**document["job"]).layout()
    assert again.every == layout.every
    assert (again.mesh, again.expert) == (layout.mesh, layout.expert)
    assert groups_json(again) == groups_json(layout)
    assert layout.explicit_job.layout().every == layout.every


def test_the_csv_has_the_groups_of_the_json(job):
    layout = job.layout()
    document = json.loads(groups_json(layout))
    rows = iter(table(groups_csv(layout)))
    for name, entry in document["groups"].items():
        for index, (ranks, spanned) in enumerate(zip(entry["groups"], entry["nodes_spanned"])):
            assert next(rows) == {
                "name": name,
                "group": str(index),
                "size": str(len(ranks)),
                "nodes_spanned": str(spanned),
                "ranks": " ".join(map(str, ranks)),
            }
    assert next(rows, None) is None


def test_the_text_is_one_line_a_group():
    text = "".join(groups_text_parts(Job(nodes=2, tp=2, pp=2).layout(), ["pp", "dp"]))
    assert text.splitlines()[7:10] == [
        "pp group 7: [7, 15]",
        "dp group 0: [0, 2, 4, 6]",
        "dp group 1: [1, 3, 5, 7]",
    ]


def test_only_the_names_asked_for_are_written_in_their_order():
    layout = Job(nodes=2, tp=2, pp=2).layout()
    names = ["tp-ep-pp", "tp", "embd"]
    assert list(json.loads(groups_json(layout, names))["groups"]) == names
    assert list(dict.fromkeys(row["name"] for row in table(groups_csv(layout, names)))) == names
    assert json.loads(groups_json(layout, []))["groups"] == {}
    assert check_document(groups_json(layout, []))


@every("framework", [name for name, one in FRAMEWORKS.items() if not one.speaks_megatron])
def test_the_own_names_of_a_framework_are_its_own_groups(framework):
    sizes: dict[str, Any] = {"pp": 16} if framework == "gpipe" else {}
    layout = Job(nodes=2, framework=framework, **sizes).layout()
    groups = json.loads(groups_json(layout))["groups"]
    own = [] if layout.is_server else own_groupings(layout)  # a server has no other names
    assert [name for name in groups if name.startswith("own.")] == [f"own.{o.name}" for o in own]
    for one in own:
        assert groups[f"own.{one.name}"]["groups"] == lists(one)
        assert groups[f"own.{one.name}"]["grid"] in ("own", "own-expert")


def test_megatron_s_mp_and_fairscale_s_are_not_confused():
    """With tp 2, pp 2: fairscale calls the two tp ranks mp, Megatron four, which fairscale has no
    group of."""
    layout = Job(nodes=1, tp=2, pp=2, framework="fairscale").layout()
    assert {name: one.size for name, one in groups_by_name(layout, ["mp"]).items()} == {"own.mp": 2}
    assert groups_by_name(Job(tp=2, pp=2).layout(), ["mp"])["mp"].size == 4
    assert list(groups_by_name(Job(framework="deepspeed").layout(), ["data"])) == ["own.data"]


@every(
    "name, cures",
    [
        ("cp-dp", ["dp-cp"]),
        ("pp-tp-ep", ["tp-ep-pp"]),
        ("edpp", ["edp"]),
        ("hcp-l0", []),
        ("data", []),
        ("", []),
    ],
)
def test_a_name_without_groups_is_refused_with_the_nearest(name, cures):
    layout = Job(nodes=2, tp=2).layout()
    for write in (groups_json_parts, groups_csv_parts, groups_text_parts, ranks_csv_parts):
        with pytest.raises(LayoutError) as refusal:
            next(write(layout, ["tp", name]))  # before anything is written
        assert refusal.value.code == "no-such-group"
        for cure in refusal.value.alternatives:
            assert groups_csv(layout, [cure["group"]])
        assert [cure["group"] for cure in refusal.value.alternatives][: len(cures)] == cures


def test_every_preset_is_written_and_read_back():
    for key, preset in PRESETS.items():
        sizes = {name: getattr(preset, name) for name in LAYOUT if hasattr(preset, name)}
        del sizes["dp"], sizes["edp"]
        layout = Job(**sizes).layout()
        assert layout.explicit_job.layout().every == layout.every, key
        if preset.world_size <= 512:
            assert check_document(groups_json(layout)), key
            assert check_document(ranks_json(layout)), key


# -- ranks ---------------------------------------------------------------------------------------


def test_a_table_of_the_first_ranks_says_how_many_and_is_checked_as_such():
    layout = Job(nodes=2, tp=4, pp=2).layout()
    part = json.loads("".join(ranks_json_parts(layout, ["tp", "dp"], None, 3)))
    assert (part["first"], len(part["ranks"]), part["world_size"]) == (3, 3, 16)
    assert check_document(json.dumps(part))
    for wrong in ({"first": 4}, {"first": 0}, {"first": 17}, {"ranks": part["ranks"][1:]}):
        with pytest.raises(LayoutError):
            check_document(json.dumps({**part, **wrong}))


def test_the_table_of_ranks_says_where_each_stands_and_its_groups(job):
    layout = job.layout()
    rows = table(ranks_csv(layout))
    assert len(rows) == layout.world_size
    chosen = groups_by_name(layout)
    for rank, row in enumerate(rows):
        expected = {
            "rank": rank,
            "node": rank // job.gpus_per_node,
            "local_rank": rank % job.gpus_per_node,
        }
        for grid, mesh in meshes(layout).items():
            expected |= {f"{grid}_{axis}": at for axis, at in coordinates(mesh, rank).items()}
        expected |= {f"group_{name}": one.index_of(rank) for name, one in chosen.items()}
        assert row == {key: "" if at is None else str(at) for key, at in expected.items()}


def test_the_index_of_a_rank_is_that_of_the_group_it_is_in(job):
    layout = job.layout()
    groups = json.loads(groups_json(layout))["groups"]
    document = json.loads(ranks_json(layout))
    for at, column in enumerate(document["columns"]):
        if not column.startswith("group_"):
            continue
        found: dict[int, set[int]] = {}
        for row in document["ranks"]:
            if row[at] is not None:
                found.setdefault(row[at], set()).add(row[0])
        listed = groups[column.removeprefix("group_")]["groups"]
        assert found == {index: set(ranks) for index, ranks in enumerate(listed)}


def test_the_json_of_ranks_is_the_table_of_the_csv(job):
    layout = job.layout()
    document = check_document(ranks_json(layout))
    rows = list(csv.reader(io.StringIO(ranks_csv(layout))))
    assert document["columns"] == rows[0]
    written = [["" if n is None else str(n) for n in row] for row in document["ranks"]]
    assert written == rows[1:]


def test_no_two_columns_have_one_name(job):
    columns = ranks_csv(job.layout()).split("\n", 1)[0].split(",")
    assert len(set(columns)) == len(columns)


# -- large jobs ----------------------------------------------------------------------------------


def test_a_job_of_131072_ranks_is_written_in_parts():
    """In parts of whole lines that begin at once: nothing holds all of a large table."""
    layout = Job(nodes=16384, tp=8, cp=2, pp=16, ep=8, etp=1).layout()
    for write in (groups_csv_parts, groups_json_parts, ranks_csv_parts, ranks_json_parts):
        begun = time.perf_counter()
        first = list(islice(write(layout), 4))
        assert time.perf_counter() - begun < 5
        assert first
        assert max(map(len, first)) < 3_000_000
    begun = time.perf_counter()
    lines = "".join(ranks_csv_parts(layout)).split("\n")
    assert time.perf_counter() - begun < 20
    assert lines.pop() == ""
    assert len(lines) == 1 + 131_072
    assert lines[-1].startswith("131071,16383,7,7,1,511,15,0,7,1023,15,")


def test_parts_longer_than_one_block_are_one_list():
    layout = Job(nodes=2048, tp=2).layout()
    document = check_document(groups_json(layout, ["tp"]))
    assert len(document["groups"]["tp"]["groups"]) == 8192
    document = check_document(ranks_json(layout, ["tp"]))
    assert document["ranks"][-1][0] == 16383
    assert len(table(groups_csv(layout, ["tp"]))) == 8192


# -- documents that are refused ------------------------------------------------------------------

GROUPS_TEXT = groups_json(Job(gpus_per_node=4, nodes=2, tp=2, pp=2).layout(), ["tp", "embd"])
RANKS_TEXT = ranks_json(Job(gpus_per_node=4, nodes=2, tp=2, pp=2).layout(), ["tp", "pos-embd"])


def changed(text: str, path: str, value: Any) -> str:
    document = deepcopy(json.loads(text))
    *outer, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    place = document
    for part in outer:
        place = place[part]
    if value is None and last != "etp":
        del place[last]
    else:
        place[last] = value
    return json.dumps(document)


def refused(text: Any) -> LayoutError:
    with pytest.raises(LayoutError) as refusal:
        check_document(text)
    assert refusal.value.control == "document"
    assert len(str(refusal.value)) < 500
    return refusal.value


@every("schema", ["parallel-group", "", "PARALLEL-GROUPS"])
def test_another_schema_is_refused_by_its_name(schema):
    error = refused(changed(GROUPS_TEXT, "schema", schema))
    assert error.code == "other-schema"
    assert repr(schema) in str(error)


@every("version", [0, 2, 10**30])
def test_another_version_is_refused_by_its_number(version):
    error = refused(changed(GROUPS_TEXT, "version", version))
    assert error.code == "other-version"
    assert f"version {VERSION} is read here" in str(error)


@every(
    "path, value, place",
    [
        ("schema", 1, "schema"),
        ("version", "1", "version"),
        ("version", True, "version"),
        ("version", 1.0, "version"),
        ("world_size", 0, "world_size"),
        ("world_size", 10**20, "world_size"),
        ("world_size", 16, "world_size"),
        ("gpus_per_node", 3, "gpus_per_node"),
        ("gpus_per_node", -4, "gpus_per_node"),
        ("gpus_per_node", 2, "gpus_per_node"),
        ("job", [], "job"),
        ("job/tp", "2", "job.tp"),
        ("job/hybrid", 0, "job.hybrid"),
        ("job/levels", 4, "job.levels"),
        ("job/nodes", 3, "world_size"),
        ("job/tp", 3, "job.tp"),
        ("job/tp", 4, "meshes.dense"),
        ("meshes", [], "meshes"),
        ("meshes/dense", "tp2-dp2", "meshes.dense"),
        ("meshes/dense", "tp2-dp4+8", "meshes.dense"),
        ("meshes/dense", "two", "meshes.dense"),
        ("meshes/dense", 8, "meshes.dense"),
        ("placement", [], "placement"),
        ("placement", {"host": ["a"]}, "placement.host"),
        ("placement", {"host": 8 * [1]}, "placement.host"),
    ],
)
@every("text", [GROUPS_TEXT, RANKS_TEXT], ids=["groups", "ranks"])
def test_what_both_documents_begin_with_is_checked(text, path, value, place):
    error = refused(changed(text, path, value))
    assert error.code == "bad-document"
    assert error.facts["place"] == place
    assert place in str(error)


@every(
    "path, value, place",
    [
        ("groups", [], "groups"),
        ("groups/tp", [[0, 1]], "groups.tp"),
        ("groups/tp/grid", "dens", "groups.tp.grid"),
        ("groups/tp/kind", "ep", "groups.tp.kind"),
        ("groups/tp/kind", "", "groups.tp.kind"),
        ("groups/tp/kind", 1, "groups.tp.kind"),
        ("groups/tp/parallel_state", 1, "groups.tp.parallel_state"),
        ("groups/tp/carries", [], "groups.tp.carries"),
        ("groups/tp/groups", {}, "groups.tp.groups"),
        ("groups/tp/groups/1", [], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", 5, "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [2, 8], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [-1, 2], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [2, True], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [2, 3.0], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [2, "3"], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [2, 10**30], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [1, 2], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [2, 2], "groups.tp.groups[1]"),
        ("groups/tp/groups/1", [3, 2], "groups.tp.groups[1]"),
        ("groups/tp/groups", [[0, 1], [2, 3]], "groups.tp.groups"),
        ("groups/tp/kind", "pp", "groups.tp.kind"),
        ("groups/own.tp", {}, "groups.own.tp"),
        ("groups/tp/nodes_spanned", [1], "groups.tp.nodes_spanned"),
        ("groups/tp/nodes_spanned/0", 2, "groups.tp.nodes_spanned"),
    ],
)
def test_a_group_that_cannot_be_is_refused_at_its_place(path, value, place):
    error = refused(changed(GROUPS_TEXT, path, value))
    assert error.code == "bad-document"
    assert error.facts["place"] == place


@every(
    "path, value, place",
    [
        ("ranks", {}, "ranks"),
        ("ranks", [], "ranks"),
        ("columns", "rank", "columns"),
        ("columns", ["rank"], "columns"),
        ("columns/0", "node", "columns"),
        ("columns/11", "tp", "columns"),
        ("columns/11", 3, "columns"),
        ("columns/12", "group_tp", "columns"),
        ("ranks/3", 3, "ranks[3]"),
        ("ranks/3", [3], "ranks[3]"),
        ("ranks/3/0", 4, "ranks[3]"),
        ("ranks/1/0", True, "ranks[1]"),
        ("ranks/3/1", 1, "ranks[3]"),
        ("ranks/3/3", 0, "ranks[3]"),
        ("ranks/3/11", -1, "ranks[3]"),
        ("ranks/3/11", 0, "ranks[3]"),
        ("ranks/3/11", 8, "ranks[3]"),
        ("ranks/3/11", "1", "ranks[3]"),
    ],
)
def test_a_rank_that_cannot_be_is_refused_at_its_place(path, value, place):
    error = refused(changed(RANKS_TEXT, path, value))
    assert error.code == "bad-document"
    assert error.facts["place"] == place


def fields(document: Any, place: str = "") -> Iterator[str]:
    if isinstance(document, dict) and place not in ("/meshes", "/groups"):
        for name, value in document.items():
            yield f"{place}/{name}"
            yield from fields(value, f"{place}/{name}")
    elif place == "/groups":
        yield from fields(document["tp"], "/groups/tp")


@every("text", [GROUPS_TEXT, RANKS_TEXT], ids=["groups", "ranks"])
def test_every_field_is_needed_and_a_new_one_is_let_pass(text):
    found = list(fields(json.loads(text)))
    assert len(found) > 15
    for path in found:
        if path == "/job/etp":
            continue  # deleted below: None is a value of it
        error = refused(changed(text, path[1:], None))
        assert error.code == "missing-in-document"
        assert error.facts["place"] == path[1:].replace("/", ".")
    document = json.loads(text)
    del document["job"]["etp"]
    assert refused(json.dumps(document)).facts["place"] == "job.etp"
    assert check_document(changed(text, "written_by", "a later version 1"))


@every(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '"parallel-groups"',
        GROUPS_TEXT[:-10],
        GROUPS_TEXT + "}",
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"schema": "parallel-groups", "version": ' + "1" * 5000 + "}",
        '{"schema": "parallel-groups", "version": NaN}',
        "\x1b[31m",
        "x" * 1_000_000,
        '{"schema": "' + "x" * 1_000_000 + '"}',
        None,
        3,
    ],
    ids=lambda text: repr(text)[:20],
)
def test_what_is_no_document_is_refused_in_a_short_sentence(text):
    error = refused(text)
    assert str(error).isprintable()


def test_a_name_with_odd_letters_is_quoted_in_the_refusal():
    document = json.loads(GROUPS_TEXT)
    document["groups"]["\x1b[31m" + "x" * 10_000] = 1
    assert str(refused(json.dumps(document))).isprintable()


# -- docs/schema.md ------------------------------------------------------------------------------

EXAMPLE = re.compile(
    r"```console\n\$ (?:echo '(?P<echo>[^']*)' \| )?python -m groups (?P<args>[^\n]*)\n.*?```",
    re.DOTALL,
)


def with_fresh_examples(page: str) -> str:
    """The page with what its commands print now."""

    def fresh(match: re.Match[str]) -> str:
        out = io.StringIO()
        run(match["args"].split(), io.StringIO(match["echo"] or ""), out, out)
        return f"{match[0].splitlines()[0]}\n{match[0].splitlines()[1]}\n{out.getvalue()}```"

    return EXAMPLE.sub(fresh, page)


def test_the_examples_of_the_schema_are_what_the_commands_print():
    page = SCHEMA.read_text(encoding="utf-8")
    assert len(EXAMPLE.findall(page)) == page.count("```console")
    assert with_fresh_examples(page) == page, f"python {Path(__file__).name} writes them again"


def test_the_examples_of_the_schema_are_documents():
    page = SCHEMA.read_text(encoding="utf-8")
    documents = re.findall(r"```console\n\$ [^\n]*\n(\{\n.*?\n\}\n)```", page, re.DOTALL)
    assert [check_document(text)["schema"] for text in documents] == [
        "parallel-groups",
        "parallel-ranks",
    ]


def test_the_json_schema_is_written_anew_and_names_what_documents_have():
    schema = json.loads(FILE.read_text(encoding="utf-8"))
    assert schema == documents_schema(), "python -m formats.documents.schema writes it again"
    server = Job(tp=4, dp=2, framework="vllm", expert_parallel=True).layout()
    for text, one in ((GROUPS_TEXT, 0), (RANKS_TEXT, 1), (groups_json(server), 0)):
        document, properties = json.loads(text), schema["oneOf"][one]["properties"]
        job = schema["$defs"]["job"]
        assert {*document} == {*schema["oneOf"][one]["required"]} <= {*properties}
        assert {*job["required"]} <= {*document["job"]} <= {*job["properties"]}
        for name, value in document["job"].items():
            said = job["properties"][name]["type"]
            assert NAMES[type(value)] in (said if isinstance(said, list) else [said]), name


def test_the_schema_describes_every_field_and_column():
    page = SCHEMA.read_text(encoding="utf-8")
    described = set(re.findall(r"`([^`\n]+)`", page))
    documents = [json.loads(GROUPS_TEXT), json.loads(RANKS_TEXT)]
    for document in documents:
        assert set(document) <= described
        assert set(document["job"]) <= described
    assert {f"groups.NAME.{name}" for name in documents[0]["groups"]["tp"]} <= described
    assert set(groups_csv(Job().layout()).splitlines()[0].split(",")) <= described
    for column in documents[1]["columns"]:
        assert {column, re.sub("^group_.*", "group_NAME", column)} & described, column


LOG = (
    "[rank3]:[E626 10:00:00.0 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=10, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=600000) ran for 600000 milliseconds before timing out.\n"
)


def test_the_schema_describes_every_field_and_column_of_the_other_commands(tmp_path):
    hosts, measured, server = tmp_path / "hosts", tmp_path / "measured", tmp_path / "server"
    hosts.write_text("host,rack\na,r0\nb,r1\nc,r0\nd,r1\n")
    measured.write_text("0,10\n1,10\n2,10\n3,30\n")
    server.write_text("vllm serve model -tp 4 -dp 2\n")
    mesh = tmp_path / "mesh"
    mesh.write_text("DeviceMesh((dp=4, tp=2), 'cuda', stride=(2, 1))")
    layout = f"--nodes 4 --tp 2 --pp 2 --hosts {hosts}"
    commands = [f"rank 3 {layout}", f"share - {layout}", "share 1,3 --tp 2", f"audit {layout}"]
    commands += [f"order {layout} --model llama3-8b", f"slow {measured} --gpus-per-node 4"]
    commands += [
        f"running {mesh}",
        f"running {mesh} --tp 4",
        f"trace {Path(__file__).parent / 'data/traces/gloo'}",
        f"serve {server}",
        "layout",
        "presets",
        "frameworks",
    ]
    section = SCHEMA.read_text(encoding="utf-8").split("## The other commands")[1]
    described = set(re.findall(r"`([^`\n]+)`", section)) | {"rows", "rack"}  # a kind of place
    for command in commands:
        out = io.StringIO()
        run([*command.split(), "--format", "json"], io.StringIO(LOG), out, out)
        document = json.loads(out.getvalue())
        assert document["rows"], command
        assert set(document) | set(document["rows"][0]) <= described, command
        assert ("job" in document) == (command.split()[0] in WITH_A_JOB), command


WITH_A_JOB = ("rank", "share", "audit", "slow", "running", "trace", "layout")


if __name__ == "__main__":
    SCHEMA.write_text(with_fresh_examples(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")


def test_a_cell_that_would_break_its_line_is_quoted():
    for end in (",", '"', "\n", "\r"):
        (row,) = csv.reader(io.StringIO(quoted_cell(f"a{end}b"), newline=""))
        assert row == [f"a{end}b"]
    assert quoted_cell("a b") == "a b"
