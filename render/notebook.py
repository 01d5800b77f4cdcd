"""Pictures for notebooks: an SVG, and HTML that follows the notebook's theme.

The HTML stands by itself: it has no script and asks for nothing. `pictures` makes `groups.bundles`
know these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import accumulate

from groups.bundles import Bundle
from groups.grouping import plain
from groups.mesh import Mesh
from groups.notebook import RankPicture, picture_of
from training.pipeline import Timeline

from .files.figure import scene_marks
from .marks import LOOKS, Drawing, Scene
from .palette import KIND_COLOURS
from .scenes.charts import TimelineChart
from .scenes.job import JobPicture, job_picture
from .scenes.timeline import strips_of
from .svg.marks import to_svg

MARGIN = 12.0
"""Pixels round each picture."""

MOST_OPS = 200_000
"""The most ops of a timeline that is drawn."""

WORDS = {
    "stage": "stage {first}",
    "layers": "{layers}",
    "band": "replicas {first}–{last}",
    "replica": "replica {first}",
    "replicas": "replicas {first}–{last}",
}
EXPERT_WORDS = WORDS | {name: f"expert {WORDS[name]}" for name in ("replica", "replicas")}

STYLE = """\
<style>
.parallel-groups svg { max-width: 100%; height: auto; }
.parallel-groups .dark { display: none; }
@media (prefers-color-scheme: dark) {
  .parallel-groups .light { display: none; } .parallel-groups .dark { display: block; } }
[data-jp-theme-light="true"] .parallel-groups .light, .vscode-light .parallel-groups .light {
  display: block; }
[data-jp-theme-light="true"] .parallel-groups .dark, .vscode-light .parallel-groups .dark {
  display: none; }
[data-jp-theme-light="false"] .parallel-groups .light, .vscode-dark .parallel-groups .light {
  display: none; }
[data-jp-theme-light="false"] .parallel-groups .dark, .vscode-dark .parallel-groups .dark {
  display: block; }
</style>"""
"""Styles for the theme of Jupyter and VS Code; elsewhere the system's theme applies."""


def mesh_picture(mesh: Mesh) -> Bundle:
    """The groups of the first rank along each axis; empty for a mesh with an offset."""
    groupings = {axis.name: plain(mesh, axis.name) for axis in mesh.axes if axis.size > 1}
    if mesh.offset or not groupings:
        return {}
    return rank_picture(picture_of(groupings, tuple(groupings), 0, mesh.world_size, str(mesh)))


def rank_picture(picture: RankPicture) -> Bundle:
    """Each mesh with the groups of the rank, and the groups in words below."""
    return _bundle(jobs_of(picture), str(picture))


def jobs_of(picture: RankPicture) -> list[JobPicture]:
    """The job on each mesh of the picture, with the groups of its rank marked."""
    return [
        job_picture(
            *(mesh, groupings, picture.gpus_per_node, picture.rank),
            words=EXPERT_WORDS if "ep" in mesh.names else WORDS,
        )
        for mesh, groupings in picture.sides
    ]


def timeline(shown: Timeline) -> Bundle:
    """The ops of every rank over time; empty for more than `MOST_OPS`."""
    if len(shown.start) > MOST_OPS:
        return {}
    (strip,) = strips_of([shown], range(shown.plan.p))
    return _bundle([TimelineChart(strip)], str(shown))


def _bundle(scenes: Sequence[Scene], text: str) -> Bundle:
    themes = {theme: to_svg(_drawing(scenes, theme)) for theme in ("light", "dark")}
    sides = "".join(
        f'<div class="{theme}" role="img" aria-label="{escape(text)}">{_inline(svg)}'
        f"{''.join(_key(scenes, theme))}</div>"
        for theme, svg in themes.items()
    )
    html = f'{STYLE}<div class="parallel-groups">{sides}</div>'
    return {"text/html": html, "image/svg+xml": themes["light"]}


def _drawing(scenes: Sequence[Scene], theme: str) -> Drawing:
    """The scenes one below the other."""
    tops = accumulate((scene.height + MARGIN for scene in scenes), initial=MARGIN)
    placed = [(MARGIN, top, 1.0, scene_marks(scene, theme)) for scene, top in zip(scenes, tops)]
    wide = max(scene.width for scene in scenes) + 2 * MARGIN
    tall = sum(scene.height + MARGIN for scene in scenes) + MARGIN
    return Drawing(wide, tall, LOOKS[theme].page, placed)


def _inline(svg: str) -> str:
    """An SVG for HTML, without its XML declaration."""
    return svg[svg.index("<svg") :].rstrip()


def _key(scenes: Iterable[Scene], theme: str) -> Iterator[str]:
    """The groups of the selected rank with their colours."""
    for scene in scenes:
        if isinstance(scene, JobPicture):
            for mark in scene.marks:
                members = ", ".join(map(str, mark.ranks[:16].tolist()))
                more = f" and {len(mark.ranks) - 16:,} more" if len(mark.ranks) > 16 else ""
                yield (
                    f'<div><b style="color:{KIND_COLOURS[theme][mark.tone]}">■ '
                    f"{escape(mark.kind)}</b> of rank {scene.rank}: {members}{more}</div>"
                )
