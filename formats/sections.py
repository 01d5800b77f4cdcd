"""Text files of sections that stand beside the code: a line ``[head]``, and what is below it."""

from __future__ import annotations

import re
from pathlib import Path


def sections(module: str, name: str) -> list[tuple[str, str]]:
    """The head and the text of each section of a file; module: the ``__file__`` that it is beside.

    What stands above the first section is a remark.
    """
    text = (Path(module).parent / name).read_text(encoding="utf-8")
    parts = re.split(r"^\[(.*)\]\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))
