"""The Hang view: who did not arrive, who waits for it, and what the evidence cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from descriptions import RUN, close_up, counted, hang_sentence, joined
from formats.logs import Log, read_log
from formats.logs.account import account_of
from formats.logs.matching import Match, match_layout
from formats.logs.model import WORLD
from groups import LayoutError
from groups.grouping import Grouping
from groups.layout import Layout
from groups.placement import Placement
from render.scenes.heat import Heat

from ..base import form
from ..base.context import Context, View
from ..base.html import (
    button,
    cell,
    chips,
    fold,
    heading,
    heads_of,
    numbered,
    painted,
    rest_text,
    table,
    tag,
    together,
)
from ..base.problems import fix_label, problem_html
from ..base.state import State, is_empty
from ..base.units import ranges_text, ranks_text
from ..hosts.inputs import placement_or_none
from .files import log_of
from .picture import MOST_CONNECTED, heat_of_chain

ROWS = 40
"""Groups, hops and GPUs that are listed."""


@dataclass(frozen=True)
class Case:
    """What the evidence says, beside the layout on screen.

    world: GPUs of the job of the evidence. match: its groups in this layout, None where that has
    other GPUs. fitting: what to change for layouts that would fit, nearest first.
    """

    log: Log
    layout: Layout
    world: int
    match: Match | None
    fitting: tuple[dict[str, Any], ...]
    placement: Placement | None

    @property
    def every(self) -> Mapping[str, Grouping]:
        """The layout's groups, where the evidence does not contradict them."""
        fits = self.match is not None and not self.match.contradictions
        return self.layout.every if fits and self.layout.world_size <= MOST_CONNECTED else {}

    @property
    def has_chain(self) -> bool:
        """Whether somebody waits or is missing, and the ranks are those of the layout."""
        is_known = self.log.diagnosis.first is not None or bool(self.log.missing)
        return is_known and self.world == self.layout.world_size

    def chain(self, language: str) -> Heat:
        return heat_of_chain(self.log, self.layout, self.every, language)

    def verdict(self, language: str) -> str:
        """Who is missing, in at most three sentences."""
        per_node = self.layout.gpus_per_node if self.every else None
        notes = account_of(self.log, self.every, per_node, self.placement)
        said = [hang_sentence(note.code, note.facts, language) for note in notes]
        nothing = RUN["hang_no_verdict" if self.log.ranks else "hang_nothing"][language]
        return joined(said or [nothing], language)


def hang_html(context: Context) -> str:
    state, language, empty = context.state, context.language, ""
    try:
        case = context.once(_case)
        answer = _answer(case, context) if case else ""
        empty = "" if case else tag("p", RUN["hang_empty"][language])
    except LayoutError as error:
        answer = problem_html(error, language)
    return together(heading(RUN["hang_title"][language], empty), answer, _ways_in(state, language))


def hang_pictures(context: Context) -> list[tuple[str, Heat]]:
    """The chain, for files; nothing where no evidence says who waits, or its GPUs are others."""
    case, language = context.once(_case), context.language
    if case is None or not case.has_chain:
        return []
    return [(RUN["chain_title"][language], case.chain(language))]


def hang_verdict(context: Context) -> str:
    """Who is missing, in at most three sentences; nothing without evidence."""
    case = context.once(_case)
    return case.verdict(context.language) if case else ""


def _ways_in(state: State, language: str) -> Markup:
    told = ("reading", "large", "slow", "failed", "busy")
    said = {name: RUN[f"files_{name}"][language] for name in told}
    files = (
        tag("input", type="file", id="hang-files", multiple=True, hidden=True),
        button(RUN["choose_files"][language], class_="fix", data_files=True),
        Markup(" "),
        tag("span", RUN["files_hint"][language]),
        Markup(" "),
        tag("strong", role="status"),
    )
    box = form.fields(form.area("evidence", state, rows=5))
    return together(box, tag("p", *files, class_="files", data_said=said))


# -- the evidence beside the layout --------------------------------------------------------------


