"""The painters of this room, which `groups.bundles` imports for the first picture.

notebook    a mesh, the groups of a rank, a timeline: HTML and SVG
files       the groups of a rank, and any scenes: SVG, PNG, PDF
"""

from __future__ import annotations

from typing import NamedTuple

from groups.bundles import picture_file, pictures
from groups.grouping import Grouping
from groups.mesh import Mesh
from groups.notebook import RankPicture
from training.pipeline import Timeline

from .files.figure import figure
from .files.forms import to_bytes
from .marks import Drawing, Scene
from .notebook import jobs_of, mesh_picture, rank_picture, timeline
from .scenes.groups import PANEL_LIMIT, panel

pictures.register(Mesh, mesh_picture)
pictures.register(RankPicture, rank_picture)
pictures.register(Timeline, timeline)

WORDS = {
    "key_gpu": "GPU {rank}",
    "key_ranks": "{kind}: {ranks}",
    "key_group": "{kind}: {count} GPUs",
    "key_stages": "stages in turn",
}


class Sheet(NamedTuple):
    """Pictures below each other, each under its title, and a line below all of them."""

    pictures: tuple[tuple[str, Scene], ...]
    caption: str = ""

    def __str__(self) -> str:
        return ", ".join(title for title, _ in self.pictures)


@picture_file.register
def sheet_file(sheet: Sheet, form: str, theme: str) -> bytes:
    return to_bytes(figure(sheet.pictures, sheet.caption, theme), form)


@picture_file.register
def rank_file(picture: RankPicture, form: str, theme: str) -> bytes:
    """The job with the groups of a rank, then of a small world each kind with all its groups."""
    return to_bytes(rank_drawing(picture, theme), form)


def rank_drawing(picture: RankPicture, theme: str = "light") -> Drawing:
    drawn: list[tuple[str, Scene]] = [
        (_title(picture.rank, mesh, len(picture.sides) > 1), job)
        for (mesh, _), job in zip(picture.sides, jobs_of(picture))
    ]
    drawn += [
        (_groups(grouping), panel(grouping, picture.gpus_per_node))
        for mesh, groupings in picture.sides
        if mesh.world_size <= PANEL_LIMIT
        for grouping in groupings
    ]
    return figure(drawn, _caption(picture), theme, WORDS)


def _title(rank: int, mesh: Mesh, is_one_of_two: bool) -> str:
    whose = f"The groups of GPU {rank}"
    if not is_one_of_two:
        return whose
    return f"{whose}, {'experts' if 'ep' in mesh.names else 'dense layers'}"


def _groups(grouping: Grouping) -> str:
    """The title of a panel.

    >>> from groups import fit
    >>> from groups.grouping import plain
    >>> _groups(plain(fit(16, tp=2, pp=2), "tp"))
    'tp: 8 groups of 2 GPUs'
    """
    groups = "1 group" if grouping.num_groups == 1 else f"{grouping.num_groups:,} groups"
    gpus = "1 GPU" if grouping.size == 1 else f"{grouping.size:,} GPUs"
    return f"{grouping.name}: {groups} of {gpus}"


def _caption(picture: RankPicture) -> str:
    meshes = ", ".join(str(mesh) for mesh, _ in picture.sides)
    world = picture.sides[0][0].world_size
    each = picture.gpus_per_node
    nodes = -(-world // each)
    machines = f"{nodes:,} nodes of {each:,} GPUs" if nodes > 1 else f"1 node of {each:,} GPUs"
    return f"{meshes} on {machines}"
