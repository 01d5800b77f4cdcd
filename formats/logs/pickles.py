"""Plain data of a pickle: None, bool, int, float, str, list, tuple, and dict with str keys.

Flight Recorder dumps are pickles, and a pickle is a program. This is a machine for those of its
instructions that build plain data; it has none that names a class, calls a function or writes to an
object, and it counts the memory that each takes. Neither Unpickler of the library could be stopped
in time: int keys that collide cost it quadratic time, one number makes its memo as long as it says,
and a file of `]` becomes a hundred times as large. The one in Python takes five times as long.

Instructions as in CPython's Lib/pickletools.py (protocols 0 to 5). PyTorch writes protocol 2
(torch/csrc/jit/serialization/pickler.cpp).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from groups.errors import LayoutError

from ..errors import refusal
from .bounds import Allowance

BINGET, BININT1, LIST, APPEND, STOP = b"hK]a."

SLOT, SMALL, NUMBER, APPENDED, HOLDER, ENTRY, ODD = 12, 28, 48, 64, 88, 176, 200
"""Bytes that an instruction counts for, about what it takes at most: one that pushes what there is,
one of a single byte, a number or a text, a place in a list, a list, the entries of a dict, and what
no writer uses."""

LONGEST_NUMBER = 4300
"""Digits of a number written as text: the limit of Python's own (sys.int_info)."""


def plain(data: bytes, allowance: Allowance | None = None) -> object:
    """The plain data of a pickle.

    >>> import pickle
    >>> plain(pickle.dumps({"version": "2.10", "entries": [(1, None), (2.5, True)]}, protocol=2))
    {'version': '2.10', 'entries': [(1, None), (2.5, True)]}
    >>> plain(pickle.dumps(print))
    Traceback (most recent call last):
    groups.errors.LayoutError: its instruction '\\x93' builds no plain data

    Errors: LayoutError for every other instruction, for what is damaged or cut off, and for more
    than the allowance has left.
    """
    machine = _Machine(data, allowance or Allowance())
    while not machine.has_ended:
        machine.run()
    return machine.value


