"""Pickles of strangers, read by a machine that knows nothing but plain data.

Flight Recorder dumps are pickles, and a pickle is a program. This machine runs the few instructions
that build None, bool, int, float, str, list, tuple and dict with str keys, and refuses every other
one: it has no way to name a class, call a function or write to an object. The library's Unpickler
would do for the first; it would still let int keys that collide cost quadratic time.

Instructions as in CPython's Lib/pickletools.py (protocols 0 to 5). PyTorch writes protocol 2
(torch/csrc/jit/serialization/pickler.cpp).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

MOST_INSTRUCTIONS = 12_000_000
LONGEST_INTEGER = 16
"""Bytes: times in nanoseconds have 8."""
DEEPEST = 64
"""Marks open at once; a dump nests 6 deep."""


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

    Errors: BadPickleError for every other instruction, for what is cut off, and past the limits.
    """
    machine = _Machine(data)
    try:
        return machine.run()
    except BadPickleError:
        raise
    except (IndexError, KeyError, ValueError, TypeError, struct.error, OverflowError) as error:
        raise BadPickleError(f"damaged near byte {machine.at}") from error


class _Machine:
    """A stack, a memo and the place in the bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Run to STOP; the most frequent instructions are handled in the loop itself."""
        data, stack, memo = self.data, self.stack, self.memo
        push, size = stack.append, len(data)
        for _ in range(MOST_INSTRUCTIONS):
            at = self.at
            if at >= size:
                raise BadPickleError("ends before its end")
            code = data[at]
            if code == 0x68:  # BINGET
                push(memo[data[at + 1]])
                self.at = at + 2
            elif code == 0x71:  # BINPUT
                memo[data[at + 1]] = stack[-1]
                self.at = at + 2
            elif code == 0x6A:  # LONG_BINGET
                push(memo[int.from_bytes(data[at + 1 : at + 5], "little")])
                self.at = at + 5
            elif code == 0x4B:  # BININT1
                push(data[at + 1])
                self.at = at + 2
            elif code == 0x2E:  # STOP
                return self.result()
            else:
                self.at = at + 1
                if value := _VALUES.get(code):
                    push(value(self))
                elif step := _STEPS.get(code):
                    step(self)
                else:
                    raise BadPickleError(f"instruction {chr(code)!r}")
        raise BadPickleError("too many instructions")

    def result(self) -> Any:
        (value,) = self.stack
        if self.marks:
            raise BadPickleError("ends inside a list")
        return value

    def take(self, length: int) -> bytes:
        if self.at + length > len(self.data):
            raise BadPickleError("ends before its end")
        part = self.data[self.at : self.at + length]
        self.at += length
        return part

    def number(self, length: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(length), "little", signed=signed)

    def line(self, longest: int = 100_000) -> str:
        end = self.data.index(b"\n", self.at, self.at + 100_000)
        part = self.data[self.at : end]
        self.at = end + 1
        return part.decode("latin-1")[:longest]

    def to_mark(self) -> list[Any]:
        """Everything above the newest mark, taken off the stack with it."""
        return self.last(len(self.stack) - self.marks.pop())

    def last(self, count: int) -> list[Any]:
        """The last values, taken off the stack."""
        start = len(self.stack) - count
        if start < 0:
            raise BadPickleError("values are missing")
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def text(self, length_bytes: int) -> str:
        return self.take(self.number(length_bytes)).decode("utf-8", "surrogatepass")

    def long(self, length_bytes: int) -> int:
        length = self.number(length_bytes)
        if length > LONGEST_INTEGER:
            raise BadPickleError("an integer that is too long")
        return self.number(length, signed=True)

    def decimal(self) -> int | bool:
        text = self.line().rstrip("L")
        if len(text) > 2 * LONGEST_INTEGER:
            raise BadPickleError("an integer that is too long")
        return {"00": False, "01": True}.get(text, int(text))

    def mark(self) -> None:
        if len(self.marks) >= DEEPEST:
            raise BadPickleError("nested too deeply")
        self.marks.append(len(self.stack))

    def pop(self) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.stack.pop()

    def extend(self, values: list[Any]) -> None:
        """Put values into the list on top of the stack."""
        if type(self.stack[-1]) is not list:
            raise BadPickleError("items without a list")
        self.stack[-1].extend(values)

    def fill(self, values: list[Any]) -> None:
        """Put keys and values into the dict on top of the stack."""
        if type(self.stack[-1]) is not dict or len(values) % 2:
            raise BadPickleError("items without a dict")
        for key in values[::2]:
            if type(key) is not str:
                raise BadPickleError("a key that is no text")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def put(self, number: int) -> None:
        self.memo[number] = self.stack[-1]

    def filled(self) -> None:
        values = self.to_mark()
        self.stack.append({})
        self.fill(values)


_VALUES: dict[int, Callable[[_Machine], Any]] = {
    ord("N"): lambda m: None,
    0x88: lambda m: True,
    0x89: lambda m: False,
    ord("I"): _Machine.decimal,
    ord("L"): _Machine.decimal,
    ord("J"): lambda m: m.number(4, signed=True),
    ord("M"): lambda m: m.number(2),
    0x8A: lambda m: m.long(1),
    0x8B: lambda m: m.long(4),
    ord("F"): lambda m: float(m.line(40)),
    ord("G"): lambda m: struct.unpack(">d", m.take(8))[0],
    ord("V"): lambda m: m.line().encode("latin-1").decode("raw_unicode_escape"),
    ord("X"): lambda m: m.text(4),
    0x8C: lambda m: m.text(1),
    0x8D: lambda m: m.text(8),
    ord("]"): lambda m: [],
    ord("}"): lambda m: {},
    ord(")"): lambda m: (),
    ord("l"): _Machine.to_mark,
    ord("t"): lambda m: tuple(m.to_mark()),
    0x85: lambda m: tuple(m.last(1)),
    0x86: lambda m: tuple(m.last(2)),
    0x87: lambda m: tuple(m.last(3)),
    ord("g"): lambda m: m.memo[int(m.line(12))],
}
"""Instructions that put a value on the stack."""

_STEPS: dict[int, Callable[[_Machine], object]] = {
    0x80: lambda m: m.take(1),  # PROTO
    0x95: lambda m: m.take(8),  # FRAME
    ord("("): _Machine.mark,
    ord("0"): _Machine.pop,
    ord("1"): _Machine.to_mark,  # POP_MARK
    ord("a"): lambda m: m.extend([m.stack.pop()]),
    ord("e"): lambda m: m.extend(m.to_mark()),
    ord("d"): _Machine.filled,
    ord("s"): lambda m: m.fill(m.last(2)),
    ord("u"): lambda m: m.fill(m.to_mark()),
    ord("r"): lambda m: m.put(m.number(4)),
    ord("p"): lambda m: m.put(int(m.line(12))),
    0x94: lambda m: m.put(len(m.memo)),  # MEMOIZE
}
