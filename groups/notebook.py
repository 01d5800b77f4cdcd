"""The groups of a rank, for a notebook to draw.

>>> from groups.layout import Job
>>> picture = Job(nodes=2, tp=2, pp=2).layout().show("tp", "pp", rank=5)
>>> print(picture)
rank 5 of tp2-cp1-dp4-pp2: tp 4, 5; pp 5, 13
>>> picture._repr_mimebundle_()["text/plain"] == str(picture)
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike

from .bundles import Bundle, bundle, save
from .errors import not_a_choice
from .grouping import Grouping
from .mesh import Mesh, require_rank


@dataclass(frozen=True)
class RankPicture:
    """The groups of a rank, drawn on pictures of their meshes.

    sides: the meshes, and the groups marked on each.
    """

    sides: tuple[tuple[Mesh, tuple[Grouping, ...]], ...]
    rank: int = 0
    gpus_per_node: int = 8
    text: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for mesh, _ in self.sides:
            require_rank(mesh, self.rank)

    def __str__(self) -> str:
        groups = [
            f"{one.name} {', '.join(map(str, one.members(self.rank)[:16].tolist()))}"
            for _, groupings in self.sides
            for one in groupings
        ]
        meshes = " and ".join(str(mesh) for mesh, _ in self.sides)
        return self.text or f"rank {self.rank} of {meshes}: {'; '.join(groups)}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return bundle(self, str(self))

    def save(self, file: str | PathLike[str], theme: str = "light") -> None:
        """Writes the picture, whose name says the form: .svg, .png or .pdf. Errors: as
        `groups.bundles.save`."""
        save(self, file, theme)


def picture_of(
    groupings: dict[str, Grouping], kinds: tuple[str, ...], rank: int, gpus_per_node: int, text: str
) -> RankPicture:
    """The picture of a rank's groups of some kinds, each kind on its mesh.

    Errors: LayoutError for an unknown kind or rank.
    """
    for kind in kinds:
        if kind not in groupings:
            raise not_a_choice("kind", kind, groupings)
    sides: dict[Mesh, list[Grouping]] = {}
    for kind in kinds:
        sides.setdefault(groupings[kind].mesh, []).append(groupings[kind])
    each = tuple((mesh, tuple(found)) for mesh, found in sides.items())
    return RankPicture(each, rank, gpus_per_node, text)
