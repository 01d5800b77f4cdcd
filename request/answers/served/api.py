"""The endpoint for the speed of a server, and the same facts for the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping

from formats.launch.emit import emit
from formats.values import Document
from groups import LayoutError
from training.serving.layouts import ServedLayout
from training.serving.runs import ServedRun

from ...context import Context
from ...endpoint import LAYOUT, Parameters, parameter, serving
from ...state import State, is_empty
from ..memory import SERVED, served_arguments
from .speed import search_of, speed_of
from .words import layout_facts, speed_facts

ASKED = Parameters(
    "(the requests)",
    {
        "requests": parameter("served_at_once"),
        "prompt": parameter("served_prompt"),
        "answer": parameter("served_answer"),
        "tpot_ms": parameter("served_tpot"),
        "speculative": parameter("served_guesses"),
    },
)
"""Parameters of the requests that are asked about."""


def _context(arguments: Mapping[str, object]) -> Context:
    return served_arguments(arguments, ASKED)


@serving(_context, ASKED, SERVED, LAYOUT)
def server_speed(context: Context, best: bool = False) -> str:
    """How fast a server answers so many requests at once, for a user and for a GPU, as JSON.

    A token of every request takes "tpot_seconds", nine of ten measured ones between low and high;
    "parts_seconds" say for what. "curve" has the same from one request to as many as fit,
    "measured" the nearest runs of the same engine, model and GPU with their source. What the law
    does not tell (other makers' GPUs, speculative decoding, several domains) is refused.

    Args:
        best: whether to list the best layouts of the engine on these GPUs for the same target, with the commands that start them, the points that no other beats, and what was refused.
        (the requests)
        (the server)
        (the layout)
    """  # noqa: E501  a tool shows only a parameter's first line
    with ASKED.named(), SERVED.named():
        return json.dumps(served_speed_facts(context, best=best))


def served_speed_facts(context: Context, *, best: bool = False) -> Document:
    """The speed of the servers on screen, their curve and measured runs, as JSON values.

    Errors: LayoutError for what does not start or fit, and for what is not told.
    """
    found = speed_of(context)
    asked = found.asked
    facts: dict[str, object] = {
        "model": asked.name,
        "engine": asked.serving.engine,
        "weights_format": asked.serving.weights,
        "cache_format": asked.serving.cache,
        "machine": asked.machine.name,
        "gpus": asked.gpus,
        "prompt_tokens": asked.load.prompt,
        "answer_tokens": asked.load.answer,
        "requests_asked": None if asked.bound else asked.load.requests,
        "bound_seconds": asked.bound or None,
        **layout_facts(found),
        "corrected_by": found.speed.miss and found.speed.miss.times,
        "curve": [
            {
                "requests": requests,
                **speed_facts(speed),
                "gpu_tokens_per_second": requests / speed.seconds / asked.gpus,
            }
            for requests, speed in found.curve
        ],
        "measured": [_run_facts(run) for run in found.speed.runs],
    }
    return facts | (best_facts(context) if best else {})


def best_facts(context: Context) -> Document:
    """The best layouts for the same target, as JSON values."""
    found = search_of(context)
    return {
        "tried": found.tried,
        "complete": found.complete,
        "best": [
            {**layout_facts(each), "command": command_of(each, context.state)}
            for each in found.best
        ],
        "front": [
            {
                "place": point.place + 1,
                "requests": point.requests,
                "user_tokens_per_second": point.user_rate,
                "gpu_tokens_per_second": point.gpu_rate,
            }
            for point in found.front
        ],
        "refused": [
            {"code": code, "layouts": count, "why": str(found.errors[code])}
            for code, count in found.refused.items()
        ],
    }


def command_of(found: ServedLayout, state: State) -> str:
    """The command that starts one server of a layout; empty for an engine that has none here.

    Where several stand side by side each is started by it, on GPUs of its own.
    """
    names = (
        *("served_weights", "served_cache", "served_length", "served_share"),
        *("served_requests", "served_batched"),
    )
    values = {name: state.values[name] for name in names if not is_empty(getattr(state, name))}
    if values.get("served_cache") == "bf16":
        del values["served_cache"]
    try:
        return emit(found.one_server, values, found.job.framework).strip()
    except LayoutError:
        return ""


def _run_facts(run: ServedRun) -> Document:
    return {
        "attention_ranks": run.cut[0],
        "data_parallel": run.parts,
        "expert_parallel": run.cut[2],
        "weights_format": run.weights,
        "version": run.version,
        "requests": run.requests,
        "prompt_tokens": run.prompt,
        "answer_tokens": run.answer,
        "tpot_seconds": run.seconds,
        "first_token_seconds": run.first or None,
        "source": run.source,
    }
