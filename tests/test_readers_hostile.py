"""A few bytes ask for no more than a request may cost: work and bytes are counted, never time.

Texts that unfold (aliases, merge keys, variables) are read by every reader of launch files and of
machines, and names that a shell would run end up in no script.
"""

from __future__ import annotations

import csv
import io
import json
import random
import shlex
import tracemalloc

import pytest

from diagnosis.machines.order import best_order
from diagnosis.machines.placing import placement_of
from formats.documents.exports import plain_cell, quoted_cell
from formats.documents.tables import Table
from formats.hosts import read_hosts
from formats.hosts.launchers import launcher_files
from formats.launch import parse
from formats.measurements import read_measurements
from groups.budget import LIMIT, within
from groups.errors import LayoutError
from request.link import from_query, parsed

MOST_BYTES = 200_000_000


def chain(first: str, line: str, levels: int = 8, times: int = 10, joint: str = ", ") -> str:
    """Anchors, each of which names the one before it several times."""
    rows = [first]
    for at in range(1, levels + 1):
        rows.append(line.format(at=at, many=joint.join([f"*a{at - 1}"] * times), last=at - 1))
    return "\n".join(rows) + "\n"


LISTS = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"
MAPS = "a0: &a0 {x: 1, y: 2, z: 3}"
KEYS = ", ".join(f"k{at}: *a{{last}}" for at in range(10))
BOMBS = {
    "lists": chain(LISTS, "a{at}: &a{at} [{many}]"),
    "maps": chain(MAPS, f"a{{at}}: &a{{at}} {{{{{KEYS}}}}}"),
    "block lists": chain(
        "a0: &a0\n  - 1\n  - 1", "a{at}: &a{at}\n  - {many}", 12, 10, "\n  - "
    ),
    "block maps": chain(
        "a0: &a0\n  x: 1",
        "a{at}: &a{at}\n" + "\n".join(f"  k{at}: *a{{last}}" for at in range(10)),
    ),
    "merge keys": chain(MAPS, "a{at}: &a{at} {{<<: [{many}], p: *a{last}, q: *a{last}}}", 30, 20),
    "merge of one": chain(MAPS, "a{at}: &a{at} {{<<: *a{last}, p: *a{last}, q: *a{last}}}", 40),
    "aliases as keys": chain(LISTS, "? *a{last}\n: &a{at} [{many}]"),
    "keys in a flow": chain(MAPS, "a{at}: &a{at} {{*a{last} : [{many}]}}"),
    "names with dashes": chain(LISTS, "a{at}: &a{at} [{many}]").replace("*a", "*-").replace(
        "&a", "&-"
    ),
    "lists of maps": chain(MAPS, "a{at}: &a{at} [{{b: [{many}]}}, *a{last}]"),
    "wide": f"a: &a [{'1, ' * 20_000}1]\nb: [{', '.join(['*a'] * 20_000)}]\n",
    "long texts": f"a: &a {{x: {'long' * 20_000}}}\n"
    + "".join(f"b{at}: *a\n" for at in range(9_000)),
    "long keys": f"a: &a {{x: 1, y: 2}}\n{'k' * 90_000}:\n"
    + "".join(f"  b{at}: *a\n" for at in range(7_000)),
    "deep": "".join(f"{' ' * at}k{at}: &k{at}\n" for at in range(55)) + " " * 55 + "x: 1\n"
    + "".join(f"b{at}: *k0\n" for at in range(9_000)),
}  # fmt: skip


def work(read, text: str) -> tuple[int, str]:
    """Units of work that reading a text took, and the code of a refusal."""
    with within() as budget:
        try:
            read(text)
        except LayoutError as error:
            return budget.spent, error.code
    return budget.spent, ""


def cost(read, text: str) -> tuple[int, int, str]:
    """Units of work and bytes at most that reading a text took, and the code of a refusal."""
    tracemalloc.start()
    try:
        spent, code = work(read, text)
        return spent, tracemalloc.get_traced_memory()[1], code
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BOMBS)
def test_what_aliases_unfold_to_is_counted_before_it_is_made(name):
    spent, most, code = cost(parse, BOMBS[name])
    assert most < MOST_BYTES
    assert code in ("", "too-much-work")
    # The one step that is refused is counted, and nothing of it is made.
    assert code or spent <= LIMIT


@pytest.mark.parametrize("name", BOMBS)
def test_a_text_of_machines_has_no_alias(name):
    _, most, code = cost(read_hosts, BOMBS[name])
    assert (code != "", most < MOST_BYTES) == (True, True)


