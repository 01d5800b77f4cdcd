"""The Hosts view: machines by name, which groups leave them, and a better order of the same."""

from __future__ import annotations

from html import escape
from itertools import chain, islice

from markupsafe import Markup

from descriptions import HOSTS_REMARKS, LAUNCHER_NOTES, ORDER_REASONS, PAGE, RUN, counted
from formats.hosts.order import OBJECTIVES, TIME, BetterOrder, better_order
from formats.hosts.placing import placement_of
from formats.hosts.values import Hosts
from formats.hosts.written import FILES, launcher_files
from groups import LayoutError
from groups.audit import span
from groups.errors import not_a_choice
from groups.layout import Layout
from groups.placement import Placement

from ..base import form
from ..base.context import Context
from ..base.html import fold, heading, table, tag, together
from ..base.messages import fix_label
from ..base.problems import problem_html
from ..base.state import State, is_empty, is_fix
from ..base.units import ranges_text, seconds_text
from ..groups.view import framed
from ..nodes.view import audit_row, chips, level_name, same_groups, share_bar
from .inputs import hosts_of
from .measures import measures_html

ROWS = 64
"""Machines that are listed, and shown in their order."""


def hosts_html(context: Context) -> str:
    """What the text says, where the groups stand, a better order; then measurements."""
    layout, state, language = context.layout, context.state, context.language
    placement = None
    try:
        hosts = hosts_of(state)
        if hosts is not None:
            placement = placement_of(hosts, layout.world_size, layout.gpus_per_node)
    except LayoutError as error:
        body = _refused(error, language)
    else:
        body = _body(hosts, placement, context)
    return framed(
        context,
        f"{heading(RUN['hosts_title'][language])}"
        f"{body}{_inputs(layout, state, language)}"
        f"{measures_html(layout, state, placement, language)}",
        "hosts",
    )


def _inputs(layout: Layout, state: State, language: str) -> str:
    boxes = [form.area(name, getattr(state, name), language, rows=5) for name in ("hosts", "racks")]
    names, racks = example_of(layout)
    example = form.setter({"hosts": names, "racks": racks}, RUN["hosts_example"][language])
    return together(form.fields(*boxes), tag("p", example) if is_empty(state.hosts) else "")


def example_of(layout: Layout) -> tuple[str, str]:
    """As many machines as the layout has, in the order of their names, by turns in two racks."""
    names = [f"gpu-{node:02}" for node in range(min(layout.nodes, 512))]
    racks = [names[:1], names[1:]] if len(names) < 4 else [names[::2], names[1::2]]
    lines = (f"SwitchName=rack{at} Nodes={','.join(own)}" for at, own in enumerate(racks) if own)
    return "\n".join(names), "\n".join(lines)


def _refused(error: LayoutError, language: str) -> str:
    fixes = [fix for fix in error.alternatives if is_fix(fix)]
    return problem_html(error, language, fixes)


# -- what the text says --------------------------------------------------------------------------


def _body(hosts: Hosts | None, placement: Placement | None, context: Context) -> str:
    layout, language = context.layout, context.language
    if hosts is None or placement is None:
        return f'<p class="fine">{escape(RUN["hosts_empty"][language])}</p>'
    return (
        f"{_said(hosts, placement, language)}{_order(hosts, context)}"
        f"{_audit(placement, layout, language)}{_list(hosts, placement, language)}"
    )


def _said(hosts: Hosts, placement: Placement, language: str) -> str:
    """One sentence of what there is, then the remarks."""
    places = ", ".join(
        RUN["hosts_places"][language].format(
            count=f"{len(set(one.of.values())):,}", level=level_name(one.kind, language)
        )
        for one in hosts.levels
    )
    text = RUN["hosts_said"][language].format(
        hosts=counted(len(placement.hosts), "host", language),
        gpus=counted(placement.world_size, "gpu", language),
        places=places or RUN["hosts_no_places"][language],
    )
    remarks = "".join(
        f"<li>{escape(HOSTS_REMARKS[one.code][language].format(**one.facts))}</li>"
        for one in hosts.remarks[:16]
    )
    listed = f'<ul class="warnings">{remarks}</ul>' if remarks else ""
    return f'<p class="fine">{escape(text)}</p>{listed}'


def _list(hosts: Hosts, placement: Placement, language: str) -> str:
    """Each machine: its ranks, slots and places."""
    ranks: dict[int, list[int]] = {}
    for rank, node in enumerate(placement.nodes.tolist()):
        if node < ROWS:
            ranks.setdefault(node, []).append(rank)
    heads = [RUN["column_host"][language], "GPU", RUN["column_slots"][language]]
    heads += [level_name(kind, language) for kind in placement.levels]
    rows = []
    for node, host in enumerate(placement.hosts[:ROWS]):
        slots = RUN["slots_unsaid"][language] if hosts.slots[host] is None else hosts.slots[host]
        places = (of.get(host, "–") for of in placement.levels.values())
        rows.append((tag("code", host), ranges_text(ranks.get(node, [])), slots, *places))
    rest = len(placement.hosts) - ROWS
    more = RUN["more_rows"][language].format(count=f"{rest:,}") if rest > 0 else ""
    return fold(RUN["hosts_list"][language], table(heads, rows), more)


def _audit(placement: Placement, layout: Layout, language: str) -> str:
    """Which groups leave a machine and each place above it."""
    levels = {kind: placement.of_ranks(kind) for kind in ("node", *placement.levels)}
    rows = [
        audit_row(names, [span(one, of, kind) for kind, of in levels.items()], language)
        for names, one in same_groups(layout.every.values())
    ]
    heads = [PAGE["column_group"][language], RUN["column_group_size"][language]]
    heads += [level_name(kind, language) for kind in levels]
    return f"<h3>{RUN['hosts_audit'][language]}</h3>{table(heads, rows, 'audit')}"


