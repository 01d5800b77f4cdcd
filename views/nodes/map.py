"""Nodes as boxes and the groups that leave them as lines: of the chosen GPU, or all of one kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, SERVER, counted
from groups import LayoutError
from groups.grouping import Grouping
from groups.layout import EXPERTS_MAIN, MAIN, Layout
from render.scenes.nodes import (
    THINNEST,
    NodesPicture,
    Places,
    Thread,
    places_of,
    thickness,
    threads_of,
)
from render.scenes.nodes_plan import MOST_BOXES, NodesRequest, nodes_picture
from render.svg.nodes import nodes_svg
from request.answers.traffic import rows_of
from request.context import Context, of_server
from request.resolve import main_groupings
from request.state import require_choice
from request.units import bytes_text
from request.words import control_label, saying
from training.traffic.per_step import CARRIERS, carrier

from ..base.html import button, fine, tag
from ..base.view import Pictures

WIDE, NARROW, SLIDE = (1000.0, 16, 10, 6), (360.0, 4, 4, 6), (800.0, 8, 8, 4)
"""For three sizes of the map: pixels across, the most boxes in a row if all are shown or else, and
rows."""

KINDS = (*MAIN, *EXPERTS_MAIN, *CARRIERS, "embd")
"""Kinds that a link may select; if the layout lacks one, the selected GPU's groups are drawn."""


@dataclass(frozen=True)
class Sent:
    """The groups that may be drawn, and for each kind the bytes that leave its boxes in a step;
    None if traffic cannot be computed. size: ranks of a box."""

    groupings: Mapping[str, Grouping]
    across: Mapping[str, float] | None
    size: int

    @classmethod
    def of(cls, context: Context) -> Sent:
        layout = context.layout
        try:
            trained = context.trained
            rows = rows_of(layout, trained)
        except LayoutError:
            rows = []
        if not rows:
            groupings = {one.name: one for one in main_groupings(layout) if one.size > 1}
            return cls(groupings, None, layout.gpus_per_node)
        size = trained.cluster.domain_of(layout.gpus_per_node)
        groupings, across = {}, {}
        for kind in dict.fromkeys(row.kind for row in sorted(rows, key=lambda row: -row.total)):
            grouping = carrier(layout.roles, kind)
            if grouping is not None:
                name = _plain_name(kind, layout)
                groupings[name] = grouping
                across[name] = sum(row.across for row in rows if row.kind == kind)
        return cls(groupings, across, size)


def _plain_name(kind: str, layout: Layout) -> str:
    """The usual name of a kind: without cp, dp-cp is dp."""
    return "dp" if kind == "dp-cp" and layout.mesh.size("cp") == 1 else kind


def kind_of(context: Context, sent: Sent) -> str:
    """The kind of which all groups are drawn; empty for the groups of the selected GPU.

    Errors: LayoutError for what is the name of no kind.
    """
    kind = context.state.lines.strip()
    if kind:
        require_choice("lines", kind, KINDS, [""])
        kind = _plain_name(kind, context.layout)
    return kind if kind in sent.groupings else ""


