"""Ask every question of the golden answers again, and write down what is answered now.

    python -m tests.golden.make              all of them; `git diff` shows what changed
    python -m tests.golden.make memory hang  of these files

A new question is a line ``== ...`` in a file of tests/golden/answers (tests/golden/ask.py says what
can be asked); its answer need not be written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.golden.ask import lines_of

ANSWERS = Path(__file__).parent / "answers"
HEAD = "== "


def read(file: Path) -> dict[str, list[str]]:
    """The lines that are kept of each answer, by what is asked."""
    found: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith(HEAD):
            assert line[len(HEAD) :] not in found, f"{file.name} asks twice: {line}"
            lines = found.setdefault(line[len(HEAD) :], [])
        elif line:
            lines.append(line.removeprefix("  "))
    return found


def write(file: Path, answers: dict[str, list[str]]) -> None:
    parts = (
        "\n".join((HEAD + asked, *(f"  {line}".rstrip() for line in lines if line.strip())))
        for asked, lines in answers.items()
    )
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def answered(asked: str) -> list[str]:
    """As `read` finds it again."""
    return [line.rstrip() for line in lines_of(asked) if line.strip()]


def main() -> None:
    names = sys.argv[1:] or sorted(file.stem for file in ANSWERS.glob("*.txt"))
    for name in names:
        file = ANSWERS / f"{name}.txt"
        write(file, {asked: answered(asked) for asked in read(file)})


if __name__ == "__main__":
    main()