# -- a better order ------------------------------------------------------------------------------


def better_of(hosts: Hosts, context: Context) -> BetterOrder:
    """The best order for the layout, by the seconds of the model's step where one is chosen.

    Errors: as `formats.hosts.better.better_order`; and for an objective that the page has not.
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


def _order(hosts: Hosts, context: Context) -> str:
    state, language = context.state, context.language
    choices = [
        (RUN[f"objective_{name[:2]}"][language], name) for name in (TIME, "dp-first", "pp-first")
    ]
    title = f"<h3>{RUN['order_title'][language]}</h3>"
    if not hosts.racks:
        return f'{title}<p class="fine">{escape(RUN["order_needs_racks"][language])}</p>'
    box = form.fields(form.choice("objective", state.objective, choices, language))
    try:
        found = better_of(hosts, context)
    except LayoutError as error:
        return f"{title}{_refused(error, language)}{box}"
    is_kept = found.names == found.names_before
    words = RUN["order_kept" if is_kept else "order_better"][language].format(
        moved=counted(found.moved, "host", language),
        before=" · ".join(f"{one:,}" for one in found.key_before),
        after=" · ".join(f"{one:,}" for one in found.key),
        objective=found.objective,
    )
    if found.costs:
        words += " " + RUN["order_seconds"][language].format(
            model=context.trained.name,
            before=seconds_text(found.cost_before),
            after=seconds_text(found.cost),
        )
    words += "".join(
        " "
        + RUN["order_above"][language].format(
            level=level_name(one.kind, language),
            before=" · ".join(f"{count:,}" for count in one.key_before),
            after=" · ".join(f"{count:,}" for count in one.key),
        )
        for one in found.upper
    )
    reasons = "".join(
        f"<li>{escape(ORDER_REASONS[one.code][language].format(**one.facts))}</li>"
        for one in found.reasons
    )
    racks = state.hosts if is_empty(state.racks) else state.racks
    use = form.setter({"hosts": "\n".join(found.names), "racks": racks}, RUN["use_order"][language])
    return (
        f'{title}<div class="verdict"><p>{escape(words)}</p>'
        f'<p class="fixes">{"" if is_kept else use}{_fixes(found, language)}</p></div>'
        f"{_machines(found, hosts, language)}{_crossings(found, language)}"
        f'<ul class="reasons">{reasons}</ul>{box}{_files(found, language)}'
    )


def _fixes(found: BetterOrder, language: str) -> str:
    """Layouts that mend what no order can."""
    return "".join(
        f"<span>{escape(RUN[f'fix_{one.place}'][language].format(kind=one.kind))}</span> "
        f"{form.setter(one.changes, fix_label(one.changes, language))}"
        for one in found.fixes
    )


def _machines(found: BetterOrder, hosts: Hosts, language: str) -> str:
    """The machines in their order, before and after, each with its rack."""
    numbers: dict[str, int] = {}
    for name in found.names_before:
        numbers.setdefault(hosts.racks[name], len(numbers))
    is_kept = found.names == found.names_before
    orders = [("order_before", found.names_before)]
    orders += [] if is_kept else [("order_after", found.names)]
    parts = []
    for words, names in orders:
        items = "".join(
            f'<li class="rack r{numbers[hosts.racks[name]] % 10}">{escape(name)}'
            f"<small>{escape(hosts.racks[name])}</small></li>"
            for name in islice(names, ROWS)
        )
        rest = f"<li>+ {len(names) - ROWS:,}</li>" if len(names) > ROWS else ""
        parts.append(
            f'<figure><figcaption>{RUN[words][language]}</figcaption><ol class="machines">'
            f"{items}{rest}</ol></figure>"
        )
    return f'<div class="pair"><div>{"".join(parts)}</div></div>'


def _crossings(found: BetterOrder, language: str) -> str:
    """The groups of each kind in several racks, before and after, side by side."""
    names = ["column_leave", "column_before", "column_after", "column_least"]
    names += ["column_seconds_before", "column_seconds_after"] if found.costs else []
    heads = [PAGE["column_group"][language], *(RUN[name][language] for name in names)]
    rows = []
    for one in found.kinds:
        counts = (one.leave_node, one.before, one.after, one.least)
        cells: list[object] = [_share(count, one.groups, language) for count in counts]
        if found.costs:
            each = found.costs.get(one.kind, 0.0)
            cells += [seconds_text(each * count) for count in (one.before, one.after)]
        rows.append((chips([one.kind]), *cells))
    return table(heads, rows, "audit")


def _share(count: int, groups: int, language: str) -> Markup:
    text = RUN["of_groups"][language].format(count=f"{count:,}", groups=f"{groups:,}")
    return together(share_bar(count / max(1, groups)), text)


def _files(found: BetterOrder, language: str) -> Markup:
    """What each launcher obeys, to be copied, with what to know of it."""
    texts = launcher_files(found.names, found.gpus_per_node)
    parts = []
    for name in FILES:
        lines = texts[name].splitlines(keepends=True)
        text = "".join(chain(lines[:20_000], ["...\n"] if len(lines) > 20_000 else []))
        note = LAUNCHER_NOTES["openmpi" if name == "rankfile" else name][language]
        said = tag("p", note, class_="fine")
        parts.append(fold(RUN[f"file_{name}"][language], said, form.copyable(text, language)))
    return together(tag("h3", RUN["order_files"][language]), *parts)