def map_of(context: Context, across: tuple[float, int, int, int] = WIDE) -> NodesPicture:
    """The map. Errors: LayoutError as kind_of."""
    sent = context.once(Sent.of)
    layout, size, kind = context.layout, sent.size, kind_of(context, sent)
    boxes = -(-layout.world_size // size)
    threads, inside, filled = [], [], []
    for name, grouping in sent.groupings.items():
        if kind in ("", name):
            members = grouping.members(context.rank)
            of_rank = None if kind else members
            mine = _threads(grouping, name, size, sent.across, of_rank)
            threads += mine
            inside.append((name, _inside(grouping, size, of_rank)))
            filled.append((name, () if kind else members))
    width, all_across, most_across, most_rows = across
    places = places_of(_stages(layout, size, boxes), min(8, most_across), "{stage}")
    wide = max(map(len, places.rows))
    columns = (
        all_across if wide * len(places.rows) <= MOST_BOXES and wide <= all_across else most_across
    )
    say = saying(PAGE, context.language)
    unit = "node" if size == layout.gpus_per_node else "domain"
    picture = nodes_picture(
        NodesRequest(
            world=layout.world_size,
            size=min(size, layout.world_size),
            places=_labelled(places, say("map_stage")),
            threads=threads,
            inside=inside,
            filled=sorted(filled, key=lambda one: -len(one[1])),
            rank=context.rank,
            is_chosen=not kind,
            width=width,
            most_across=columns,
            most_rows=most_rows,
            names=(say(f"map_{unit}"), say(f"map_{unit}_short"), "{box}"),
        )
    )
    keys = [*_key(threads, sent, kind, picture.thickest, context)]
    if picture.undrawn:
        keys.append((kind, 0.0, say("map_undrawn", lines=f"{picture.undrawn:,}")))
    return replace(
        picture,
        kinds=tuple(keys),
        scale=_scale(threads, sent, picture.thickest, context.language),
        left_words=(say("map_left"), say("map_left_rows")),
    )


def _labelled(places: Places, words: str) -> Places:
    return replace(places, labels=tuple(one and words.format(stage=one) for one in places.labels))


def _threads(
    grouping: Grouping,
    name: str,
    size: int,
    across: Mapping[str, float] | None,
    members: np.ndarray | None,
) -> list[Thread]:
    """The lines of a kind; for a single group, with other groups on the same boxes."""
    groups = grouping.groups()
    rows = [groups] if isinstance(groups, np.ndarray) else [np.array([one]) for one in groups]
    crossing = sum(int(np.count_nonzero(np.ptp(row // size, axis=1))) for row in rows)
    each = 1.0 if across is None else across[name] / max(crossing, 1)
    if members is None:
        merged: dict[tuple[int, ...], Thread] = {}
        for row in rows:
            for one in threads_of(name, row, size, each):
                same = merged.get(one.boxes)
                count = one.groups + (same.groups if same else 0)
                merged[one.boxes] = replace(one, groups=count, bytes=each * count)
        return list(merged.values())
    wanted = np.sort(members // size)
    if not len(wanted) or wanted[0] == wanted[-1]:
        return []
    alike = [row for row in rows if row.shape[1] == len(wanted)]
    count = sum(
        int(np.count_nonzero((np.sort(row // size, axis=1) == wanted).all(axis=1))) for row in alike
    )
    boxes = tuple(dict.fromkeys(wanted.tolist()))
    return [Thread(name, boxes, count, each * count)]


def _inside(grouping: Grouping, size: int, members: np.ndarray | None) -> list[list[int]]:
    """Ranks of the groups that stay in their box: of all groups, or of one."""
    if members is not None:
        stays = len(members) > 1 and np.ptp(members // size) == 0
        return [sorted(members.tolist())] if stays else []
    groups = grouping.groups()
    if isinstance(groups, np.ndarray):
        return np.sort(groups[np.ptp(groups // size, axis=1) == 0], axis=1).tolist()
    return [sorted(one) for one in map(list, groups) if one[0] // size == one[-1] // size]


def _stages(layout: Layout, size: int, boxes: int) -> list[int]:
    """The pipeline stage of each box; 0 for all if a box has several."""
    stride = 1
    for axis in layout.mesh.axes:
        if axis.name == "pp":
            break
        stride *= axis.size
    else:
        return [0] * boxes
    first = np.arange(boxes) * size
    last = np.minimum(first + size, layout.world_size) - 1
    here, there = (ranks // stride % axis.size for ranks in (first, last))
    is_one = bool((here == there).all()) and stride >= size
    return here.tolist() if is_one else [0] * boxes


# -- the key -------------------------------------------------------------------------------------


def _key(
    threads: Sequence[Thread], sent: Sent, kind: str, thickest: float, context: Context
) -> Iterator[tuple[str, float, str]]:
    """A legend line for each kind: its thickness and its bytes; for kinds that stay inside, just
    that."""
    language, most = context.language, max((one.bytes for one in threads), default=0.0)
    say = saying(PAGE, language)
    for name in [kind] if kind else sent.groupings:
        mine = [one for one in threads if one.kind == name]
        number = sum(one.groups for one in mine)
        facts = {"kind": name, "groups": counted(number, "group", language)}
        if not mine:
            if kind or len(sent.groupings[name].members(context.rank)) > 1:
                yield name, THINNEST, say("map_inside", **facts)
            continue
        amount = sum(one.bytes for one in mine)
        facts["sent"] = bytes_text(amount)
        words = "map_kind" if kind else "map_thread"
        unit = "node" if sent.size == context.layout.gpus_per_node else "nvlink_domain"
        facts["boxes"] = counted(len(mine[0].boxes), unit, language)
        if sent.across is None:
            words += "_only"
        yield name, max(thickness(one.bytes, most, thickest) for one in mine), say(words, **facts)


def _scale(
    threads: Sequence[Thread], sent: Sent, thickest: float, language: str
) -> tuple[tuple[float, str], ...]:
    """Three thicknesses with their bytes, a power of ten each."""
    most = max((one.bytes for one in threads), default=0.0)
    if most <= 0:
        return ()
    top = 10.0 ** math.floor(math.log10(most))
    amounts = [top, top / 10, top / 100]
    amounts = [amount for amount in amounts if thickness(amount, most, thickest) > THINNEST]
    if sent.across is None:
        amounts = [amount for amount in amounts if amount >= 1]
        return tuple(
            (thickness(amount, most, thickest), counted(int(amount), "group", language))
            for amount in amounts
        )
    return tuple((thickness(amount, most, thickest), bytes_text(amount)) for amount in amounts)


# -- on the page, and in files -------------------------------------------------------------------


def _note_of_server(context: Context) -> str:
    return SERVER["map_note"][context.language]


@of_server(_note_of_server)
def _note(context: Context) -> str:
    """What the lines count."""
    has_bytes = context.once(Sent.of).across is not None
    return PAGE["map_note" if has_bytes else "map_note_only"][context.language]


def map_html(context: Context) -> Markup:
    """A list of kinds, the picture for wide and for narrow screens, and its legend."""
    sent, language, say = context.once(Sent.of), context.language, saying(PAGE, context.language)
    chosen = kind_of(context, sent)
    names = ["", *sent.groupings]
    buttons = (
        button(
            name or say("map_of_rank", rank=context.rank),
            data_set={"lines": name},
            aria_pressed=str(name == chosen).lower(),
            id=f"lines-{name or 'rank'}",
        )
        for name in names
    )
    label = {"role": "group", "aria_label": control_label("lines", language)}
    wide = map_of(context)
    boxes = -(-context.layout.world_size // sent.size)
    keys = PAGE["semicolon"][language].join(words for *_, words in wide.kinds)
    description = say("map_described", shown=len(wide.boxes), boxes=f"{boxes:,}", key=keys)
    return tag(
        "figure",
        tag("div", *buttons, class_="targets lines", **label),
        Markup(nodes_svg(wide, description, "wide")),
        Markup(nodes_svg(map_of(context, NARROW), description, "narrow")),
        fine(_note(context)),
        class_="nodes-figure",
    )


def map_pictures(context: Context) -> Pictures:
    """The map for files."""
    return [(PAGE["map_title"][context.language], map_of(context))]


def map_slide(context: Context) -> Pictures:
    """The map with larger letters."""
    return [("", map_of(context, SLIDE))]
