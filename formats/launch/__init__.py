"""Launch commands and configurations of training frameworks: read as a job, written from a job.

    parse(text)   what the text says of a job: its values, what each word set, and what it leaves
                  open; nothing in it is executed, and nothing is guessed
    emit(job)     the options or the file that ask for a job (`emit`)

>>> parsed = parse("torchrun --nnodes 2 --nproc-per-node=8 train.py --tensor-model-parallel-size 4")
>>> parsed.values
{'nodes': 2, 'gpus_per_node': 8, 'tp': 4, 'framework': 'megatron'}
>>> [note.facts for note in parsed.missing]
[{'field': 'pp', 'assumed': 1}, {'field': 'cp', 'assumed': 1}, {'field': 'ep', 'assumed': 1}]
>>> str(parsed.job().layout().mesh)
'tp4-cp1-dp4-pp1'

A value that cannot be stands in ``problems`` with its place:

>>> text = "--tensor-model-parallel-size eight"
>>> problem = parse(text).problems[0]
>>> problem.code, text[problem.start : problem.end], (problem.line, problem.column)
('bad-value', 'eight', (1, 30))

`syntax` makes words of a text, `sayings` reads what each word says of a field, `meaning` what they
come to together; what options and keys mean is data in tables/, which name the sources.
"""

from __future__ import annotations

from groups.budget import within
from groups.errors import quoted, require_length
from groups.running import is_running

from ..errors import refusal
from .emit import TARGETS, emit
from .items import Item, Parsed, Run
from .meaning import meaning_of
from .running import parsed_running
from .sayings import read

MAX_TEXT = 200_000
"""The longest text, in characters."""


def parse(text: str, run: str = "") -> Parsed:
    """Reads a launch command, a script, a configuration file, or a recipe in Python.

    run: the name of one of ``runs``, if the text has several.

    The text may also be a running program's report of its groups (`running`).

    Errors: LayoutError if it is not text or longer than MAX_TEXT, and for groups that no layout
    makes; all other problems are part of the answer.
    """
    if not isinstance(text, str):
        raise refusal("not-a-text", "launch", value=quoted(text))
    if is_running(text):
        return parsed_running(text)
    require_length(text, MAX_TEXT, "launch")
    with within():
        return meaning_of(read(text.removeprefix("\ufeff")), run)  # as Windows begins a file


read_launch = parse
