"""A picture of ZeRO: which rank holds which share of weights, gradients and optimizer state, and
when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from descriptions import MEMORY, joined
from groups.grouping import Grouping
from groups.layout import Layout
from render.draw.shards import draw_shards
from render.scenes.shards import LOCAL, NONE, OWN, STALE, WHOLE, ShardGrid
from render.svg.marks import scene_svg
from request.context import Context
from request.trained import Trained
from request.units import gib, ranks_text
from request.words import saying
from training.estimate.memory import room_of
from training.memory.per_stage import StageMemory, memory_per_stage, model_states
from training.recipe import OFFLOAD

from ..base.form import setter
from ..base.html import fine, row, scrolling, table, tag, together
from .stages import millions, stage_of_ranks

MOMENTS: dict[int, tuple[tuple[str, str, str, str], ...]] = {
    # moment            weights  gradients  optimizer state
    0: (
        ("forward", WHOLE, NONE, WHOLE),
        ("backward", WHOLE, LOCAL, WHOLE),
        ("all_reduce", WHOLE, WHOLE, WHOLE),
        ("step_all", WHOLE, NONE, WHOLE),
    ),
    1: (
        ("forward", WHOLE, NONE, OWN),
        ("backward", WHOLE, LOCAL, OWN),
        ("reduce_scatter", WHOLE, STALE, OWN),
        ("step_own", STALE, STALE, OWN),
        ("all_gather", WHOLE, NONE, OWN),
    ),
    2: (
        ("forward", WHOLE, NONE, OWN),
        ("backward_scatter", WHOLE, OWN, OWN),
        ("step_own", STALE, OWN, OWN),
        ("all_gather", WHOLE, NONE, OWN),
    ),
    3: (
        ("at_rest", OWN, NONE, OWN),
        ("gather_forward", WHOLE, NONE, OWN),
        ("gather_backward", WHOLE, LOCAL, OWN),
        ("scatter_free", OWN, OWN, OWN),
        ("step_shard", OWN, OWN, OWN),
    ),
}
"""The states of each rank of a data parallel group at each moment of a step, by ZeRO stage.

Sources: arXiv:1910.02054 section 5; for stage 1 as Megatron's distributed optimizer does it
(docs/user-guide/features/dist_optimizer.md), whose gradient buffer stays whole.
"""

LETTERS = ("W", "G", "O")


def sharing_group(layout: Layout, instances: int) -> Grouping:
    """The group whose ranks share the states of dense parameters."""
    name = "intra-dp-cp" if instances > 1 and "intra-dp-cp" in layout.roles else "dp-cp"
    return layout.roles[name]


def sharing_ranks(context: Context) -> tuple[int, tuple[int, ...]]:
    """The selected rank, and all that share the states of its dense parameters.

    Errors: LayoutError if it is none of this layout.
    """
    layout = context.layout
    rank = context.state.number("of_rank", context.rank, least=0, most=layout.world_size - 1)
    return rank, tuple(
        sharing_group(layout, context.trained.training.instances).members(rank).tolist()
    )


def moments_of(zero: int, ranks: tuple[int, ...]) -> list[tuple[str, ShardGrid]]:
    """The moments of a step under a ZeRO stage: name, and the states of each rank."""
    return [
        (moment, ShardGrid(ranks, tuple(zip(LETTERS, states)))) for moment, *states in MOMENTS[zero]
    ]


def zero_html(context: Context, stages: Sequence[StageMemory]) -> Markup:
    """The four stages in numbers, then the selected one as a strip of moments.

    Errors: LayoutError if the rank asked about is none of this layout.
    """
    layout, trained, language = context.layout, context.trained, context.language
    rank, ranks = sharing_ranks(context)
    stage = stages[int(stage_of_ranks(layout)[rank])]
    return together(
        tag("h3", MEMORY["zero_title"][language]),
        tag("p", _who(context, stage, rank, ranks)),
        _table(trained, stage, language),
        fine(MEMORY["zero_key"][language]),
        _strip(trained.training.zero, ranks, language),
    )


def _who(context: Context, stage: StageMemory, rank: int, ranks: tuple[int, ...]) -> str:
    trained, layout, language = context.trained, context.layout, context.language
    dense, experts = trained.training.ranks_sharing(trained.split)
    say = saying(MEMORY, language)
    sentences = [
        say(
            "zero_alone" if len(ranks) == 1 else "zero_group",
            rank=rank,
            stage=stage.stage,
            count=f"{len(ranks):,}",
            ranks=ranks_text(ranks, most=16),
            parameters=millions(stage.trained[0]),
            share=millions(stage.trained[0] / dense),
        )
    ]
    if stage.trained[1] and "edp" in layout.roles:
        name = "intra-edp" if "intra-edp" in layout.roles else "edp"
        members = layout.roles[name].members(rank).tolist()
        sentences.append(
            say(
                "zero_experts",
                parameters=millions(stage.trained[1]),
                count=f"{experts:,}",
                ranks=ranks_text(members, most=16),
            )
        )
    return joined(sentences, language)


def _table(trained: Trained, stage: StageMemory, language: str) -> Markup:
    """Bytes of one rank under every stage; the stage's name selects it."""
    say, names, rows = saying(MEMORY, language), ("weights", "gradients", "optimizer"), []
    heads = [say("zero_column"), *(say(f"part_{name}") for name in names), say("zero_sum")]
    for zero in MOMENTS:
        parts = _states_under(zero, trained, stage)
        sizes = [parts.get(name, 0.0) for name in names]
        button, total = setter({"zero": zero}, say(f"zero_{zero}")), tag("b", gib(sum(sizes)))
        current = "true" if zero == trained.training.zero else None
        rows.append(row(button, *map(gib, sizes), total, aria_current=current))
    return table(heads, rows, "memory-zero")


def _states_under(zero: int, trained: Trained, stage: StageMemory) -> dict[str, float]:
    """The least bytes of a rank's states under a ZeRO stage."""
    offload = trained.training.offload
    offload = offload if zero >= OFFLOAD[offload] else "none"
    training = replace(trained.training, zero=zero, offload=offload)
    if offload == "none":
        return model_states(stage.trained, trained.split, training)
    room = room_of(trained.capacity)
    return memory_per_stage(trained.model, trained.split, training, room)[stage.stage].parts


def _strip(zero: int, ranks: tuple[int, ...], language: str) -> Markup:
    say, items = saying(MEMORY, language), []
    for moment, shards in moments_of(zero, ranks):
        title = say(f"moment_{moment}")
        words = tag("div", tag("b", title), tag("p", say(f"moment_{moment}_body")))
        drawn = Markup(scene_svg("shards", shards, draw_shards(shards, "page"), title))
        items.append(tag("li", words, scrolling("memory-scroll", drawn)))
    return tag("ol", *items, class_="memory-moments")
