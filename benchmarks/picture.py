"""Part "picture": from the controls to the HTML that the page gets, step by step, no cache.

maths     the checked layout, the groups of every kind and the nodes that they span
scene     what to draw, as data
painting  the scene as SVG text
answer    everything that one event computes: the above, texts, table and list, caches emptied
CPU       of the answer: on a busy machine it says the same as on a quiet one
warm      the same of 50 states that differ in the batch, nothing emptied: one drags a slider
bytes     status, picture and details as UTF-8, before compression
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from groups.audit import spans_of
from render.scenes import groups as scene
from render.svg import groups as svg
from request.context import Context
from request.state import State
from views.page import answer

from .caches import clear_caches
from .page_client import Servers
from .timing import ResultTable, interleaved, shown

GROUP_TYPE = "cp+dp+tp+pp"  # four kinds, the most that one picture shows

CASES = {
    16: State(group_type=GROUP_TYPE, nodes=2, tp=2, pp=2, cp=2),
    256: State(group_type=GROUP_TYPE, nodes=32, tp=8, pp=4, cp=2),
    1_024: State(group_type=GROUP_TYPE, nodes=128, tp=8, pp=8, cp=2),
    16_384: State(group_type=GROUP_TYPE, nodes=2048, tp=8, pp=16, cp=2),
    131_072: State(group_type=GROUP_TYPE, nodes=16384, tp=8, pp=16, cp=2),
    1_048_576: State(group_type=GROUP_TYPE, nodes=131072, tp=8, pp=16, cp=2),
}
STEPS = 50  # of the slider
AIMS = {16: "5", 1_024: "20", 131_072: "60"}


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    worlds = [world for world in CASES if not quick or world <= 131_072]
    yield ResultTable(
        "State to picture, server side, nothing cached",
        (
            *("GPUs", "maths ms", "scene ms", "painting ms"),
            *("answer ms", "p95 ms", "CPU ms", "aim ms", "bytes"),
        ),
        [_row(CASES[world], AIMS.get(world, ""), 1 if quick else 25) for world in worlds],
        "maths, scene and painting are parts of answer, which also writes texts, table and list.",
    )
    yield ResultTable(
        "A warm slider step, server side, nothing emptied",
        ("GPUs", "answer ms", "p95 ms", "CPU ms"),
        [_warm(CASES[world], 2 if quick else STEPS) for world in worlds],
        "Every step has another batch, so that no whole answer is remembered.",
    )


def _row(controls: State, aim: str, repeats: int) -> tuple[str, ...]:
    context = Context.of(controls)
    layout, drawn = context.layout, _scene(context)

    def uncached() -> object:
        clear_caches()
        return answer(controls)

    took = interleaved(
        repeats,
        maths=lambda: _maths(controls),
        scene=lambda: _scene(context),
        painting=lambda: _painting(drawn),
        answer=uncached,
    )
    sent = sum(len((text or "").encode()) for text in answer(controls).regions.values())
    parts = (took[name].median for name in ("maths", "scene", "painting", "answer"))
    return (
        f"{layout.world_size:,}",
        *map(shown, parts),
        shown(took["answer"].p95),
        shown(took["answer"].cpu),
        aim,
        f"{sent:,}",
    )


def _warm(controls: State, steps: int) -> tuple[str, ...]:
    batches = iter(range(1024, 1024 * (steps + 2), 1024))
    step = interleaved(steps, step=lambda: answer(replace(controls, global_batch=next(batches))))
    took = step["step"]
    world = Context.of(controls).layout.world_size
    return f"{world:,}", shown(took.median), shown(took.p95), shown(took.cpu)


def _maths(controls: State) -> list[object]:
    context = Context.of(controls)
    per_node = context.layout.gpus_per_node
    return [(grouping.groups(), spans_of(grouping, per_node)) for grouping in context.visible]


def _scene(context: Context) -> list[scene.Panel] | list[scene.Overview]:
    layout, shown = context.layout, context.visible
    gpus_per_node = layout.gpus_per_node
    if layout.world_size <= scene.PANEL_LIMIT:
        return [scene.panel(grouping, gpus_per_node) for grouping in shown]
    return [scene.overview(layout.mesh, shown, gpus_per_node, rank=0)]


def _painting(drawn: list[scene.Panel] | list[scene.Overview]) -> list[str]:
    return [
        svg.panel_svg(one, "") if isinstance(one, scene.Panel) else svg.overview_svg(one, "")
        for one in drawn
    ]
