"""The Hang view: the missing ranks, those that wait for them, and what the evidence leaves open."""

from __future__ import annotations

from itertools import islice

from markupsafe import Markup

from descriptions import HANG_STEPS, RUN, close_up, counted, hang_sentence, joined
from diagnosis.hang.case import Case, case_of
from diagnosis.hang.model import Wait
from diagnosis.hang.steps import next_steps, share_command
from formats.logs import Log, read_log
from groups import LayoutError
from groups.notes import Note
from render.scenes.heat import Heat
from request.answers.hang.case import case_on_page, has_chain
from request.answers.hang.example import stacks_example, watchdog_example
from request.context import Context
from request.units import ranges_text, ranks_text
from request.words import fix_label

from ..base import form
from ..base.files import ways_in
from ..base.heat import painted
from ..base.html import (
    cell,
    chips,
    fold,
    heading,
    heads_of,
    numbered,
    rest_text,
    steps_list,
    table,
    tag,
    together,
)
from ..base.problems import problem_html
from ..base.view import View
from ..parts.chain import heat_of_chain

ROWS = 40
"""The most groups, hops and GPUs in a list."""


def hang_html(context: Context) -> Markup:
    language, empty = context.language, ""
    try:
        case = context.once(case_on_page)
        answer = _answer(case, context) if case else ""
        empty = "" if case else tag("p", RUN["hang_empty"][language])
    except LayoutError as error:
        answer = problem_html(error, language)
    head, ways = heading(RUN["hang_title"][language], empty), _ways_in(context)
    example = _example(context) if empty else ""
    return together(head, answer, form.beside(ways, example) if example else ways)


def _example(context: Context) -> Markup | str:
    """The view of a watchdog's lines about a group of this layout."""
    evidence = watchdog_example(context.layout)
    if not evidence:
        return ""
    layout, language = context.layout, context.language
    case = case_of(read_log(evidence, layout.every), layout)
    parts = [_verdict(case, language)]
    if has_chain(case):
        parts = [painted(_chain(case, language), RUN["chain_label"][language]), *parts]
    stacks = form.setter({"evidence": stacks_example(layout)}, RUN["example_stacks"][language])
    return form.example(language, {"evidence": evidence}, *parts, also=stacks)


def hang_pictures(context: Context) -> list[tuple[str, Heat]]:
    """The chain, for files; empty without waiting ranks, or if the GPUs are not this layout's."""
    case, language = context.once(case_on_page), context.language
    if case is None or not has_chain(case):
        return []
    return [(RUN["chain_title"][language], _chain(case, language))]


def hang_verdict(context: Context) -> str:
    """The missing ranks, in at most three sentences; empty without evidence."""
    case = context.once(case_on_page)
    return _sentences(case, context.language) if case else ""


def _ways_in(context: Context) -> Markup:
    command = share_command(context.layout.job, "FOLDER")
    return ways_in("hang", context.state, "evidence", "digest", command)


# -- the evidence beside the layout --------------------------------------------------------------


def _chain(case: Case, language: str) -> Heat:
    return heat_of_chain(case.log, case.layout, case.every, language)


def _sentences(case: Case, language: str) -> str:
    """The missing ranks, in at most three sentences."""
    sentences = [hang_sentence(note.code, note.facts, language) for note in case.account]
    nothing = RUN["hang_no_verdict" if case.log.ranks else "hang_nothing"][language]
    return joined(sentences or [nothing], language)


# -- the answer ----------------------------------------------------------------------------------


def _answer(case: Case, context: Context) -> Markup:
    language = context.language
    parts = [_verdict(case, language)]
    if case.log.files:
        parts.append(_files(case.log, language))
    if note := case.contradiction:
        parts.append(_contradiction(case, note, language))
    if has_chain(case):
        picture = painted(_chain(case, language), RUN["chain_label"][language])
        parts += [tag("h3", RUN["chain_title"][language]), picture]
    return together(
        *parts,
        _hops(case.log, language),
        _next(case, language),
        _groups(case, language),
        _untold(case.log, language),
    )


def _verdict(case: Case, language: str) -> Markup:
    """The missing ranks, in at most three sentences, and buttons to those GPUs."""
    diagnosis, gpu = case.log.diagnosis, RUN["gpu_button"][language]
    named = diagnosis.culprits or case.log.missing or diagnosis.suspects or case.log.ranks
    inside = [rank for rank in named if rank < case.layout.world_size][:8]
    fixes = [form.setter({"view": "ranks", "rank": rank}, gpu.format(rank=rank)) for rank in inside]
    if len(named) > 1 and inside:
        change = {"view": "ranks", "ranks": ranges_text(list(named)[:512]).replace("–", "-")}
        fixes.append(form.setter(change, RUN["show_groups_of"][language]))
    paragraph, buttons = tag("p", _sentences(case, language)), tag("p", *fixes, class_="fixes")
    return tag("div", paragraph, buttons, class_="verdict", role="status")


