"""Scenes -> a drawing for files: PNG, SVG and PDF for papers and slides.

The same marks as `render.svg` writes for the page: one scene pixel is 1/96 inch, and sizes and
places are the scene's own.

>>> from groups import fit
>>> from groups.grouping import plain
>>> from render.files.forms import to_bytes
>>> from render.scenes import groups as scene
>>> mesh = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)
>>> panel = scene.panel(plain(mesh, "tp"), gpus_per_node=8)
>>> picture = figure([("TP: 8 groups of 2 ranks", panel)], str(mesh))
>>> to_bytes(picture, "png")[1:4]
b'PNG'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..draw.areas import draw_areas
from ..draw.charts import draw_bars, draw_heat, draw_held, draw_matrix, draw_timeline
from ..draw.cluster import draw_cluster
from ..draw.exchange import draw_exchange
from ..draw.groups import draw_overview, draw_panel, halo_ring
from ..draw.inset import draw_inset
from ..draw.job import draw_job
from ..draw.kv import draw_kv
from ..draw.lost import draw_lost
from ..draw.moves import draw_moves
from ..draw.nodes import draw_nodes
from ..draw.server import draw_server
from ..draw.shards import draw_shards
from ..draw.speed import draw_speed
from ..draw.step import draw_step
from ..draw.tensor import draw_tensor
from ..draw.times import draw_times
from ..draw.together import draw_together
from ..draw.zooms import draw_zooms
from ..marks import (
    BASELINE,
    LOOKS,
    Blocks,
    Drawing,
    Look,
    Mark,
    Plain,
    Scene,
    Titled,
    Words,
    flat,
    stacked,
)
from ..palette import fill_of
from ..scenes.areas import AreasChart
from ..scenes.charts import BarsChart, HeldChart, MatrixChart, PointsChart, TimelineChart
from ..scenes.cluster import ClusterPicture
from ..scenes.exchange import Exchange
from ..scenes.groups import Overview, Panel
from ..scenes.heat import Heat
from ..scenes.inset import Inset
from ..scenes.job import JobPicture
from ..scenes.kv import KVPicture
from ..scenes.lost import LostPicture
from ..scenes.moves import MovesPicture
from ..scenes.nodes import NodesPicture
from ..scenes.server import ServerPicture
from ..scenes.shards import ShardGrid
from ..scenes.speed import SpeedChart
from ..scenes.step import StepPicture
from ..scenes.tensor import TensorPicture
from ..scenes.times import TimesChart
from ..scenes.together import TogetherChart
from ..scenes.zooms import ZoomsPicture
from .tables import CodeChart, TableChart, draw_code, draw_points, draw_table

MARGIN = 16.0
"""Pixels round the whole figure."""

TITLE, SMALL = 15.0, 11.0
"""Font sizes in pixels: titles, legend and caption."""

LINE, SWATCH = 18.0, 18.0
"""Pixels from one line of a legend to the next, and from a colour to its text."""

LEGEND_WIDTH = 900.0
"""The width at which a legend breaks, in pixels, if no scene is wider."""


def figure(
    pictures: Titled,
    caption: str = "",
    theme: str = "light",
    words: Mapping[str, str] = {},
) -> Drawing:
    """Scenes one below the other, each under its title; legend and caption at the bottom.

    pictures: titles and scenes, of the types in DRAWINGS. words: in which the legend says what the
    colours of jobs and overviews mean (key_gpu, key_ranks, key_group, key_stages).

    Errors: KeyError for an unknown theme.
    """
    look, scenes = LOOKS[theme], [scene for _, scene in pictures]
    lines, placed = [], []
    y = MARGIN
    for title, scene in pictures:
        lines.append(Words(MARGIN, y + TITLE, title, TITLE, look.ink, bold=True))
        top = y + TITLE + 10
        placed.append((MARGIN, top, 1.0, scene_marks(scene, theme)))
        y = math.ceil(top + scene.height) + MARGIN
    legend = Legend.of(scenes, theme, y + SMALL, words)
    y += legend.height
    if caption:
        lines.append(Words(MARGIN, y + SMALL, caption, SMALL, look.ink))
        y += 1.3 * SMALL + MARGIN  # with what hangs below its line
    widths = (MARGIN + scene.width for scene in scenes)
    right = max([legend.right, *widths, *(word.right for word in lines)])
    placed.append((0.0, 0.0, 1.0, [*legend.marks(), *lines]))
    return Drawing(math.ceil(right + MARGIN), math.ceil(y), look.page, placed)


def scene_marks(scene: Scene, theme: str) -> list[Plain]:
    """The marks of a scene of a type in DRAWINGS, in the scene's own pixels."""
    return list(stacked(flat(DRAWINGS[type(scene)](scene, theme))))


