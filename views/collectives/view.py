"""The Collectives view: what one group does together, number by number and step by step."""

from __future__ import annotations

from itertools import islice

import numpy as np
from markupsafe import Markup

from descriptions import OPERATION_TEXTS, PAGE, SAVED, counted, joined
from groups.layout import Layout
from groups.placement import nodes_spanned
from render.draw.exchange import draw_exchange
from render.marks import Scene
from render.scenes.exchange import Block, Exchange, Flow, Member
from render.svg.marks import scene_svg
from request.answers.collectives.api import collective as collective_endpoint
from request.answers.collectives.inputs import (
    DIRECTIONS,
    MOST_MEMBERS,
    VALUES,
    CollectiveSpec,
    Tensors,
    contributors,
    exchanged,
    places_of,
    ranks_of,
    resolve_inputs,
    shape_text,
)
from request.context import Context
from request.inputs import STARTS
from request.state import State
from request.units import bytes_text, seconds_text
from request.words import saying
from training.collectives.operations import COLLECTIVES, MAPPINGS

from ..base.form import check, choice, fields, number, text
from ..base.html import chip, chips, explained, fold, heading, scrolling, tag, together, tone_class
from ..base.names import kind_text
from ..base.problems import message_html, problem_html
from ..base.view import Pictures, View
from ..parts.zooms import axis_pictures, zooms_html
from .buckets import buckets_html
from .cells import cell_of
from .steps import noted, steps_html
from .walkthrough import walkthrough_html

PIECES = ("reduce_scatter", "all_gather", "all_to_all", "gather", "scatter")
FORMULAS = {
    "all_reduce": ("2(n − 1)/n · S", "2(n − 1)"),  # noqa: RUF001
    **dict.fromkeys(PIECES, ("(n − 1)/n · S", "n − 1")),  # noqa: RUF001
    **dict.fromkeys(("broadcast", "reduce"), ("S", "n − 1")),  # noqa: RUF001
    "send_recv": ("S", "1"),
    **dict.fromkeys(("keep", "split"), ("0", "0")),
}
"""Bytes per rank and steps, as in training.collectives.cost."""

MOST_GROUPS = 4
"""The most groups drawn together, with no more ranks than one large group."""

HUBS = {
    **dict.fromkeys(("all_reduce", "reduce_scatter", "reduce", "sum_at_root"), "Σ"),
    **dict.fromkeys(("all_gather", "gather", "join_at_root"), "++"),
}
"""The sign at which all members meet, by function."""


def collectives_html(context: Context) -> Markup:
    """The whole view; the pinned rank's group is watched unless another is named.

    >>> page = collectives_html(Context.of(State()))
    >>> "all-reduce" in page
    True
    """
    layout, state, language = context.layout, context.state, context.language
    watched, counting, problems = resolve_inputs(layout, state)
    does = together(tag("code", op_name(watched.op)), PAGE["colon"][language])
    body = (
        zooms_html(context),
        heading(
            PAGE["collectives_title"][language],
            tag("p", does, OPERATION_TEXTS[watched.op].does[language]),
        ),
        _notices(layout, watched, language),
        tag(
            "div",
            _before_and_after(layout, watched, counting, language),
            tag(
                "div",
                _inputs(layout, watched, state, language),
                *(problem_html(error, language) for error in problems),
                _cost(watched, language),
            ),
            class_="collectives-top",
        ),
        tag(
            "div",
            steps_html(watched, state, language),
            _operation(layout, watched, language),
            class_="collectives-top",
        ),
        buckets_html(context, counting),
        walkthrough_html(language),
    )
    return tag("div", *body, class_="collectives")


def _inputs(layout: Layout, watched: CollectiveSpec, state: State, language: str) -> Markup:
    say, last = saying(PAGE, language), watched.grouping.num_groups - 1
    groups = [
        (f"{name} · {counted(grouping.size, 'rank', language)}", name)
        for name, grouping in layout.every.items()
    ]
    operations = [(op_name(op), op) for op in (*COLLECTIVES, *MAPPINGS)]
    directions = [(say(f"collectives_{name}"), name) for name in DIRECTIONS]
    values = [(say(f"collectives_values_{name}"), name) for name in VALUES]
    has_root = "root" in watched.operation.options
    index = say("collectives_index_hint", index=watched.index, last=last)
    rarely = (
        choice("collective_direction", state, directions, counts="forward"),
        number("collective_root", state, hint=watched.members[watched.root]) if has_root else "",
        text("collective_shape", state, hint=shape_text(watched.shape)),
        choice("collective_values", state, values, counts="count"),
        check("collective_all", state),
    )
    names = (f"collective_{name}" for name in ("direction", "root", "shape", "values", "all"))
    is_open = any(getattr(state, name).strip() not in ("", STARTS[name]) for name in names)
    return fields(
        choice("collective", state, operations, counts=watched.op),
        choice("collective_group", state, groups, counts=watched.grouping.name),
        number("collective_index", state, hint=index),
        fold(say("collectives_more"), fields(*rarely), is_open=is_open),
    )


