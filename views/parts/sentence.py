"""The job as one sentence whose numbers are controls (client/sentence.js).

Each is an input of a field that the column has too, so that both show one value. A list of choices
is copied from the column when it is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from markupsafe import Markup

from descriptions import CONTROLS, SHELL, counted
from groups import LayoutError
from groups.megatron.grids import GTP
from request.context import Context, of_server
from request.model import model_name, model_of
from request.resolve import sizes_text
from request.trained import batch_of, cluster_of, machine_of_state

from ..base.html import tag, unparted

LONG = 3
"""Clauses before the last from which on the sentence is written smaller."""

DOUBLINGS = 10
"""How often a drag doubles the batch, after the multiples of one of each replica up to 8."""


def sentence_html(context: Context) -> Markup:
    """The sentence, in the language of the page.

    >>> from request.state import State
    >>> sentence_html(Context.of(State())).striptags()[:48]
    'Llama 3 8B on GPUs of DGX H100: every layer is c'
    """
    say = _Words(context)
    *first, last = _clauses(say)
    clauses = say("comma").join(first) + say("and") + last if first else last
    length = " long" * (len(first) >= LONG)
    marks = {"class_": f"sentence{length}", "data_name": name_of(context)}
    text = tag("p", _head(say), clauses, say("end"), **marks)
    return Markup(unparted(_CLOSED.sub(r'<span class="number-end">\g<0></span>', str(text))))


_CLOSED = re.compile(r"<input[^>]*>[^\w\s<(]")
"""A number and the sign behind it, which no line begins with."""


def name_of(context: Context) -> str:
    """The model, the machines and the sizes, as a frame in another page is named.

    >>> from request.state import State
    >>> name_of(Context.of(State(nodes=8, pp=4)))
    'Llama 3 8B · 64 GPUs · 8 × 8 · tp2 · dp8 · pp4'
    """
    layout = context.layout
    machines = SHELL["gpus_chip"][context.language].format(
        world=counted(layout.world_size, "gpu", context.language),
        nodes=f"{layout.nodes:,}",
        gpus=f"{layout.gpus_per_node:,}",
    )
    return " · ".join((_model(context), machines, sizes_text(layout)))


def _model(context: Context) -> str:
    try:
        return model_name(model_of(context.state), context.language)
    except LayoutError:  # said by the views that need it
        return SHELL["job_no_model"][context.language]


class _Words:
    """The words of the sentence, and its inputs."""

    def __init__(self, context: Context) -> None:
        self.context, self.layout, self.language = context, context.layout, context.language

    def __call__(self, name: str, /, **parts: object) -> Markup:
        return Markup(SHELL[f"job_{name}"][self.language]).format(**parts)

    def of(self, name: str, number: int, /, **parts: object) -> Markup:
        """The words for one, or for more."""
        return self(f"{name}_one" if number == 1 else name, **parts)

    def number(self, field: str, value: int, label: str = "", **marks: object) -> Markup:
        """An input of a number."""
        text, label = f"{value:,}", label or f"size_{field}"
        marks |= {"type": "text", "inputmode": "numeric", "autocomplete": "off"}
        marks |= {"data_field": field, "aria_label": SHELL[label][self.language]}
        return tag(
            "input",
            **marks,
            value=text,
            data_unsaid=value,
            class_="number",
            style=f"--n:{len(text)}",
        )

    def choice(self, field: str, value: str, name: str) -> Markup:
        """An input of a choice, which has the chosen one alone."""
        label = CONTROLS[field].label[self.language]
        chosen = tag("option", name, value=value, selected=True)
        return tag(
            "select",
            chosen,
            data_field=field,
            data_like=f"field-{field}",
            aria_label=label,
            class_="number",
        )


def _head(say: _Words) -> Markup:
    state, layout = say.context.state, say.layout
    world = say.number("nodes", layout.world_size, "job_gpus", data_times=layout.gpus_per_node)
    cluster, machine = "", "–"
    with suppress(LayoutError):  # said by the views that need it
        cluster = cluster_of(state)
        machine = machine_of_state(state).name
    return say.of(
        HEADS[layout.made_by.does],
        layout.world_size,
        model=say.choice("model", str(state.model or ""), _model(say.context)),
        machine=say.choice("cluster", cluster, machine),
        gpus=world,
    )


HEADS = {"train": "head", "serve": "served"}
"""The beginning of the sentence by what a framework does."""


def _clauses(say: _Words) -> Iterator[Markup]:
    """What each axis cuts, as far as it cuts, and who shares the batch."""
    layout, size = say.layout, say.layout.mesh.size
    tp, pp = size("tp"), size("pp")
    cp = size("cp") if "cp" in layout.mesh.names else 1
    yield say.of("tp", tp, tp=say.number("tp", tp))
    gtp = size(GTP) if GTP in layout.mesh.names else 1
    if gtp > 1:
        yield say("gtp", gtp=gtp)
    if cp > 1:
        yield say("cp" if tp > 1 else "cp_alone", cp=say.number("cp", cp))
    words = "pp_one" if pp == 1 else "pp" if tp > 1 or cp > 1 else "pp_alone"
    yield say(words, pp=say.number("pp", pp))
    experts = layout.kind("ep") if layout.has_experts else None
    if experts is not None and experts.size > 1:
        yield say("ep", ep=say.number("ep", experts.size))
    yield from _copies(say)


def _servers(say: _Words) -> Iterator[Markup]:
    count = say.layout.mesh.size("server") if "server" in say.layout.mesh.names else 1
    yield say.of("engines", count, count=f"{count:,}")


@of_server(_servers)
def _copies(say: _Words) -> Iterator[Markup]:
    """The replicas, and the batch as far as it is one."""
    dp = say.layout.mesh.size("dp")
    try:
        batch = batch_of(say.layout, say.context.state)
    except LayoutError:  # said by the views that need it
        yield say.of("dp_bare", dp, dp=f"{dp:,}")
        return
    stops = [*range(1, 9), *(8 * 2**n for n in range(1, DOUBLINGS))]
    each = batch.micro_batch * batch.dp
    box = say.number(
        "global_batch",
        batch.global_batch,
        "job_batch",
        data_stops=[each * stop for stop in stops],
    )
    yield say.of("dp", dp, dp=f"{dp:,}", batch=box)
