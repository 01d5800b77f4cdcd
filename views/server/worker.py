"""A process that computes heavy answers one by one: this module, run by Python.

It is started when it is first asked, begins anew when it has grown, takes too long or dies, and
ends when it is asked nothing for a while, or with the server: its input is closed then, whatever it
is about to do. Its memory has a limit of the system's, past which a question is refused.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, TypeVar

from groups import LayoutError
from groups.kept import STORE

ROOT = Path(__file__).parents[__name__.count(".")]
"""The folder of the packages: the checkout, or where this was installed."""

LONGEST = 30.0
"""Seconds that an answer may take: several times what its budget allows on a slow machine."""

IDLE = 30.0
"""Seconds without a call after which the worker is ended to free its memory."""

WATCHED = 0.2
"""Seconds between two looks at the worker."""

GROWN = 300_000_000
"""Bytes of memory at which a worker is replaced; a new one has about 60 MB."""

MOST_MORE = 500_000_000
"""Bytes of address space that an answer may add to those of the worker at its start."""


M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
LARGE = 1 << 20
"""Bytes from which on glibc takes memory directly from the system, and returns it when freed."""


class LostError(LayoutError):
    """The refusal if the worker exits, or is ended, before it answers."""


def too_long() -> LostError:
    return LostError(
        "took-too-long",
        f"this took longer than the {LONGEST:.0f} seconds of one request: send less of it",
        facts={"seconds": int(LONGEST)},
    )


def too_much_memory() -> LayoutError:
    return LayoutError(
        "too-much-memory", "this takes more memory than one request may: send less of it"
    )


def ended_early() -> LostError:
    return LostError(
        "ended-early",
        "the process that works on large requests ended before it had answered, as one does that "
        "takes too much memory: send less, or try again",
    )


Result = TypeVar("Result")
Question = tuple[str, str, Iterable[object], Mapping[str, object]]
"""A call: module and name of a function, and its values."""


class Worker:
    """The server's end of the worker; calls are sent by name, one at a time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None
        self._in_use = threading.Lock()
        self._last_call = time.monotonic()
        self._until: float | None = None  # when the answer that is waited for is late
        self._is_late = False

    def ask(
        self, work: Callable[..., Result], values: Iterable[object], named: Mapping[str, object]
    ) -> Result:
        """The result of the function in the worker; raises what it raises, or LostError."""
        with self._in_use:
            try:
                return self._call(work, values, named)
            finally:
                self._last_call = time.monotonic()

    def look(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a process that is late with its answer, or that nobody has asked for long."""
        now = time.monotonic()
        if self._until is not None and now > self._until:
            self._is_late = True
            process.kill()
        elif now - self._last_call >= IDLE and self._in_use.acquire(blocking=False):
            try:
                if self.process is process:
                    self.close()
            finally:
                self._in_use.release()

    def _call(
        self, work: Callable[..., Result], values: Iterable[object], named: Mapping[str, object]
    ) -> Result:
        if self.process and self.process.poll() is not None:
            self.close()
        process = self.process or self._started()
        self._is_late, self._until = False, time.monotonic() + LONGEST
        try:
            requests, answers = _pipes(process)
            pickle.dump((work.__module__, work.__qualname__, values, named), requests)
            requests.flush()
            is_last, (is_answer, result) = pickle.load(answers), pickle.load(answers)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.close()
            raise (too_long() if self._is_late else ended_early()) from error
        except BaseException:  # such as no memory: half of a question or an answer is in the pipes
            self.close()
            raise
        finally:
            self._until = None
        if is_last:
            self.close()
        if is_answer:
            return result
        try:
            raise result
        finally:
            del result  # it holds this frame, with all that was sent

    def close(self) -> None:
        """Ends the process; the next call starts another one."""
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
        threading.Thread(target=_watch, args=(weakref.ref(self), process), daemon=True).start()
        return process


def _watch(worker: weakref.ref[Worker], process: subprocess.Popen[bytes]) -> None:
    """Looks after a process until it ends.

    One thread, from the start on: where the server has no memory left for a thread of its own for
    each answer, nobody would end the one that comes too late.
    """
    while process.poll() is None and (one := worker()) is not None:
        one.look(process)
        del one
        time.sleep(WATCHED)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to and from the process."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in _pipes(process):
        with contextlib.suppress(OSError):
            pipe.close()


def give_back_large_pieces() -> None:
    """Makes glibc return memory of large answers to the system when it is freed.

    By itself glibc raises the size from which it does so to that of the largest piece that was ever
    freed, up to 32 MB: after a few answers of 20 MB their memory stays with the process, in pieces
    between others (mallopt(3), M_MMAP_THRESHOLD).
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


# -- in the process ------------------------------------------------------------------------------


def main() -> None:
    """Answers the calls on standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    give_back_large_pieces()
    _limit_memory()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever somebody prints is no answer
    questions: queue.SimpleQueue[Question] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, questions), daemon=True).start()
    is_last = False
    while not is_last:
        module, name, values, named = questions.get()
        try:
            answer = _answered(module, name, values, named)
        except MemoryError:
            answer = pickle.dumps((False, too_much_memory()))
        is_last = _memory() > GROWN
        pickle.dump(is_last, answers)
        answers.write(answer)
        answers.flush()
        del answer, values, named


def _answered(
    module: str, name: str, values: Iterable[object], named: Mapping[str, object]
) -> bytes:
    """Whether the function returned, and its result, or the exception other than MemoryError."""
    try:
        result = getattr(importlib.import_module(module), name)(*values, **named)
        return pickle.dumps((True, result))
    except MemoryError:
        raise
    except Exception as error:
        return pickle.dumps((False, error))
    finally:
        STORE.weigh()


def _listen(stream: IO[bytes], questions: queue.SimpleQueue[Question]) -> None:
    """Passes on calls; ends the process if the server is gone, for nobody waits for the answer."""
    try:
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError, MemoryError):
            while True:
                questions.put(pickle.load(stream))
    finally:  # also where a question is too large for the memory
        os._exit(0)


def _limit_memory() -> None:
    """Limits the address space to today's and `MOST_MORE`, if the system supports it."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)  # each thread would take addresses for its own
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        import numpy  # noqa: F401  # it takes addresses for each core, most of which nobody uses

        if begun := _memory(0):
            most = begun + MOST_MORE
            resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _memory(place: int = 1) -> int:
    """Bytes of this process in memory, or (place 0) of its address space; 0 if unknown."""
    sizes = Path("/proc/self/statm")
    pages = sizes.read_text().split()[place] if sizes.exists() else 0
    return int(pages) * os.sysconf("SC_PAGESIZE")


if __name__ == "__main__":
    main()
