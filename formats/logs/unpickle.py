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
                _INSTRUCTIONS.get(code, _refuse)(self)
        raise BadPickleError("too many instructions")

    def result(self) -> Any:
        (value,) = self.stack
        if self.marks:
            raise BadPickleError("ends inside a list")
        return value

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise BadPickleError("ends before its end")
        part = self.data[self.at : self.at + length]
        self.at += length
        return part

    def number(self, length: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(length), "little", signed=signed)

    def line(self) -> str:
        end = self.data.index(b"\n", self.at, self.at + 100_000)
        part = self.data[self.at : end]
        self.at = end + 1
        return part.decode("latin-1")

    def to_mark(self) -> list[Any]:
        """Everything above the newest mark, taken off the stack with it."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def fill(self, values: list[Any]) -> None:
        """Put keys and values into the dict on top of the stack."""
        into = self.stack[-1]
        if type(into) is not dict or len(values) % 2:
            raise BadPickleError("items without a dict")
        for key in values[::2]:
            if type(key) is not str:
                raise BadPickleError("a key that is no text")
        into.update(zip(values[::2], values[1::2], strict=True))


def _refuse(machine: _Machine) -> None:
    code = chr(machine.data[machine.at - 1])
    raise BadPickleError(f"instruction {code!r}")


def _mark(machine: _Machine) -> None:
    if len(machine.marks) >= DEEPEST:
        raise BadPickleError("nested too deeply")
    machine.marks.append(len(machine.stack))


def _append(machine: _Machine, values: list[Any]) -> None:
    into = machine.stack[-1]
    if type(into) is not list:
        raise BadPickleError("items without a list")
    into.extend(values)


def _appends(machine: _Machine) -> None:
    values = machine.to_mark()
    _append(machine, values)


def _append_one(machine: _Machine) -> None:
    value = machine.stack.pop()
    _append(machine, [value])


def _setitems(machine: _Machine) -> None:
    values = machine.to_mark()
    machine.fill(values)


def _setitem(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.fill([key, value])


def _dict(machine: _Machine) -> None:
    values = machine.to_mark()
    machine.stack.append({})
    machine.fill(values)


def _tuple(count: int) -> Any:
    def pushed(machine: _Machine) -> None:
        values = machine.stack[-count:]
        if len(values) != count:
            raise BadPickleError("a tuple without its values")
        del machine.stack[-count:]
        machine.stack.append(tuple(values))

    return pushed


def _text(length_bytes: int) -> Any:
    def pushed(machine: _Machine) -> None:
        part = machine.take(machine.number(length_bytes))
        machine.stack.append(part.decode("utf-8", "surrogatepass"))

    return pushed


def _long(length_bytes: int) -> Any:
    def pushed(machine: _Machine) -> None:
        length = machine.number(length_bytes)
        if length > LONGEST_INTEGER:
            raise BadPickleError("an integer that is too long")
        machine.stack.append(machine.number(length, signed=True))

    return pushed


def _int_line(machine: _Machine) -> None:
    text = machine.line().rstrip("L")
    if len(text) > 2 * LONGEST_INTEGER:
        raise BadPickleError("an integer that is too long")
    machine.stack.append({"00": False, "01": True}.get(text, int(text)))


def _pop(machine: _Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


def _skip(count: int) -> Any:
    return lambda machine: machine.take(count)


def _push(value: Any) -> Any:
    return lambda machine: machine.stack.append(value)


def _get(machine: _Machine) -> None:
    machine.stack.append(machine.memo[int(machine.line()[:12])])


def _put(machine: _Machine) -> None:
    machine.memo[int(machine.line()[:12])] = machine.stack[-1]


def _long_put(machine: _Machine) -> None:
    machine.memo[machine.number(4)] = machine.stack[-1]


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _unicode_line(machine: _Machine) -> None:
    machine.stack.append(machine.line().encode("latin-1").decode("raw_unicode_escape"))


_INSTRUCTIONS: dict[int, Any] = {
    ord(code): instruction
    for code, instruction in {
        "\x80": _skip(1),  # PROTO
        "\x95": _skip(8),  # FRAME
        "(": _mark,
        "0": _pop,
        "1": lambda machine: machine.to_mark(),  # POP_MARK
        "N": _push(None),
        "\x88": _push(True),
        "\x89": _push(False),
        "I": _int_line,
        "L": _int_line,
        "J": lambda machine: machine.stack.append(machine.number(4, signed=True)),
        "M": lambda machine: machine.stack.append(machine.number(2)),
        "\x8a": _long(1),
        "\x8b": _long(4),
        "F": lambda machine: machine.stack.append(float(machine.line()[:40])),
        "G": lambda machine: machine.stack.append(struct.unpack(">d", machine.take(8))[0]),
        "V": _unicode_line,
        "X": _text(4),
        "\x8c": _text(1),
        "\x8d": _text(8),
        "]": lambda machine: machine.stack.append([]),
        "l": lambda machine: machine.stack.append(machine.to_mark()),
        "a": _append_one,
        "e": _appends,
        "}": lambda machine: machine.stack.append({}),
        "d": _dict,
        "s": _setitem,
        "u": _setitems,
        ")": _push(()),
        "t": lambda machine: machine.stack.append(tuple(machine.to_mark())),
        "\x85": _tuple(1),
        "\x86": _tuple(2),
        "\x87": _tuple(3),
        "q": lambda machine: None,  # BINPUT: in the loop
        "r": _long_put,
        "p": _put,
        "g": _get,
        "\x94": _memoize,
    }.items()
}
