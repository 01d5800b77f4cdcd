"""Layouts that words of a command line name: published ones, links, launch files, JSON
documents."""

from __future__ import annotations

import difflib
import os
from dataclasses import replace

from formats.launch import parse
from formats.values import Document
from groups.errors import in_any_case, quoted
from groups.layout import Job
from groups.presets import PUBLISHED
from request.context import Context
from request.named.kept import FROM_HERE, with_job
from request.named.launch import training_fields, with_pasted
from request.named.text import context_named, document_of, is_link, of_document, state_named
from request.resolve import fields_of_job
from request.state import State, is_empty

from .inputs import CommandLine
from .launch import job_from_flags
from .messages import FIELDS, CommandError


def set_base(inputs: CommandLine, word: str) -> None:
    """Sets the layout that a word names as the base of the options.

    Errors: LayoutError, and CommandError where it names no layout.
    """
    inputs.base = state_of_word(inputs, word)
    job = Context.of(inputs.base).layout.explicit_job
    inputs.base_job = replace(job, etp=None) if is_empty(inputs.base.etp) else job


def context_of_word(inputs: CommandLine, word: str, context: Context) -> Context:
    """The context of the layout that a word names, with the training of another one.

    Errors: LayoutError, and CommandError where it names no layout.
    """
    if word.startswith(FROM_HERE):
        return context_named(word, context)
    base = inputs.base if len(inputs.words) == 1 else None
    state = base or state_of_word(inputs, word)
    return Context.of(with_job(context.state, state, is_whole=True))


def state_of_word(inputs: CommandLine, word: str) -> State:
    """The state of a published layout, a link, or the text of a file."""
    if word == "-" or os.path.exists(word):
        return _of_file(inputs, word)
    if in_any_case(word, PUBLISHED) in PUBLISHED or is_link(word):
        return state_named(word)
    near = difflib.get_close_matches(word.lower(), PUBLISHED, n=3)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise CommandError(f"{quoted(word)} is no published layout, link or file{meant}")


def _of_file(inputs: CommandLine, path: str) -> State:
    text = inputs.text(path)
    if (document := document_of(text)) is not None:
        return of_document(text, document)
    file = "standard input" if path == "-" else path
    read = parse(text, inputs.options.run or "")
    values, _, remarks = job_from_flags(read, file, ())
    inputs.remarks += remarks
    fields: Document = {**vars(with_pasted(State(), read)), **training_fields(read)}
    job = Job(**{name: value for name, value in values.items() if name in FIELDS})  # type: ignore[arg-type]
    return State(**{**fields, **fields_of_job(job)})
