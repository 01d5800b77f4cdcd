"""Programs in processes that have imported torch: each time it takes two seconds of a core."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

FORKING = """
import json, os, sys
import torch, torch.distributed, torch.distributed.nn.functional

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        sys.argv = ["-c", *job["words"]]
        status = 1
        try:
            exec(job["code"], {"__name__": "__main__"})
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
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """How a program ended, and what it wrote."""

    status: int
    out: str
    err: str


class TorchJobs:
    """One process with torch, from which the program of every test is forked."""

    def __init__(self, folder: Path) -> None:
        if importlib.util.find_spec("torch") is None:
            if os.environ.get("REQUIRE_TORCH") == "1":
                pytest.fail("torch is missing, and REQUIRE_TORCH=1")
            pytest.skip("torch is missing")
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", FORKING],
            env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, *words: str) -> Ran:
        """Run a program with these arguments to its end."""
        out, err = (self.folder / name for name in ("out", "err"))
        job = {"code": code, "words": words, "out": str(out), "err": str(err)}
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        return Ran(status, out.read_text(), err.read_text())

    def end(self) -> None:
        self.process.communicate()
