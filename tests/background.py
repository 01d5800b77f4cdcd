"""What runs beside the tests of a session from its first test on, in one process for all workers.

Workers wait for a page or for processes of a test for a third of their time: this fills it.
"""

from __future__ import annotations

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
        threading.Thread(target=self._tell_end, args=[self.process], daemon=True).start()

    def _tell_end(self, process: subprocess.Popen[str]) -> None:
        """For the other workers: only who began a process hears of its end."""
        process.wait()
        (self.folder / "ended").touch()

    def wait_for(self, file: Path) -> str:
        """The text of a file that is written whole, once it is there."""
        given_up = time.monotonic() + PATIENCE
        while not file.exists():
            has_ended = (self.folder / "ended").exists()  # before a last look for the file
            assert not has_ended or file.exists(), "the process in the background ended"
            assert time.monotonic() < given_up, f"{file} is not there"
            time.sleep(0.02)
        return file.read_text(encoding="utf-8")

    def end(self) -> None:
        """Another worker may still wait for the last files."""
        if self.process:
            self.process.wait()
