"""The verdict of a hang as JSON values: the page's sentences, and the facts of each."""

from __future__ import annotations

from collections.abc import Mapping

from descriptions import RUN, hang_sentence
from diagnosis.hang.case import Case
from diagnosis.hang.model import Hop
from diagnosis.hang.steps import next_steps
from groups.notes import Note


def verdict_of(case: Case, language: str = "en") -> dict[str, object]:
    """The findings in the evidence beside the layout; docs/schema.md describes the fields.

    >>> from formats.logs import read_log
    >>> from diagnosis.hang.case import case_of
    >>> from groups.layout import Job
    >>> log = read_log("missing ranks: [3]")
    >>> said = verdict_of(case_of(log, Job().layout()))
    >>> said["missing"], said["account"], said["contradicts"]
    ([3], ['GPU 3 (node 0, device 3) did not arrive: the text says so.'], None)
    """
    log, diagnosis = case.log, case.log.diagnosis
    note = case.contradiction
    nothing = RUN["hang_no_verdict" if log.ranks else "hang_nothing"][language]
    account = [sentence_of(one, language) for one in case.account] or [nothing]
    return {
        "missing": list(log.missing),
        "suspects": list(diagnosis.suspects),
        "reason": diagnosis.reason,
        "account": [*account, *(sentence_of(one, language) for one in log.notes)],
        "facts": [{"code": one.code, **one.facts} for one in (*case.account, *log.notes)],
        "chain": [_hop(hop) for hop in diagnosis.hops],
        "contradicts": None if note is None else sentence_of(note, language),
        "fits": [dict(change) for change in case.fitting],
        "next": [
            {"what": sentence_of(step.note, language), "command": step.command}
            for step in next_steps(case)
        ],
        "group_ranks": list(log.group_ranks),
        "log_groups": dict(log.groups),
    }


def sentence_of(note: Note, language: str) -> str:
    return hang_sentence(note.code, note.facts, language)


def _hop(hop: Hop) -> Mapping[str, object]:
    waits = [
        {
            "kind": wait.group.kind,
            "group": wait.group.key,
            "op": wait.op,
            "seq": wait.seq,
            "waiting": list(wait.waiting),
            "absent": list(wait.absent),
            "unseen": list(wait.unknown),
        }
        for wait in hop.waits
    ]
    return {"through": list(hop.through), "ranks": list(hop.ranks), "waits": waits}
