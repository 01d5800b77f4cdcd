"""The Collectives view: what one group does together, number by number and step by step."""

from __future__ import annotations

from html import escape

from descriptions import ALGORITHM_TEXTS, OPERATION_TEXTS, PAGE, counted, joined
from groups.layout import Layout
from render.svg.exchange import Flow, exchange_svg
from training.collectives.cost import bus_factor, bytes_per_rank, least_seconds, steps
from training.collectives.mappings import MAPPINGS
from training.collectives.operations import COLLECTIVES

from ..base.context import Context
from ..base.form import check as tick
from ..base.form import choice, fields, number, text
from ..base.names import kind_text
from ..base.problems import problem_html, said_html
from ..base.state import State
from ..base.units import bytes_text, seconds_text
from ..base.words import intro
from ..groups.view import framed
from ..nodes.view import chips
from .buckets import buckets_html
from .exchange import SUMS, ShownGroup, exchanges
from .inputs import (
    DIRECTIONS,
    MOST_MEMBERS,
    VALUES,
    CollectiveSpec,
    algorithms_of,
    resolve_inputs,
)
from .steps import steps_html
from .walkthrough import walkthrough_html

FORMULAS = {
    "all_reduce": ("2(n − 1)/n · S", "2(n − 1)"),  # noqa: RUF001
    "reduce_scatter": ("(n − 1)/n · S", "n − 1"),  # noqa: RUF001
    "all_gather": ("(n − 1)/n · S", "n − 1"),  # noqa: RUF001
    "all_to_all": ("(n − 1)/n · S", "n − 1"),  # noqa: RUF001
    "gather": ("(n − 1)/n · S", "n − 1"),  # noqa: RUF001
    "scatter": ("(n − 1)/n · S", "n − 1"),  # noqa: RUF001
    "broadcast": ("S", "n − 1"),  # noqa: RUF001
    "reduce": ("S", "n − 1"),  # noqa: RUF001
    "send_recv": ("S", "1"),
    "keep": ("0", "0"),
    "split": ("0", "0"),
}
"""Bytes per rank and steps, as training.collectives.cost works them out."""


def collectives_html(context: Context) -> str:
    """The whole view; the pinned rank's group is watched unless another is named.

    >>> page = collectives_html(Context.of(State()))
    >>> "all-reduce" in page
    True
    """
    layout, state, language = context.layout, context.state, context.language
    watched, counting, problems = resolve_inputs(layout, state)
    title, about = (PAGE[f"collectives_{word}"][language] for word in ("title", "body"))
    body = (
        f"{intro(title, about, language)}"
        f"{_inputs(layout, watched, state, language)}"
        f"{''.join(problem_html(error, language) for error in problems)}"
        f"{_notices(layout, watched, language)}"
        f"{_operation(layout, watched, language)}"
        f"{_pictures(layout, watched, counting, language)}"
        f"{_cost(watched, language)}"
        f"{_steps(watched, state, language)}"
        f"{buckets_html(layout, counting, language)}"
        f"{walkthrough_html(language)}"
    )
    return framed(context, f'<div class="collectives">{body}</div>', "collectives")


# -- inputs and what is wrong with them ----------------------------------------------------------


def _inputs(layout: Layout, watched: CollectiveSpec, state: State, language: str) -> str:
    groups = [
        (f"{name} · {counted(one.size, 'rank', language)}", name)
        for name, one in layout.every.items()
    ]
    last = watched.grouping.num_groups - 1
    boxes = [
        choice(
            "collective_group", state.collective_group or watched.grouping.name, groups, language
        ),
        number(
            "collective_index",
            state.collective_index,
            language,
            hint=PAGE["collectives_index_hint"][language].format(index=watched.index, last=last),
        ),
        choice(
            "collective",
            state.collective or watched.op,
            [(op_name(op), op) for op in (*COLLECTIVES, *MAPPINGS)],
            language,
        ),
        choice(
            "collective_direction",
            state.collective_direction or "forward",
            [(PAGE[f"collectives_{name}"][language], name) for name in DIRECTIONS],
            language,
        ),
    ]
    if "root" in watched.operation.options:
        hint = str(watched.members[watched.root])
        boxes.append(number("collective_root", state.collective_root, language, hint=hint))
    shape = "x".join(map(str, watched.shape))
    boxes += [
        text("collective_shape", state.collective_shape, language, hint=shape),
        choice(
            "collective_values",
            state.collective_values or "count",
            [(PAGE[f"collectives_values_{name}"][language], name) for name in VALUES],
            language,
        ),
        tick("collective_all", state.collective_all, language),
    ]
    return fields(*boxes)


def op_name(op: str) -> str:
    """A collective as it is written; Megatron's own names stay.

    >>> op_name("all_reduce"), op_name("_reduce")
    ('all-reduce', '_reduce')
    """
    return op.replace("_", "-") if op in COLLECTIVES else op


