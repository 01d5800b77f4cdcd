"""What programs may ask of a running page: typed endpoints, checked like the page's own controls.

Every function about a layout takes the parameters of `JOB` after its own; `endpoint` puts them
together, so that each endpoint's schema names them all.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import gradio as gr

from groups import LayoutError, coordinates
from groups.audit import DOMAINS, audit
from groups.check_script import check_script
from groups.conventions import CONVENTIONS
from groups.documents import job_of
from groups.errors import not_a_choice, quoted
from groups.exports import groups_json, ranks_json
from groups.job import OWN, Job, Made
from groups.launch_args import TARGETS, Item, Parsed, emit, parse
from groups.mesh import whole_number
from groups.placement import local_rank, node_of
from groups.ranks import require_rank
from groups.sharing import parse_ranks, shared_groups

MOST_SERVED = 131_072
"""GPUs that one answer may be about: its text is some 20 MB then."""

JOB: dict[str, tuple[type, Any, str]] = {
    "nodes": (int, 2, "machines in the job."),
    "gpus_per_node": (int, 8, "GPUs of one machine."),
    "tp": (int, 1, "tensor parallel size."),
    "pp": (int, 1, "pipeline parallel size."),
    "cp": (int, 1, "context parallel size."),
    "ep": (int, 1, "expert parallel size."),
    "etp": (int, 0, "expert tensor parallel size; 0: as tp."),
    "framework": (str, "megatron", 'whose order to use, such as "megatron" or "llama3".'),
    "order": (str, "", 'axes from fastest to slowest, such as "tp-cp-ep-dp-pp"; empty: its own.'),
    "instances": (int, 1, "instances of the distributed optimizer."),
}
"""Parameters of a layout: type, default, meaning."""


def endpoint(ask: Callable[..., str]) -> Callable[..., str]:
    """A function of a made job, as a function of the job's parameters beside its own."""
    own = list(inspect.signature(ask).parameters.values())[1:]
    asked = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for name, (_, default, _) in JOB.items()
    ]
    signature = inspect.Signature([*own, *asked], return_annotation=str)

    @wraps(ask)
    def served(*values: Any, **named: Any) -> str:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        given = dict(bound.arguments)
        job = {name: given.pop(name) for name in JOB}
        return _answered(lambda: ask(_made(**job), **given))

    lines = "".join(f"\n        {name}: {text}" for name, (_, _, text) in JOB.items())
    served.__doc__ = (ask.__doc__ or "").replace("\n        (the layout)", lines)
    served.__signature__ = signature  # type: ignore[attr-defined]
    kinds = {name: kind for name, (kind, _, _) in JOB.items()}
    hints = dict(inspect.get_annotations(ask, eval_str=True))
    hints.pop("made")
    served.__annotations__ = {**hints, **kinds, "return": str}
    del served.__wrapped__  # type: ignore[attr-defined]
    return served


def _made(order: str, etp: Any, framework: Any, **sizes: Any) -> Made:
    for name, value in sizes.items():
        whole_number(value, name)
    etp = whole_number(etp, "etp", minimum=0)
    _require_choice("framework", framework, CONVENTIONS)
    whose = {"framework": OWN, "order": order} if order else {"framework": framework}
    made = Job(**sizes, etp=etp or None, **whose).made()
    if made.world_size > MOST_SERVED:
        raise LayoutError(
            "too-many-ranks",
            f"{made.world_size:,} GPUs are more than the {MOST_SERVED:,} that are served",
            control="nodes",
            facts={"ranks": made.world_size, "limit": MOST_SERVED},
        )
    return made


def _require_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    known = list(choices)
    if value not in known:
        raise not_a_choice(name, value, known)


def _names(names: Any) -> list[str] | None:
    """Names of groups as a list; None for all."""
    if not isinstance(names, str):
        raise LayoutError(
            "not-names",
            f"{quoted(names)} is not a list of group names",
            control="names",
            facts={"value": quoted(names)},
        )
    return names.split() or None


def _answered(ask: Callable[[], str]) -> str:
    """The answer, or the refusal in words and nothing else."""
    try:
        return ask()
    except LayoutError as error:
        quote = f". Megatron says: {error.quote}" if error.quote else ""
        raise gr.Error(f"{error}{quote}", print_exception=False) from None


@endpoint
def process_groups(made: Made, names: str = "") -> str:
    """Every process group of a training job, as a JSON document (schema "parallel-groups").

    Args:
        names: groups to list, separated by spaces, such as "dp tp ep embd"; empty: all.
        (the layout)
    """
    return groups_json(made, _names(names))


@endpoint
def rank_table(made: Made) -> str:
    """Node, GPU, coordinates and groups of every rank, as JSON (schema "parallel-ranks").

    Args:
        (the layout)
    """
    return ranks_json(made)