def _files(log: Log, language: str) -> Markup:
    """The number of files read, and a button that forgets them."""
    words = RUN["files_read"][language].format(
        files=counted(log.files, "file", language),
        dumps=counted(len(log.dumped), "gpu", language),
    )
    forget = form.setter({"digest": ""}, RUN["files_forget"][language])
    return tag("p", words, " ", forget, class_="fine")


def _contradiction(case: Case, note: Note, language: str) -> Markup:
    """The evidence that contradicts the layout, and a button for a layout that fits."""
    sentence = hang_sentence(note.code, note.facts, language)
    fixes = [form.setter(change, fix_label(change, language)) for change in case.fitting]
    none = "" if fixes else tag("p", RUN["fits_none"][language])
    words = together(tag("p", sentence), none, tag("p", *fixes, class_="fixes"))
    return tag("div", words, class_="refusal", role="alert")


def _hops(log: Log, language: str) -> Markup | str:
    """How the waiting spreads, step by step."""
    items = []
    for place, hop in enumerate(log.diagnosis.hops[:ROWS]):
        most = 8 if place else 4
        alike: dict[tuple[str, str, int], list[Wait]] = {}
        for wait in hop.waits:
            alike.setdefault((wait.group.title, wait.op, wait.seq), []).append(wait)
        sentences = [
            RUN["hop_row" if place and hop.through else "hop_first"][language].format(
                kind=f"{len(waits)} × {kind}" if len(waits) > 1 else kind,
                op=op or RUN["operation"][language],
                seq=f"{seq:,}",
                waiting=counted(len({r for wait in waits for r in wait.waiting}), "gpu", language),
                through=ranges_text(list(hop.through)[:64]),
            )
            for (kind, op, seq), waits in islice(alike.items(), most)
        ]
        more = rest_text(len(alike) - most, language)
        words = [*map(close_up, sentences), *([more] if more else [])]
        items += [tag("li", tag("b", place), " ", sentence) for sentence in words]
    if not items:
        return ""
    return fold(RUN["hops_title"][language], tag("ol", *items, class_="hops"), is_open=True)


def _next(case: Case, language: str) -> Markup | str:
    """The next things to do, each a sentence and a command."""
    steps = [
        tag("li", hang_sentence(step.note.code, step.note.facts, language),
            form.copyable(step.command, language))
        for step in next_steps(case)
    ]  # fmt: skip
    return steps_list(HANG_STEPS["title"][language], steps)


def _groups(case: Case, language: str) -> Markup | str:
    """Each group in the evidence: its name in this layout, and whether it fits."""
    if case.match is None or not case.match.rows:
        return ""
    once = {(row.claim.key, row.index, row.agrees): row for row in case.match.rows}
    fits = {False: "fits_no", True: "fits_yes", None: "fits_unknown"}
    rows = sorted(once.values(), key=lambda row: [*fits].index(row.agrees))
    body = (
        (
            together(chips(row.names) or "–", "" if row.index is None else f" {row.index}"),
            cell(ranks_text(row.claim.members or row.members), class_="ranks"),
            tag("code", _printed(row.claim.key)),
            RUN[fits[row.agrees]][language],
        )
        for row in rows[:ROWS]
    )
    heads = heads_of(RUN, "here gpus printed fits", language)
    title = numbered(RUN["log_groups_title"][language], len(rows), language)
    more = rest_text(len(rows) - ROWS, language)
    return fold(title, table(heads, body, "case-groups"), more, is_open=True)


def _printed(key: str) -> str:
    """The name of a group in the evidence; a bare number is one of torch's process groups.

    >>> _printed("2"), _printed("TENSOR_MODEL_PARALLEL_GROUP")
    ('PG 2', 'TENSOR_MODEL_PARALLEL_GROUP')
    """
    return f"PG {key}" if key.isdecimal() else key[:80]


def _untold(log: Log, language: str) -> Markup | str:
    """Notices: what is unclear, missing, or left out."""
    sentences = [hang_sentence(note.code, note.facts, language) for note in log.notes[:ROWS]]
    places = () if log.ranks else log.group_ranks
    for words, ranks, most in (
        ("no_dump_of", log.diagnosis.without_dump, 256),
        ("only_places", places, 64),
        ("ambiguous", log.ambiguous_ranks, 64),
    ):
        if ranks:
            sentences.append(RUN[words][language].format(ranks=ranges_text(list(ranks)[:most])))
    if not sentences:
        return ""
    items = tag("ul", *(tag("li", sentence) for sentence in sentences))
    title = numbered(RUN["unknown_title"][language], len(sentences), language)
    return fold(title, items, is_open=True)


VIEW = View(
    "hang",
    "diagnose",
    hang_html,
    hang_pictures,
    RUN["hang_title"],
    hang_verdict,
    of_gpu=False,
    place=1,
    commands=("share",),
)
