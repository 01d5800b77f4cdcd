"""The Pipeline view: what a pipeline group does over time, and which layers its stages hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from markupsafe import Markup

from descriptions import PAGE, joined
from groups import LayoutError
from groups.alternatives import MOST, divisors
from training.pipeline import SCHEDULES
from training.pipeline.spec import ScheduleSpec as Schedule

from ..base import form
from ..base.context import TABLES, Context, View
from ..base.html import fold, intro, saying, tag, together
from ..base.problems import once, problem_html, tried
from ..base.resolve import resolve
from ..base.state import is_empty
from ..base.trained import batch_of, schedule_name, with_micro_batches
from ..base.units import ranges_text
from ..estimate.words import step_of
from .chart import amount, chart_html, timed_schedule
from .figures import figures_html
from .inputs import MOST_RANKS, Clock, clock_of, group_of, message_bytes, schedule_of, spend_on
from .layers import Stage, layers_html, stages_of
from .pictures import pipeline_pictures

TIMES = ("t_f", "t_b", "t_i", "t_w", "t_pair", "t_send", "t_optimizer", "w_share", "message")
LAYERS = ("first_layers", "last_layers", "pipe_layout")


def pipeline_html(context: Context) -> Markup:
    """The whole view as HTML; the pinned rank's pipeline is shown unless another is asked for."""
    return tag("div", _Page(context).html(), class_="pipeline")