def test_the_lists_of_lists_are_refused_in_words():
    with pytest.raises(LayoutError) as refused:
        parse(BOMBS["lists"])
    assert (refused.value.code, refused.value.facts["what"]) == ("too-much-work", "aliases")
    with pytest.raises(LayoutError) as refused:
        read_hosts("nodes: &-a [x]\nracks: [*-a, *-a]")
    assert refused.value.facts["because"] == "document-yaml-aliases"


def test_ordinary_anchors_and_merge_keys_are_read():
    text = (
        "base: &base\n  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 2\n"
        "model:\n  <<: *base\n  pipeline_model_parallel_size: 8\n"
    )
    merged = parse(text).values
    assert (merged["tp"], merged["pp"]) == (4, 8)


def test_a_star_in_a_text_of_machines_is_no_alias():
    assert read_hosts('n0: "a *b &c"\nn1: r').racks == {"n0": "a *b &c", "n1": "r"}


@pytest.mark.parametrize(
    "text",
    [
        "A=1\ntorchrun a.py model.x=[" + ",".join(["$A"] * 60_000),
        "torchrun a.py model.x=[" + ",".join(["$A"] * 60_000),
        "A=1\ntorchrun a.py model.x=[" + ",".join(["${A}"] * 35_000),
        "A='1 2'\ntorchrun a.py " + "$A" * 60_000,
        "A=1\ntorchrun a.py " + '"$A"' * 40_000,
    ],
)
def test_variables_by_the_thousand_are_counted(text):
    spent, code = work(parse, text)
    assert code == "too-much-work" or spent >= 10 * text.count("$")


@pytest.mark.parametrize(
    "text",
    ['{"tensor_parallel": {"autotp_size": 4}, "a": "\ud800"}', "a: 1\nb: \udfff\n", "\ud800: 1"],
)
def test_half_a_character_is_a_problem_with_its_place(text):
    problems = parse(text).problems
    at = next(at for at, c in enumerate(text) if "\ud800" <= c <= "\udfff")
    assert [problem.start for problem in problems if problem.code.startswith("bad-")] in ([at], [])
    assert problems or not text.startswith(("{", "a"))


def test_lines_of_measurements_are_counted():
    pairs, table = "0,1\n" * 800_000, "host,a,b\n" + "n0,,\n" * 800_000
    placement = placement_of(read_hosts("n0 slots=8"), 8)
    assert work(lambda said: read_measurements(said, 8), pairs)[1] == "too-much-work"
    # Its first line is none of measurements: the others are not looked at.
    spent, most, code = cost(lambda said: read_measurements(said, 8, placement), table)
    assert (code, most < MOST_BYTES, spent < LIMIT) == ("bad-measurements", True, True)


def test_a_rank_that_stands_twice_is_told_before_the_rest_is_read():
    spent, _, code = cost(lambda said: read_measurements(said, 8), "rank,ms\n" + "0,1\n" * 9_000)
    assert (code, spent < 9_000) == ("measurement-twice", True)


# -- names ---------------------------------------------------------------------------------------

STRANGE = [
    "$(touch x)",
    "`touch x`",
    "a b",
    "a;b",
    "a\nb",
    "a#b",
    "a'b",
    'a"b',
    "-oProxy",
    "=cmd()",
]
STRANGE += ["a|b", "a&b", "a>b", "a\\b", "@x", "+x", "a\tb", "a\rb", "a*", "~a", "a=b", "[a]", ""]
FORMS = {
    "list": lambda name: json.dumps([name, "n1"]),
    "rack by host": lambda name: json.dumps({name: "r", "n1": "r"}),
    "hosts by rack": lambda name: json.dumps({"r": [name, "n1"]}),
    "slots": lambda name: json.dumps({name: 8, "n1": 8}),
    "records": lambda name: json.dumps([{"host": name}, {"host": "n1"}]),
    "aws": lambda name: json.dumps({"Instances": [{"InstanceId": name, "NetworkNodes": ["s"]}]}),
    "gcp": lambda name: json.dumps([{"name": name, "physicalHost": "/a/b/c"}]),
    "topograph": lambda name: json.dumps({"blocks": [{"name": "b", "nodes": [name]}]}),
    "yaml": lambda name: "hosts:\n- " + json.dumps(name) + "\n- n1",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STRANGE)
def test_what_a_shell_would_run_is_no_host_name(form, name):
    try:
        names = read_hosts(FORMS[form](name)).names
    except LayoutError:
        return
    assert name not in names or name == ""
    assert all(shlex.quote(one) == one for one in names)


