"""Any text at all is answered, nothing in it is executed, and every code has its sentence."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from launch_answers import TP, check_law

from formats.launch import MAX_TEXT, parse
from groups.errors import LayoutError
from groups.running import is_running
from texts.sentences import LAUNCH_NOTES

pytestmark = pytest.mark.usefixtures("nothing_is_executed")


ROOT = Path(__file__).parent.parent


PIECES = st.sampled_from(
    [
        *(TP, "=", " ", "\n", "\\\n", "\\", "'", '"', "`", "$", "${", "}", "$((", "))", "$(", ")"),
        *("(", "A=(", "A+=(", "A=", "$A", "${A[@]}", "${A:-", "#", "#SBATCH -N ", "<<EOF", "EOF"),
        *("8", "-1", "abc", "--a", "-m", "-c", "bash -c ", "eval ", "if ", "fi", "then ", "for "),
        *("&&", "|", ";", "<", ">", "2>&1", "{", "[", "]", ",", ":", '"a": ', "model:", "  ", "- "),
        *("[parallelism]\n", "tensor_parallel_degree = ", "model.num_layers=", "srun ", "\t", "\r"),
        *(
            "WORLD_SIZE=",
            "torchrun ",
            ".py",
            "null",
            "\0",
            "\u2028",
            "\u00e9",
            "\U0001f600",
            "auto",
        ),
        *("--pipeline-model-parallel-layout ", "Et|tL", "(t|)*9", "--nnodes ", "1:4", "sbatch "),
    ]
)


@given(st.text() | st.lists(PIECES, max_size=60).map("".join) | st.text(string.printable))
@example("A=($A\nA+=(${A[@]}\n)")
@example('{"a": {"b": ["c", {"d": $X}]}')
@example('"distributedInfo"')
@settings(max_examples=200, deadline=None)
def test_any_text_is_answered(text):
    """Or refused in words, if it claims to be what a job printed of its groups."""
    try:
        found = parse(text)
    except LayoutError:
        assert is_running(text)
    else:
        check_law(found)


HUGE = {
    "quotes": "'\"",
    "quotes in commands": ' $$(")',
    "brackets of Python": "import a\n[",
    "openers": "${A:-",
    "arithmetic": "$((",
    "commands": "$(",
    "arrays": "A=((",
    "documents": "<<A\n",
    "keywords": "then if x;",
    "growing": 'A="$A x"\n',
    "guarded": '[ x ] && A+=" $A"\n',
    "doubling of an array": 'A+=("${A[@]}" x)\n',
    "doubling": "B=$A$A\nA=$B$B\n",
    "options": "--tensor-model-parallel-size 4 ",
    "overrides": "a.b=1 ",
    "yaml": "a: 1\n",
    "yaml spaces": "a: b                                                       x",
    "json": '{"a":[',
    "slurm": "#SBATCH -N 2\n",
    "nested": "bash -c \"$A\" 'eval '",
    "redirections": "<a>>&",
    "backslashes": "\\ \n\\",
    "underscores": "--tensor-model-parallel-size 1_1_",
}


@pytest.mark.parametrize("name", HUGE)
def test_a_long_text_of_any_kind_is_answered(name):
    text = (HUGE[name] * (20_000 // len(HUGE[name]) + 1))[:20_000]
    found = parse(text)
    assert found.text == text
    for item in (*found.understood, *found.ignored, *found.unresolved, *found.problems):
        assert 0 <= item.start <= item.end <= len(text)


def test_aliases_of_aliases_end_where_sections_do():
    text = "a0: &a0 {x: 1}\n"
    text += "".join(f"a{at}: &a{at} {{p: *a{at - 1}}}\n" for at in range(1, 200))
    names = [item.name for item in parse(text).ignored if item.code == "unknown"]
    assert max(name.count(".") for name in names) == 59


def test_what_is_no_text_or_too_long_is_refused():
    for value in (None, 3, b"x", ["--a"]):
        with pytest.raises(LayoutError) as refusal:
            parse(value)
        assert refusal.value.code == "not-a-text"
    parse(" " * MAX_TEXT)
    with pytest.raises(LayoutError) as refusal:
        parse(" " * (MAX_TEXT + 1))
    assert (refusal.value.code, refusal.value.facts["limit"]) == ("text-too-long", MAX_TEXT)


def test_the_reader_reaches_for_nothing_outside():
    allowed = {
        *(
            "__future__",
            "ast",
            "bisect",
            "contextlib",
            "fnmatch",
            "fractions",
            "itertools",
            "json",
            "math",
        ),
        *("operator", "pathlib", "re", "shlex", "threading", "warnings"),
        *("tomlkit", "tomlkit.exceptions", "yaml"),
        *("collections", "collections.abc", "dataclasses", "functools", "types", "typing"),
    }
    for path in (ROOT / "formats" / "launch").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= allowed, path
            elif isinstance(node, ast.ImportFrom) and not node.level:
                rooms = ("groups", "training")  # which reach for nothing either
                assert node.module in allowed or node.module.split(".")[0] in rooms, path
            elif isinstance(node, ast.Name):
                assert node.id not in ("eval", "exec", "open", "compile", "__import__"), path


def test_every_code_has_a_sentence_and_is_used():
    source = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "formats" / "launch").rglob("*.py")
    )
    for code in LAUNCH_NOTES:
        assert f'"{code}"' in source or code in ("bad-json", "bad-yaml"), code


BEGINS = "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --pipeline-model-parallel-size 2 "


@pytest.mark.parametrize(
    ("said", "sign"),
    [
        ("\u200b--tensor-model-parallel-size 4", "U+200B"),  # from a web page
        ("--tensor\u2011model\u2011parallel\u2011size 4", "U+2011"),  # from a document
        ("\u2014tensor-model-parallel-size 4", "U+2014"),  # from a chat
        ("\u2013\u2013tensor-model-parallel-size=4", "U+2013"),
    ],
)
def test_an_option_in_letters_that_only_look_like_its_own_is_named_and_its_size_not_assumed(
    said, sign
):
    parsed = parse(BEGINS + said)
    (item,) = parsed.unresolved
    assert (item.code, item.name) == ("disguised", "--tensor-model-parallel-size")
    assert item.facts == {"sign": sign}
    assert "tp" in parsed.asks


def test_other_words_may_have_any_dash():
    parsed = parse(
        BEGINS + "--tensor-model-parallel-size 4 # of two nodes \u2014nothing \u2013 else"
    )
    assert (parsed.unresolved, parsed.asks, parsed.values["tp"]) == ((), (), 4)


@pytest.mark.parametrize(
    "text",
    [
        '{"tensor_parallel": {"autotp_size": 4}, "train_batch_size": 8}',
        "model:\n  tensor_model_parallel_size: 4\n",
        "[parallelism]\ntensor_parallel_degree = 4\n",
        BEGINS + "--tensor-model-parallel-size 4",
    ],
)
def test_a_file_may_begin_with_windows_byte_order_mark(text):
    assert parse("\ufeff" + text).values == parse(text).values == {**parse(text).values, "tp": 4}
