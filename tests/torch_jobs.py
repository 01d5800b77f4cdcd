"""Programs in processes that have imported torch, begun when all tests are known.

Most of their time they wait for each other: they run beside the tests that need no torch. A test
says what it needs by a mark, `torch_job(TorchJob(...))`, and finds how that ended in `ran`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from background import Background

FORKING = """
import json, os, sys

jobs = json.load(sys.stdin)  # who begins them does not wait for torch
import torch, torch.distributed, torch.distributed.nn.functional

def forked(work, *arguments):
    child = os.fork()
    if not child:
        status = 1
        try:
            work(*arguments)
            status = 0
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return child

def status_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def work(folder, job):
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = [folder, *job["words"]]
    exec(job["code"], {"__name__": "__main__", "forked": forked, "status_of": status_of})

for folder, job in jobs.items():
    status = status_of(forked(work, folder, job))
    with open(os.path.join(folder, "ending"), "w") as file:
        file.write(str(status))
    os.rename(file.name, os.path.join(folder, "status"))
"""
"""Runs one program after the other; theirs are `forked` and `status_of` for processes of their own,
and a folder, `sys.argv[0]`."""


@dataclass(frozen=True)
class TorchJob:
    """A program, its arguments, and the text files that it finds in its folder."""

    code: str
    words: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """One job that several tests need is run once."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Ran:
    """How a program ended, what it wrote, and its folder."""

    status: int
    out: str
    err: str
    folder: Path


def begin(jobs: Iterable[TorchJob], folder: Path) -> subprocess.Popen[str]:
    """Run the programs, each in its folder."""
    by_folder = {str(folder / job.name): job for job in jobs}
    for own, job in by_folder.items():
        Path(own).mkdir()
        for name, text in job.files.items():
            Path(own, name).write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    json.dump({own: asdict(job) for own, job in by_folder.items()}, process.stdin)
    process.stdin.close()
    return process


def ran(job: TorchJob, background: Background) -> Ran:
    """How a job ended; waits for it."""
    own = background.folder / job.name
    status = int(background.wait_for(own / "status"))
    return Ran(status, (own / "out").read_text(), (own / "err").read_text(), own)


def available() -> bool:
    return importlib.util.find_spec("torch") is not None
