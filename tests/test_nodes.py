"""The Nodes view: which groups leave a node, counted a second time from the lists of groups."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from markup import only, select, table, text_of, values, written
from pages import LAYOUTS, groups_of, shown, spans
from selectolax.lexbor import LexborNode

from descriptions import PAGE, counted
from groups.audit import DOMAINS
from request.answers.estimate.words import step_text
from request.context import Context
from request.link import published
from request.resolve import resolve
from request.state import State
from views.all import ENDPOINTS, SECTIONS, VIEWS
from views.nodes.view import nodes_summary
from views.regions import Shown, picture_html, subs_html


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_audit_counts_what_crosses_as_the_lists_of_groups_do(name):
    layout = resolve(LAYOUTS[name])
    groups = groups_of(layout)
    rows = table(shown(LAYOUTS[name], "nodes"), "audit")
    domains = sorted({layout.gpus_per_node, *DOMAINS})
    listed = []
    for kinds, size, *cells in rows:
        assert len(cells) == len(domains)
        for kind in kinds.split():
            listed.append(kind)
            longest = max(map(len, groups[kind]))
            assert size == f"{longest:,} {counted(len(groups[kind]), 'group', 'en')}"
            for domain, cell in zip(domains, cells):
                found = spans(groups[kind], domain)
                crossing = sum(nodes > 1 for nodes in found)
                words = "audit_all" if crossing == len(found) else "audit_some"
                said = PAGE[words if crossing else "audit_stay"]["en"].format(
                    crossing=f"{crossing:,}", groups=f"{len(found):,}", most=f"{max(found):,}"
                )
                assert cell == said, (kind, domain)
    assert sorted(listed) == sorted(groups)
    together = {kind: kinds for kinds, *_ in rows for kind in kinds.split()}
    for kind, other in itertools.combinations(groups, 2):
        if together[kind] == together[other]:
            assert sorted(groups[kind]) == sorted(groups[other])


def folded(node: LexborNode) -> bool:
    return "folded" in (node.attributes.get("class") or "").split()


@pytest.mark.parametrize("view", ["nodes", "ranks"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_names_that_a_dense_job_does_not_need_are_folded(view, language):
    picture = shown(State(), view, language)
    assert PAGE["all_names"][language].replace("'", "&#39;") in picture
    heads = select(picture, "tr:not([class]) > th[scope=row], tr.folded > th[scope=row]")
    chips = [select(head, ".chip") for head in heads]
    kept = [written(chip) for row in chips for chip in row if not folded(chip)]
    assert kept == ["tp", "dp", "pp"]
    assert [folded(head.parent) for head in heads] == [all(map(folded, row)) for row in chips]
    assert {"tp-cp", "etp", "tp-ep-pp", "intra-dist-opt"} <= {
        written(chip) for row in chips for chip in row
    }


def test_a_name_is_not_folded_where_somebody_asked_for_it_or_a_layer_waits_for_it():
    heads = select(shown(State(more=("embd",)), "nodes"), "th[scope=row]:not(:has(.folded))")
    assert any(written(chip) == "embd" for head in heads for chip in select(head, ".chip"))
    picture = shown(State(nodes=4, tp=16, pp=2), "nodes")
    first = "tr:not([class]) > th[scope=row] > .chip.t-tp:not(.folded):first-child"
    assert written(only(picture, first)) == "tp"
    assert written(only(picture, f"{first} + .chip")) == "tp-cp"


LATENCY_BOUND = {"tp", "ep", "etp", "tp-ep"}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_only_groups_that_a_layer_waits_for_are_warned_of_and_only_where_they_leave(name, language):
    layout = resolve(LAYOUTS[name])
    groups = groups_of(layout)
    picture = shown(LAYOUTS[name], "nodes", language)
    items = [text_of(item) for item in select(picture, "li:not([class])")]
    warned = {}
    for item in items:
        kinds, _ = re.split(r"[:：]", item, maxsplit=1)  # noqa: RUF001
        warned |= dict.fromkeys(kinds.split(" = "), item)
    waited_for = LATENCY_BOUND & set(groups)
    slow = {kind for kind in waited_for if max(spans(groups[kind], layout.gpus_per_node)) > 1}
    assert slow <= set(warned)
    for kind, item in warned.items():
        same = [other for other in slow if sorted(groups[other]) == sorted(groups[kind])]
        assert same, f"{kind} is warned of"
        reached = spans(groups[kind], layout.gpus_per_node)
        assert counted(max(reached), "node", language) in item
        fits = [d for d in (*DOMAINS, layout.gpus_per_node) if max(spans(groups[kind], d)) == 1]
        numbers = {int(number) for number in re.findall(r"\d+", item.replace(",", ""))}
        assert not fits or min(fits) in numbers
    assert (PAGE["audit_fine"][language].format(names="tp, ep, etp") in picture) == (not slow)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_cp_is_waited_for_where_keys_are_gathered_or_exchanged(language):
    """Before attention; a ring sends keys and values behind it."""
    layout = State(nodes=2, tp=2, cp=8, pp=1)  # cp leaves the node, tp does not
    for algorithm, is_waited in (("", False), ("p2p", False), ("all_gather", True), ("a2a", True)):
        picture = shown(layout.changed({"cp_algorithm": algorithm}), "nodes", language)
        fine = PAGE["audit_fine"][language].format(names="tp, ep, etp")
        assert ("<li>cp" in picture) == is_waited
        assert (fine in picture) == (not is_waited)
    inside = shown(State(nodes=2, tp=1, cp=8, pp=1, cp_algorithm="a2a"), "nodes", language)
    assert PAGE["audit_fine"][language].format(names="tp, cp, ep, etp") in inside


@pytest.mark.parametrize("language", ["en", "zh"])
def test_groups_that_leave_their_node_are_told_by_what_they_cost(language):
    """DeepSeek-V3 spreads experts over nodes on purpose (arXiv:2412.19437 section 2.1.2)."""
    context = Context.of(State(**published("deepseek-v3")).changed({"lang": language}))
    said = nodes_summary(context).replace("\xa0", " ")
    step = context.trained.estimate(context.layout)
    assert f"{step.parts['ep'] * 1000:.0f} ms" in said
    assert step_text(step) in said
    assert "DeepSeek-V3" in said
    model = context.trained.model
    routing = PAGE["audit_routing"][language]
    assert routing.format(chosen=model.router_group_top_k, groups=model.router_groups) in said
    for words in ("belongs", "should", "\N{CJK UNIFIED IDEOGRAPH-5E94}该"):
        assert words not in said


@pytest.mark.parametrize("language", ["en", "zh"])
def test_of_a_job_that_cannot_be_timed_only_that_a_layer_waits_is_told(language):
    """Seven heads are not cut by tp 16."""
    said = nodes_summary(Context.of(State(tp=16, pp=1, heads="7", lang=language)))
    assert PAGE["audit_waits"][language] in said


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_row_leads_to_the_group_on_most_nodes_and_the_picture_names_its_kind(name):
    layout = resolve(LAYOUTS[name])
    groups = groups_of(layout)
    picture = shown(LAYOUTS[name], "nodes")
    rows = table(picture, "audit")
    leads = values(picture, "data-set", "button.opener")
    assert len(leads) == len(rows)
    for (kinds, *_), changes in zip(rows, leads):
        kind = kinds.split()[0]
        widest = max(spans(groups[kind], layout.gpus_per_node))
        (own,) = (group for group in groups[kind] if int(changes["rank"]) in group)
        assert spans([own], layout.gpus_per_node) == [widest]
        shown_kinds = Context.of(replace(LAYOUTS[name], **changes)).visible
        assert {one.name for one in shown_kinds} & set(kinds.split())


MACHINES = "gpu-00\ngpu-01"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("hosts", ["", MACHINES])
def test_a_link_of_hosts_opens_the_nodes_at_their_machines(language, hosts):
    both = {}
    for view in ("nodes", "hosts"):
        state = State(view=view, lang=language, hosts=hosts)
        shown = Shown(state, Context.of(state))
        both[view] = str(picture_html(shown))
        (current,) = select(str(subs_html(shown)), "[aria-current]")
        assert text_of(current) == VIEWS["nodes"].label[language]
    for part in (
        ".nodes-map.wide",
        ".picture > .audit",
        "[data-field=hosts]",
        "[data-field=measures]",
    ):
        assert len(select(both["nodes"], part)) >= 1, part
        assert len(select(both["nodes"], part)) == len(select(both["hosts"], part)), part
    is_open = [only(page, ".machines-of").attributes.get("open", "no") for page in both.values()]
    assert is_open == ["no" if not hosts else None, None]
    assert both["hosts"].index("machines-of") < both["hosts"].index("nodes-map")
    assert both["nodes"].index("machines-of") > both["nodes"].index("nodes-map")
    assert "hosts" not in SECTIONS["layout"]


def test_commands_and_endpoints_of_hosts_are_those_of_nodes():
    assert {"audit", "order", "slow"} <= {*VIEWS["nodes"].commands}
    assert {"node_audit", "read_hosts", "better_order", "slow_groups"} <= {*ENDPOINTS}
