"""The speed of the servers on screen, from the page's state; and the four numbers of a server.

>>> from request.state import State
>>> fields = {"framework": "vllm", "nodes": 1, "tp": 8, "pp": 1, "model": "llama3-70b"}
>>> context = Context.of(State(**{name: str(value) for name, value in fields.items()}))
>>> found = speed_of(context)
>>> found.servers, round(found.answered), round(1e3 * found.speed.seconds)
(1, 64, 19)
"""

from __future__ import annotations

from typing import NamedTuple

from groups import LayoutError
from groups.layout import Layout
from training.serving.asked import AskedServer
from training.serving.layouts import (
    ServedLayout,
    ServedSearch,
    ServingJob,
    asked_server,
    search_servers,
    served_layout,
)
from training.serving.work import Load, sent_bytes, step_work

from ...context import Context
from ...errors import refusal
from ...served import served_of
from ...state import State
from ...trained import machine_of_state

AT_ONCE, PROMPT, ANSWER = 64, 1024, 1024
"""Requests at once, and tokens of a prompt and of an answer, where nobody says others."""

DIVIDED = ("prefill", "decode")
"""Names of roles that share the work of a server: one reads prompts, the other answers."""


def load_of(state: State) -> Load:
    """The requests that are asked about, of all servers together."""
    requests, prompt, answer = (
        default if (value := state.values[name]) is None else value
        for name, default in (
            ("served_at_once", AT_ONCE),
            ("served_prompt", PROMPT),
            ("served_answer", ANSWER),
        )
    )
    return Load(float(requests), float(prompt), float(answer))


def serving_job(context: Context) -> ServingJob:
    """What is served, on which GPUs, and for whom.

    Errors: LayoutError for a training job, and about the invalid field.
    """
    return context.once(_serving_job)


def _serving_job(context: Context) -> ServingJob:
    layout, state = context.layout, context.state
    if not layout.is_server:
        raise refusal("not-a-server", "framework", {"framework": "vllm"})
    served = served_of(context)
    chosen = served.chosen
    return ServingJob(
        *(served.model, machine_of_state(state), served.serving, layout.framework),
        nodes=layout.job.nodes,
        gpus_per_node=layout.gpus_per_node,
        total=served.memory.total,
        load=load_of(state),
        bound=(state.values["served_tpot"] or 0) / 1e3,
        name="" if chosen.changed else chosen.preset,
        speculative=bool(state.values["served_guesses"]),
        disaggregated=_is_divided(context),
    )


def _is_divided(context: Context) -> bool:
    """Whether roles of the cluster read prompts for each other."""
    if not context.state.roles:
        return False
    names = [member.name.lower() for member in context.cast.members]
    return all(any(part in name for name in names) for part in DIVIDED)


def speed_of(context: Context) -> ServedLayout:
    """What the servers on screen answer, and how fast.

    Errors: LayoutError for what does not start, does not fit, or is not told.
    """
    return context.once(_speed)


def _speed(context: Context) -> ServedLayout:
    return served_layout(serving_job(context), context.layout, served_of(context).memory)


def search_of(context: Context) -> ServedSearch:
    """The best layouts of servers on these GPUs for the same target.

    Errors: LayoutError about the invalid field.
    """
    return search_servers(serving_job(context))


# -- the four numbers ------------------------------------------------------------------------------


class ServerNumbers(NamedTuple):
    """The four numbers of a server's first screen.

    Attributes:
        sharing: GPUs that work on one request together: a part of attention, and all stages.
        parts: how many such groups the GPUs have.
        held: bytes of a GPU that weights and working space take; capacity: all that programs see.
        tokens: tokens that the caches hold, and requests of the longest length.
        speed: of the servers on screen; refused: why it is not told.
        leaves: bytes that a node sends out in a step for one token of every request; None where
            the speed's load does not fit.
    """

    sharing: int
    parts: int
    held: float
    capacity: float
    tokens: int
    requests: float
    speed: ServedLayout | None
    refused: LayoutError | None
    leaves: float


def numbers_of_server(context: Context) -> ServerNumbers:
    """The four numbers: who shares a request, memory and tokens of the cache, seconds of a token
    and tokens a second, what leaves a node.

    Errors: LayoutError where the memory of the server is refused.
    """
    served = served_of(context)
    stage = served.memory.deciding
    speed, refused = None, None
    try:
        speed = speed_of(context)
    except LayoutError as error:
        refused = error
    server = asked_server(serving_job(context), context.layout)
    sharing = served.gpus // server.parts
    own = speed.answered / speed.servers if speed else load_of(context.state).requests
    return ServerNumbers(
        sharing=sharing,
        parts=context.layout.world_size // sharing,
        held=stage.weights + stage.working,
        capacity=served.memory.total,
        tokens=served.tokens,
        requests=served.requests,
        speed=speed,
        refused=refused,
        leaves=leaving_bytes(context.layout, server, load_of(context.state), own),
    )


def leaving_bytes(layout: Layout, server: AskedServer, load: Load, requests: float) -> float:
    """Bytes that a node sends to others in a step of one server with so many requests.

    A ring of a group that stands on several nodes leaves each of them once: as much as one of its
    GPUs sends. A stage's outputs leave where the next one stands on another node.
    """
    each, pp = layout.gpus_per_node, server.cut.pp
    own = Load(max(requests, 1e-9) / pp, load.prompt, load.answer)
    formats = (server.weights, server.cache, server.parts)
    work = step_work(server.model, server.cut, own, *formats)
    sent = sent_bytes(work, server.cut.attention, server.sharing, beyond=each)
    if pp > 1 and server.gpus > each:
        sent += pp * 2.0 * server.model.hidden * own.tokens
    return sent
