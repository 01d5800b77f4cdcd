"""Machines by name beside the views: the audit of nodes, the check script, racks under spines."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from markup import select, text_of, values

from descriptions import RUN
from diagnosis.machines.order import better_order
from diagnosis.machines.placing import placement_of
from formats.check.script import check_script
from formats.documents.check import check_document
from formats.hosts import read_hosts
from groups import LayoutError
from groups.layout import Job
from request.answers.groups import process_groups, rank_table
from request.answers.hosts import better_order as ordered
from request.answers.hosts import read_hosts as hosts_read
from request.answers.launch import cluster_check
from request.answers.nodes import node_audit
from request.answers.ranks import rank_card
from request.context import Context
from request.state import State
from request.units import seconds_text
from views.export import TABLES
from views.nodes.better import better_of
from views.page import answer

TREE = """
SwitchName=l1 Nodes=n[0-1]
SwitchName=l2 Nodes=n[2-3]
SwitchName=l3 Nodes=n[4-5]
SwitchName=l4 Nodes=n[6-7]
SwitchName=s1 Switches=l1,l3
SwitchName=s2 Switches=l2,l4
"""
EIGHT = Job(nodes=8, tp=8, pp=2, ep=16, etp=1)
JOB = {"nodes": 8, "tp": 8, "pp": 2, "ep": 16, "etp": 1}


def seen(view: str, language: str = "en", **asked: object) -> str:
    state = State(**{**JOB, "lang": language, "view": view, **asked})
    return text_of(answer(state).picture)


# -- a tree of switches ----------------------------------------------------------------------------


def test_leaf_switches_of_one_spine_stand_together():
    """No leaf is crossed more, and the experts' optimizer and pipelines leave a spine less."""
    found = better_order(EIGHT.layout(), read_hosts(TREE))
    assert found.names == ("n0", "n1", "n4", "n5", "n2", "n3", "n6", "n7")
    assert found.key == found.key_before == (0, 0, 16, 32)
    (spine,) = found.upper
    assert (spine.kind, spine.key_before, spine.key) == ("switch-1", (0, 0, 16, 0), (0, 0, 0, 32))


def test_an_order_that_is_best_on_every_level_stays():
    hosts = read_hosts(TREE.replace("l1,l3", "l1,l2").replace("l2,l4", "l3,l4"))
    found = better_order(EIGHT.layout(), hosts)
    assert found.names == hosts.names
    assert found.upper[0].key == found.upper[0].key_before


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_spines_are_said_on_the_page(language):
    page = seen("hosts", language, hosts=TREE)
    told = RUN["order_above"][language].format(
        level=RUN["level_number"][language].format(
            level={"en": "switch", "zh": "交换机"}[language], number=2
        ),
        counts={"en": "dp 16 → 0, pp 0 → 32", "zh": "dp 16 → 0、pp 0 → 32"}[language],
    )
    assert told in page


