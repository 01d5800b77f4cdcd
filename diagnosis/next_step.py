"""One thing to do about what some evidence says, with the command that does it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from groups.notes import Note

STACKS = (
    "for p in $(grep -lzxs RANK={rank} /proc/[0-9]*/environ | cut -d/ -f3); "
    "do py-spy {verb} --pid $p; done"
)
"""Stacks of a rank's process, by the variable that every launcher of PyTorch sets; py-spy 0.4
(benfred/py-spy)."""


@dataclass(frozen=True)
class NextStep:
    """One thing to do: the sentence's facts, and the command; empty where there is none."""

    note: Note
    command: str = ""


def at(host: object, script: str) -> str:
    """The script on a host; every word of the host's name is quoted, for it is evidence.

    >>> at("gpu-3", "uptime"), at("a; b", "uptime"), at(None, "uptime")
    ('ssh -- gpu-3 uptime', "ssh -- 'a; b' uptime", 'uptime')
    """
    return script if host is None else shlex.join(["ssh", "--", str(host), script])
