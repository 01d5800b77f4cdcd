"""Options by other names: what Megatron and launchers call a size is taken as ours."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence

OTHER = {"world": "gpus", "seq": "sequence"}
"""Fields of launch files whose options are called otherwise here."""


def known_options(argv: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """The words of a command line, with options that launch files have under our names.

    >>> [*known_options(["--tensor-model-parallel-size", "2", "dp"], ["--tp"])]
    ['--tp', '2', 'dp']
    >>> [*known_options(["--nproc_per_node=4"], ["--gpus-per-node"])]
    ['--gpus-per-node=4']
    """
    for word in argv:
        name, equals, value = word.partition("=")
        if name.startswith("--") and name not in known and (ours := _ours(name, known)):
            yield f"{ours}{equals}{value}"
        else:
            yield word


def nearest(name: str, known: Collection[str]) -> list[str]:
    """Options that a name that is none may have meant."""
    return difflib.get_close_matches(name, known, n=2, cutoff=0.7)


def _ours(name: str, known: Collection[str]) -> str:
    lower = name.lower().replace("_", "-")
    if lower in known:
        return lower
    from formats.launch.flags import row_of  # tables that other words do without

    row = row_of(lower)
    if row is None or row.kind not in ("size", "count", "nodes", "devices"):
        return ""
    option = f"--{OTHER.get(row.field, row.field).replace('_', '-')}"
    return option if option in known else ""