class _Machine:
    """A pickle being read: the values so far, the memo, and the marks."""

    def __init__(self, data: bytes, allowance: Allowance) -> None:
        self.data, self.allowance = data, allowance
        self.stack: list[object] = []
        self.memo: list[object] = []
        self.marks: list[int] = []
        self.at = 0
        self.has_ended = False
        self.value: object = None
        self.fault: LayoutError | None = None

    def run(self) -> None:
        """Some instructions, or all that there are; then it is looked at what there is so far."""
        begun, limit = self.at, self.allowance.bounds.held
        most = self.allowance.bounds.slack
        counted = most - self._built(most)
        self.allowance.unpack(counted, self.at - begun)
        if self.fault:
            raise self.fault
        lists = (len(value) for value in self.stack if type(value) is list)
        held = max(len(self.stack), len(self.memo) // 4, *lists)
        if held > limit:
            raise refusal("dump-long", "log", count=held, limit=limit)

    def _built(self, left: int) -> int:
        """Read on; what is left of so many bytes, a little less than 0 where there is more."""
        data, stack, memo, marks = self.data, self.stack, self.memo, self.marks
        push, at = stack.append, self.at
        try:
            while left >= 0:
                code = data[at]
                if code == BINGET:
                    push(memo[data[at + 1]])
                    at += 2
                    left -= SLOT
                elif code == BININT1:
                    push(data[at + 1])
                    at += 2
                    left -= SLOT
                elif code == LIST:
                    push([])
                    at += 1
                    left -= HOLDER
                elif code == APPEND:
                    at += 1
                    value = stack.pop()
                    _list(stack[-1]).append(value)
                    left -= APPENDED
                elif code == STOP:
                    self.value, self.has_ended = stack.pop(), True
                    break
                else:
                    step, price = STEPS[code]
                    begun = at = at + 1
                    at = step(data, at, stack, marks, memo)
                    left -= price + 2 * (at - begun)
        except LayoutError as error:
            self.fault = error
        except (struct.error, ArithmeticError, AttributeError, EOFError, LookupError, TypeError,
                ValueError) as error:  # fmt: skip
            self.fault = self._damage(error, at)
        self.at = at
        return left

    def _damage(self, error: Exception, at: int) -> LayoutError:
        has_ended = isinstance(error, (EOFError, struct.error)) or at >= len(self.data) - 1
        if has_ended and self.data[-1] != STOP:
            return refusal("dump-cut", "log", byte=len(self.data))
        return refusal("dump-damaged", "log", byte=at)


def _put(stack: list[object], memo: list[object], place: int) -> None:
    """Adds the last value to the memo; writers number its entries from 0."""
    if place == len(memo):
        memo.append(stack[-1])
    else:
        memo[place] = stack[-1]


# -- the instructions ----------------------------------------------------------------------------

Step = Callable[[bytes, int, list[object], list[int], list[object]], int]
"""What an instruction does with the pickle, the place of its argument there, the stack, the marks
in the stack and the memo; where the next instruction stands."""


def _end(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise EOFError
    return at + size


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.find(b"\n", at)
    if end < 0:
        raise EOFError
    return data[at:end], end + 1


def _pushes(value: object) -> Step:
    def step(
        data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
    ) -> int:
        stack.append(value)
        return at

    return step


def _makes_dict(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    stack.append({})
    return at


def _unpacks(form: str) -> Step:
    """A number of a fixed size, as `struct` names it."""
    packed = struct.Struct(form)

    def step(
        data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
    ) -> int:
        stack.append(packed.unpack_from(data, at)[0])
        return at + packed.size

    return step


def _long(data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]) -> int:
    end = _end(data, at + 1, data[at])
    stack.append(int.from_bytes(data[at + 1 : end], "little", signed=True))
    return end


def _texts(form: str) -> Step:
    """UTF-8 after its length, a number of this form."""
    packed = struct.Struct(form)

    def step(
        data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
    ) -> int:
        begin = at + packed.size
        end = _end(data, begin, packed.unpack_from(data, at)[0])
        stack.append(str(data[begin:end], "utf-8", "surrogatepass"))
        return end

    return step


def _written(read: Callable[[bytes], object], longest: int | None = None) -> Step:
    """A value in a line of its own (protocol 0)."""

    def step(
        data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
    ) -> int:
        line, end = _line(data, at)
        if longest is not None and len(line) > longest:
            raise ValueError
        stack.append(read(line))
        return end

    return step


def _number(line: bytes) -> int:
    """A number as protocol 0 writes it; booleans have a leading zero."""
    return line == b"01" if line in (b"00", b"01") else int(line.removesuffix(b"L"), 0)


def _begins(data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]) -> int:
    marks.append(len(stack))
    return at


def _since_mark(stack: list[object], marks: list[int]) -> list[object]:
    begin = marks.pop()
    if begin > len(stack):
        raise IndexError
    items = stack[begin:]
    del stack[begin:]
    return items


def _gathers(made: Callable[[list[object]], object]) -> Step:
    """An instruction that makes a value of everything above the last mark."""

    def step(
        data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
    ) -> int:
        stack.append(made(_since_mark(stack, marks)))
        return at

    return step


def _tuple_of(count: int) -> Step:
    def step(
        data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
    ) -> int:
        if count > len(stack):
            raise IndexError
        stack[-count:] = [tuple(stack[-count:])]
        return at

    return step


def _list(value: object) -> list[object]:
    """The list that a file adds to. Errors: TypeError for another value."""
    if type(value) is not list:
        raise TypeError
    return value


def _extends(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    items = _since_mark(stack, marks)
    _list(stack[-1]).extend(items)
    return at


def _sets(data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]) -> int:
    items = stack[-2:]
    del stack[-2:]
    _set(stack[-1], items)
    return at


def _updates(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    items = _since_mark(stack, marks)
    _set(stack[-1], items)
    return at


def _set(target: object, items: list[object]) -> object:
    """Give a dict keys and values, which stand in turn. Keys of other types can be made to
    collide."""
    keys, values = items[::2], items[1::2]
    if not all(isinstance(key, str) for key in keys):
        raise refusal("dump-key", "log")
    if type(target) is not dict or len(keys) != len(values):
        raise ValueError
    target.update(zip(keys, values))
    return target


def _drops(data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]) -> int:
    if marks and marks[-1] == len(stack):
        marks.pop()
    else:
        stack.pop()
    return at


def _drops_all(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    _since_mark(stack, marks)
    return at


def _recalls(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    (place,) = _UINT.unpack_from(data, at)
    stack.append(memo[place])
    return at + 4


def _recalls_line(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    line, end = _line(data, at)
    stack.append(memo[_place(line)])
    return end


def _keeps_at_byte(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    _put(stack, memo, data[at])
    return at + 1


def _keeps(data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]) -> int:
    (place,) = _UINT.unpack_from(data, at)
    _put(stack, memo, place)
    return at + 4


def _keeps_line(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    line, end = _line(data, at)
    _put(stack, memo, _place(line))
    return end


def _keeps_next(
    data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
) -> int:
    memo.append(stack[-1])
    return at


def _place(line: bytes) -> int:
    if not line.isdigit() or len(line) > 10:
        raise ValueError
    return int(line)


def _skips(size: int) -> Step:
    """An instruction with a version or a frame's length, which are ignored."""

    def step(
        data: bytes, at: int, stack: list[object], marks: list[int], memo: list[object]
    ) -> int:
        return _end(data, at, size)

    return step


_UINT = struct.Struct("<I")


class _Steps(dict[int, tuple[Step, int]]):
    """The accepted instructions of a pickle, and the bytes that each counts for."""

    def __missing__(self, code: int) -> tuple[Step, int]:
        raise refusal("dump-instruction", "log", value=repr(chr(code)))


STEPS = _Steps(
    {
        ord(code): (step, price)
        for code, step, price in (
            ("N", _pushes(None), SMALL),
            ("\x88", _pushes(True), SMALL),
            ("\x89", _pushes(False), SMALL),
            (")", _pushes(()), SMALL),
            ("}", _makes_dict, HOLDER),
            ("J", _unpacks("<i"), NUMBER),
            ("M", _unpacks("<H"), NUMBER),
            ("G", _unpacks(">d"), NUMBER),
            ("\x8a", _long, NUMBER),
            ("X", _texts("<I"), NUMBER),
            ("\x8c", _texts("<B"), NUMBER),
            ("\x8d", _texts("<Q"), NUMBER),
            ("I", _written(_number, LONGEST_NUMBER), NUMBER),
            ("L", _written(_number, LONGEST_NUMBER), NUMBER),
            ("F", _written(float), NUMBER),
            ("V", _written(lambda line: str(line, "raw-unicode-escape")), NUMBER),
            ("(", _begins, SMALL),
            ("l", _gathers(list), HOLDER),
            ("t", _gathers(tuple), HOLDER),
            ("d", _gathers(lambda items: _set({}, items)), HOLDER + ENTRY),
            ("\x85", _tuple_of(1), HOLDER),
            ("\x86", _tuple_of(2), HOLDER),
            ("\x87", _tuple_of(3), HOLDER),
            ("e", _extends, APPENDED),
            ("s", _sets, ENTRY),
            ("u", _updates, ENTRY),
            ("0", _drops, ODD),
            ("1", _drops_all, ODD),
            ("j", _recalls, SLOT),
            ("g", _recalls_line, SLOT),
            ("q", _keeps_at_byte, NUMBER),
            ("r", _keeps, NUMBER),
            ("p", _keeps_line, NUMBER),
            ("\x94", _keeps_next, NUMBER),
            ("\x80", _skips(1), SMALL),
            ("\x95", _skips(8), SMALL),
        )
    }
)
