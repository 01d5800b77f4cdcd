"""Memory that an answer took goes back to the system when it is freed."""

from __future__ import annotations

import contextlib
import ctypes

M_MMAP_THRESHOLD = -3
LARGE = 1 << 20
"""Bytes of a piece of memory that glibc is to take from the system by itself, and give back."""


def give_back_large_pieces() -> None:
    """Fix the size from which glibc does so; elsewhere nothing is changed.

    By itself glibc raises it to that of the largest piece that was ever freed, up to 32 MB: after a
    few answers of 20 MB their memory stays with the process, in pieces between others (mallopt(3),
    M_MMAP_THRESHOLD).
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)