def op_name(op: str) -> str:
    """The display name of a collective; Megatron's own names are unchanged.

    >>> op_name("all_reduce"), op_name("_reduce")
    ('all-reduce', '_reduce')
    """
    return op.replace("_", "-") if op in COLLECTIVES else op


def _notices(layout: Layout, watched: CollectiveSpec, language: str) -> Markup:
    """Notices about the group: that it has one rank, or that it is large."""
    say, name = saying(PAGE, language), watched.grouping.name
    if watched.size == 1:
        larger = [name for name, grouping in layout.every.items() if grouping.size > 1][:3]
        fixes = [({"collective_group": name}, name) for name in larger]
        return message_html(say("collectives_one", kind=name), fixes, language)
    if watched.size > MOST_MEMBERS:
        facts = {"size": f"{watched.size:,}", "shown": MOST_MEMBERS}
        return noted(say("collectives_window", kind=name, **facts))
    return Markup()


def _operation(layout: Layout, watched: CollectiveSpec, language: str) -> Markup:
    words, kind = OPERATION_TEXTS[watched.op], kind_text(layout, watched.grouping, language)
    used = tag("b", PAGE["collectives_used"][language])
    does = (
        tag("h3", tag("code", op_name(watched.op))),
        tag("p", used, " ", explained(words.used[language], language)),
    )
    group = (
        tag("h3", chips([watched.grouping.name]), " ", kind.title),
        tag("p", explained(kind.body, language)),
    )
    return tag("div", tag("div", *does), tag("div", *group), class_="collectives-what")


def _cost(watched: CollectiveSpec, language: str) -> Markup:
    say, facts = saying(PAGE, language), watched.cost_facts()
    # A formula that is a plain number says nothing beside the number.
    formula, count = (f"{part} = " if "n" in part else "" for part in FORMULAS[watched.cost])
    rows = (
        ("collectives_wire", tag("code", op_name(watched.cost))),
        ("collectives_bytes", formula, tag("b", bytes_text(facts["bytes_per_rank"]))),
        ("collectives_steps_count", count, tag("b", f"{facts['steps']:,}")),
        ("collectives_factor", tag("b", f"{facts['bus_factor']:.4g}")),
        ("collectives_least", tag("b", seconds_text(facts["least_seconds"]))),
    )
    cells = (tag("div", tag("dt", say(name)), tag("dd", *value)) for name, *value in rows)
    size, speed = bytes_text(watched.buffer_bytes), f"{watched.bytes_per_second / 1e9:g} GB/s"
    return tag(
        "div",
        tag("h3", say("collectives_cost")),
        tag("dl", *cells),
        tag("p", say("collectives_cost_of", n=f"{watched.size:,}", size=size, speed=speed)),
        class_="collectives-cost",
    )


# -- numbers before and after --------------------------------------------------------------------


def _before_and_after(
    layout: Layout, watched: CollectiveSpec, state: State, language: str
) -> Markup:
    """Pictures of the selected group, and on request of others."""
    say, every = saying(PAGE, language), exchanges(watched, state)
    flow, sentences = every[0][1].flow, [f"collectives_read_{watched.direction}"]
    if all(sender == receiver for sender, receiver in flow.pairs):
        sentences.append("collectives_still")
    else:
        hubs = {"Σ": "collectives_sum", "++": "collectives_join", "": "collectives_direct"}
        sentences.append(hubs[flow.hub])
    sentences += ["collectives_apart"] if len(every) > 1 else []
    figures = []
    for index, exchange in every:
        name = f"{watched.grouping.name} {index}"
        ranks = ", ".join(str(member.rank) for member in exchange.members)
        description = say("collectives_picture", op=op_name(watched.op), group=name, ranks=ranks)
        marks = draw_exchange(exchange, "page")
        drawn = Markup(scene_svg("collectives-exchange", exchange, marks, description))
        caption = tag(
            "figcaption",
            chip(name, tone_class(watched.grouping.name)),
            " ",
            _nodes(exchange, layout, language),
        )
        figures.append(tag("figure", scrolling("collectives-scroll", drawn), caption))
    return tag(
        "div",
        tag("div", *figures, class_="collectives-figures"),
        tag("p", joined(map(say, sentences), language), class_="collectives-how"),
        class_="collectives-now",
    )


