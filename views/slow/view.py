"""The Slow view: the ranks that delay the others, the cost for a step, and the origin."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import PAGE, RUN, SLOW_STEPS, VIEWS, counted, joined, slow_note, slow_sentence
from groups import LayoutError
from groups.layout import framework_name
from request.answers.running import compared
from request.answers.slow.api import slow_steps
from request.answers.slow.files import COMMAND, example, example_run
from request.answers.slow.seen import SeenSlow, seen_of
from request.context import Context
from request.resolve import fields_of_job, sizes_text
from request.state import is_empty
from request.units import ranges_text

from ..base import form
from ..base.files import ways_in
from ..base.html import fine, fold, heading, numbered, steps_list, tag, together
from ..base.problems import problem_html
from ..base.view import Pictures, View
from ..parts.differences import differences_html
from .parts import parts_html
from .pictures import group_name, lost_html, slow_scenes, timeline_html
from .tables import chain_html, last_html
from .words import SLOW_VIEW, say_of

GPUS = 8
"""The most GPUs that the verdict links to."""


def slow_html(context: Context) -> Markup:
    say, empty = say_of(context.language), ""
    try:
        seen = context.once(seen_of)
        answer = _answer(seen, context) if seen else ""
        empty = "" if seen else tag("p", say("empty"))
    except LayoutError as error:
        answer = problem_html(error, context.language, [])
    ways = _ways_in(context)
    shown = form.beside(ways, _example(context)) if empty else together(answer, ways)
    return together(heading(say("title"), empty), shown)


def _ways_in(context: Context) -> Markup:
    """The box, the files, and the command that reads large traces where they are."""
    language = context.language
    ways = ways_in("slow", context.state, "traces", "traces_digest", COMMAND, SLOW_VIEW)
    command = form.copyable(COMMAND, language)
    return together(ways, fold(say_of(language)("summary_how"), command))


def _example(context: Context) -> Markup:
    """A recorded run with its layout; nothing of it is computed anew."""
    seen = SeenSlow(example_run(), context.layout, None)
    assert seen.ran is not None  # it is a file of ours
    changes = {**fields_of_job(seen.ran.job), "traces_digest": example(), "rank": ""}
    parts = [lost_html(seen, context.language), _verdict(seen, context.language)]
    return form.example(context.language, changes, *parts)


# -- the answer ------------------------------------------------------------------------------------


def _answer(seen: SeenSlow, context: Context) -> Markup:
    language = context.language
    parts: list[Markup | str] = [_verdict(seen, language)]
    if seen.slow.ranks:
        beside = tag("div", _next(seen, language))
        parts.append(tag("div", tag("div", lost_html(seen, language)), beside, class_="slow-pair"))
    parts.append(_ran(seen, context))
    if not is_empty(context.state.traces_digest) and is_empty(context.state.traces):
        parts.append(_files(seen, language))
    if not seen.slow.ranks:
        return together(*parts, _untold(seen, language))
    return together(
        *parts,
        _timeline(seen, context),
        chain_html(seen, language),
        last_html(seen, language),
        parts_html(seen, context),
        _untold(seen, language),
    )


def account_text(seen: SeenSlow, language: str) -> str:
    """The slow ranks, in at most three sentences."""
    notes = (slow_sentence(note.code, note.facts, language) for note in seen.account)
    return joined(notes, language)


def _verdict(seen: SeenSlow, language: str) -> Markup:
    gpu, named = RUN["gpu_button"][language], seen.verdict.ranks
    inside = [rank for rank in named if rank < seen.screen.world_size][:GPUS]
    fixes = [form.setter({"view": "ranks", "rank": rank}, gpu.format(rank=rank)) for rank in inside]
    if len(named) > 1 and inside:
        change = {"view": "ranks", "ranks": ranges_text(list(named)[:512]).replace("–", "-")}
        fixes.append(form.setter(change, RUN["show_groups_of"][language]))
    paragraph = tag("p", account_text(seen, language))
    return tag("div", paragraph, tag("p", *fixes, class_="fixes"), class_="verdict", role="status")


def _next(seen: SeenSlow, language: str) -> Markup | str:
    """The next things to do, each a sentence, and a command or the view where it is done."""
    views = {"step-stage": "pipeline", "step-nobody": "search"}
    items = []
    for step in seen.next_steps:
        sentence = slow_sentence(step.note.code, step.note.facts, language)
        copy = form.copyable(step.command, language) if step.command else ""
        view = views.get(step.note.code)
        leads = form.setter({"view": view}, VIEWS[view][language]) if view else ""
        items.append(tag("li", sentence, " ", leads, copy))
    return steps_list(SLOW_STEPS["title"][language], items)


def _files(seen: SeenSlow, language: str) -> Markup:
    """The number of ranks and steps with traces, and a button that forgets them."""
    words = _read(seen, language)
    forget = form.setter({"traces_digest": ""}, RUN["files_forget"][language])
    return tag("p", words, " ", forget, class_="fine")


def _read(seen: SeenSlow, language: str) -> str:
    say, slow = say_of(language), seen.slow
    facts = {"ranks": counted(len(slow.ranks), "rank", language), "world": f"{seen.world:,}"}
    return say("read", **facts, steps=len(slow.steps), calls=f"{slow.calls:,}")


def _ran(seen: SeenSlow, context: Context) -> Markup | str:
    """The layout that ran, beside the one on screen, and a button that opens it."""
    language, say = context.language, say_of(context.language)
    running = seen.slow.running
    if seen.ran is None or running is None:
        others = seen.screen.world_size != seen.world and bool(seen.slow.ranks)
        if others:
            gpus = counted(seen.world, "gpu", language)
            paragraph = tag("p", say("other_world", gpus=gpus))
            return tag("div", paragraph, class_="refusal", role="alert")
        return fine(say("ran_unknown")) if seen.slow.ranks else ""
    sizes, framework = sizes_text(seen.ran), framework_name(seen.ran.framework)
    comparison, differing = compared(running, seen.screen, language)
    is_same = seen.ran.world_size == seen.screen.world_size and not differing
    ran = say("ran", sizes=sizes, framework=framework, gpus=counted(seen.world, "gpu", language))
    if is_same:
        return fine(ran, " ", PAGE["running_same"][language])
    opens = form.setter(fields_of_job(seen.ran.job), say("open_ran"))
    words = tag("p", ran, " ", comparison, " ", say("shown_ran"))
    box = tag("div", words, tag("p", opens, class_="fixes"), class_="refusal ran", role="status")
    return together(box, differences_html(differing, language, is_open=False))


def _timeline(seen: SeenSlow, context: Context) -> Markup | str:
    """The calls of one group, selected from a list or by clicking a GPU."""
    language, say = context.language, say_of(context.language)
    line = seen.timeline(context.state.slow_group)
    if line is None:
        return ""
    groups = seen.slow.groups
    options = [(group_name(groups[one.group]), str(one.group)) for one in seen.slow.timelines]
    chosen = form.choice("slow_group", context.state, options, counts=line.group)
    return tag(
        "section",
        tag("h3", say("timeline_title")),
        form.line(chosen),
        timeline_html(seen, line, language),
    )


def _untold(seen: SeenSlow, language: str) -> Markup | str:
    """What the traces lack; it is never guessed."""
    say, slow = say_of(language), seen.slow
    sentences = [slow_note(note, language) for note in slow.notes]
    missing = sorted({*range(seen.world)} - {one.rank for one in slow.ranks}) if slow.ranks else []
    if missing:
        sentences.append(say("no_trace", ranks=ranges_text(missing)))
    if slow.unmatched:
        calls = {"count": f"{slow.unmatched:,}", "calls": f"{slow.calls + slow.unmatched:,}"}
        sentences.append(say("unmatched", **calls))
    if slow.running is not None and seen.ran is None:
        sentences.append(say("ran_not_told"))
    if not sentences:
        return ""
    items = tag("ul", *(tag("li", sentence) for sentence in sentences))
    title = numbered(RUN["unknown_title"][language], len(sentences), language)
    return fold(title, items, is_open=True)


# -- what goes into files ------------------------------------------------------------------------


def slow_pictures(context: Context) -> Pictures:
    """The pictures, for files; empty without traces."""
    seen = context.once(seen_of)
    if seen is None or not seen.slow.ranks:
        return []
    return slow_scenes(seen, context.state.slow_group, context.language)


def slow_slide(context: Context) -> Pictures:
    """The picture of the job and the calls of a group; of a large job both pictures alone."""
    return slow_pictures(context)[:2]


def slow_summary(context: Context) -> str:
    """The slow ranks; empty without traces."""
    seen = context.once(seen_of)
    return account_text(seen, context.language) if seen else ""


VIEW = View(
    "slow",
    "diagnose",
    slow_html,
    slow_pictures,
    SLOW_VIEW["title"],
    slow_summary,
    slow_slide,
    place=2,
    endpoints=(slow_steps,),
    commands=("slow", "trace"),
)
