"""The Pipeline view: what a pipeline group does over time, and which layers its stages hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from markupsafe import Markup

from descriptions import PAGE, joined
from groups import LayoutError
from groups.alternatives import MOST, divisors, with_working, works
from request.answers.pipeline.api import pipeline_schedule
from request.answers.pipeline.inputs import (
    MOST_RANKS,
    Clock,
    Stage,
    clock_of,
    group_of,
    message_bytes,
    schedule_of,
    spend_on,
    stages_of,
)
from request.answers.pipeline.timed import TimedSchedule, amount, timed_schedule
from request.answers.zooms import zooms_of
from request.context import Context
from request.inputs import OF_MATHS
from request.resolve import resolve
from request.state import State, fixes_or_reset, is_empty
from request.trained import batch_of, schedule_name, with_micro_batches
from request.units import ranges_text
from request.words import each_once, saying, tried
from training.pipeline import SCHEDULES
from training.pipeline.spec import ScheduleSpec

from ..base import form
from ..base.html import explained, fold, heading, tag, together
from ..base.problems import problem_html
from ..base.view import TABLES, View
from ..parts.model import strip_html
from ..parts.step import step_of
from ..parts.zooms import zooms_html
from .chart import chart_html, pipeline_pictures, pipeline_slide, schedule_text
from .tables import figures_html, layers_html

TIMES = {
    **{"t_f": "1", "t_b": "", "t_i": "1", "t_w": "1", "t_pair": "", "t_send": "0"},
    **{"t_optimizer": "0", "w_share": "1", "message": ""},
}
"""Inputs of durations, each with its default."""

Stages = tuple[Stage, ...] | None


def pipeline_html(context: Context) -> Markup:
    """The view as HTML, for the pinned rank's pipeline unless another is selected."""
    say = saying(PAGE, context.language)
    p = context.layout.every["pp"].size
    if 1 < p <= MOST_RANKS:
        op = _op_of_moment(context)
        return tag("div", *_Page(context).parts(), class_="pipeline", data_op=op)
    head = together(zooms_html(context), heading(say("pipeline_title")))
    long = say("pipeline_long", p=f"{p:,}", most=f"{MOST_RANKS:,}")
    body = _without(say("pipeline_none") if p == 1 else long, context)
    return tag("div", head, body, class_="pipeline")


def _op_of_moment(context: Context) -> list[int] | None:
    """Kind, micro-batch and stage of the op at the moment that somebody chose, for the script."""
    if context.moment is None:
        return None
    try:
        found = context.once(zooms_of)
    except LayoutError:
        return None
    return None if found.op is None else [*found.ops[found.op].runs[0]]


def _without(sentence: str, context: Context) -> Markup:
    """Why there is nothing to draw, and buttons to sizes with a pipeline."""
    sizes = ({"pp": size} for size in divisors(context.layout.world_size)[1:])
    tried = (size for size in sizes if works(_require, size, "against", context.known))
    words = PAGE["pipeline_set"][context.language]
    setters = (form.setter(size, words.format(**size)) for size in islice(tried, MOST))
    note = tag("p", sentence, class_="pipeline-note")
    return together(note, tag("p", *setters, class_="pipeline-fixes"))


def _require(fix: Mapping[str, object], field: str, state: State) -> None:
    """Refuses the schedule of a field after a fix, and its layers."""
    state = state.changed(fix)
    name = schedule_name(state) if field == "schedule" else state.against
    schedule = schedule_of(name or "gpipe", resolve(state), state)
    stages_of(schedule, state)


