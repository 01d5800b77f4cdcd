"""The Hosts view: machines by name, which groups leave them, and a better order of the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from descriptions import (
    HOSTS_REMARKS,
    HOSTS_WORDS,
    LAUNCHER_NOTES,
    ORDER_REASONS,
    PAGE,
    RUN,
    Text,
    counted,
)
from formats.hosts.order import OBJECTIVES, TIME, BetterOrder, better_order
from formats.hosts.placing import launcher_files, placement_of
from formats.hosts.values import Hosts
from formats.notes import Note
from groups import LayoutError
from groups.audit import span
from groups.errors import not_a_choice
from groups.layout import Layout
from groups.placement import Placement
from render.palette import PALETTE

from ..base import form
from ..base.context import Context, View
from ..base.html import fine, fold, heading, rest_text, table, tag, together
from ..base.problems import fix_label, problem_html
from ..base.state import is_empty, is_fix
from ..base.units import ranges_text, seconds_text
from ..nodes.view import (
    audit_row,
    chips,
    lead_of,
    level_head,
    level_name,
    same_groups,
    share_bar,
)
from .inputs import hosts_of
from .measures import measures_html, measures_pictures, measures_summary

ROWS = 64
"""Machines that are listed, and shown in their order."""


def hosts_html(context: Context) -> str:
    """What the text says, where the groups stand, a better order; then measurements."""
    layout, state, language = context.layout, context.state, context.language
    try:
        hosts = hosts_of(state)
        body = _answer(hosts, context) if hosts else fine(RUN["hosts_empty"][language])
    except LayoutError as error:
        body = _refused(error, language)
    boxes = [form.area(name, getattr(state, name), language, rows=5) for name in ("hosts", "racks")]
    names, racks = example_of(layout)
    example = form.setter({"hosts": names, "racks": racks}, RUN["hosts_example"][language])
    inputs = together(form.fields(*boxes), tag("p", example) if is_empty(state.hosts) else "")
    title = heading(RUN["hosts_title"][language])
    return together(title, body, inputs, measures_html(context))


def _answer(hosts: Hosts, context: Context) -> Markup:
    layout, language = context.layout, context.language
    placement = placement_of(hosts, layout.world_size, layout.gpus_per_node)
    return together(
        _said(hosts, placement, language),
        _order(hosts, context),
        _audit(placement, layout, language),
        _list(hosts, placement, language),
    )


def example_of(layout: Layout) -> tuple[str, str]:
    """As many machines as the layout has, in the order of their names, by turns in two racks."""
    names = [f"gpu-{node:02}" for node in range(min(layout.nodes, 512))]
    racks = [names[:1], names[1:]] if len(names) < 4 else [names[::2], names[1::2]]
    lines = (f"SwitchName=rack{at} Nodes={','.join(rack)}" for at, rack in enumerate(racks) if rack)
    return "\n".join(names), "\n".join(lines)


def _refused(error: LayoutError, language: str) -> Markup:
    return problem_html(error, language, [fix for fix in error.alternatives if is_fix(fix)])


# -- what the text says --------------------------------------------------------------------------


def _said(hosts: Hosts, placement: Placement, language: str) -> Markup:
    """One sentence of what there is, then the remarks."""
    places = PAGE["and_list"][language].join(
        _counted_level(len({*of.values()}), kind, language) for kind, of in hosts.levels.items()
    )
    text = RUN["hosts_said"][language].format(
        hosts=counted(len(placement.hosts), "host", language),
        gpus=counted(placement.world_size, "gpu", language),
        places=places or RUN["hosts_no_places"][language],
    )
    remarks = _listed(hosts.remarks[:16], HOSTS_REMARKS, "warnings", language)
    return together(tag("p", text, class_="fine"), remarks if hosts.remarks else "")


def _listed(remarks: Iterable[Note], words: Mapping[str, Text], kind: str, language: str) -> Markup:
    items = (tag("li", words[remark.code][language].format(**remark.facts)) for remark in remarks)
    return tag("ul", *items, class_=kind)


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
    ranks: dict[int, list[int]] = {}
    for rank, node in enumerate(placement.nodes.tolist()):
        if node < ROWS:
            ranks.setdefault(node, []).append(rank)
    heads = [RUN["column_host"][language], "GPU", RUN["column_slots"][language]]
    heads += [level_head(kind, language) for kind in placement.levels]
    rows = []
    for node, host in enumerate(placement.hosts[:ROWS]):
        slots = RUN["slots_unsaid"][language] if hosts.slots[host] is None else hosts.slots[host]
        places = (of.get(host, "–") for of in placement.levels.values())
        rows.append((tag("code", host), ranges_text(ranks.get(node, [])), slots, *places))
    more = rest_text(len(placement.hosts) - ROWS, language)
    return fold(RUN["hosts_list"][language], table(heads, rows), more)


def _audit(placement: Placement, layout: Layout, language: str) -> Markup:
    """Which groups leave a machine and each place above it."""
    levels = {kind: placement.of_ranks(kind) for kind in ("node", *placement.levels)}
    rows = []
    for names, grouping in same_groups(layout.every.values()):
        spans = [span(grouping, of, kind) for kind, of in levels.items()]
        rows.append(audit_row(names, spans, lead_of(names, grouping, layout, spans[0]), language))
    heads = [PAGE["column_group"][language], RUN["column_group_size"][language]]
    heads += [level_head(kind, language) for kind in levels]
    return together(tag("h3", RUN["hosts_audit"][language]), table(heads, rows, "audit"))


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
        try:
            seconds = context.trained.estimate(context.layout).parts
        except LayoutError:  # views of the model say why
            seconds = None
    return better_order(context.layout, hosts, objective, seconds)


def _order(hosts: Hosts, context: Context) -> Markup:
    """A better order: what it mends, its machines, the groups of each kind, files of launchers."""
    state, language = context.state, context.language
    title = tag("h3", RUN["order_title"][language])
    if not hosts.racks:
        return together(title, tag("p", RUN["order_needs_racks"][language], class_="fine"))
    choices = [
        (RUN[f"objective_{name[:2]}"][language], name) for name in (TIME, "dp-first", "pp-first")
    ]
    box = form.fields(form.choice("objective", state.objective, choices, language))
    try:
        better = better_of(hosts, context)
    except LayoutError as error:
        return together(title, _refused(error, language), box)
    fixes: list[object] = []
    if not better.is_kept:
        racks = state.hosts if is_empty(state.racks) else state.racks
        changes = {"hosts": "\n".join(better.names), "racks": racks}
        fixes.append(form.setter(changes, RUN["use_order"][language]))
    for fix in better.fixes:  # layouts that mend what no order can
        said = tag("span", RUN[f"fix_{fix.place}"][language].format(kind=fix.kind))
        fixes += [said, " ", form.setter(fix.changes, fix_label(fix.changes, language))]
    verdict = (tag("p", _verdict(better, context)), tag("p", *fixes, class_="fixes"))
    return together(
        title,
        tag("div", *verdict, class_="verdict"),
        _machines(better, hosts, language),
        _crossings(better, language),
        _listed(better.reasons, ORDER_REASONS, "reasons", language),
        box,
        _files(better, language),
    )


def _verdict(better: BetterOrder, context: Context) -> str:
    """What the order is worth: groups in several racks, seconds, and what is above the racks."""
    language = context.language
    words = [
        RUN["order_kept" if better.is_kept else "order_better"][language].format(
            moved=counted(better.moved, "host", language),
            before=_counts(better.key_before),
            after=_counts(better.key),
            objective=better.objective,
        )
    ]
    if better.costs:
        words.append(
            RUN["order_seconds"][language].format(
                model=context.trained.name,
                before=seconds_text(better.cost_before),
                after=seconds_text(better.cost),
            )
        )
    for upper in better.upper:
        level, before, after = level_name(upper.kind, language), upper.key_before, upper.key
        words.append(
            RUN["order_above"][language].format(
                level=level, before=_counts(before), after=_counts(after)
            )
        )
    return " ".join(words)


def _counts(key: Iterable[int]) -> str:
    return " · ".join(f"{part:,}" for part in key)


def _machines(better: BetterOrder, hosts: Hosts, language: str) -> Markup:
    """The machines in their order, before and after, each with its rack."""
    racks = hosts.racks
    numbers = {
        rack: at
        for at, rack in enumerate(dict.fromkeys(racks[host] for host in better.names_before))
    }
    orders = {"order_before": better.names_before}
    if not better.is_kept:
        orders["order_after"] = better.names
    parts = []
    for words, names in orders.items():
        items = []
        for name in names[:ROWS]:
            colour = f"--rack:var(--g{numbers[racks[name]] % len(PALETTE)})"
            items.append(tag("li", name, tag("small", racks[name]), class_="rack", style=colour))
        if len(names) > ROWS:
            items.append(tag("li", f"+ {len(names) - ROWS:,}"))
        listed = tag("ol", *items, class_="machines")
        parts.append(tag("figure", tag("figcaption", RUN[words][language]), listed))
    return tag("div", tag("div", *parts), class_="pair")


def _crossings(better: BetterOrder, language: str) -> Markup:
    """The groups of each kind in several racks, before and after, side by side."""
    names = ["column_leave", "column_before", "column_after", "column_least"]
    names += ["column_seconds_before", "column_seconds_after"] if better.costs else []
    heads = [PAGE["column_group"][language], *(RUN[name][language] for name in names)]
    rows = []
    for kind in better.kinds:
        counts = (kind.leave_node, kind.before, kind.after, kind.least)
        cells: list[object] = []
        for count in counts:
            said = RUN["of_groups"][language].format(count=f"{count:,}", groups=f"{kind.groups:,}")
            cells.append(together(share_bar(count / max(1, kind.groups)), said))
        if better.costs:
            each = better.costs.get(kind.kind, 0.0)
            cells += [seconds_text(each * count) for count in (kind.before, kind.after)]
        rows.append((chips([kind.kind]), *cells))
    return table(heads, rows, "audit")


def _files(better: BetterOrder, language: str) -> Markup:
    """What each launcher obeys, to be copied, with what to know of it."""
    parts = []
    for name, text in launcher_files(better.names, better.gpus_per_node).items():
        lines = text.splitlines(keepends=True)
        text = "".join(lines[:20_000]) + ("...\n" if len(lines) > 20_000 else "")
        note = LAUNCHER_NOTES["openmpi" if name == "rankfile" else name][language]
        said = tag("p", note, class_="fine")
        parts.append(fold(RUN[f"file_{name}"][language], said, form.copyable(text, language)))
    return together(tag("h3", RUN["order_files"][language]), *parts)


VIEW = View("hosts", "run", hosts_html, measures_pictures, RUN["measures_title"], measures_summary)
