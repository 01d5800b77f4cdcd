"""Part "pipeline": a schedule from its name to the HTML of its view, step by step, no cache.

plan       the ops of every rank, in order
simulate   the plan and the times of its ops
figures    idle time, peaks, messages
scene      boxes in ticks and memory curves, as data
painting   the scene as SVG, and the packed ops for the page's script
view       the whole view, caches emptied: the above, texts and tables
CPU        of the view: on a busy machine it says the same as on a quiet one
bytes      of the view as UTF-8, before compression
"""

from __future__ import annotations

from collections.abc import Iterator

from render.scenes.timeline import strips_of
from render.svg.timeline import memory_svg, strip_svg
from request.context import Context
from request.resolve import resolve
from request.state import State
from training.pipeline import figures_of, plan_of, simulate
from views.pipeline import chart as pipeline_chart
from views.pipeline.view import pipeline_html

from .page_client import Servers
from .timing import ResultTable, interleaved, shown

SIZES = ((4, 8), (16, 128), (64, 512))
SCHEDULES = ("1f1b", "interleaved", "zb-v", "dualpipe")
PARTS = ("plan", "simulate", "figures", "scene", "painting", "view")


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    names = SCHEDULES[:2] if quick else SCHEDULES
    yield ResultTable(
        "Pipeline schedule to view, server side, nothing cached",
        ("schedule", "p", "m", "ops", *(f"{part} ms" for part in PARTS), "CPU ms", "bytes"),
        [_row(name, p, m, 1 if quick else 9) for p, m in SIZES for name in names],
        "plan to painting are parts of view, which also writes texts and tables.",
    )


def _row(name: str, p: int, m: int, repeats: int) -> tuple[str, ...]:
    controls = State(nodes=max(2, p), pp=p, schedule=name, micro_batches=str(m))
    layout = resolve(controls)
    plan = plan_of(name, p, m)
    timeline = simulate(plan)
    (strip,) = strips_of([timeline], range(p))

    def view() -> str:
        pipeline_chart.timed.cache_clear()
        pipeline_chart.chart_html.cache_clear()
        return pipeline_html(Context(layout, controls))

    took = interleaved(
        repeats,
        plan=lambda: plan_of(name, p, m),
        simulate=lambda: simulate(plan_of(name, p, m)),
        figures=lambda: figures_of(timeline),
        scene=lambda: strips_of([timeline], range(p)),
        painting=lambda: (strip_svg(strip, ""), memory_svg(strip, m, ""), strip.packed()),
        view=view,
    )
    return (
        name,
        str(p),
        str(m),
        f"{len(plan.ops[0]):,}",
        *(shown(took[part].median) for part in PARTS),
        shown(took["view"].cpu),
        f"{len(view().encode()):,}",
    )