class _Page:
    """One answer: the inputs are checked once, and each refusal is kept for its place."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.layout, self.state, self.language = context.layout, context.known, context.language
        self.say = saying(PAGE, context.language)
        self.refused: list[LayoutError] = []  # schedules and their sizes
        self.refused_times: list[LayoutError] = []
        self.refused_layers: list[LayoutError] = []
        self.names = {"schedule": schedule_name(self.state)}
        if not is_empty(self.state.against):
            self.names["against"] = self.state.against
        self.pinned = group_of(self.layout, self.state, is_pinned=True)

    def parts(self) -> Iterator[Markup]:
        schedules = self._schedules()
        clock = tried(self.refused_times, lambda: clock_of(self.state))
        message = tried(self.refused_times, lambda: message_bytes(self.state))
        group = None
        if not is_empty(self.state.pipe_group):
            group = tried(self.refused, lambda: group_of(self.layout, self.state))
        group = group or self.pinned
        timed = self._timed(schedules, clock)
        answer = "" if not timed else tag("p", schedule_text(timed[0], self.language))
        yield zooms_html(self.context)
        yield heading(self.say("pipeline_title"), answer)
        problems = self._problems([*self.refused, *self.refused_times])
        yield problems
        if problems:
            yield self._inputs()
        if timed and clock is not None:
            yield chart_html(timed, group[1], self.language)
            if not problems:
                yield self._inputs()
            body = explained(self.say("pipeline_body"), self.language)
            yield tag("p", body, class_="pipeline-note")
            summary = self._summary(next(iter(schedules)), group, clock)
            yield tag("p", summary, class_="pipeline-summary")
            yield step_of(self.context)
            yield figures_html(timed, group[1], clock, message, self.language)
        yield self._strip()
        yield self._layers(schedules, group[1])

    def _strip(self) -> Markup:
        """The layers of each stage by kind; empty where no model is known, or not on this."""
        try:
            trained = self.context.trained
            dealing = trained.split.placed(trained.training.rule.placement).dealing
            return strip_html(trained.model, dealing, self.language)
        except LayoutError:  # said where the model is asked about
            return Markup()

    def _timed(
        self, schedules: Mapping[ScheduleSpec, Stages], clock: Clock | None
    ) -> tuple[TimedSchedule, ...]:
        """The schedules with the durations of their ops; empty if those are refused."""
        if not schedules or clock is None:
            return ()
        before = len(self.refused)
        tried(self.refused, lambda: spend_on([*schedules]))
        if len(self.refused) > before:
            return ()
        return tuple(timed_schedule(*each, clock, self.state) for each in schedules.items())

    def _schedules(self) -> dict[ScheduleSpec, Stages]:
        """The schedule and the one to compare with, unless they are refused; each with its stages'
        layers."""
        schedules: dict[ScheduleSpec, Stages] = {}
        for field, name in self.names.items():
            refused: list[LayoutError] = []
            schedule = tried(refused, partial(schedule_of, name, self.layout, self.state))
            by_vpp = schedule_name(self.state.changed({"schedule": ""}))
            instead: list[Mapping[str, object]] = [{"against": ""}]
            if field == "schedule":
                instead = [{"schedule": by_vpp}, {"schedule": "1f1b", "vpp": ""}]
            self.refused += [self._fixed(error, field, instead) for error in refused]
            if schedule is not None and schedule not in schedules:
                schedules[schedule] = self._stages(schedule)
        self.refused = each_once(self.refused)
        self.refused_layers = each_once(self.refused_layers)
        return schedules

    def _stages(self, schedule: ScheduleSpec) -> Stages:
        refused: list[LayoutError] = []
        stages = tried(refused, lambda: stages_of(schedule, self.state))
        field = "against" if schedule.name == self.state.against else "schedule"
        self.refused_layers += [self._fixed(error, field) for error in refused]
        return stages

    def _fixed(
        self, error: LayoutError, field: str, instead: Sequence[Mapping[str, object]] = ()
    ) -> LayoutError:
        """The refusal with only the fixes that work on this page: for a schedule also another one;
        for layers only those with which they are valid."""

        def attempt(fix: Mapping[str, object]) -> None:
            try:
                _require(fix, field, self.state)
            except LayoutError as following:
                raise self._with_batch(following.renamed(OF_MATHS)) from None

        def working(refused: LayoutError) -> list[Mapping[str, object]]:
            return [*with_working(refused, attempt).alternatives]

        fixes = working(self._with_batch(error))
        is_grouped = any("group_size" in fix for fix in fixes)  # nothing else changes
        others = [] if is_grouped else working(error.replace(alternatives=instead))[:1]
        return error.replace(alternatives=[*fixes[: MOST - len(others)], *others])

    def _with_batch(self, error: LayoutError) -> LayoutError:
        """A fix of micro-batches as the column's fields; another pp keeps the current ones."""
        batch = tried([], lambda: batch_of(self.layout, self.state))
        fixes = []
        for changes in fixes_or_reset(error):
            if "pp" in changes and batch is not None and not batch.is_explicit:
                changes.setdefault("micro_batches", batch.micro_batches)
            elif isinstance(changes.get("micro_batches"), int) and batch is not None:
                count = changes.pop("micro_batches")
                changes |= with_micro_batches(self.layout, self.state, count)
            fixes.append(changes)
        return error.replace(alternatives=fixes)

    def _inputs(self) -> Markup:
        """The most common inputs in one line, durations under their title."""
        options = [(rule.title, name) for name, rule in SCHEDULES.items()]
        boxes = [form.number(name, self.state, hint=hint) for name, hint in TIMES.items()]
        is_open = any(not is_empty(getattr(self.state, name)) for name in TIMES)
        times = form.fields(*boxes)
        return form.line(
            form.choice("against", self.state, options, unsaid=self.say("pipeline_no_second")),
            form.number("pipe_group", self.state, hint=self.pinned[0]),
            fold(self.say("pipeline_times"), times, kind="pipeline-times", is_open=is_open),
        )

    def _summary(
        self, schedule: ScheduleSpec, group: tuple[int, tuple[int, ...]], clock: Clock
    ) -> str:
        batch, say, (number, ranks) = batch_of(self.layout, self.state), self.say, group
        groups = f"{self.layout.every['pp'].num_groups:,}"
        m, dp, micro = f"{schedule.m:,}", f"{batch.dp:,}", f"{batch.micro_batch:,}"
        batch_word = "from_batch" if batch.is_explicit else "no_batch"
        sizes = "sizes" if schedule.chunks > 1 else "sizes_alone"
        samples = f"{batch.global_batch:,}"
        sentences = (
            say("pipeline_group_of", group=number, groups=groups, ranks=ranges_text(ranks)),
            say(f"pipeline_{sizes}", p=schedule.p, m=m, v=schedule.chunks),
            say(f"pipeline_{batch_word}", batch=samples, micro=micro, dp=dp, m=m),
            say("pipeline_units", forward=amount(clock.times.forward)),
        )
        return joined(sentences, self.language)

    def _layers(self, schedules: Mapping[ScheduleSpec, Stages], ranks: tuple[int, ...]) -> Markup:
        state, language = self.state, self.language
        boxes = (
            *(form.number(name, state) for name in ("first_layers", "last_layers")),
            form.text("pipe_layout", state),
            form.check("by_layers", state),
        )
        tables = (
            (tag("h4", spec.rule.title), layers_html(spec, stages, ranks, state, language))
            for spec, stages in schedules.items()
        )
        return together(
            tag("h3", self.say("pipeline_layers")),
            tag("p", self.say("pipeline_layers_body")),
            form.fields(*boxes),
            self._problems(self.refused_layers),
            *(part for both in tables for part in both),
        )

    def _problems(self, errors: list[LayoutError]) -> Markup:
        return together(*(problem_html(error, self.language) for error in errors))


VIEW = View(
    "pipeline",
    "step",
    pipeline_html,
    pipeline_pictures,
    PAGE["pipeline_title"],
    slide=pipeline_slide,
    files=("trace", *TABLES),
    of_step=True,
    place=2,
    endpoints=(pipeline_schedule,),
)
