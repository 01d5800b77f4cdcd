"""Imports Gradio without the type stubs that it writes for its own classes, and without a port."""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PORT = "GRADIO_SERVER_PORT"


@contextmanager
def without_collecting() -> Iterator[None]:
    """What is imported in here is not searched for garbage, then or later.

    All of it stays, and the collector goes through it again and again: 0.3 of the 2.3 s that
    importing the page takes.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


@contextmanager
def without_stubs() -> Iterator[None]:
    """A context in which importing Gradio, or components of ours, writes no stubs.

    It reads and parses the file of each of its classes twice, to write anew what stands there:
    2.2 s of the 5.7 that the app takes to start. Of a class without a file it makes none. It reads
    the port as a number as well, with a traceback where it is none: app.py says that in words.
    """
    whole = inspect.getfile

    def file_of(what: Any) -> str:
        if isinstance(what, type) and what.__module__.startswith(("gradio.", "views.")):
            raise OSError(f"no stub of {what.__name__} is wanted")
        return whole(what)

    port = os.environ.pop(PORT, None)
    inspect.getfile = file_of  # type: ignore[assignment]
    try:
        yield
    finally:
        inspect.getfile = whole
        if port is not None:
            os.environ[PORT] = port
