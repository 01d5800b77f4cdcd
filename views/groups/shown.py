"""What of a layout its pictures show, and what the page's script has to know of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from groups import Mesh
from groups.grouping import Grouping
from groups.layout import Layout
from render.palette import tones

from ..base.resolve import main_groupings
from .sentence import spoken


@dataclass(frozen=True)
class PictureSpec:
    """A layout with the groups that are shown, those of one rank marked; in one language.

    layers: of each stage, as text; empty if no model is set.
    """

    layout: Layout
    visible: tuple[Grouping, ...]
    language: str
    rank: int = 0
    layers: tuple[str, ...] = ()

    @cached_property
    def listed(self) -> tuple[Grouping, ...]:
        return listed_groups(self.layout, self.visible)

    @cached_property
    def sides(self) -> list[tuple[str, Mesh, tuple[Grouping, ...]]]:
        """What is listed, by its grid."""
        return by_grid(self.layout, self.listed)

    @cached_property
    def known(self) -> list[Grouping]:
        return known_groups(self.layout, self.listed)

    @cached_property
    def tones(self) -> dict[str, str]:
        return tones_of(self.layout, self.listed)


def listed_groups(layout: Layout, visible: Sequence[Grouping]) -> tuple[Grouping, ...]:
    """What the picture marks and the card lists: the layout's main kinds, then others shown."""
    divided = (grouping for grouping in visible if grouping.size > 1)
    return tuple(dict.fromkeys((*main_groupings(layout), *divided)))


def known_groups(
    layout: Layout, listed: Sequence[Grouping], marked: Sequence[Grouping] = ()
) -> list[Grouping]:
    """The groups that the page's script knows, by number: those listed, then the others."""
    return list(dict.fromkeys((*listed, *marked, *(grouping for _, grouping in spoken(layout)))))


def by_grid(
    layout: Layout, groupings: Sequence[Grouping]
) -> list[tuple[str, Mesh, tuple[Grouping, ...]]]:
    """Groups by the grid that they live on: dense, expert, or both."""
    is_expert = [grouping.mesh == layout.expert for grouping in groupings]
    sides = []
    for grid, mesh in (("dense_grid", layout.mesh), ("expert_grid", layout.expert)):
        on_grid = tuple(
            grouping
            for grouping, expert in zip(groupings, is_expert)
            if expert == (mesh is layout.expert)
        )
        if on_grid and mesh is not None:
            sides.append((grid, mesh, on_grid))
    return sides


def marked(layout: Layout, groupings: Sequence[Grouping]) -> tuple[Grouping, ...]:
    """What the picture of a grid marks: its own groups, and pipelines, which both grids have."""
    pipelines = layout.every.get("pp")
    if pipelines is None or pipelines.size == 1 or pipelines in groupings:
        return tuple(groupings)
    return (*groupings, pipelines)


def tones_of(
    layout: Layout, listed: Sequence[Grouping], marked: Sequence[Grouping] = ()
) -> dict[str, str]:
    """The tone of every group that the page's script knows, each grid its own: as in pictures."""
    by_name = tones([grouping.name for grouping in marked])
    for _, _, groupings in by_grid(layout, listed):
        by_name |= tones([grouping.name for grouping in groupings])
    return by_name


def mesh_data(
    layout: Layout,
    listed: Sequence[Grouping],
    kinds: Sequence[Grouping],
    tone: Mapping[str, str],
    layers: Sequence[str] = (),
) -> dict:
    """What the page's script needs to know any rank's groups by itself.

    grids: the axes of each mesh, the dense one first. kinds: name, tone, grid, swept axes, and how
    groups are cut (length, stride), thinned (places) or joined; the first ``listed`` are those that
    the card tells. spoken: what the sentence is about, as (what for, number of the kind). layers:
    of each stage.
    """
    meshes = [layout.mesh]
    meshes += [
        mesh for mesh in dict.fromkeys(grouping.mesh for grouping in kinds) if mesh not in meshes
    ]
    return {
        "grids": [[[axis.name, axis.size] for axis in mesh.axes] for mesh in meshes],
        "kinds": [
            [
                grouping.name,
                tone.get(grouping.name, "tp"),
                meshes.index(grouping.mesh),
                list(grouping.axes),
                grouping.length,
                grouping.stride,
                list(grouping.places),
                grouping.joined,
            ]
            for grouping in kinds
        ],
        "told": len(listed),
        "spoken": [(role, kinds.index(grouping)) for role, grouping in spoken(layout)],
        "layers": list(layers),
        "gpusPerNode": layout.gpus_per_node,
        "world": layout.world_size,
    }
