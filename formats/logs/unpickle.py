"""Pickles of strangers, read by a machine that knows nothing but plain data.

Flight Recorder dumps are pickles, and a pickle is a program. Of the library's machine this takes
the instructions that build None, bool, int, float, str, list, tuple and dict with str keys, and no
other: it has no way to name a class, call a function or write to an object. The library's faster
Unpickler would let int keys that collide cost quadratic time, and one number take all memory.

Instructions as in CPython's Lib/pickletools.py (protocols 0 to 5). PyTorch writes protocol 2
(torch/csrc/jit/serialization/pickler.cpp).
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable
from typing import Any


class BadPickleError(ValueError):
    """What made the machine stop, e.g. ``"instruction 'c'"``."""


def plain(data: bytes) -> Any:
    """What a pickle of plain data holds.

    >>> import pickle
    >>> plain(pickle.dumps({"version": "2.10", "entries": [(1, None), (2.5, True)]}, protocol=2))
    {'version': '2.10', 'entries': [(1, None), (2.5, True)]}
    >>> plain(pickle.dumps(print))
    Traceback (most recent call last):
    formats.logs.unpickle.BadPickleError: instruction '\\x93'

    Errors: BadPickleError for every other instruction, and for what is damaged or cut off.
    """
    file = io.BytesIO(data)
    try:
        return _PlainUnpickler(file).load()
    except BadPickleError:
        raise
    except (pickle.UnpicklingError, struct.error, ArithmeticError, AttributeError, EOFError,
            LookupError, TypeError, ValueError) as error:  # fmt: skip
        is_cut = file.tell() == len(data) and data[-1:] != pickle.STOP
        what = "ends before its end" if is_cut else f"damaged near byte {file.tell()}"
        raise BadPickleError(what) from error


class _Instructions(dict[int, Callable[[Any], None]]):
    """What is done at each instruction that is taken."""

    def __missing__(self, code: int) -> Callable[[Any], None]:
        raise BadPickleError(f"instruction {chr(code)!r}")


class _PlainUnpickler(pickle._Unpickler):
    """The library's machine without most of its instructions; keys of a dict are texts."""

    def load_setitem(self) -> None:
        self._require_texts(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self) -> None:
        self._require_texts(self.stack[::2])
        super().load_setitems()

    def load_dict(self) -> None:
        self._require_texts(self.stack[::2])
        super().load_dict()

    def _require_texts(self, keys: list[Any]) -> None:
        if any(type(key) is not str for key in keys):
            raise BadPickleError("a key that is no text")

    dispatch = _Instructions(
        {
            code: pickle._Unpickler.dispatch[code]
            for code in b"N\x88\x89IJKLM\x8aFGVX\x8c\x8d"  # values
            b"]}l)t\x85\x86\x87(ae01."  # what holds them
            b"gpqrhj\x94\x80\x95"  # the memo and the frames
        }
    )
    dispatch |= {ord("s"): load_setitem, ord("u"): load_setitems, ord("d"): load_dict}
