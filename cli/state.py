"""What a command line says of a model and its training, as the page's views take it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from formats.values import Document
from groups.errors import LayoutError
from groups.layout import Job
from request.context import Context
from request.inputs import FIELDS, UNKNOWN
from request.resolve import fields_of_job, layout_for
from request.state import State
from request.trained import machine_of_state, published
from request.trained_endpoint import TRAINING, changes_of, fixes_tried
from texts.sentences import note_text
from training.clusters import machine_of
from training.configs.compact import compact
from training.described import NUMBER_NAMES, OWN, read_machine
from training.machine import Machine
from training.models import MODELS

from .inputs import CommandLine, checked, number_of
from .messages import CommandError

RENAMED = {"memory_schedule": "schedule"}
"""Parameters of endpoints whose options are called as the page calls them."""

OPTIONS = (
    *(RENAMED.get(name, name) for name in TRAINING.rows),
    *("layers", "experts", "sequence", "cluster", "capacity", "cp_algorithm"),
)
"""The options of a command line that say what is trained, and on what."""

SERVED = tuple(name for name in FIELDS if name.startswith("served_"))
"""Those that say how a server serves a model; of training they are left unread, and refused."""

OF_SERVER = ("model", "config", "changes", "layers", "experts", "sequence", "cluster", "capacity")
"""What of OPTIONS counts for a server too."""


@contextmanager
def trained_context(inputs: CommandLine) -> Iterator[Context]:
    """The layout and the training that are asked for; within, a refusal offers options.

    Errors: LayoutError, CommandError.
    """
    job, _ = inputs.wanted()
    layout, state = checked(job), state_of(inputs, job)
    try:
        with fixes_tried(Context(layout, state)) as context:
            yield context
    except LayoutError as error:
        fixes = [
            {RENAMED.get(name, name): _text(name, value) for name, value in fix.items()}
            for fix in error.alternatives
        ]
        raise error.renamed(RENAMED).replace(alternatives=fixes) from None


@contextmanager
def ranked_context(inputs: CommandLine) -> Iterator[Context]:
    """`trained_context` of the GPU of --rank, the first where none is given."""
    rank = number_of(inputs.options.rank or "0")
    with trained_context(inputs) as context:
        yield Context(context.layout, context.state.changed({"rank": rank}))


def served_context(inputs: CommandLine, log: str = "") -> Context:
    """The servers that are asked for, and what one printed as it started.

    Errors: LayoutError, CommandError.
    """
    job, _ = inputs.wanted()
    layout, options = checked(job), inputs.options
    for item in inputs.launch.problems if inputs.launch else ():
        if item.code == "layers-with-states" and options.model is None:
            raise CommandError(note_text(item))
    _require_model(inputs)
    known: Document = {"model": "", **_start(inputs), **fields_of_job(job)}
    names = (*OF_SERVER, *NUMBER_NAMES, *SERVED)
    texts = machine_texts(inputs)
    texts |= {name: value for name in names if (value := getattr(options, name)) is not None}
    changes = changes_of(texts.pop("changes", ""))
    texts |= config_of(inputs, texts)
    state = State(**{**known, **texts, **changes, "engine_log": log})
    return Context(layout_for(layout, state), state)


def state_of(inputs: CommandLine, job: Job) -> State:
    """The page's state where it shows that job: a published layout or a launch file trains as it
    says, and options stand over both."""
    options = inputs.options
    _require_model(inputs)
    known: Document = {"model": "", **_start(inputs)}
    known |= fields_of_job(job)
    texts = machine_texts(inputs)
    texts |= {name: text for name in OPTIONS if (text := getattr(options, name)) is not None}
    if "global_batch" in texts:
        known["micro_batches"] = ""
    changes = changes_of(texts.pop("changes", ""))
    texts |= config_of(inputs, texts)
    return State(**{**known, **texts, **changes})


def machine_texts(inputs: CommandLine) -> dict[str, str]:
    """What --gpu and --machine say, by the fields of the page; single numbers stand over both.

    Errors: LayoutError for a machine that there is not; CommandError for two machines at once.
    """
    options = inputs.options
    gpu, path, cluster = options.gpu, options.machine, options.cluster
    texts: dict[str, str] = {}
    if path is not None:
        row, texts = read_machine(inputs.text(path), path)
        texts["cluster"] = row
    named = [name for name, value in (("--gpu", gpu), ("--cluster", cluster)) if value is not None]
    named += ["--machine"] if texts.get("cluster", OWN) != OWN else []
    if len(named) > 1:
        raise CommandError(f"{' and '.join(named)} each name a machine: give one of them")
    if gpu is not None:
        texts["cluster"] = machine_of(gpu, "gpu").id
    return texts


def machine_named(inputs: CommandLine) -> Machine:
    """The machine of --cluster, --gpu or --machine, with single numbers over it."""
    texts, options = machine_texts(inputs), inputs.options
    names = ("cluster", "capacity", *NUMBER_NAMES)
    texts |= {name: text for name in names if (text := getattr(options, name)) is not None}
    return machine_of_state(State(**texts))


def _require_model(inputs: CommandLine) -> None:
    """Refuses a launch text that says nothing of its model: no other model stands in for it."""
    options = inputs.options
    if inputs.launch is None or any(getattr(options, name) for name in ("model", "changes")):
        return
    from formats.launch.training import training_of

    if "model" not in training_of(inputs.launch):
        what = "names no model, and no layers, hidden size and heads of one"
        raise CommandError(f"{options.args} {what}. Give --model")


def config_of(inputs: CommandLine, texts: Mapping[str, Any]) -> dict[str, str]:
    """The model of the config.json that --config, --args, or --model where that is a file, names.

    Errors: LayoutError for what is not understood of it, CommandError for a file that is none.
    """
    path = texts.get("config") or ""
    model = texts.get("model") or ""
    if not path and model not in (*MODELS, UNKNOWN) and (model == "-" or Path(model).is_file()):
        path = model
    if not path and inputs.config and not model:
        return {"model": UNKNOWN, "config": compact(inputs.config)}
    if not path:
        return {}
    return {"model": UNKNOWN, "config": compact(inputs.text(path))}


def _start(inputs: CommandLine) -> Document:
    """All that the published layout, the launch file or another text says."""
    if inputs.base is not None:
        return vars(inputs.base)
    if inputs.options.preset is not None:
        return published(inputs.preset())
    if inputs.launch is not None:
        from request.named.launch import training_fields, with_pasted

        return {**vars(with_pasted(State(), inputs.launch)), **training_fields(inputs.launch)}
    return {}


def _text(name: str, value: Any) -> Any:
    """A value that a program may give, as an option takes it."""
    is_choice = name in FIELDS and FIELDS[name].row.choices == ("on", "off")
    return FIELDS[name].row.text(value) if is_choice else value