def _notices(layout: Layout, watched: CollectiveSpec, language: str) -> str:
    """What the reader must know of the group before the pictures: that it is one rank, or large."""
    name = watched.grouping.name
    if watched.size == 1:
        larger = [one for one, grouping in layout.every.items() if grouping.size > 1][:3]
        said = PAGE["collectives_one"][language].format(kind=name)
        return said_html(said, [({"collective_group": one}, one) for one in larger], language)
    if watched.size > MOST_MEMBERS:
        said = PAGE["collectives_window"][language].format(
            kind=name, size=f"{watched.size:,}", shown=MOST_MEMBERS
        )
        return f'<p class="collectives-note" role="note">{escape(said)}</p>'
    return ""


# -- what it does --------------------------------------------------------------------------------


def _operation(layout: Layout, watched: CollectiveSpec, language: str) -> str:
    words, kind = OPERATION_TEXTS[watched.op], kind_text(layout, watched.grouping, language)
    name = watched.grouping.name
    return (
        f'<div class="collectives-what"><div><h3><code>{escape(op_name(watched.op))}</code></h3>'
        f"<p>{escape(words.does[language])}</p>"
        f"<p><b>{PAGE['collectives_used'][language]}</b> {escape(words.used[language])}</p></div>"
        f"<div><h3>{chips([name])} {escape(kind.title)}</h3><p>{escape(kind.body)}</p></div></div>"
    )


def _pictures(layout: Layout, watched: CollectiveSpec, state: State, language: str) -> str:
    """Before and after, of the group that is watched, and of others beside it if asked."""
    every = exchanges(watched, state)
    backward = watched.direction == "backward"
    words = "collectives_read_backward" if backward else "collectives_read_forward"
    told = [PAGE[words][language], _told(watched, every[0].exchange.flow, language)]
    if len(every) > 1:
        told.append(PAGE["collectives_apart"][language])
    said = joined(told, language)
    figures = "".join(_figure(layout, watched, one, language) for one in every)
    return (
        f'<div class="collectives-now"><h3>{PAGE["collectives_numbers"][language]}</h3>'
        f"<p>{escape(said)}</p>"
        f'<div class="collectives-figures">{figures}</div></div>'
    )


def _figure(layout: Layout, watched: CollectiveSpec, shown: ShownGroup, language: str) -> str:
    name = f"{watched.grouping.name} {shown.index}"
    description = PAGE["collectives_picture"][language].format(
        op=op_name(watched.op), group=name, ranks=", ".join(map(str, shown.ranks))
    )
    nodes = counted(shown.nodes(layout), "node", language)
    return (
        f"<figure><figcaption>{chips([name])} {nodes}</figcaption>"
        f'<div class="collectives-scroll" tabindex="0">'
        f"{exchange_svg(shown.exchange, description)}</div></figure>"
    )


def _told(watched: CollectiveSpec, flow: Flow, language: str) -> str:
    """What the lines of the picture say."""
    if not any(sender != receiver for sender, receiver in flow.pairs):
        return PAGE["collectives_still"][language]
    if flow.hub:
        words = "collectives_sum" if watched.function in SUMS else "collectives_join"
        return PAGE[words][language]
    return PAGE["collectives_direct"][language]


# -- what it costs -------------------------------------------------------------------------------


def _cost(watched: CollectiveSpec, language: str) -> str:
    n, size = watched.size, watched.buffer_bytes
    sent = bytes_per_rank(watched.cost, n, size)
    # A formula that is a plain number says nothing beside the number.
    formula, count = (f"{one} = " if "n" in one else "" for one in FORMULAS[watched.cost])
    seconds = least_seconds(watched.cost, n, size, watched.bytes_per_second)
    rows = (
        ("collectives_wire", f"<code>{escape(op_name(watched.cost))}</code>"),
        ("collectives_bytes", f"{formula}<b>{bytes_text(sent)}</b>"),
        ("collectives_steps_count", f"{count}<b>{steps(watched.cost, n):,}</b>"),
        ("collectives_factor", f"<b>{bus_factor(watched.cost, n):.4g}</b>"),
        ("collectives_least", f"<b>{seconds_text(seconds)}</b>"),
    )
    cells = "".join(
        f"<div><dt>{escape(PAGE[name][language])}</dt><dd>{value}</dd></div>"
        for name, value in rows
    )
    said = PAGE["collectives_cost_of"][language].format(
        n=f"{n:,}",
        size=bytes_text(size),
        speed=f"{watched.bytes_per_second / 1e9:g} GB/s",
    )
    return (
        f'<div class="collectives-cost"><h3>{PAGE["collectives_cost"][language]}</h3>'
        f"<p>{escape(said)}</p><dl>{cells}</dl></div>"
    )


# -- step by step --------------------------------------------------------------------------------


def _steps(watched: CollectiveSpec, state: State, language: str) -> str:
    hint = f"{watched.bytes_per_second / 1e9:g}"
    boxes = [
        number("collective_mb", state.collective_mb, language, hint="100"),
        number("collective_gbs", state.collective_gbs, language, hint=hint),
    ]
    names = algorithms_of(watched)
    if names:
        offered = [(ALGORITHM_TEXTS[name].does[language], name) for name in names]
        boxes.insert(0, choice("collective_algorithm", watched.algorithm, offered, language))
    return steps_html(watched, fields(*boxes), language)
