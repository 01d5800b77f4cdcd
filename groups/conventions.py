"""How each framework names its axes and numbers its ranks: the rows of frameworks.toml.

A framework is an order of named axes, fastest first. Each of its axes plays one of Megatron's (tp,
cp, ep, dp, pp), and every group it makes is one request to the mesh of those axes, or to a second
mesh of its experts over the same ranks. The sizes of all axes but one are given; one that plays dp
is what remains. A source that writes its shape row-major, such as [pipe, data, model], lists the
same axes in reverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .alternatives import fitted
from .errors import LayoutError
from .mesh import Mesh
from .tables import Rows, read_table

AXES = ("tp", "cp", "ep", "dp", "pp")
"""The axes of Megatron's that an axis of a framework may play."""


@dataclass(frozen=True)
class OwnAxis:
    """One axis of a framework: its name there, and the Megatron axis that it corresponds to."""

    name: str
    axis: str = ""  # one of AXES, else its name is; two may play dp, such as shard and replicate

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", self.axis or self.name)
        if self.axis not in AXES:
            raise ValueError(f"axis should be one of {', '.join(AXES)}, not {self.axis!r}")


@dataclass(frozen=True)
class OwnGroup:
    """A group of a framework that joins several axes, or that has a name other than its axis."""

    name: str
    kind: str  # axes of its mesh, joined by dashes
    carries: str = ""  # what it is for; empty where the source does not say
    grid: Literal["dense", "expert"] = "dense"


@dataclass(frozen=True)
class Convention:
    """A framework's axes, fastest first, and its groups; frameworks.toml says what each field is.

    >>> CONVENTIONS["torchtitan"].order, CONVENTIONS["llama3"].order
    ('tp-cp-ep-dp-pp', 'tp-cp-pp-dp')
    """

    name: str
    axes: tuple[OwnAxis, ...]
    source: str
    url: str
    basis: Literal["executed", "read"]
    groups: tuple[OwnGroup, ...] = ()
    expert_axes: tuple[OwnAxis, ...] = ()  # empty if it has no second mesh for experts
    unsettled: str = ""
    remains: str = ""
    of_node: str = ""
    sizes: Mapping[str, str] = field(default_factory=dict)  # of a server: by field of a job

    def __post_init__(self) -> None:
        named = {"dense": {a.name for a in self.axes}, "expert": {a.name for a in self.expert_axes}}
        for group in self.groups:
            if not named[group.grid].issuperset(group.kind.split("-")):
                raise ValueError(f"kind should join {group.grid} axes, not {group.kind!r}")
        for key, name in (("remains", self.remains), ("of_node", self.of_node)):
            if name and name not in named["dense"]:
                raise ValueError(f"{key} should be one of its axes, not {name!r}")

    @property
    def order(self) -> str:
        """The framework's axes by Megatron's names, each once; includes ep if the expert mesh has
        it.

        If two axes play dp, dp stands where the one with the remaining factor does.
        """
        names, experts = self._roles(self.axes), self._roles(self.expert_axes)
        if "ep" in experts:
            slower = experts[experts.index("ep") + 1 :]
            at = min((names.index(name) for name in slower), default=len(names))
            names.insert(at, "ep")
        return "-".join(names)

    def mesh(self, world: int, grid: str = "dense", /, **sizes: int) -> Mesh:
        """The framework's mesh of ``world`` ranks, dense or "expert". Sizes are given by the
        framework's axis names and default to 1; the first axis that plays dp and has no size takes
        the remaining factor.

        >>> str(CONVENTIONS["deepspeed"].mesh(16, model=2, pipe=2))
        'model2-data4-pipe2'
        >>> str(CONVENTIONS["torchtitan"].mesh(16, "expert", ep=4, pp=2))
        'ep4-efsdp2-dp_replicate1-pp2'

        Errors: LayoutError for an axis that the framework does not have; otherwise those of `fit`.
        """
        axes = self.axes if grid == "dense" else self.expert_axes
        if not axes:
            raise LayoutError("no-axes", "this framework has no mesh of experts", control="ep")
        order = "-".join(own.name for own in axes)
        return fitted(world, order, sizes, self._remaining(axes, sizes))

    def _roles(self, axes: Sequence[OwnAxis]) -> list[str]:
        """Megatron's names of the axes, dp only once."""
        dp = self._remaining(axes, {})
        return [own.axis for own in axes if own.axis != "dp" or own.name == dp]

    def _remaining(self, axes: Sequence[OwnAxis], sizes: Mapping[str, int]) -> str | None:
        """The axis that takes the remaining factor: the first that plays dp and has no size."""
        playing = [own.name for own in axes if own.axis == "dp" and own.name not in sizes]
        return self.remains if self.remains in playing else next(iter(playing), None)


OWN = "own"
"""The framework of a user-defined order."""

MEGATRONS = ("megatron", "megatron-pp-dp", "megatron-inference", OWN)
"""Frameworks that follow Megatron's own rules and messages."""


CONVENTIONS: Mapping[str, Convention] = Rows(
    lambda: read_table(Path(__file__).with_name("frameworks.toml"), dict[str, Convention])
)
"""Every framework by a stable id; each is a table of frameworks.toml."""