def test_a_node_of_kubernetes_has_a_host_name_too():
    node = {"metadata": {"name": "$(touch x)", "labels": {"topology.kubernetes.io/rack": "r"}}}
    with pytest.raises(LayoutError) as refused:
        read_hosts(json.dumps({"items": [node]}))
    assert refused.value.code == "bad-host-name"


@pytest.mark.parametrize("name", [name for name in STRANGE if name])
def test_no_order_of_such_names_is_made_and_lines_for_shells_are_quoted(name):
    with pytest.raises(LayoutError):
        best_order([name, "n1"], {name: "r", "n1": "r"}, gpus_per_node=8)
    line = launcher_files([name, "n1"], 8)["torchrun"].partition("\n")[2]
    assert shlex.split(line, comments=False).count(name) >= 2


# -- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["=cmd()", "+1+1", "-1+cmd", "@SUM(A1)", "\t=1", "\r=1", "--x"])
def test_a_cell_is_no_formula(text):
    assert plain_cell(text) == f"'{text}"
    ((cell,),) = csv.reader(io.StringIO(quoted_cell(text), newline=""))
    assert cell == f"'{text}"
    table = Table("names", ["name"], [[text]])
    assert [*csv.reader(io.StringIO("".join(table.printed("csv")), newline=""))][1] == [f"'{text}"]


@pytest.mark.parametrize("text", ["-1", "+2.5", "-1e-9", "-.5", "0", "n-1", "", "-"])
def test_numbers_and_names_stay(text):
    assert plain_cell(text) == text


# -- anything at all -----------------------------------------------------------------------------

SEEDS = {
    "launch": [
        "torchrun --nnodes 2 train.py --tensor-model-parallel-size 4 model.x=[$A,$A]\n",
        "a: &a {x: 1}\nb: {<<: *a, y: [*a, *a]}\n",
        '{"tensor_parallel": {"autotp_size": 4}, "b": ["${a.b}"]}',
        '[parallelism]\ntensor_parallel_degree = 4\nx = ["a", {b = 1}]\n',
        "A=1\nB=\"$A ${A:-2} $((A * 2))\"\ncat <<EOF > x.sh\n$B\nEOF\nbash -c '$B'\n",
    ],
    "hosts": [
        "node0 slots=8\nnode1 slots=8\n",
        '{"Instances": [{"InstanceId": "i-1", "NetworkNodes": ["a", "b"]}]}',
        "topologies:\n- block:\n    blocks:\n    - {block: b, nodes: 'n[1-4]'}\n",
        "SwitchName=s0 Nodes=n[0-3]\nSwitchName=top Switches=s0\n",
        "rank 0=a slot=0\nrank 1=b slot=0\n",
        "<system version='1'><cpu numaid='0'><pci busid='0'/></cpu></system>",
    ],
    "measurements": ["rank,ms\n0,10.5\n1,11\n", "[1, 2.5, null]", '[{"rank": 0, "ms": 3}]'],
    "links": ["v=2&tp=4&ep=2&show=nodes&lang=zh", "v=1&memory_schedule=1f1b", '{"tp": "4"}'],
}  # fmt: skip
SIGNS = [
    *"&*<:-[]{}\"'`$()#=,\\\n\t 019a%?!|>",
    "\ud800",
    "\0",
    "é",
    "\U0001f600",
    "<<",
    "- ",
    "9" * 40,
]


def read_links(text: str) -> None:
    parsed(text)
    from_query(text)


READERS = {
    "launch": parse,
    "hosts": read_hosts,
    "measurements": lambda text: read_measurements(text, 2),
    "links": read_links,
}


def mutated(name: str, seed: int) -> str:
    """A text of a reader with some signs put in, left out, repeated or exchanged."""
    chance = random.Random(f"{name} {seed}")
    text = chance.choice(SEEDS[name])
    for _ in range(chance.randint(1, 8)):
        at, size = chance.randint(0, len(text)), chance.choice((0, 1, 1, 2, 9))
        piece = chance.choice((chance.choice(SIGNS), text[at : at + 20] * chance.randint(1, 4), ""))
        text = text[:at] + piece + text[at + size :]
    return text


def read_mutated(name: str, seeds: range) -> int:
    """How many of these texts are refused; whatever else is raised is a fault."""
    refused = 0
    for seed in seeds:
        text = mutated(name, seed)
        try:
            with within():
                READERS[name](text)
        except LayoutError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{name} {seed}: {text!r}") from error
    return refused


@pytest.mark.parametrize("name", READERS)
def test_any_mutated_text_is_read_or_refused(name):
    refused = read_mutated(name, range(300))
    assert 0 <= refused < 300