def _nodes(exchange: Exchange, layout: Layout, language: str) -> str:
    ranks = np.array([[member.rank for member in exchange.members]])
    return counted(int(nodes_spanned(ranks, layout.gpus_per_node)[0]), "node", language)


def exchanges(watched: CollectiveSpec, state: State) -> list[tuple[int, Exchange]]:
    """The tensors of the selected group, then on request those of others, by number."""
    before, _ = exchanged(watched, [watched.members])
    bits, who = contributors(watched, before)
    flow = _flow(watched.function, who)
    shown = []
    for index, ranks in _groups(watched, state):
        tensors = zip(exchanged(watched, [ranks]), (bits, who))
        blocks = (map(_block, *both) for both in tensors)
        shown.append((index, Exchange(tuple(map(Member, ranks, *blocks)), flow)))
    return shown


def _groups(watched: CollectiveSpec, state: State) -> list[tuple[int, tuple[int, ...]]]:
    """The selected group, and as many others as there is room for."""
    grouping, size = watched.grouping, len(watched.members)
    others = (
        (index, tuple(ranks_of(grouping, index)[:size].tolist()))
        for index in range(grouping.num_groups)
        if index != watched.index
    )
    # A group of another size has other tensors; groups differ in size only where cut.
    same = (other for other in others if len(other[1]) == size)
    is_all = state.value("collective_all")
    room = min(MOST_GROUPS, MOST_MEMBERS // size) if is_all else 1
    return [(watched.index, watched.members), *islice(same, room - 1)]


def _block(tensor: np.ndarray, bits: np.ndarray) -> Block:
    """A tensor as rows of cells."""
    columns = tensor.shape[-1]
    rows = zip(tensor.reshape(-1, columns).tolist(), bits.reshape(-1, columns).tolist())
    return [list(map(cell_of, numbers, who)) for numbers, who in rows]


def _flow(function: str, who: Tensors) -> Flow:
    """Who sends to whom: the members whose numbers are in another's result, or in their own."""
    pairs = [
        (sender, receiver)
        for receiver, bits in enumerate(who)
        for sender in places_of(np.bitwise_or.reduce(bits, axis=None))
    ]
    moved = tuple(pair for pair in pairs if pair[0] != pair[1])
    if not moved:
        return Flow(tuple(pairs))
    if function not in HUBS:
        return Flow(moved)
    taking = {receiver for _, receiver in moved}
    return Flow(tuple(pair for pair in pairs if pair[1] in taking), HUBS[function])


def collectives_pictures(context: Context) -> Pictures:
    """The tensors before and after, of the selected group and on request of others."""
    watched, counting, problems = resolve_inputs(context.layout, context.state)
    if problems:
        raise problems[0]
    language, op = context.language, op_name(watched.op)
    if watched.direction != "forward":
        backward = PAGE["collectives_backward"][language]
        op += PAGE["in_brackets"][language].format(words=backward)
    ranks = counted(watched.size, "rank", language)
    if watched.size != len(watched.members):
        words = SAVED["collective_first"][language]
        ranks = words.format(shown=len(watched.members), ranks=ranks)
    pictures = list[tuple[str, Scene]]()
    for index, exchange in exchanges(watched, counting):
        nodes = _nodes(exchange, context.layout, language)
        facts = {"op": op, "kind": watched.grouping.name, "index": index}
        title = SAVED["collective"][language].format(**facts, ranks=ranks, nodes=nodes)
        pictures.append((title, exchange))
    return [*pictures, *axis_pictures(context)]


def collectives_summary(context: Context) -> str:
    watched, _, _ = resolve_inputs(context.layout, context.state)
    return OPERATION_TEXTS[watched.op].does[context.language]


VIEW = View(
    "collectives",
    "step",
    collectives_html,
    collectives_pictures,
    PAGE["collectives_title"],
    collectives_summary,
    place=4,
    endpoints=(collective_endpoint,),
)
