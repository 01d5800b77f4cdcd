"""The column for a server: its own sizes under its own names, and what remains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from markupsafe import Markup

from descriptions import SERVER
from groups.frameworks import framework_or_first
from groups.layout import OF_MEGATRON, SERVED, Layout
from request.inputs import fields_of
from request.state import State, is_empty

from .base.html import tag

SIZES = ("tp", "pp", "cp", "ep", "etp", "dp", "dcp", "moe_dp")

OF_STEP = (
    "micro_batch",
    "global_batch",
    "micro_batches",
    "vpp",
    "schedule",
    "group_size",
    "account",
)
"""Fields of the job about a training step."""


@cache
def hidden_fields(framework: str) -> tuple[str, ...]:
    """The inputs of the column that a framework does not have.

    >>> hidden_fields("megatron")
    ('dp', 'dcp', 'moe_dp', 'engram', 'expert_parallel')
    """
    known = framework_or_first(framework)
    if not known.serves:
        return SERVED
    every = ("cp", "ep", "etp", *SERVED)
    missing = (name for name in every if name not in known.sizes)
    kept = ("cluster", "capacity")  # what the model is served on
    training = (name for name in fields_of("training") if name not in kept)
    return (*missing, "instances", "levels", "hybrid", *OF_MEGATRON, *OF_STEP, *training)


@cache
def names_of_sizes(framework: str, language: str) -> dict[str, str]:
    """A server's names of sizes, where they differ from training's."""
    found = {name: _label(framework, name) for name in SIZES}
    return {name: SERVER[key][language] for name, key in found.items() if key}


def _label(framework: str, name: str) -> str:
    keys = (f"{framework}.{name}", f"size_{name}") if framework_or_first(framework).serves else ()
    return next((key for key in keys if key in SERVER), "")


def remains_of_server(layout: Layout | None, state: State, language: str) -> Iterator[Markup]:
    """The sizes that remain: inside tp, and the number of servers.

    Without a layout the rows stay, so that nothing moves under the hand.
    """
    sizes = {} if layout is None else {axis.name: axis.size for axis in layout.mesh.axes}
    expert = None if layout is None else layout.expert
    experts = {} if expert is None else dict(zip(expert.names, expert.sizes))
    world = 0 if layout is None else layout.world_size
    of_tp = 1 if layout is None else layout.every["tp"].size
    get = sizes.get
    if state.framework == "sglang":
        inside = [get("dp", 1), get("cp", 1)]
        yield _remains("attention_tp", of_tp, inside, get("tp"), language)
        inside = [experts.get("ep", 1), experts.get("edp", 1)]
        yield _remains("moe_tp", of_tp, inside, experts.get("etp"), language)
    if state.framework == "tensorrt-llm":
        yield _remains("moe_tp", of_tp, [experts.get("ep", 1)], experts.get("etp"), language)
    one = [of_tp, get("pp", 1)]
    one += [] if state.framework == "sglang" else [get("cp", 1)]
    if state.framework == "vllm" and is_empty(state.dp):
        yield _remains("dp", world, one, get("dp"), language)
        return
    one += [get("dp", 1)] if state.framework == "vllm" else []
    servers = None if layout is None else get("server", 1)
    yield _remains("servers", world, one, servers, language)


def _remains(name: str, whole: int, parts: list[int], result: int | None, language: str) -> Markup:
    label = SERVER[f"remains_{name}"][language]
    how = "" if result is None else f"{whole:,} / ({'·'.join(f'{n:,}' for n in parts)}) = "
    size = "–" if result is None else f"{result:,}"
    return tag("p", tag("b", label), tag("span", how, tag("strong", size)), class_="remains")
