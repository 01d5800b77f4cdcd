"""A process that works out one heavy answer after the other: its module run by Python.

It is started when it is first asked, begins anew when it has grown, takes too long or dies, and
ends when it is asked nothing for a while, or with the server: its input is closed then.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[__name__.count(".")]
"""Where packages are found: the checkout, or the folder into which this was installed."""

LONGEST = 30.0
"""Seconds that an answer may take: several times what its budget allows on a slow machine."""

IDLE = 30.0
"""Seconds without a question after which the worker's memory is given back."""

GROWN = 300_000_000
"""Bytes of memory with which a worker is replaced; a new one has about 60 MB."""


M_MMAP_THRESHOLD = -3
LARGE = 1 << 20
"""Bytes of a piece of memory that glibc is to take from the system by itself, and give back."""


class LostError(Exception):
    """The worker went away, or was ended, before it answered."""


class Worker:
    """The server's end: functions are sent by name, with values; one thread asks at a time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], Any] = lambda: None
        self._in_use = threading.Lock()
        self._last_call = 0.0

    def ask(self, work: Callable[..., Any], values: Any, named: Any) -> Any:
        """What the function returns there; raises what it raises, or LostError."""
        with self._in_use:
            try:
                return self._call(work, values, named)
            finally:
                self._last_call = time.monotonic()
                _after(IDLE, self._rest)

    def _rest(self) -> None:
        with self._in_use:
            if time.monotonic() - self._last_call >= IDLE:
                self.close()

    def _call(self, work: Callable[..., Any], values: Any, named: Any) -> Any:
        process = self.process or self._started()
        limit = _after(LONGEST, process.kill)
        try:
            pickle.dump((work.__module__, work.__qualname__, values, named), process.stdin)
            process.stdin.flush()
            is_answer, result, is_last = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.close()
            raise LostError from error
        finally:
            limit.cancel()
        if is_last:
            self.close()
        if is_answer:
            return result
        raise result

    def close(self) -> None:
        """End the process; the next question starts another one."""
        self._end()
        self.process = None

    def _started(self) -> subprocess.Popen[bytes]:
        self.process = process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._end = weakref.finalize(self, _ended, process)
        return process


def _after(seconds: float, action: Callable[[], Any]) -> threading.Timer:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
    return timer


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()


def give_back_large_pieces() -> None:
    """Memory of a large answer goes back to the system when it is freed, where that is glibc.

    By itself glibc raises the size from which it does so to that of the largest piece that was ever
    freed, up to 32 MB: after a few answers of 20 MB their memory stays with the process, in pieces
    between others (mallopt(3), M_MMAP_THRESHOLD).
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


# -- in the process ------------------------------------------------------------------------------


def main() -> None:
    """Answer what is asked on the standard input until that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    give_back_large_pieces()
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever somebody prints is no answer
    is_last = False
    with contextlib.suppress(EOFError):
        while not is_last:
            module, name, values, named = pickle.load(questions)
            result: Any
            try:
                is_answer = True
                result = getattr(importlib.import_module(module), name)(*values, **named)
            except Exception as error:
                is_answer, result = False, error
            is_last = _memory() > GROWN
            pickle.dump((is_answer, result, is_last), answers)
            answers.flush()
            del result


def _memory() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    sizes = Path("/proc/self/statm")
    return int(sizes.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") if sizes.exists() else 0


if __name__ == "__main__":
    main()
