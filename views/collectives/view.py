"""The Collectives view: what one group does together, number by number and step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from markupsafe import Markup

from descriptions import ALGORITHM_TEXTS, OPERATION_TEXTS, PAGE, SAVED, counted, joined
from groups.layout import Layout
from render.scenes.exchange import Flow, draw_exchange
from render.svg.marks import scene_svg
from training.collectives.cost import bus_factor, bytes_per_rank, least_seconds, steps
from training.collectives.mappings import MAPPINGS
from training.collectives.operations import COLLECTIVES

from ..base.context import Context, Pictures, View
from ..base.form import check as tick
from ..base.form import choice, fields, number, text
from ..base.html import intro, saying, scrolling, tag
from ..base.names import kind_text
from ..base.problems import problem_html, said_html
from ..base.state import State
from ..base.units import bytes_text, seconds_text
from ..nodes.view import chips
from .buckets import buckets_html
from .exchange import SUMS, ShownGroup, exchanges
from .inputs import DIRECTIONS, MOST_MEMBERS, VALUES, CollectiveSpec, algorithms_of, resolve_inputs
from .steps import noted, steps_html
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


def collectives_html(context: Context) -> Markup:
    """The whole view; the pinned rank's group is watched unless another is named.

    >>> page = collectives_html(Context.of(State()))
    >>> "all-reduce" in page
    True
    """
    layout, state, language = context.layout, context.state, context.language
    watched, counting, problems = resolve_inputs(layout, state)
    say = saying(PAGE, language)
    body = (
        intro(say("collectives_title"), say("collectives_body"), language),
        _inputs(layout, watched, state, language),
        *(problem_html(error, language) for error in problems),
        _notices(layout, watched, language),
        _operation(layout, watched, language),
        _pictures(layout, watched, counting, language),
        _cost(watched, language),
        _steps(watched, state, language),
        buckets_html(context, counting),
        walkthrough_html(language),
    )
    return tag("div", *body, class_="collectives")


def _inputs(layout: Layout, watched: CollectiveSpec, state: State, language: str) -> Markup:
    say, last = saying(PAGE, language), watched.grouping.num_groups - 1

    def list_of(name: str, start: str, options: Iterable[tuple[str, str]]) -> Markup:
        return choice(name, getattr(state, name) or start, options, language)

    def box(name: str, hint: str, kind: Callable[..., Markup] = number) -> Markup:
        return kind(name, getattr(state, name), language, hint=hint)

    groups = [
        (f"{name} · {counted(grouping.size, 'rank', language)}", name)
        for name, grouping in layout.every.items()
    ]
    operations = [(op_name(op), op) for op in (*COLLECTIVES, *MAPPINGS)]
    directions = [(say(f"collectives_{name}"), name) for name in DIRECTIONS]
    values = [(say(f"collectives_values_{name}"), name) for name in VALUES]
    has_root = "root" in watched.operation.options
    return fields(
        list_of("collective_group", watched.grouping.name, groups),
        box("collective_index", say("collectives_index_hint", index=watched.index, last=last)),
        list_of("collective", watched.op, operations),
        list_of("collective_direction", "forward", directions),
        box("collective_root", str(watched.members[watched.root])) if has_root else "",
        box("collective_shape", "x".join(map(str, watched.shape)), text),
        list_of("collective_values", "count", values),
        tick("collective_all", state.collective_all, language),
    )


def op_name(op: str) -> str:
    """A collective as it is written; Megatron's own names stay.

    >>> op_name("all_reduce"), op_name("_reduce")
    ('all-reduce', '_reduce')
    """
    return op.replace("_", "-") if op in COLLECTIVES else op


def _notices(layout: Layout, watched: CollectiveSpec, language: str) -> Markup:
    """What the reader must know of the group before the pictures: that it is one rank, or large."""
    say, name = saying(PAGE, language), watched.grouping.name
    if watched.size == 1:
        larger = [name for name, grouping in layout.every.items() if grouping.size > 1][:3]
        fixes = [({"collective_group": name}, name) for name in larger]
        return said_html(say("collectives_one", kind=name), fixes, language)
    if watched.size > MOST_MEMBERS:
        facts = {"size": f"{watched.size:,}", "shown": MOST_MEMBERS}
        return noted(say("collectives_window", kind=name, **facts))
    return Markup()


def _operation(layout: Layout, watched: CollectiveSpec, language: str) -> Markup:
    words, kind = OPERATION_TEXTS[watched.op], kind_text(layout, watched.grouping, language)
    used = tag("b", PAGE["collectives_used"][language])
    does = (
        tag("h3", tag("code", op_name(watched.op))),
        tag("p", words.does[language]),
        tag("p", used, " ", words.used[language]),
    )
    group = tag("h3", chips([watched.grouping.name]), " ", kind.title), tag("p", kind.body)
    return tag("div", tag("div", *does), tag("div", *group), class_="collectives-what")


def _pictures(layout: Layout, watched: CollectiveSpec, state: State, language: str) -> Markup:
    """Before and after, of the group that is watched, and of others beside it if asked."""
    say, every = saying(PAGE, language), exchanges(watched, state)
    backward = watched.direction == "backward"
    said = ["collectives_read_backward" if backward else "collectives_read_forward"]
    said.append(_flow_words(watched, every[0].exchange.flow))
    said += ["collectives_apart"] if len(every) > 1 else []
    figures = (_figure(layout, watched, name, language) for name in every)
    return tag(
        "div",
        tag("h3", say("collectives_numbers")),
        tag("p", joined(map(say, said), language)),
        tag("div", *figures, class_="collectives-figures"),
        class_="collectives-now",
    )


def _figure(layout: Layout, watched: CollectiveSpec, group: ShownGroup, language: str) -> Markup:
    name = f"{watched.grouping.name} {group.index}"
    description = PAGE["collectives_picture"][language].format(
        op=op_name(watched.op), group=name, ranks=", ".join(map(str, group.ranks))
    )
    nodes = counted(group.nodes(layout), "node", language)
    marks = draw_exchange(group.exchange, "page")
    drawn = Markup(scene_svg("collectives-exchange", group.exchange, marks, description))
    caption = tag("figcaption", chips([name]), " ", nodes)
    return tag("figure", caption, scrolling("collectives-scroll", drawn))


def _flow_words(watched: CollectiveSpec, flow: Flow) -> str:
    """What the lines of the picture say."""
    if not any(sender != receiver for sender, receiver in flow.pairs):
        return "collectives_still"
    if flow.hub:
        return "collectives_sum" if watched.function in SUMS else "collectives_join"
    return "collectives_direct"


def _cost(watched: CollectiveSpec, language: str) -> Markup:
    say, n, size = saying(PAGE, language), watched.size, watched.buffer_bytes
    sent = bytes_per_rank(watched.cost, n, size)
    # A formula that is a plain number says nothing beside the number.
    formula, count = (f"{part} = " if "n" in part else "" for part in FORMULAS[watched.cost])
    seconds = least_seconds(watched.cost, n, size, watched.bytes_per_second)
    rows = (
        ("collectives_wire", tag("code", op_name(watched.cost))),
        ("collectives_bytes", formula, tag("b", bytes_text(sent))),
        ("collectives_steps_count", count, tag("b", f"{steps(watched.cost, n):,}")),
        ("collectives_factor", tag("b", f"{bus_factor(watched.cost, n):.4g}")),
        ("collectives_least", tag("b", seconds_text(seconds))),
    )
    cells = (tag("div", tag("dt", say(name)), tag("dd", *value)) for name, *value in rows)
    speed = f"{watched.bytes_per_second / 1e9:g} GB/s"
    return tag(
        "div",
        tag("h3", say("collectives_cost")),
        tag("p", say("collectives_cost_of", n=f"{n:,}", size=bytes_text(size), speed=speed)),
        tag("dl", *cells),
        class_="collectives-cost",
    )


def _steps(watched: CollectiveSpec, state: State, language: str) -> Markup:
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


def collectives_pictures(context: Context) -> Pictures:
    """The tensors before and after, of the group that is watched and of others if that is asked."""
    watched, counting, problems = resolve_inputs(context.layout, context.state)
    if problems:
        raise problems[0]
    language, op = context.language, op_name(watched.op)
    if watched.direction != "forward":
        op += f" ({PAGE['collectives_backward'][language]})"
    ranks = counted(watched.size, "rank", language)
    if watched.size != len(watched.members):
        words = SAVED["collective_first"][language]
        ranks = words.format(shown=len(watched.members), ranks=ranks)
    pictures: Pictures = []
    for group in exchanges(watched, counting):
        nodes = counted(group.nodes(context.layout), "node", language)
        facts = {"op": op, "kind": watched.grouping.name, "index": group.index}
        title = SAVED["collective"][language].format(**facts, ranks=ranks, nodes=nodes)
        pictures.append((title, group.exchange))
    return pictures


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
)