class _Page:
    """One answer: the inputs are checked once, each refusal is kept for where it belongs."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.layout, self.state, self.language = context.layout, context.known, context.language
        self.refusals: list[LayoutError] = []  # of the schedules and their sizes
        self.refused_times: list[LayoutError] = []
        self.refused_layers: list[LayoutError] = []

    def html(self) -> Markup:
        head = intro(self.say("title"), self.say("body"), self.language)
        p = self.layout.every["pp"].size
        if p == 1:
            return together(head, self._without(self.say("none")))
        if p > MOST_RANKS:
            long = self.say("long", p=f"{p:,}", most=f"{MOST_RANKS:,}")
            return together(head, self._without(long))
        schedules = self._schedules()
        clock = tried(self.refused_times, lambda: clock_of(self.state))
        message = tried(self.refused_times, lambda: message_bytes(self.state))
        group = tried(self.refusals, lambda: group_of(self.layout, self.state))
        stages = [self._stages(schedule) for schedule in schedules]
        number, ranks = group or self._pinned
        return together(
            head,
            self._inputs(),
            self._refused(self.refusals),
            self._times(),
            self._refused(self.refused_times),
            self._drawn(schedules, clock, stages, ranks, number, message),
            self._layers(schedules, stages, ranks),
        )

    def say(self, word: str, **facts: Any) -> str:
        return saying(PAGE, self.language)(f"pipeline_{word}", **facts)

    def _schedules(self) -> list[Schedule]:
        """The schedule, and the one to compare with, as far as they are not refused."""
        names = {"schedule": schedule_name(self.state)}
        if not is_empty(self.state.against):
            names["against"] = self.state.against
        schedules: list[Schedule] = []
        for field, name in names.items():
            refused: list[LayoutError] = []
            schedule = tried(refused, lambda name=name: schedule_of(name, self.layout, self.state))
            schedules += [schedule] if schedule else []
            instead = {field: "1f1b" if field == "schedule" else ""}
            self.refusals += [self._fixed(error, field, instead) for error in refused]
        self.refusals = once(self.refusals)
        return list(dict.fromkeys(schedules))

    def _stages(self, schedule: Schedule) -> tuple[Stage, ...] | None:
        refused: list[LayoutError] = []
        stages = tried(refused, lambda: stages_of(schedule, self.state))
        field = "against" if schedule.name == self.state.against else "schedule"
        self.refused_layers += [self._fixed(error, field, layers=True) for error in refused]
        self.refused_layers = once(self.refused_layers)
        return stages

    def _fixed(
        self,
        error: LayoutError,
        field: str,
        instead: Mapping[str, Any] | None = None,
        layers: bool = False,
    ) -> LayoutError:
        """The refusal with those of its fixes that work on this page, and another schedule."""
        fixes = [self._with_batch(fix) for fix in error.alternatives]
        working = [fix for fix in fixes if self._works(fix, field, layers)]
        if instead and self._works(instead, field, layers):
            working = [*working[: MOST - 1], dict(instead)]
        return error.replace(alternatives=working)

    def _works(self, fix: Mapping[str, Any], field: str, layers: bool) -> bool:
        """Whether the schedule of a field, and its layers too, are not refused after a fix."""
        state = self.state.changed(fix)
        try:
            layout = resolve(state)
            name = schedule_name(state) if field == "schedule" else state.against
            schedule = schedule_of(name or "gpipe", layout, state)
            if layers:
                stages_of(schedule, state)
        except LayoutError:
            return False
        return True

    def _with_batch(self, fix: Mapping[str, Any]) -> dict[str, Any]:
        """Other micro-batches as the column says them; another pp goes with those of now."""
        changes = dict(fix)
        batch = tried([], lambda: batch_of(self.layout, self.state))
        if "pp" in fix and batch is not None and not batch.is_given:
            changes.setdefault("micro_batches", batch.micro_batches)
        elif isinstance(changes.get("micro_batches"), int) and batch is not None:
            count = changes.pop("micro_batches")
            changes |= with_micro_batches(self.layout, self.state, count)
        return changes

    @property
    def _pinned(self) -> tuple[int, tuple[int, ...]]:
        return group_of(self.layout, replace(self.state, pipe_group=""))

    def _inputs(self) -> Markup:
        state, language = self.state, self.language
        options = [(rule.title, name) for name, rule in SCHEDULES.items()]
        options.insert(0, (self.say("no_second"), ""))
        boxes = [form.choice("against", state.against, options, language)]
        names = [name for name in (schedule_name(state), state.against) if isinstance(name, str)]
        if any(SCHEDULES[name].grouped for name in names if name in SCHEDULES):
            boxes.append(self._number("group_size", str(self.layout.every["pp"].size)))
        boxes.append(self._number("pipe_group", str(self._pinned[0])))
        return form.fields(*boxes)

    def _number(self, name: str, hint: str = "") -> Markup:
        return form.number(name, getattr(self.state, name), self.language, hint=hint)

    def _times(self) -> Markup:
        hints = dict.fromkeys(("t_f", "t_i", "t_w", "w_share"), "1")
        hints |= {"t_send": "0", "t_optimizer": "0"}
        boxes = [self._number(name, hints.get(name, "")) for name in TIMES]
        is_open = any(not is_empty(getattr(self.state, name)) for name in TIMES)
        return fold(self.say("times"), form.fields(*boxes), kind="pipeline-times", is_open=is_open)

    def _drawn(
        self,
        schedules: list[Schedule],
        clock: Clock | None,
        stages: list[tuple[Stage, ...] | None],
        ranks: tuple[int, ...],
        number: int,
        message: float | None,
    ) -> Markup:
        if not schedules or clock is None:
            return Markup()
        refused: list[LayoutError] = []
        tried(refused, lambda: spend_on(schedules))
        if refused:
            return self._refused(refused)
        timed_schedules = tuple(
            timed_schedule(schedule, layers, clock, self.state)
            for schedule, layers in zip(schedules, stages)
        )
        summary = self._summary(schedules[0], ranks, number, clock)
        return together(
            tag("p", summary, class_="pipeline-summary"),
            step_of(self.context),
            chart_html(timed_schedules, ranks, tuple(stages), self.language),
            figures_html(timed_schedules, ranks, clock, message, self.language),
        )

    def _summary(
        self, schedule: Schedule, ranks: tuple[int, ...], number: int, clock: Clock
    ) -> str:
        groups = f"{self.layout.every['pp'].num_groups:,}"
        batch = batch_of(self.layout, self.state)
        said = (
            self.say("group_of", group=number, groups=groups, ranks=ranges_text(ranks)),
            self.say(
                "sizes" if schedule.chunks > 1 else "sizes_alone",
                p=schedule.p,
                m=schedule.m,
                v=schedule.chunks,
            ),
            self.say(
                "from_batch" if batch.is_given else "no_batch",
                batch=f"{batch.global_batch:,}",
                micro=batch.micro_batch,
                dp=batch.dp,
                m=schedule.m,
            ),
            self.say("units", forward=amount(clock.times.forward)),
        )
        return joined(said, self.language)

    def _layers(
        self,
        schedules: list[Schedule],
        stages: list[tuple[Stage, ...] | None],
        ranks: tuple[int, ...],
    ) -> Markup:
        boxes = [self._number(name) for name in LAYERS[:2]]
        boxes.append(form.text("pipe_layout", self.state.pipe_layout, self.language))
        boxes.append(form.check("by_layers", self.state.by_layers, self.language))
        tables = (
            together(
                tag("h4", schedule.rule.title),
                layers_html(schedule, layers, ranks, self.state, self.language),
            )
            for schedule, layers in zip(schedules, stages)
        )
        return together(
            tag("h3", self.say("layers")),
            tag("p", self.say("layers_body")),
            form.fields(*boxes),
            self._refused(self.refused_layers),
            *tables,
        )

    def _without(self, said: str) -> Markup:
        """Why there is nothing to draw, and sizes of which there is."""
        sizes = ({"pp": size} for size in divisors(self.layout.world_size)[1:])
        works = islice((size for size in sizes if self._works(size, "against", False)), MOST)
        setters = (form.setter(size, self.say("set", **size)) for size in works)
        note = tag("p", said, class_="pipeline-note")
        return together(note, tag("p", *setters, class_="pipeline-fixes"))

    def _refused(self, errors: list[LayoutError]) -> Markup:
        return together(*(problem_html(error, self.language) for error in errors))


VIEW = View(
    "pipeline",
    "step",
    pipeline_html,
    pipeline_pictures,
    PAGE["pipeline_title"],
    files=("trace", *TABLES),
)
