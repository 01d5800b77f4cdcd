"""What runs beside the tests of a session from its first test on, in one process for all workers.

Workers wait for a page or for processes of a test for a third of their time: this fills it.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 300
"""Seconds after which what a test waits for counts as lost."""


class Background:
    """A process that writes files into a folder; who makes the folder begins it."""

    def __init__(self, folder: Path, begin: Callable[[Path], subprocess.Popen[str]]) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None
        try:
            folder.mkdir()
        except FileExistsError:
            return  # another worker has begun it
        self.process = begin(folder)
        (folder / "pid").write_text(str(self.process.pid))
        # What has ended is there until somebody who began it, or the system, hears of it.
        threading.Thread(target=self.process.wait, daemon=True).start()

    def _has_ended(self) -> bool:
        """Whoever began it, and whether or not that worker is still there."""
        try:
            os.kill(int((self.folder / "pid").read_text() or 0), 0)
        except ProcessLookupError:
            return True
        except FileNotFoundError:
            pass  # about to begin
        return False

    def wait_for(self, file: Path) -> str:
        """The text of a file that is written whole, once it is there."""
        given_up = time.monotonic() + PATIENCE
        while not file.exists():
            has_ended = self._has_ended()  # before a last look for the file
            assert not has_ended or file.exists(), "the process in the background ended"
            assert time.monotonic() < given_up, f"{file} is not there"
            time.sleep(0.02)
        return file.read_text(encoding="utf-8")

    def end(self) -> None:
        """Another worker may still wait for the last files."""
        if self.process:
            self.process.wait()
