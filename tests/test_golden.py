"""Golden answers: a changed answer is a decision in its commit, not an accident."""

from __future__ import annotations

import difflib

import pytest
from golden.ask import ENDPOINTS
from golden.make import ANSWERS, answered, read

from descriptions import VIEWS

FILES = sorted(ANSWERS.glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_answers_are_what_they_were(file):
    changed = []
    for asked, lines in read(file).items():
        found = answered(asked)
        if found != lines:
            changed += difflib.unified_diff(lines, found, asked, "now", lineterm="", n=1)
    assert not changed, "\n".join(
        [*changed, f"If that is meant: python -m tests.golden.make {file.stem}, and say why."]
    )


def test_every_view_and_every_endpoint_is_asked():
    assert {file.stem for file in FILES} == {*VIEWS, "commands", "endpoints", "links"}
    asked = {line.split()[1] for line in read(ANSWERS / "endpoints.txt")}
    assert asked == {*ENDPOINTS}
