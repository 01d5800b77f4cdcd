"""What the pictures of a layout show, and the data that the page's script needs about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from groups import Mesh
from groups.grouping import Grouping
from groups.layout import Layout
from render.palette import tones
from render.scenes.job_plan import FULL, HALF, NUMBERED, TALL, WHOLE, WIDE, largest_plan
from request.answers.sentence import spoken
from request.context import Context
from request.resolve import main_groupings


@dataclass(frozen=True)
class PictureSpec(Context):
    """A layout to draw, with the groups of the selected rank marked.

    layers: of each stage, as text; empty if no model is set. others: groups of another layout of
    the same ranks, which its pictures mark too.
    """

    layers: tuple[str, ...] = ()
    others: Sequence[Grouping] = ()

    @cached_property
    def listed(self) -> tuple[Grouping, ...]:
        """The groups that the picture marks and the card lists: the layout's main kinds, then other
        visible ones."""
        divided = (grouping for grouping in self.visible if grouping.size > 1)
        return tuple(dict.fromkeys((*main_groupings(self.layout), *divided)))

    @cached_property
    def sides(self) -> list[tuple[str, Mesh, tuple[Grouping, ...]]]:
        """The listed groups, by grid."""
        return by_grid(self.layout, self.listed)

    @property
    def room(self) -> tuple[float, float]:
        """The size of a picture of the job: alone, or of two below or beside each other."""
        if len(self.sides) == 1:
            return WHOLE if self.layout.world_size <= FULL else TALL
        return WIDE if self.is_stacked else HALF

    @cached_property
    def is_stacked(self) -> bool:
        """Whether two pictures are stacked because their rows would break side by side."""
        meshes = [mesh for _, mesh, _ in self.sides]
        if self.layout.world_size > NUMBERED or len(meshes) == 1:
            return False
        beside, below = ([largest_plan(mesh, room) for mesh in meshes] for room in (HALF, WIDE))
        return any(plan.is_folded for plan in beside) and not any(plan.is_folded for plan in below)

    @property
    def look(self) -> str:
        """The CSS classes of the first screen."""
        return f"hero{' two' * (len(self.sides) > 1)}{' stacked' * self.is_stacked}"

    @cached_property
    def script_groups(self) -> list[Grouping]:
        """The groups that the page's script refers to by number: those listed, then the others."""
        spoken_of = (grouping for _, grouping in spoken(self.layout))
        return list(dict.fromkeys((*self.listed, *self.others, *spoken_of, *self.visible)))

    @cached_property
    def tones(self) -> dict[str, str]:
        """The tone of every group in pictures, by name, each grid on its own."""
        sides = [(*self.others, *self.visible), *(groupings for *_, groupings in self.sides)]
        names = ([grouping.name for grouping in side] for side in sides)
        return {name: tone for side in names for name, tone in tones(side).items()}

    @cached_property
    def data(self) -> dict[str, object]:
        """The data from which the page's script computes any rank's groups.

        grids: the axes of each mesh, the dense one first. kinds: name, tone, grid, swept axes, and
        how groups are cut (length, stride), thinned (places) or joined; the first ``told`` are
        those that the card tells. spoken: what the sentence is about, as (what for, number of the
        kind). layers: of each stage.
        """
        layout, known = self.layout, self.script_groups
        meshes = [*dict.fromkeys((layout.mesh, *(grouping.mesh for grouping in known)))]
        return {
            "grids": [[[axis.name, axis.size] for axis in mesh.axes] for mesh in meshes],
            "kinds": [
                [
                    grouping.name,
                    self.tones.get(grouping.name, "tp"),
                    meshes.index(grouping.mesh),
                    list(grouping.axes),
                    grouping.length,
                    grouping.stride,
                    list(grouping.places),
                    grouping.joined,
                ]
                for grouping in known
            ],
            "told": len(self.listed),
            "spoken": [(role, known.index(grouping)) for role, grouping in spoken(layout)],
            "layers": list(self.layers),
            "gpusPerNode": layout.gpus_per_node,
            "world": layout.world_size,
        }


def by_grid(
    layout: Layout, groupings: Sequence[Grouping]
) -> list[tuple[str, Mesh, tuple[Grouping, ...]]]:
    """Groups by their grid: dense, expert, or both."""
    sides: dict[bool, list[Grouping]] = {False: [], True: []}
    for grouping in groupings:
        sides[grouping.mesh == layout.expert].append(grouping)
    grids = (("dense_grid", layout.mesh), ("expert_grid", layout.expert))
    return [
        (name, mesh, tuple(on_it))
        for (name, mesh), on_it in zip(grids, sides.values())
        if on_it and mesh is not None
    ]


def marked(layout: Layout, groupings: Sequence[Grouping]) -> tuple[Grouping, ...]:
    """The groups that the picture of a grid marks: its own, and pipelines, which both grids
    have."""
    pipelines = layout.every.get("pp")
    if pipelines is None or pipelines.size == 1 or pipelines in groupings:
        return tuple(groupings)
    return (*groupings, pipelines)