@endpoint
def rank_card(made: Made, rank: int = 0) -> str:
    """Everything about one rank, as JSON: its place, its coordinates, its groups and neighbours.

    Args:
        rank: the global rank, counted from 0.
        (the layout)
    """
    rank = require_rank(made.mesh, rank)
    ring = made.every["pp"].neighbours(rank)
    return json.dumps(
        {
            "rank": rank,
            "node": int(node_of(rank, made.gpus_per_node)),
            "local_rank": int(local_rank(rank, made.gpus_per_node)),
            "dense": coordinates(made.mesh, rank),
            "expert": None if made.expert is None else coordinates(made.expert, rank),
            "pipeline_before": ring and ring[0],
            "pipeline_after": ring and ring[1],
            "groups": {
                name: {"index": one.index_of(rank), "ranks": one.members(rank).tolist()}
                for name, one in made.every.items()
            },
        }
    )


@endpoint
def node_audit(made: Made) -> str:
    """Which groups stay inside a node or an NVLink domain and which cross, as JSON.

    Args:
        (the layout)
    """
    domains = sorted({made.gpus_per_node, *DOMAINS})
    rows = audit(made.every.values(), domains)
    return json.dumps(
        {
            row[0].name: {
                str(one.domain): {
                    "groups": one.groups,
                    "crossing": one.crossing,
                    "most_domains": one.most,
                    "waits_for_links": one.is_slow,
                }
                for one in row
            }
            for row in rows
        }
    )


@endpoint
def shared_by_ranks(made: Made, ranks: str = "") -> str:
    """The groups that some ranks share, smallest first, as JSON: where a hang may come from.

    Args:
        ranks: numbers and ranges such as "3, 11, 16-23", or log lines with "rank 3".
        (the layout)
    """
    asked = parse_ranks(ranks, made.world_size)
    groups = [one for one in made.every.values() if one.size > 1]
    together, apart = shared_groups(groups, asked)
    return json.dumps(
        {
            "ranks": asked,
            "together": [
                {"names": one.names, "indices": one.indices, "ranks": one.ranks} for one in together
            ],
            "apart": {one.name: one.groups for one in apart},
        }
    )


@endpoint
def launch_command(made: Made, target: str = "megatron") -> str:
    """The options that make a layout in one framework, as text to copy.

    Args:
        target: "megatron", "nemo", "megatron-deepspeed", "deepspeed", "torchtitan" or
            "torchtitan-toml".
        (the layout)
    """
    _require_choice("target", target, TARGETS)
    return emit(job_of(made), framework=target)


@endpoint
def cluster_check(made: Made, names: str = "", megabytes: int = 64) -> str:
    """A script for torchrun that makes the same groups on the real nodes and checks them.

    Args:
        names: groups to check, separated by spaces; empty: all.
        megabytes: size of the buffer whose bandwidth is measured.
        (the layout)
    """
    return check_script(made, _names(names), megabytes=megabytes)


def read_launch(text: str = "") -> str:
    """What a launch command or a configuration asks for, as JSON. It is read, never run.

    Beside the framework and the values stand four lists of what was understood, ignored, unresolved
    or a problem: {"line", "column", "text", "sentence"}, the text as it stands at that line and
    column, both counted from 1. What is assumed for what is missing is told in sentences.

    Args:
        text: a Megatron-LM script, DeepSpeed JSON, torchtitan TOML, NeMo overrides or YAML.
    """

    def read() -> str:
        found = parse(text)
        return json.dumps(
            {
                "framework": found.framework and found.framework.name,
                "values": found.values,
                "assumed": found.assumed,
                "understood": _placed(found, found.understood),
                "ignored": _placed(found, found.ignored),
                "unresolved": _placed(found, found.unresolved),
                "problems": _placed(found, found.problems),
                "missing": [one.sentence for one in found.missing],
            }
        )

    return _answered(read)


def _placed(found: Parsed, items: Iterable[Item]) -> list[dict[str, Any]]:
    """Each item with where it stands."""
    return [
        {
            "line": one.line,
            "column": one.column,
            "text": found.text[one.start : one.end],
            "sentence": one.sentence,
        }
        for one in items
    ]


# Gradio tells the type of an answer only where it is a class, not the name of one.
read_launch.__annotations__["return"] = str

ENDPOINTS: dict[str, Callable[..., str]] = {
    "process_groups": process_groups,
    "rank_table": rank_table,
    "rank_card": rank_card,
    "node_audit": node_audit,
    "shared_by_ranks": shared_by_ranks,
    "launch_command": launch_command,
    "cluster_check": cluster_check,
    "read_launch": read_launch,
}
"""By the name under which Gradio serves them; /layout, the oldest, is in `app`."""