DRAWINGS: dict[type, Callable[[Any, str], Iterable[Mark]]] = {
    Panel: draw_panel,
    Overview: draw_overview,
    ClusterPicture: draw_cluster,
    StepPicture: draw_step,
    JobPicture: draw_job,
    Inset: draw_inset,
    LostPicture: draw_lost,
    TimelineChart: draw_timeline,
    HeldChart: draw_held,
    BarsChart: draw_bars,
    AreasChart: draw_areas,
    Heat: draw_heat,
    ShardGrid: draw_shards,
    ServerPicture: draw_server,
    MovesPicture: draw_moves,
    TensorPicture: draw_tensor,
    TimesChart: draw_times,
    KVPicture: draw_kv,
    NodesPicture: draw_nodes,
    MatrixChart: draw_matrix,
    TogetherChart: draw_together,
    Exchange: draw_exchange,
    TableChart: draw_table,
    CodeChart: draw_code,
    PointsChart: draw_points,
    SpeedChart: draw_speed,
    ZoomsPicture: draw_zooms,
}
"""The drawing function of each type of scene; every scene has a width and a height in pixels."""


@dataclass(frozen=True)
class Legend:
    """The meaning of colours in overviews and charts, in as many lines as needed."""

    entries: tuple[tuple[str, Words], ...]
    """Swatches with words: a colour, two joined by a dash, "ring", or "" for words alone."""

    look: Look

    @classmethod
    def of(
        cls,
        scenes: Sequence[Scene],
        theme: str,
        baseline: float,
        words: Mapping[str, str] = {},
        room: float | None = None,
    ) -> Legend:
        """The legend of some scenes. room: its width in pixels; by default LEGEND_WIDTH, or that of
        the widest scene."""
        look = LOOKS[theme]
        most = MARGIN + (room or max((LEGEND_WIDTH, *(scene.width for scene in scenes))))
        entries: dict[tuple[str, str], Words] = {}
        y = baseline - LINE
        for scene in scenes:
            x = math.inf  # what a scene adds begins in a line of its own
            legend_of = getattr(scene, "legend_of", None)
            lines = legend_of(theme, words) if legend_of else getattr(scene, "legend", ())
            for colour, text in lines:
                swatch = fill_of(colour, theme)
                if (swatch, text) in entries:
                    continue
                before = SWATCH if swatch else 0.0
                word = Words(x + before, y, text, SMALL, look.ink)
                if word.right > most:
                    y += LINE
                    word = Words(MARGIN + before, y, text, SMALL, look.ink)
                entries[swatch, text] = word
                x = word.right + SWATCH
        return cls(tuple((swatch, word) for (swatch, _), word in entries.items()), look)

    @property
    def height(self) -> float:
        """The height in pixels."""
        if not self.entries:
            return 0.0
        return 2 * SMALL + self.entries[-1][1].y - self.entries[0][1].y

    @property
    def right(self) -> float:
        return max((word.right for _, word in self.entries), default=0.0)

    def marks(self) -> Iterator[Plain]:
        for swatch, word in self.entries:
            middle = word.y - BASELINE * word.size
            if swatch == "ring":
                yield from halo_ring(word.x - SWATCH + 6, middle, 5.0, self.look)
                continue
            for number, colour in enumerate(filter(None, swatch.split("-"))):
                corner = np.array([[word.x - SWATCH + 6 * number, middle - 6]])
                yield Blocks(corner, np.array([6.0 if "-" in swatch else 12.0, 12.0]), colour)
        for _, word in self.entries:
            yield word
