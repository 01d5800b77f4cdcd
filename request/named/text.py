"""A layout named by a program: a published one, a link, a JSON document of this project, or a
launch command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress

from formats.documents.check import job_of_document
from formats.launch import parse
from formats.roles import PlanRead, read_plan
from formats.roles.presets import PLANS, preset_plan
from groups import LayoutError
from groups.errors import in_any_case, nearest_names, not_a_choice
from groups.presets import PUBLISHED
from training.models import MODELS

from ..context import Context
from ..errors import refusal
from ..link import changes_from, from_query
from ..resolve import fields_of_job
from ..state import State, is_empty, texts_of
from ..trained import published
from ..trained_endpoint import OF_TRAINING
from .kept import FROM_HERE, own_of, query_of, with_job
from .launch import training_fields, with_pasted


def context_named(text: str, context: Context, control: str = "kept") -> Context:
    """The context with the job that a text names, trained as the text has it.

    control: the input that the text is of, which refusals name.

    Errors: LayoutError for an empty text, for one that names no layout, and for an invalid layout.
    """
    if is_empty(text):
        raise refusal("nothing-kept", control)
    if text.strip().startswith(FROM_HERE):
        changes = changes_from(text.strip().removeprefix(FROM_HERE))
        return Context.of(context.state.changed(own_of(changes)))
    try:
        named = state_named(text)
    except LayoutError as error:
        raise error.renamed({"kept": control}) from None
    return Context.of(with_job(context.state, named, is_whole=True))


def state_named(text: str) -> State:
    """The state of a text: the layout and its training.

    >>> state_named("LLaMA3-405B-1").tp, state_named("?tp=4").tp
    ('8', '4')
    >>> state_named("torchrun --nnodes 2 --nproc-per-node 8 a.py --tensor-model-parallel-size 4").tp
    '4'

    Errors: LayoutError for what names no layout.
    """
    named = in_any_case(text.strip(), PUBLISHED)
    if named in PUBLISHED:
        return of_preset(str(named))
    if is_link(text):
        return from_query(query_of(text))
    if (document := document_of(text)) is not None:
        return of_document(text, document)
    read = parse(text)
    if not read.values or read.asks:
        fixes = [{"kept": name} for name in _meant(text, PUBLISHED)]
        raise refusal("names-no-layout", "kept", *fixes, lacks=", ".join(read.asks) or "nodes, tp")
    return State(**{**vars(with_pasted(State(), read)), **training_fields(read)})


def of_preset(preset: str) -> State:
    return State(**{**published(preset), "preset": preset})


def plan_named(text: str, answers: str = "") -> PlanRead | Context:
    """The plan that a text names: a published one, a configuration, or, as a page, that of a link.

    answers: what a configuration leaves open, such as "trainer.nnodes=4"; semicolons between them.

    Errors: LayoutError for what names no plan, and for a setting that must be answered first.
    """
    if is_link(text):
        return Context.of(from_query(query_of(text)))
    name = str(in_any_case(text.strip(), PLANS))
    if name in PLANS:
        return preset_plan(name)
    if near := _meant(text, PLANS):
        raise not_a_choice("plan", name, PLANS, [{"plan": one} for one in near])
    return read_plan(text, answers_of(answers))


def _meant(text: str, names: Iterable[str]) -> list[str]:
    """The published names that a word may mean; none for a longer text.

    >>> _meant("slime-glm4", PLANS)[0], _meant("slime-glm4 --nodes 2", PLANS)
    ('slime-glm4-5', [])
    """
    return nearest_names(text.strip(), names) if len(text.split()) == 1 else []


def is_link(text: str) -> bool:
    """Whether a text is a link, or the query of one."""
    stripped = text.strip()
    return stripped.startswith(("http://", "https://", "?", "v=")) or (
        "=" in stripped and not any(sign in stripped for sign in " \n\t{")
    )


def document_of(text: str) -> Mapping[str, object] | None:
    """The value of a JSON document of this project; None for any other text, such as DeepSpeed's
    JSON."""
    with suppress(ValueError, RecursionError):
        document = json.loads(text)
        if isinstance(document, dict) and "schema" in document and "job" in document:
            return document
    return None


def of_document(text: str, document: Mapping[str, object]) -> State:
    """The state of a document's job; of a command about training also its training, and its model
    if no size of that was changed."""
    fields = fields_of_job(job_of_document(text))
    model, training = document.get("model"), document.get("training")
    if model in MODELS and not document.get("changed"):
        fields["model"] = str(model)
    if isinstance(training, dict):
        known = {name: training[name] for name in TRAINING_FIELDS if name in training}
        fields |= texts_of(known)
    return State(**fields)


TRAINING_FIELDS = tuple(name for name in OF_TRAINING if name not in ("vpp", "spread", "account"))
"""Fields of the page among the training facts of `request.trained_endpoint.job_facts`."""


def answers_of(text: str) -> dict[str, str]:
    """Settings answered beside a text, from a text in which semicolons separate them.

    >>> answers_of("trainer.nnodes=4; actor.tp=2")
    {'trainer.nnodes': '4', 'actor.tp': '2'}
    """
    pairs = (part.partition("=") for part in text.replace("\n", ";").split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
