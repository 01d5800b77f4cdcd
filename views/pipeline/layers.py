"""Which layers each stage holds, and how the view draws them: ranks down, chunks across."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from descriptions import PAGE
from groups.stages.layout_strings import parse_layout, stage_layers_of_layout, stages_of_layout
from training.pipeline import SCHEDULES
from training.pipeline.spec import ScheduleSpec

from ..base.html import TableCell, cell, saying, table, tag, together
from ..base.model import layers_by_stage
from ..base.problems import leads_html
from ..base.state import State, is_empty, parse_number, require_choice
from ..base.trained import schedule_name, virtual_stages
from ..base.units import ranges_text

LETTER = {"embedding": "E", "mtp": "m", "loss": "L"}


@dataclass(frozen=True)
class Stage:
    """What one stage holds: decoder layers, and letters of what else: E, m, L."""

    layers: tuple[int, ...]
    others: str

    @property
    def text(self) -> str:
        """As in ``E 0-3``; empty if it holds nothing.

        >>> Stage((0, 1, 2), "E").text, Stage((), "").text
        ('E 0-2', '')
        """
        before, after = self.others.replace("L", "").replace("m", ""), self.others.lstrip("E")
        return " ".join(part for part in (before, ranges_text(self.layers), after) if part)


def dealing_of(pp: int, state: State) -> ScheduleSpec:
    """The schedule as far as it deals out layers, whatever its micro-batches."""
    name, chunks = schedule_name(state), virtual_stages(state)
    rule = SCHEDULES[require_choice("schedule", name, SCHEDULES)]
    return ScheduleSpec(name, pp, 1, None if rule.v else chunks)


def stages_of(schedule: ScheduleSpec, state: State) -> tuple[Stage, ...] | None:
    """Every stage of the model in order; None if nothing says how many layers there are.

    In a V the stages lie on the ranks forth and back, so they are dealt out as to 2p ranks.

    Errors: LayoutError where Megatron would refuse, as groups.stages says.
    """
    chunks = schedule.chunks if schedule.rule.placement == "loop" else 1
    pp = schedule.p * schedule.chunks // chunks
    vpp = chunks if chunks > 1 else None
    text = state.pipe_layout if not is_empty(state.pipe_layout) else parse_number(state.layers)
    if isinstance(text, str) and (not is_empty(state.pipe_layout) or "t" in text):
        names = [name for stage in parse_layout(text) for name in stage]
        layers = names.count("decoder") if is_text(state.layers) else parse_number(state.layers)
        numbers = stage_layers_of_layout(text, layers, pp, chunks, names.count("mtp"))
        others = [[_letters(chunk) for chunk in stage] for stage in stages_of_layout(text, pp)]
    elif is_empty(state.layers):
        return None
    else:
        counts = {"first": state.first_layers, "last": state.last_layers}
        given = {name: parse_number(count) for name, count in counts.items() if not is_empty(count)}
        numbers = layers_by_stage(state, pp, vpp, **given)
        others = [[""] * chunks for _ in numbers]
        others[0][0] += "E"
        others[-1][-1] += "L"
    return tuple(
        Stage(tuple(numbers[rank][chunk]), others[rank][chunk])
        for chunk in range(chunks)
        for rank in range(pp)
    )


def is_text(layers: object) -> bool:
    """Whether the control for layers is empty or a layout, so that it counts no layers itself."""
    return is_empty(layers) or isinstance(parse_number(layers), str)


def weights_of(stages: tuple[Stage, ...], state: State) -> tuple[float, ...] | None:
    """How long each stage takes, against the average; None where there is nothing to weigh.

    A layer counts 1, multi-token prediction too, and the embedding and the loss if they are counted
    as layers.
    """
    counts = counts_of(stages, state)
    mean = sum(counts) / len(counts)
    return tuple(count / mean for count in counts) if mean else None


def counts_of(stages: tuple[Stage, ...], state: State) -> list[int]:
    """Layers of each stage, with what counts as one."""
    account = state.account is True
    return [
        len(stage.layers)
        + stage.others.count("m")
        + account * (stage.others.count("E") + stage.others.count("L"))
        for stage in stages
    ]


def layers_html(
    schedule: ScheduleSpec,
    stages: tuple[Stage, ...] | None,
    ranks: tuple[int, ...],
    state: State,
    language: str,
) -> Markup:
    """The table of stages, one row a rank and one column a chunk, and what is odd about it."""
    say, columns = saying(PAGE, language), stage_numbers(schedule)
    word = "direction" if schedule.rule.placement == "both ways" else "chunk"
    chunks = (say(f"pipeline_{word}", chunk=chunk) for chunk in range(len(columns[0])))
    rows = (
        (
            rank_name(rank, place),
            *(_cell(n, chunk, stages, language) for chunk, n in enumerate(numbers)),
        )
        for place, (rank, numbers) in enumerate(zip(ranks, columns))
    )
    notes = _notes(schedule, stages, state, language)
    heads = (say("pipeline_column_rank"), *chunks)
    return together(notes, table(heads, rows, "pipeline-layers"))


def rank_name(rank: int, place: int) -> Markup:
    return together(f"{rank} ", tag("small", f"pp {place}"))


def stage_numbers(schedule: ScheduleSpec) -> list[list[int]]:
    """The stages of each rank, chunk by chunk."""
    p, placement = schedule.p, schedule.rule.placement
    if placement == "V":
        return [[rank, 2 * p - 1 - rank] for rank in range(p)]
    if placement == "both ways":
        return [[rank, p - 1 - rank] for rank in range(p)]
    return [[chunk * p + rank for chunk in range(schedule.chunks)] for rank in range(p)]


def _cell(number: int, chunk: int, stages: tuple[Stage, ...] | None, language: str) -> TableCell:
    stage = tag("small", PAGE["pipeline_stage"][language].format(stage=number))
    held = "" if stages is None else stages[number].text
    is_empty_stage = stages is not None and not stages[number].layers
    if is_empty_stage:
        held = f"{held} {PAGE['pipeline_empty'][language]}".strip()
    shade = tag("i", class_=f"op-f{min(chunk, 7)}")
    return cell(shade, stage, " ", held, class_="pipeline-empty" if is_empty_stage else None)


def _notes(
    schedule: ScheduleSpec, stages: tuple[Stage, ...] | None, state: State, language: str
) -> Markup:
    """What a reader should know of this split."""
    say, notes = saying(PAGE, language), []
    if stages is None:
        if is_empty(state.layers):
            return tag("p", leads_html("layers", say("rank_give_layers")))
    else:
        counts = counts_of(stages, state)
        if min(counts) != max(counts):
            notes.append(say("pipeline_uneven", least=min(counts), most=max(counts)))
        empty = [number for number, stage in enumerate(stages) if not stage.layers]
        if empty:
            notes.append(say("pipeline_empties", stages=ranges_text(empty)))
    if schedule.rule.placement == "both ways":
        notes.append(say("pipeline_copies"))
    return together(*(tag("p", note, class_="pipeline-note") for note in notes))


def _letters(names: list[str]) -> str:
    return "".join(LETTER[name] for name in names if name in LETTER)