def test_the_endpoint_gives_reasons_in_both_languages():
    found = json.loads(ordered(hosts=TREE, **JOB))
    assert found["upper"][0]["key"] == [0, 0, 0, 32]
    assert len(found["reasons"]) == len(found["reasons_zh"]) > 0
    assert not set(found["reasons"]) & set(found["reasons_zh"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_says_what_a_step_of_the_chosen_model_waits_over_racks(language):
    """Two racks by turns: both tp groups' nodes of a stage are apart until the order is mended."""
    racks = "host,rack\na,r0\nb,r1\nc,r0\nd,r1"
    asked = {"nodes": 4, "tp": 16, "pp": 2, "ep": 1, "etp": "", "hosts": racks}
    said = RUN["order_seconds"][language].split("{")[0]
    named = seen("hosts", language, model="llama3-70b", **asked)
    assert said in named
    assert re.search(r"[\d.]+ (ms|s) → [\d.]+ ms", named)
    assert RUN["column_seconds_after"][language] in named
    context = Context.of(State(**{**JOB, **asked, "model": "llama3-70b"}))
    found = better_of(context)
    parts = context.trained.estimate(context.layout).parts
    assert (found.cost_before, found.cost) == pytest.approx((parts["tp"], parts["pp"]))
    assert seconds_text(found.cost_before) in named
    assert said not in seen("hosts", language, **asked)


# -- tables and files -----------------------------------------------------------------------------

UNEVEN = {"nodes": 2, "gpus_per_node": 4, "tp": 2, "pp": 2, "hosts": "a slots=5\nb slots=3"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_tables_of_groups_say_hosts_and_devices_and_count_machines_as_they_are(language):
    """Tp group 2 is ranks 4 and 5: the last GPU of a, which has five, and the first of b."""
    state = replace(State(**UNEVEN), lang=language, view="groups")
    head, row = RUN["column_hosts"][language], '<td>2</td><td class="ranks">a: 4; b: 0</td>'
    tables = [answer(state).details, answer(replace(state, view="ranks", rank="5")).picture]
    tables += [answer(replace(state, view="ranks", ranks="4 5")).picture]
    assert [(head in table, row in table) for table in tables] == [(True, True)] * 3
    assert head not in answer(replace(state, hosts="")).details
    middle = replace(
        state, pp=4, view="ranks", rank="2"
    )  # in no embedding group: a row of one cell
    for text, columns in ((state.hosts, 5), ("", 4)):
        assert f'<td colspan="{columns}">' in answer(replace(middle, hosts=text)).picture


def test_files_of_groups_and_ranks_have_columns_of_host_and_device():
    context = Context.of(State(**UNEVEN))
    written = {name: write(context) for name, (_, _, write) in TABLES.items() if name != "trace"}
    assert "tp,2,2,4 5,a:4 b:0" in written["csv"].splitlines()
    found = check_document(written["json"])
    assert found["placement"]["host"] == list("aaaaabbb")
    assert found["placement"]["device"] == list("01234012")
    assert found["groups"]["tp"]["nodes_spanned"] == [1, 1, 2, 1]
    assert [line.split(",")[-2:] for line in written["ranks"].splitlines()[4:7]] == [
        ["a", "3"], ["a", "4"], ["b", "0"]
    ]  # fmt: skip
    found["placement"]["host"][4] = "b"
    with pytest.raises(LayoutError, match=r"nodes_spanned"):
        check_document(json.dumps(found))


def test_endpoints_of_groups_and_ranks_take_hosts():
    given = {**UNEVEN, "names": "tp"}
    assert json.loads(process_groups(**given))["placement"]["host"][5] == "b"
    card = json.loads(rank_card(rank=5, **UNEVEN))
    assert (card["host"], card["device"]) == ("b", 0)
    assert json.loads(rank_table(**UNEVEN))["placement"]["device"][4] == "4"


@pytest.mark.parametrize(
    "ask", [process_groups, rank_table, rank_card, node_audit, cluster_check, ordered, hosts_read]
)
def test_places_of_machines_that_nobody_names_are_refused_not_left_out(ask):
    job = {} if ask is hosts_read else JOB
    with pytest.raises(ValueError, match="no text names the job's hosts"):
        ask(racks=TREE, **job)


@pytest.mark.parametrize(
    ("language", "said"), [("en", "no text names"), ("zh", "没有给出作业的主机")]
)
def test_the_page_says_too_that_nobody_names_the_machines(language, said):
    assert said in seen("hosts", language, racks=TREE)
    assert said in seen("nodes", language, racks=TREE)
    assert said not in seen("memory", language, racks=TREE)


# -- levels of the audit ---------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_switches_are_columns_beside_node_and_nvlink_domain(language):
    plain, named = seen("nodes", language), seen("nodes", language, hosts=TREE)
    word = {"en": "switch, level 2", "zh": "第 2 级交换机"}[language]
    assert word in named
    assert word not in plain


def test_the_endpoint_audits_switches_too():
    found = json.loads(node_audit(hosts=TREE, **JOB))["ep"]
    assert {"8", "72", "node", "switch", "switch-1"} <= set(found)
    assert (found["node"]["crossing"], found["switch"]["crossing"]) == (4, 0)
    assert "node" not in json.loads(node_audit(**JOB))["ep"]


# -- the check script ------------------------------------------------------------------------------


def test_the_check_says_which_ranks_stand_on_another_host():
    made = Job(nodes=2, gpus_per_node=2).layout()
    placement = placement_of(read_hosts("a.lan slots=2\nb slots=2"), 4)
    scope: dict[str, object] = {"__name__": "check"}
    exec(check_script(made, placement=placement), scope)
    assert scope["HOSTS"] == [("a.lan", 2), ("b", 2)]
    differences = scope["host_differences"]
    assert differences([("a", 0), ("a", 1), ("b.x", 0), ("b.x", 1)], scope["HOSTS"]) == []
    swapped = [("b", 0), ("b", 1), ("a", 0), ("c", 0)]
    assert differences(swapped, scope["HOSTS"]) == [
        "ranks 0, 1 of a.lan found on b",
        "rank 2 of b found on a",
        "rank 3 of b found on c",
    ]


def test_the_page_and_the_endpoint_write_the_hosts_into_the_check():
    assert '("n7", 8),' in cluster_check(hosts=TREE, **JOB)
    assert "HOSTS = [] " in cluster_check(**JOB)
    assert '("n7", 8),' in seen("launch", hosts=TREE)


# -- machines that do not fit ----------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n[0-6]", ("7", "64")),  # one is missing
        ("n[0-8]", ("9", "64")),  # one too many
        ("\n".join(f"n{at} slots={8 if at else 4}" for at in range(8)), ("60", "64")),  # uneven
        ("n1 slots=8\nn1 slots=8", ("n1",)),  # twice
    ],
)
def test_machines_that_do_not_fit_are_answered_with_what_is_wrong(text, said, language):
    page = seen("hosts", language, hosts=text)
    for part in said:
        assert part in page
    assert "Traceback" not in page


def test_too_few_and_too_many_come_with_the_layout_that_fits():
    for text, nodes in (("n[0-6]", 7), ("n[0-8]", 9)):
        with pytest.raises(LayoutError) as refusal:
            placement_of(read_hosts(text), 64, 8)
        assert {"nodes": nodes, "gpus_per_node": 8} in refusal.value.alternatives


def test_the_page_offers_the_layout_of_the_machines_only_where_its_sizes_work():
    for text, is_offered in (("n[0-2]", False), ("n[0-3]", True), ("n[0-65535],m[0-65535]", False)):
        page = answer(State(view="hosts", tp=32, pp=1, gpus_per_node="16", hosts=text)).picture
        refused = select(page, "div.refusal")[0]
        assert bool(values(refused, "data-set")) == is_offered, text


def test_one_host_is_one():
    with pytest.raises(LayoutError, match="the host has 8"):
        placement_of(read_hosts("n0 slots=8"), 64)


# -- what Slurm says of a running job --------------------------------------------------------------


def test_the_distribution_of_a_step_numbers_the_ranks():
    """srun(1): cyclic deals one task a node in turn, plane so many; block fills."""
    job = "SLURM_JOB_NODELIST=n[0-1]\nSLURM_TASKS_PER_NODE=4(x2)\n"
    assert read_hosts(job + "SLURM_DISTRIBUTION=block:cyclic").ranks == ()
    cyclic = read_hosts(job + "SLURM_DISTRIBUTION=cyclic")
    assert cyclic.ranks == ("n0", "n1") * 4
    plane = read_hosts(job + "SLURM_DISTRIBUTION=plane\nSLURM_DIST_PLANESIZE=2")
    assert plane.ranks == ("n0", "n0", "n1", "n1") * 2
    for way in ("arbitrary", "plane"):
        with pytest.raises(LayoutError, match="not a choice of SLURM_DISTRIBUTION"):
            read_hosts(job + f"SLURM_DISTRIBUTION={way}")


def test_tasks_a_node_are_slots_where_nothing_says_more():
    text = "SLURM_NODELIST=n[0-1]\nSLURM_NTASKS_PER_NODE=8"
    assert read_hosts(text).slots == {"n0": 8, "n1": 8}


def test_addresses_of_all_machines_are_levels():
    text = (
        "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node\n"
        "n0: SLURM_TOPOLOGY_ADDR=s3.s0.n0\nn1: SLURM_TOPOLOGY_ADDR=s3.s1.n1"
    )
    hosts = read_hosts(text)
    assert hosts.racks == {"n0": "s0", "n1": "s1"}
    assert [*hosts.levels] == ["switch", "switch-1"]
