"""The endpoint for slow steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from descriptions import slow_note, slow_sentence
from groups.layout import Layout, job_fields

from ...endpoint import endpoint, require_text
from .files import read_bounded
from .lasts import last_rows
from .parts import measured_parts
from .seen import SeenSlow


@endpoint
def slow_steps(layout: Layout, traces: str = "") -> str:
    """Who makes the others wait in a step, by traces, as JSON in the fields of docs/schema.md.

    Args:
        traces: a summary as "python -m groups trace FOLDER" writes it, or a text that "slow" reads.
        (the layout)
    """
    text = require_text("traces", traces)
    slow = read_bounded({"traces": text.encode("utf-8", "replace")}, layout)
    return json.dumps(slow_document(SeenSlow(slow, layout, None)))


def slow_document(seen: SeenSlow) -> dict[str, Any]:
    """The findings in traces as JSON values: the sentences, in English, and their facts."""
    slow = seen.slow
    return {
        "verdict": vars(seen.verdict),
        "account": [slow_sentence(one.code, one.facts, "en") for one in seen.account],
        "facts": [{"code": one.code, **one.facts} for one in seen.account],
        "next": [
            {"what": slow_sentence(step.note.code, step.note.facts, "en"), "command": step.command}
            for step in seen.next_steps
        ],
        "notes": [slow_note(note, "en") for note in slow.notes],
        "ran": _ran(seen),
        "step_us": slow.step_us,
        "steps": slow.steps,
        "ranks": [
            {"rank": one.rank, "host": one.host, "lost_us": one.lost_us, "cost_us": one.cost_us}
            for one in slow.ranks
        ],
        "lasts": [
            {**row._asdict(), "group": row.group.title, "members": row.group.ranks}
            for row in last_rows(slow)
        ],
        "chain": [
            {**vars(link), "group": slow.groups[link.group].title,
             "members": slow.groups[link.group].ranks}
            for link in seen.chain
        ],
        "parts": [vars(part) for part in measured_parts(slow).values()],
    }  # fmt: skip


def _ran(seen: SeenSlow) -> Mapping[str, object] | None:
    """The layout that ran; null if the traces do not show it."""
    if seen.ran is None:
        return None
    mesh, same = str(seen.ran.mesh), str(seen.ran.mesh) == str(seen.screen.mesh)
    return {"mesh": mesh, "same": same, "job": job_fields(seen.ran.explicit_job)}
