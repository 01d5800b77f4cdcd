"""The chosen GPU over a step: its memory op by op, as JSON and in words."""

from __future__ import annotations

from descriptions import MEMORY, PAGE
from formats.values import Facts
from training.estimate.memory import room_of
from training.memory.moments import OpMemory
from training.memory.over_step import MemoryOverStep, over_step
from training.memory.per_stage import PARTS
from training.pipeline.plan import KINDS

from ..context import Context
from ..trained_endpoint import job_facts
from ..units import gib
from ..words import saying
from .pipeline.inputs import clock_of


def held_over_step(context: Context) -> MemoryOverStep:
    """The memory of the chosen GPU over a step, by the clock of its pipeline.

    Errors: LayoutError as of `memory_facts`, for a rank that is none, and for times that are none.
    """
    trained, layout = context.trained, context.layout
    trained.require()
    clock = clock_of(context.state)
    rank = chosen_rank(context)
    stage = layout.every["pp"].members(rank).tolist().index(rank)
    room = room_of(trained.capacity)
    durations = clock.durations(1.0, None)
    return over_step(trained.model, trained.split, trained.training, stage, room, durations)


def chosen_rank(context: Context) -> int:
    return context.state.number("rank", 0, least=0, most=context.layout.world_size - 1)


def over_step_facts(context: Context) -> Facts:
    """The memory of the chosen GPU over a step, as JSON values. Errors: as of `held_over_step`."""
    held = held_over_step(context)
    return {
        **job_facts(context.trained),
        "capacity_bytes": context.trained.capacity,
        "rank": chosen_rank(context),
        "stage": held.stage,
        "micro_batches": held.micro_batches,
        "of": held.of,
        "fullest": held.ops.index(held.fullest),
        "fullest_bytes": held.total,
        "ops": [
            {
                "op": op.text,
                "start": op.start,
                "end": op.end,
                "bytes": op.most.parts,
                "total_bytes": op.most.total,
                "bytes_behind": op.points[-1].total,
            }
            for op in held.ops
        ],
    }


def has_stages(held: MemoryOverStep) -> bool:
    """Whether the GPU has several stages of the model."""
    return len({op.text.split("F")[0] for op in held.ops if "F" in op.text}) > 1


def op_words(op: OpMemory, held: MemoryOverStep, language: str) -> str:
    """An op in words: "backward of micro-batch 2", with its stage where a rank has several."""
    say = saying(MEMORY, language)
    if not op.kinds:
        return say(f"op_{op.text}")
    texts = []
    for text in op.text.split("&"):
        kind = next(filter(KINDS.__contains__, text))
        stage, micro_batch = text.split(kind)
        words = say(f"op_{kind}", micro_batch=micro_batch)
        texts.append(words + (say("op_stage", stage=stage) if has_stages(held) else ""))
    return say("op_pair").join(texts)


def over_step_words(context: Context, held: MemoryOverStep) -> dict[str, str]:
    """What the picture says: its title, the line of the GPU's memory ("limit"), the fullest moment
    ("most"), and each part by its name."""
    language, say = context.language, saying(MEMORY, context.language)
    when = op_words(held.fullest, held, language)
    return {
        "title": say("over_step_title", rank=f"{chosen_rank(context):,}", stage=held.stage),
        "limit": say("capacity_line", capacity=gib(context.trained.capacity)),
        "most": f"{gib(held.total)}{PAGE['colon'][language]}{when}",
        **{part: say(f"part_{part}") for part in PARTS},
    }
