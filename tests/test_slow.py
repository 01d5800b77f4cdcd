"""Who is slow: jobs whose cause is known, their summaries, and what is no summary."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import orjson
import pytest

from cli.command import run
from diagnosis.slow import JobCalls, Slowness, account_of, slowness_of, verdict_of
from diagnosis.slow.calls import few
from diagnosis.slow.trace import Collective, RankTrace, TraceGroup, TraceStep
from formats.slow import as_json, read_evidence, read_summary
from groups.errors import LayoutError
from groups.layout import Job
from texts.slow import SLOW, slow_sentence

LAYOUT = Job(nodes=4, gpus_per_node=2, tp=2, pp=2).layout()
GROUPS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "tp": lambda rank: (rank // 2 * 2, rank // 2 * 2 + 1),
    "dp": lambda rank: tuple(sorted((rank, rank ^ 2))),
    "pp": lambda rank: tuple(sorted((rank, rank ^ 4))),
    "world": lambda _: tuple(range(8)),  # norms of gradients
}
SKEW = 12_345.0
"""Microseconds that the clock of the second half of the ranks is ahead."""


class SlowJob:
    """Eight ranks of tp 2, dp 2, pp 2 that compute and wait: an event simulation in microseconds.

    work: by rank, more own time in a step. network: by group, more time of each of its calls.
    """

    def __init__(self, work: dict[int, float], network: dict[tuple[int, ...], float]) -> None:
        self.work, self.network, self.random = work, network, random.Random(7)
        self.now = [0.0] * 8
        self.calls: dict[int, list[Collective]] = {rank: [] for rank in range(8)}
        self.steps: dict[int, list[float]] = {rank: [] for rank in range(8)}
        for _ in range(4):
            self._step()
        self._note_steps()

    def _note_steps(self) -> None:
        for rank in range(8):
            self.steps[rank].append(self.now[rank])

    def _step(self) -> None:
        self._note_steps()
        for _ in range(3):
            for stage in (range(4), range(4, 8)):
                for rank in stage:
                    jitter = 50 * self.random.random()
                    self.now[rank] += 1000 + jitter + self.work.get(rank, 0) / 3
                self._together("tp", stage, 50)
                if 0 in stage:
                    for rank in stage:
                        self._sent(rank, rank + 4)
        self._together("dp", range(8), 200)
        self._together("world", range(8), 30)

    def _together(self, kind: str, ranks: range, long: float) -> None:
        for group in dict.fromkeys(GROUPS[kind](rank) for rank in ranks):
            took = long + self.network.get(group, 0) * (kind == "dp")
            end = max(self.now[rank] for rank in group) + took
            for rank in group:
                self._called(rank, Collective(kind, "allreduce", self.now[rank], 0), end)

    def _sent(self, one: int, other: int) -> None:
        end = max(self.now[one], self.now[other]) + 20
        self._called(one, Collective("pp", "send", self.now[one], 0, peer=other), end)
        self._called(other, Collective("pp", "recv", self.now[other], 0, peer=one), end)

    def _called(self, rank: int, call: Collective, end: float) -> None:
        self.calls[rank].append(call._replace(duration=end - call.start))
        self.now[rank] = end

    def trace(self, rank: int) -> RankTrace:
        ahead = rank // 4 * SKEW
        bounds = self.steps[rank]
        return RankTrace(
            file=f"{rank}.json",
            rank=rank,
            world=8,
            backend="nccl",
            running=None,
            groups={
                name: TraceGroup(name, f"mesh_{name}", name, of(rank))
                for name, of in GROUPS.items()
            },
            steps=tuple(
                TraceStep(at, start + ahead, end - start)
                for at, (start, end) in enumerate(pairwise(bounds))
            ),
            collectives=tuple(c._replace(start=c.start + ahead) for c in self.calls[rank]),
            computation=np.empty((0, 2)),
            kernels=0,
            events=1,
        )


def slowness(work: dict[int, float], network: dict[tuple[int, ...], float]) -> Slowness:
    job, calls = SlowJob(work, network), JobCalls()
    for rank in range(8):
        calls.add(job.trace(rank))
    return slowness_of(calls)


CAUSES = {
    "nobody": ({}, {}, "nobody", ()),
    "one GPU": ({3: 900}, {}, "rank", (3,)),
    "a GPU of the last stage": ({6: 900}, {}, "rank", (6,)),
    "a node": ({2: 900, 3: 900}, {}, "node", (2, 3)),
    "a stage": (dict.fromkeys((4, 5, 6, 7), 900), {}, "stage", (4, 5, 6, 7)),
    "one of every tp group": (dict.fromkeys((1, 3, 5, 7), 900), {}, "place", (1, 3, 5, 7)),
    "a network": ({}, {(1, 3): 2700}, "group", (1, 3)),
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_slow_ones_are_named_with_what_they_cost(name):
    work, network, kind, ranks = CAUSES[name]
    found = slowness(work, network)
    verdict = verdict_of(found, LAYOUT)
    assert (verdict.kind, verdict.ranks) == (kind, ranks)
    assert found.unmatched == 0
    assert found.clocks_us == pytest.approx(SKEW, abs=1)
    for one in found.ranks:  # all time is own, waiting or moving data
        moved = sum(kind.exposed_us - kind.waited_us for kind in one.kinds)
        assert sum(one.own_us) / 4 + one.lost_us + moved == pytest.approx(one.step_us)
    waited = sum(one.lost_us for one in found.ranks)
    assert sum(one.cost_us for one in found.ranks) == pytest.approx(waited)
    if kind != "nobody":
        assert verdict.excess_us == pytest.approx(max((*work.values(), *network.values())), rel=0.1)
        assert found.chain_to(ranks)[-1].rank in ranks
    assert verdict_of(read_summary(orjson.dumps({"slow": as_json(found)})), LAYOUT).ranks == ranks


def test_the_chain_leads_through_groups_to_where_it_began():
    chain = slowness({3: 900}, {}).chain_to([3])
    assert (chain[-1].rank, chain[-1].doing) == (3, "own")
    assert {hop.doing for hop in chain[:-1]} == {"waiting"}
    assert len(chain) > 1
    last = slowness({}, {(1, 3): 2700}).chain_to([1, 3], "transfer")[-1]
    assert (last.rank in (1, 3), last.doing, last.kind) == (True, "transfer", "dp")


def test_every_sentence_is_said_in_both_languages():
    said = {note.code for work, network, _, _ in CAUSES.values()
            for note in account_of(slowness(work, network), LAYOUT)}  # fmt: skip
    assert said < {*SLOW}
    found = slowness({3: 900}, {})
    for language, part in (("en", "GPU 3 slows"), ("zh", "GPU 3 拖慢")):
        notes = account_of(found, LAYOUT)
        assert len(notes) == 3
        assert slow_sentence(notes[0].code, notes[0].facts, language).startswith(part)


def test_a_span_count_is_bounded_by_joining_the_nearest():
    spans = np.array([[0, 1], [3, 4], [5, 6], [9, 10]], dtype=float)
    assert few(spans, 2).tolist() == [[0, 6], [9, 10]]


def test_the_command_says_three_sentences_of_a_summary(tmp_path):
    path = tmp_path / "summary.json"
    path.write_bytes(orjson.dumps({"slow": as_json(slowness({3: 900}, {}))}))
    out, err = io.StringIO(), io.StringIO()
    assert run(["slow", str(path)], io.StringIO(), out, err) == 0, err.getvalue()
    assert out.getvalue().startswith("GPU 3 slows the others: its own work takes ")
    out = io.StringIO()
    assert run(["slow", str(path), "--format", "json"], io.StringIO(), out, err) == 0
    document = orjson.loads(out.getvalue())
    assert document["verdict"]["ranks"] == [3]
    assert len(document["account"]) == 3


def test_what_is_no_summary_is_refused():
    good = as_json(slowness({}, {}))
    for content, code in (
        (b"{", "not-a-trace"),
        (b'{"slow": {}}', "not-a-summary"),
        (orjson.dumps({"slow": {**good, "version": 9}}), "not-a-summary"),
        (orjson.dumps({"slow": {**good, "ranks": [{"rank": "x"}]}}), "bad-summary"),
        (orjson.dumps({"slow": {**good, "groups": []}}), "not-a-summary"),
    ):
        with pytest.raises(LayoutError) as caught:
            read_evidence({"a": content})
        assert caught.value.code == code


def test_calls_without_a_peer_are_matched_in_pairs_only():
    """Megatron's batched sends and receives name no peer: of three members nothing is told."""
    for ranks, calls in (((0, 1), 8), ((0, 1, 2, 3), 0)):
        job = JobCalls()
        group = {"pp": TraceGroup("pp", "mesh_pp", "pp", ranks)}
        for rank in ranks:
            collectives = tuple(
                Collective("pp", "sendrecv", 10.0 * at, 5.0 + rank) for at in range(4)
            )
            job.add(replace(SlowJob({}, {}).trace(rank), groups=group, collectives=collectives))
        assert slowness_of(job).calls == calls
