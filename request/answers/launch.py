"""The endpoints for launch files, and for the check on a real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from descriptions import note_text
from formats.check.script import check_script
from formats.launch import TARGETS, Item, Parsed, emit, parse
from formats.launch.emit import emitted
from groups.layout import Layout

from ..endpoint import (
    LAYOUT,
    Parameters,
    endpoint,
    layout_of,
    names_of,
    parameter,
    require_text,
    serving,
)
from ..hosts import placement_from
from ..named.launch import UNSAYABLE, options_of_page
from ..state import require_choice
from ..trained_endpoint import CHANGES, OF_TRAINING, RENAMED, context_of, fixes_tried

MOST_LISTED = 4096
"""The most ranks of a server whose groups an answer lists."""


OPEN_TRAINING = Parameters(
    "(the training)",
    {
        "model": parameter("model", means="a published model; empty here and below: not said"),
        "changes": CHANGES,
        **{
            RENAMED.get(name, name): parameter(name, is_open=True)
            for name in OF_TRAINING
            if name not in UNSAYABLE
        },
    },
    late=("dispatch",),
)


def _layout_and_options(arguments: Mapping[str, object]) -> tuple[Layout, dict[str, object] | None]:
    """A layout, and the options of its model and training; None if none is set."""
    fields = {**OPEN_TRAINING.fields(arguments), "changes": arguments["changes"]}
    if all(value == "" or value is False for value in fields.values()):
        return layout_of(arguments), None
    context = context_of(arguments, OPEN_TRAINING)
    with fixes_tried(context):
        return context.layout, options_of_page(context.layout, context.state)


@serving(_layout_and_options, LAYOUT, OPEN_TRAINING)
def launch_command(
    layout_and_options: tuple[Layout, dict[str, object] | None], target: str = "megatron"
) -> str:
    """The options that make a layout in one framework, as text to copy.

    Targets are "megatron", "nemo", "megatron-deepspeed", "megatron-deepspeed-bloom", "deepspeed",
    "accelerate", "torchtitan", "torchtitan-main", "torchtitan-toml", "vllm", "sglang",
    "sglang-main" and "tensorrt-llm". What is
    said of the model, the batch and the training is written too, as the page's Launch view does,
    and of a whole model what the page counts with; the rest is left to the framework.

    Args:
        target: whose options, such as "megatron" or "torchtitan".
        (the layout)
        (the training)
    """
    layout, options = layout_and_options
    require_choice("target", target, TARGETS)
    if options is None:
        return emit(layout.explicit_job, framework=target)
    return emitted(layout, options, target)


@endpoint
def cluster_check(
    layout: Layout, names: str = "", megabytes: int = 64, hosts: str = "", racks: str = ""
) -> str:
    """A script for torchrun that makes the same groups on the real nodes and checks them.

    Args:
        names: groups to check, separated by spaces; empty: all.
        megabytes: size of the buffer whose bandwidth is measured.
        hosts: the job's machines in their order, on which the ranks must stand; empty: any.
        racks: another text about the machines; empty: none.
        (the layout)
    """
    placement = placement_from(layout, hosts, racks)
    return check_script(layout, names_of(names), megabytes=megabytes, placement=placement)


@serving()
def read_launch(text: str = "", run: str = "") -> str:
    """What a launch command or a configuration asks for, as JSON. It is read, never run.

    Beside the framework and the values stand four lists of what was understood, ignored, unresolved
    or a problem: {"line", "column", "text", "sentence"}, the text as it stands at that line and
    column, both counted from 1. What is assumed for what is missing is told in sentences; "asks"
    are the fields that nobody knows, "defaulted" the fields that the default of a variable says,
    which nothing sets, "training" is what the text says besides of the training.
    For vLLM's and SGLang's servers "groups" are their own, in their own order (up to 4,096 ranks).

    Args:
        text: a launch script, a configuration in YAML, JSON or TOML, or a recipe in Python.
        run: one of the runs or roles that an earlier answer names in "runs"; empty: the usual one.
    """
    launch = parse(text, require_text("run", run))
    return json.dumps(
        {
            "framework": launch.framework and launch.framework.name,
            "values": launch.values,
            "assumed": launch.assumed,
            "understood": _placed(launch, launch.understood),
            "ignored": _placed(launch, launch.ignored),
            "unresolved": _placed(launch, launch.unresolved),
            "problems": _placed(launch, launch.problems),
            "missing": [note_text(note) for note in launch.missing],
            "asks": launch.asks,
            "defaulted": launch.defaulted,
            "training": launch.training,
            "run": launch.run,
            "runs": [{"name": run.name, "values": run.values} for run in launch.runs],
            "serving": launch.serving,
            "groups": {
                name: np.asarray(grouping.groups()).tolist()
                for name, grouping in launch.served_groups().items()
                if grouping.world_size <= MOST_LISTED
            },
        }
    )


def _placed(launch: Parsed, items: Iterable[Item]) -> list[dict[str, object]]:
    return [
        {
            "line": item.line,
            "column": item.column,
            "text": launch.text[item.start : item.end],
            "sentence": note_text(item),
        }
        for item in items
    ]
