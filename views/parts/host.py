"""States in host memory, and the bytes transferred to and from it in a step."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import MEMORY
from groups.layout import Layout
from request.answers.memory import host_facts, most_on_host
from request.context import Context
from request.trained import Trained
from request.units import bytes_text, gib, seconds_text
from request.words import saying
from training.memory.host import UPDATE
from training.memory.per_stage import StageMemory

from ..base.html import table, tag, together

STATES = ("weights", "gradients", "optimizer")


def host_html(context: Context, stages: Sequence[StageMemory]) -> Markup:
    """GPU and host memory of a rank side by side, and the transfers; empty if everything is on
    GPUs."""
    trained, layout, language = context.trained, context.layout, context.language
    if trained.training.offload == "none":
        return Markup()
    say = saying(MEMORY, language)
    most, count = most_on_host(stages), min(layout.gpus_per_node, layout.world_size)
    names = ("stage", "gpu", "rank", "node")
    heads = (say(f"host_{name}", stage=most.stage, count=count) for name in names)
    rows = [
        (say(f"part_{name}"), most.parts.get(name, 0.0), most.host.get(name, 0.0))
        for name in STATES
    ]
    rows.append((say("kinds_sum"), most.total, most.on_host))
    body = (
        (name, *("–" if amount == 0 else gib(amount) for amount in (gpu, host, host * count)))
        for name, gpu, host in rows
    )
    has = trained.cluster.host_of(layout.gpus_per_node)
    words = "host_over" if most.on_host * count > has else "host_of"
    return together(
        tag("h3", say("host_title")),
        table(heads, body, "memory-zero"),
        tag("p", say(words, host=gib(has))) if has else "",
        crossing_html(trained, layout, language),
    )


def crossing_html(trained: Trained, layout: Layout, language: str) -> Markup:
    """The transfers between GPU and host in a step, in one line; empty if there are none."""
    facts = host_facts(trained)
    if not facts:
        return Markup()
    ranks = min(layout.gpus_per_node, layout.world_size)
    sentence = MEMORY["crossing"][language].format(
        down=bytes_text(facts["down_bytes"]),
        up=bytes_text(facts["up_bytes"]),
        link=f"{trained.cluster.link / 1e9:.0f}",
        during=seconds_text(facts["seconds_during"]),
        after=seconds_text(facts["seconds_after"]),
        update=seconds_text(UPDATE * ranks * facts["parameters_updated"]),
    )
    return tag("p", sentence, class_="crossing")
