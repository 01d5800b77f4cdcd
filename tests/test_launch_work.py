"""What a pasted text may cost: the work that the reader counts; no expression backtracks.

The work is counted, not timed: a budget that a text spends all of ends in a refusal, and one text
in a hundred of twice the length spends at most a little more than twice as much.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import deque
from itertools import product

import pytest

import cli
import formats.launch
import groups
import request
from formats.launch import MAX_TEXT, parse
from groups.budget import LIMIT, within
from groups.errors import LayoutError

LONG = {
    "a row of open variables": "a.b=[" + "$A," * 1665 + "]",
    "a row of variables": "A=2\nmodel.tensor_model_parallel_size=[" + "$A," * 1600 + "]",
    "an array in many names": "A=(" + "x " * 1000 + ")\n" + 'B="${A[@]}"\n' * 1200,
    "a long array": "A=(" + "x " * 60_000 + ")\n" + 'B="${A[@]}"\n' * 1000,
    "an array told": "A=(" + "x " * 60_000 + ")\n" + "echo ${A[*]} $A\n" * 900,
    "words of a variable": "A='" + "x " * 50_000 + "'\n" + "eval $A\n" * 1000,
    "a row of numbers": "model.tensor_model_parallel_size=[" + "1," * 90_000 + "]",
    "sizes": "--hierarchical-context-parallel-sizes " + "1 " * 90_000,
    "lists that TOML never closes": "[a]\n" + "x = [\n" * 33_000,
    "texts that TOML never closes": "[a]\n" + f'x = ["{"a" * 60}",\n' * 2_800,
    "a script of Windows in a file": "run: |\r\n" + "  x\r\n" * 39_000,
    "scripts in a file": "- run: |\n   x\n" * 13_000,
    "here-documents in each other": "A=$(cat <<E\n" * 16_000,
    "scripts that write scripts": 'echo "echo \\"x\\" > a.sh" > a.sh\n' * 6_000,
    "signs": "$" * MAX_TEXT,
}


def cost(text: str) -> tuple[int, LayoutError | None]:
    """Units that a text spends, and its refusal if it spends all."""
    with within(10 * LIMIT) as budget:
        try:
            parse(text)
        except LayoutError as refusal:
            return budget.spent, refusal
    return budget.spent, None


@pytest.mark.parametrize("name", LONG)
def test_a_text_spends_its_budget_at_most(name):
    spent, refusal = cost(LONG[name])
    assert spent <= LIMIT + 60 * MAX_TEXT, spent  # a step is counted before it is done
    assert refusal is None or refusal.code == "too-much-work"
    if name == "signs":  # the refusal names of what there is too much
        assert refusal is not None
        assert refusal.facts["what"] == "words"


GROWING = (
    "--tensor-model-parallel-size 4 ",
    "a.b=[$A,2] ",
    "A=3\n",
    "srun -N $A\n",
    "a: 1\n",
    "#SBATCH -N 2\n",
    '"$(',
    "[ x ] && A=1\n",
)


def test_twice_the_text_is_twice_the_work():
    for piece in GROWING:
        once, twice = (cost(piece * count)[0] for count in (500, 1000))
        assert 0 < twice <= 2.2 * once, (piece, once, twice)


# -- expressions ---------------------------------------------------------------------------------

ROOMS = (formats.launch, groups, cli, request)

PIECES = (
    *(
        " ",
        "\t",
        "\n",
        " \n",
        "#\n",
        "\\",
        "\\ ",
        "'",
        '"',
        '\\"',
        "a",
        "a.",
        "a_",
        "a-",
        "1",
        "1_",
    ),
    *("1,", "1:", "gpu:", "a:", "[", "[a", "[a ", "(", "(a", "((a)", "a)*", "{", "${", "$((", "<a"),
    *(
        "<<a",
        "<<",
        ">&",
        "2>",
        "=",
        "a=",
        "[a]\n",
        "- ",
        "rank ",
        "rank:  ",
        "1 -",
        "1-",
        "tp1-",
        "x",
    ),
)


BEGINNINGS = ("[", "[a", "$((1", "a:", "(a", "-", '"')
"""After these, one kind of letter over and over."""

SEARCHES = ("search", "finditer", "findall", "sub", "split")


def expressions() -> list[tuple[str, re.Pattern[str], bool]]:
    """Every compiled expression of the rooms that users' texts come to: its place, and whether it
    looks for its match at any place of a text rather than at one."""
    found = []
    for room in ROOMS:
        for listed in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if listed.name.endswith("__main__"):
                continue
            module = importlib.import_module(listed.name)
            source = inspect.getsource(module)
            for name, value in vars(module).items():
                several = value.values() if isinstance(value, dict) else value
                many = several if isinstance(value, (dict, tuple)) else [value]
                searches = isinstance(value, (dict, tuple)) or any(
                    f"{name}.{verb}(" in source for verb in SEARCHES
                )
                found += [(name, one, searches) for one in many if isinstance(one, re.Pattern)]
    return found


def test_no_expression_backtracks():
    """Each ends on 200,000 characters of any kind; one that backtracks would not in hours."""
    every = expressions()
    assert len(every) > 20
    for begin, piece in [("", piece) for piece in PIECES] + list(product(BEGINNINGS, " \ta")):
        text = begin + (piece * (MAX_TEXT // len(piece) + 1))[:MAX_TEXT] + "\0"
        for _, pattern, searches in every:
            pattern.match(text)
            if searches:
                deque(pattern.finditer(text), maxlen=0)
