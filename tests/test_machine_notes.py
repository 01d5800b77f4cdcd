"""What is not sure of a machine: where the page says it, and answers that go as far as is known."""

from __future__ import annotations

import pytest

from request.answers.traffic import traffic_facts
from request.context import Context
from request.state import State
from training.clusters import CLUSTERS, row_type
from training.machine import Machine, units
from views.machine import doubts_html
from views.traffic.view import links_text, traffic_html

OWN = State(model="llama3-8b", tp=8, pp=1, cluster="own", capacity="80", nvlink="450", nic="400")


def test_traffic_of_a_machine_without_a_peak_is_answered_as_far_as_known():
    facts = traffic_facts(Context.of(OWN))
    assert facts["step_seconds"] is None
    assert "TFLOP/s" in facts["step_unknown"]
    assert facts["total_bytes"] > 0
    assert all(row["seconds"] >= 0 for row in facts["rows"])
    known = traffic_facts(Context.of(OWN.changed({"peak": "989", "hbm": "3350"})))
    assert known["step_unknown"] == ""
    assert known["step_seconds"] > 0
    assert known["rows"] == facts["rows"]


@pytest.mark.parametrize(("missing", "unit"), [("nvlink", "GB/s"), ("nic", "Gb/s")])
def test_traffic_without_the_speed_of_a_link_has_bytes_and_says_what_to_give(missing, unit):
    """Who sends what to whom needs no speed; seconds at link speed need that of their own links."""
    state = OWN.changed({"nodes": "2"})
    known = traffic_facts(Context.of(state))
    facts = traffic_facts(Context.of(state.changed({missing: ""})))
    (message,) = facts["links_unknown"]
    assert unit in message
    assert known["links_unknown"] == []
    by_bytes = [
        sorted(
            (row["kind"], row["purpose"], row["operation"], row["total_bytes"], row["across_bytes"])
            for row in each["rows"]
        )
        for each in (facts, known)
    ]
    assert by_bytes[0] == by_bytes[1]
    lacking = [row for row in facts["rows"] if row["lacks"]]
    assert {row["seconds"] for row in lacking} == {None}
    assert {row["kind"] for row in lacking} == ({"tp"} if missing == "nvlink" else {"dp-cp"})
    assert all(row["seconds"] > 0 for row in facts["rows"] if not row["lacks"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_view_of_an_unknown_network_draws_the_matrix_and_leads_to_the_input(language):
    shown = str(traffic_html(Context.of(State(cluster="a800", nodes=2, tp=8, pp=1, lang=language))))
    assert 'data-leads="field-nic"' in shown or 'data-control="nic"' in shown
    assert "matrix" in shown
    assert {"en": "then a network of unknown speed", "zh": "其外网络速率未知"}[language] in shown


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("dgx-h100", "NVLink 450 GB/s over 8 GPUs, then 50 GB/s a GPU, one way."),
        ("l40s", "PCIe 31 GB/s over 8 GPUs, then a network of unknown speed, one way."),
        ("mi300x", "links 448 GB/s over 8 GPUs (64 GB/s to any one), then 50 GB/s a GPU, one way."),
        ("ascend-910b", "links of unknown speed over 8 GPUs, then a network of unknown speed."),
    ],
)
def test_links_are_called_what_they_are_and_unknown_ones_say_so(cluster, said):
    assert links_text(CLUSTERS[cluster], "8 GPUs", "en").endswith(f": {said}")
    chinese = links_text(CLUSTERS[cluster], "8 个 GPU", "zh")
    assert ("未知" in chinese) == ("unknown" in said)


@pytest.mark.parametrize(
    ("cluster", "language", "said"),
    [
        ("dgx-b300", "en", "12,600 to 15,000"),
        ("dgx-b300", "zh", "12,600 至 15,000"),
        ("ascend-910b", "en", "Not known here: memory speed"),
        ("mi325x", "en", "the data sheet"),
        ("mi325x", "zh", "数据手册"),
    ],
)
def test_the_form_of_a_machine_says_what_is_not_sure(cluster, language, said):
    assert said in str(doubts_html(State(cluster=cluster, lang=language), language))
    assert str(doubts_html(State(cluster="dgx-h100", lang=language), language)) == ""


def test_every_number_of_a_machine_is_described_once():
    """The columns of rows and the inputs of one's own are those of the machine's attributes."""
    columns = [unit.column for several in units().values() for unit in several]
    assert len(columns) == len({*columns})
    row = row_type()(name="New", bf16_tflop_per_s=100.0, memory_mib=1024)
    assert {*columns} <= {*vars(row)}
    assert {*units()} <= {*Machine.__dataclass_fields__}
    assert CLUSTERS["dgx-h100"].maker == row.maker == "nvidia"
