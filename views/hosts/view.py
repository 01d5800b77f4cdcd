"""The Hosts view: machines by name, which groups leave them, and a better order of the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from markupsafe import Markup

from descriptions import HOSTS_WORDS, LAUNCHER_NOTES, PAGE, RUN, close_up, counted
from formats.hosts.order import OBJECTIVES, TIME, BetterOrder, better_order
from formats.hosts.placing import launcher_files, placement_of
from formats.hosts.values import Hosts
from groups import LayoutError
from groups.alternatives import works
from groups.errors import not_a_choice
from groups.layout import Layout
from groups.placement import Placement
from render.palette import PALETTE

from ..base import form
from ..base.context import Context, View
from ..base.html import chips, fine, fold, heading, rest_text, saying, table, tag, together
from ..base.problems import fix_label, problem_html
from ..base.resolve import resolve
from ..base.state import FIELDS, State, is_empty
from ..base.units import ranges_text, seconds_text
from ..nodes.view import audit_of, level_head, level_name, share_bar
from .inputs import hosts_of, notes_text
from .measures import measures_html, measures_pictures, measures_summary

ROWS = 64
"""Machines that are listed, and shown in their order."""


def hosts_html(context: Context) -> Markup:
    """What the text says, where the groups stand, a better order; then measurements."""
    layout, state, language = context.layout, context.state, context.language
    say, empty = saying(RUN, language), ""
    try:
        hosts = hosts_of(state)
        body = _answer(hosts, context) if hosts else ""
        empty = "" if hosts else tag("p", say("hosts_empty"))
    except LayoutError as error:
        body = _refused(error, state)
    boxes = [form.area(name, getattr(state, name), language, rows=5) for name in ("hosts", "racks")]
    names, racks = example_of(layout)
    example = tag("p", form.setter({"hosts": names, "racks": racks}, say("hosts_example")))
    inputs = together(form.fields(*boxes), example if is_empty(state.hosts) else "")
    return together(heading(say("hosts_title"), empty), body, inputs, measures_html(context))


def example_of(layout: Layout) -> tuple[str, str]:
    """As many machines as the layout has, in the order of their names, by turns in two racks."""
    names = [f"gpu-{node:02}" for node in range(min(layout.nodes, 512))]
    racks = [names[:1], names[1:]] if len(names) < 4 else [names[::2], names[1::2]]
    lines = (f"SwitchName=rack{at} Nodes={','.join(rack)}" for at, rack in enumerate(racks) if rack)
    return "\n".join(names), "\n".join(lines)


def _refused(error: LayoutError, state: State) -> Markup:
    """A refusal with those of its fixes with which the sizes of the layout work."""
    fixes = [fix for fix in error.alternatives if fix.keys() <= FIELDS.keys()]
    tried = [fix for fix in fixes if works(resolve, state.changed(fix))]
    return problem_html(error, state.language, tried)


# -- what the text says --------------------------------------------------------------------------


def _answer(hosts: Hosts, context: Context) -> Markup:
    layout, language = context.layout, context.language
    placement = placement_of(hosts, layout.world_size, layout.gpus_per_node)
    levels = ((len({*of.values()}), kind) for kind, of in hosts.levels.items())
    places = PAGE["and_list"][language].join(_counted_level(*level, language) for level in levels)
    said = RUN["hosts_said"][language].format(
        hosts=counted(len(placement.hosts), "host", language),
        gpus=counted(placement.world_size, "gpu", language),
        places=places or RUN["hosts_no_places"][language],
    )
    remarks = notes_text(hosts.remarks[:16], language)
    return together(
        fine(said),
        _list_of(remarks, "warnings") if remarks else "",
        _order(hosts, context),
        _audit(placement, layout, language),
        _list(hosts, placement, language),
    )


def _list_of(sentences: Iterable[str], kind: str) -> Markup:
    return tag("ul", *(tag("li", sentence) for sentence in sentences), class_=kind)


def _counted_level(count: int, kind: str, language: str) -> str:
    """
    >>> _counted_level(2, "switch", "en"), _counted_level(1, "rack", "en")
    ('2 switches', '1 rack')
    """
    level = level_name(kind, language)
    if language == "en" and kind in HOSTS_WORDS:
        plural = "" if count == 1 else "es" if level.endswith("ch") else "s"
        return f"{count:,} {level}{plural}"
    return RUN["hosts_places"][language].format(count=f"{count:,}", level=level)


def _list(hosts: Hosts, placement: Placement, language: str) -> Markup:
    say = saying(RUN, language)
    ranks: dict[int, list[int]] = {}
    for rank, node in enumerate(placement.nodes.tolist()):
        ranks.setdefault(node, []).append(rank)
    heads = [say("column_host"), "GPU", say("column_slots")]
    heads += [level_head(kind, language) for kind in placement.levels]
    rows = []
    for node, host in enumerate(placement.hosts[:ROWS]):
        slots = say("slots_unsaid") if hosts.slots[host] is None else hosts.slots[host]
        places = (of.get(host, "–") for of in placement.levels.values())
        rows.append((tag("code", host), ranges_text(ranks.get(node, [])), slots, *places))
    more = rest_text(len(placement.hosts) - ROWS, language)
    return fold(say("hosts_list"), table(heads, rows), more)


def _audit(placement: Placement, layout: Layout, language: str) -> Markup:
    """Which groups leave a machine and each place above it."""
    audit = audit_of(layout, placement, by_size=False)
    heads = [PAGE["column_group"][language], RUN["column_group_size"][language]]
    heads += [level_head(kind, language) for kind in audit.places]
    return together(tag("h3", RUN["hosts_audit"][language]), audit.table(heads, language))


# -- a better order ------------------------------------------------------------------------------


def better_of(hosts: Hosts, context: Context) -> BetterOrder:
    """The best order for the layout, by the seconds of the model's step where one is chosen.

    Errors: as `formats.hosts.order.better_order`; and for an objective that the page has not.
    """
    objective, known = context.state.objective, (TIME, *OBJECTIVES)
    if not isinstance(objective, str) or objective not in known:
        raise not_a_choice("objective", objective, known)
    seconds = None
    if not is_empty(context.state.model):
        with suppress(LayoutError):  # views of the model say why
            seconds = context.trained.estimate(context.layout).parts
    return better_order(context.layout, hosts, objective, seconds)


def _order(hosts: Hosts, context: Context) -> Markup:
    """A better order: what it mends, its machines, the groups of each kind, files of launchers."""
    state, language = context.state, context.language
    say = saying(RUN, language)
    title = tag("h3", say("order_title"))
    if not hosts.racks:
        return together(title, fine(say("order_needs_racks")))
    choices = [(say(f"objective_{name[:2]}"), name) for name in (TIME, "dp-first", "pp-first")]
    box = form.fields(form.choice("objective", state.objective, choices, language))
    try:
        better = better_of(hosts, context)
    except LayoutError as error:
        return together(title, _refused(error, state), box)
    fixes: list[object] = []
    if not better.is_kept:
        racks = state.hosts if is_empty(state.racks) else state.racks
        changes = {"hosts": "\n".join(better.names), "racks": racks}
        fixes.append(form.setter(changes, say("use_order")))
    for fix in better.fixes:  # layouts that mend what no order can
        said = tag("span", say(f"fix_{fix.place}", kind=fix.kind))
        fixes += [said, " ", form.setter(fix.changes, fix_label(fix.changes, language))]
    verdict = (tag("p", _verdict(better, context)), tag("p", *fixes, class_="fixes"))
    return together(
        title,
        tag("div", *verdict, class_="verdict"),
        _machines(better, hosts.racks, language),
        _crossings(better, language),
        _list_of(notes_text(better.reasons, language), "reasons"),
        box,
        _files(better, language),
    )


def _verdict(better: BetterOrder, context: Context) -> str:
    """What the order is worth: groups in several racks, seconds, and what is above the racks."""
    language, say = context.language, saying(RUN, context.language)

    def counts(*keys: Iterable[int]) -> str:
        levels = zip(better.objective.split(", "), *keys)
        said = (
            f"{level} {before:,}" + (f" → {after:,}" if before != after else "")
            for level, before, after in levels
            if before or after
        )
        return PAGE["and_list"][language].join(said) or "0"

    words = [
        say(
            "order_kept" if better.is_kept else "order_better",
            moved=counted(better.moved, "host", language),
            counts=counts(better.key_before, better.key),
        )
    ]
    if better.costs:
        before, after = seconds_text(better.cost_before), seconds_text(better.cost)
        model = context.trained.name(language)
        words.append(close_up(say("order_seconds", model=model, before=before, after=after)))
    for upper in better.upper:
        level = level_name(upper.kind, language)
        words.append(say("order_above", level=level, counts=counts(upper.key_before, upper.key)))
    return " ".join(words)


def _machines(better: BetterOrder, racks: Mapping[str, str], language: str) -> Markup:
    """The machines in their order, before and after, each with its rack."""
    first = dict.fromkeys(racks[host] for host in better.names_before)
    colours = {rack: f"--rack:var(--g{at % len(PALETTE)})" for at, rack in enumerate(first)}
    orders = {"order_before": better.names_before, "order_after": better.names}
    parts = []
    for words, names in list(orders.items())[: 1 if better.is_kept else 2]:
        items = [
            tag("li", name, tag("small", racks[name]), class_="rack", style=colours[racks[name]])
            for name in names[:ROWS]
        ]
        if len(names) > ROWS:
            items.append(tag("li", f"+ {len(names) - ROWS:,}"))
        listed = tag("ol", *items, class_="machines")
        parts.append(tag("figure", tag("figcaption", RUN[words][language]), listed))
    return tag("div", tag("div", *parts), class_="pair")


def _crossings(better: BetterOrder, language: str) -> Markup:
    """The groups of each kind in several racks, before and after, side by side."""
    say = saying(RUN, language)
    names = ["column_leave", "column_before", "column_after", "column_least"]
    names += ["column_seconds_before", "column_seconds_after"] if better.costs else []
    rows = []
    for kind in better.kinds:
        cells: list[object] = []
        for count in (kind.leave_node, kind.before, kind.after, kind.least):
            said = say("of_groups", count=f"{count:,}", groups=f"{kind.groups:,}")
            cells.append(together(share_bar(count / max(1, kind.groups)), said))
        if better.costs:
            each = better.costs.get(kind.kind, 0.0)
            cells += [seconds_text(each * count) for count in (kind.before, kind.after)]
        rows.append((chips([kind.kind]), *cells))
    return table([PAGE["column_group"][language], *map(say, names)], rows, "audit")


def _files(better: BetterOrder, language: str) -> Markup:
    """What each launcher obeys, to be copied, with what to know of it."""
    parts = []
    for name, text in launcher_files(better.names, better.gpus_per_node).items():
        lines = text.splitlines(keepends=True)
        text = "".join(lines[:20_000]) + ("...\n" if len(lines) > 20_000 else "")
        note = LAUNCHER_NOTES["openmpi" if name == "rankfile" else name][language]
        copied = form.copyable(text, language)
        parts.append(fold(RUN[f"file_{name}"][language], fine(note), copied))
    return together(tag("h3", RUN["order_files"][language]), *parts)


VIEW = View("hosts", "run", hosts_html, measures_pictures, RUN["measures_title"], measures_summary)