def _case(context: Context) -> Case | None:
    """What the pasted text says, else what the files said; the machines that the page names."""
    layout, state = context.layout, context.state
    if not is_empty(state.evidence):
        every = layout.every if layout.world_size <= MOST_CONNECTED else None
        log = read_log(state.evidence, every)
    elif not is_empty(state.digest):
        log = log_of(state.digest)
    else:
        return None
    world = _world(log, layout)
    match, fits = _match(log, world, layout)
    changes = tuple(_changes(fit, layout, world) for fit in fits)
    return Case(log, layout, world, match, changes, placement_or_none(context))


def _whole(log: Log) -> int:
    """Members of the job's group of all, 0 where nothing says them."""
    worlds = (group for group in log.process_groups if group.kind == WORLD and group.complete)
    return max((len(group.members) for group in worlds), default=0)


def _world(log: Log, layout: Layout) -> int:
    """GPUs of the job of the evidence: as its group of all says, else whole nodes that hold all."""
    if whole := _whole(log):
        return whole
    most = max(log.ranks, default=-1) + 1
    per_node = layout.gpus_per_node
    return layout.world_size if most <= layout.world_size else -(-most // per_node) * per_node


def _match(log: Log, world: int, layout: Layout) -> tuple[Match | None, list[dict[str, Any]]]:
    """The groups of the evidence in this layout, if it has as many GPUs; and sizes that would fit:
    those on screen first, else any."""
    mesh, expert = layout.mesh, layout.expert
    sizes: dict[str, Any] = {name: mesh.size(name) for name in ("tp", "cp", "pp")}
    sizes |= {"order": layout.order}
    if expert is not None:
        sizes |= {"ep": expert.size("ep"), "etp": expert.size("etp")}
    is_same = world == layout.world_size
    for start in [sizes] if is_same else [sizes, {"order": layout.order}]:
        try:
            match = match_layout(log, world, **start)
        except LayoutError:  # the sizes do not divide so many
            continue
        if is_same:
            return match, list(match.fits)
        return None, [{**start, **fit} for fit in (match.fits if match.contradictions else [{}])]
    return None, []


def _changes(fit: dict[str, Any], layout: Layout, world: int) -> dict[str, Any]:
    """What the column changes for a layout that fits."""
    start = {"tp": 1, "cp": 1, "pp": 1, "ep": 1, **fit}
    changes: dict[str, Any] = {name: start[name] for name in ("tp", "cp", "pp", "ep")}
    if start.get("etp") not in (None, start["tp"]):
        changes["etp"] = start["etp"]
    if start.get("order", layout.order) != layout.order:
        changes["order"] = start["order"]
    if world != layout.world_size:
        nodes, rest = divmod(world, layout.gpus_per_node)
        changes |= {"nodes": nodes} if not rest else {"nodes": 1, "gpus_per_node": world}
    return changes


# -- the answer ----------------------------------------------------------------------------------


def _answer(case: Case, context: Context) -> Markup:
    language = context.language
    parts = [_verdict(case, language)]
    if case.log.files:
        parts.append(_files(case.log, language))
    is_other = case.world != case.layout.world_size
    if is_other or (case.match and case.match.contradictions):
        parts.append(_contradiction(case, language))
    if case.has_chain:
        picture = painted(case.chain(language), RUN["chain_label"][language])
        parts += [tag("h3", RUN["chain_title"][language]), picture]
    return together(
        *parts, _hops(case.log, language), _groups(case, language), _untold(case.log, language)
    )


def _verdict(case: Case, language: str) -> Markup:
    """Who is missing, in at most three sentences, and the GPUs that lead on."""
    diagnosis, gpu = case.log.diagnosis, RUN["gpu_button"][language]
    named = diagnosis.culprits or case.log.missing or diagnosis.suspects or case.log.ranks
    inside = [rank for rank in named if rank < case.layout.world_size][:8]
    fixes = [form.setter({"view": "ranks", "rank": rank}, gpu.format(rank=rank)) for rank in inside]
    if len(named) > 1 and inside:
        change = {"view": "ranks", "ranks": ranges_text(list(named)[:512]).replace("–", "-")}
        fixes.append(form.setter(change, RUN["show_groups_of"][language]))
    said, buttons = tag("p", case.verdict(language)), tag("p", *fixes, class_="fixes")
    return tag("div", said, buttons, class_="verdict", role="status")


def _files(log: Log, language: str) -> Markup:
    """How many files said it, and a way to forget them."""
    words = RUN["files_read"][language].format(
        files=counted(log.files, "file", language),
        dumps=counted(len(log.dumped), "gpu", language),
    )
    forget = form.setter({"digest": ""}, RUN["files_forget"][language])
    return tag("p", words, " ", forget, class_="fine")


def _contradiction(case: Case, language: str) -> Markup:
    """What of the evidence the layout contradicts, and a button for one that would fit."""
    match, layout = case.match, case.layout
    if match is None:
        whole = _whole(case.log)
        count = f"{whole or max(case.log.ranks) + 1:,}"
        said = RUN["contradicts_world"][language].format(
            evidence=count if whole else RUN["at_least"][language].format(count=count),
            layout=f"{layout.world_size:,}",
        )
    else:
        first = match.contradictions[0]
        place = RUN["claim_place"][language].format(rank=first.claim.rank, place=first.claim.place)
        said = RUN["contradicts"][language].format(
            count=counted(len(match.contradictions), "group", language),
            key=first.claim.key,
            evidence=ranges_text(list(first.claim.members)[:64]) or place,
            layout=ranges_text(list(first.members)[:64]) or "–",
        )
    fixes = [form.setter(change, fix_label(change, language)) for change in case.fitting]
    none = "" if fixes else tag("p", RUN["fits_none"][language])
    said = together(tag("p", said), none, tag("p", *fixes, class_="fixes"))
    return tag("div", said, class_="refusal", role="alert")


def _hops(log: Log, language: str) -> Markup | str:
    """How the waiting spreads, step by step."""
    items = []
    for place, hop in enumerate(log.diagnosis.hops[:ROWS]):
        most = 8 if place else 4
        said = [
            RUN["hop_row" if place and hop.through else "hop_first"][language].format(
                kind=wait.group.title,
                op=wait.op or RUN["operation"][language],
                seq=f"{wait.seq:,}",
                waiting=counted(len(wait.waiting), "gpu", language),
                through=ranges_text(list(hop.through)[:64]),
            )
            for wait in hop.waits[:most]
        ]
        more = rest_text(len(hop.waits) - most, language)
        words = [*map(close_up, said), *([more] if more else [])]
        items += [tag("li", tag("b", place), " ", sentence) for sentence in words]
    if not items:
        return ""
    return fold(RUN["hops_title"][language], tag("ol", *items, class_="hops"), is_open=True)


def _groups(case: Case, language: str) -> Markup | str:
    """Each group that the evidence names: what it is in this layout, and whether that fits."""
    if case.match is None or not case.match.rows:
        return ""
    once = {(row.claim.key, row.index, row.agrees): row for row in case.match.rows}
    fits = {False: "fits_no", True: "fits_yes", None: "fits_unknown"}
    rows = sorted(once.values(), key=lambda row: [*fits].index(row.agrees))
    body = (
        (
            tag("code", row.claim.key[:80]),
            together(chips(row.names) or "–", "" if row.index is None else f" {row.index}"),
            cell(ranks_text(row.claim.members or row.members), class_="ranks"),
            RUN[fits[row.agrees]][language],
        )
        for row in rows[:ROWS]
    )
    heads = heads_of(RUN, "printed here gpus fits", language)
    title = numbered(RUN["log_groups_title"][language], len(rows), language)
    more = rest_text(len(rows) - ROWS, language)
    return fold(title, table(heads, body, "case-groups"), more, is_open=True)


def _untold(log: Log, language: str) -> Markup | str:
    """What the reader must know: what is unclear, missing, left out."""
    said = [hang_sentence(note.code, note.facts, language) for note in log.notes[:ROWS]]
    places = () if log.ranks else log.group_ranks
    for words, ranks, most in (
        ("no_dump_of", log.diagnosis.without_dump, 256),
        ("only_places", places, 64),
        ("ambiguous", log.ambiguous_ranks, 64),
    ):
        if ranks:
            said.append(RUN[words][language].format(ranks=ranges_text(list(ranks)[:most])))
    if not said:
        return ""
    items = tag("ul", *(tag("li", sentence) for sentence in said))
    title = numbered(RUN["unknown_title"][language], len(said), language)
    return fold(title, items, is_open=True)


VIEW = View("hang", "run", hang_html, hang_pictures, RUN["hang_title"], hang_verdict)
