"""The roles of one GPU: its rank, stage, engine and groups in each, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from descriptions import ROLES
from groups.grouping import Grouping
from groups.layout import Layout
from groups.plan import Plan, Role
from request.context import Context
from request.units import ranges_text


def chosen_gpu(context: Context) -> int:
    """The GPU of the cluster of the selected rank of the role on screen."""
    role = context.plan.role(context.cast.shown.name)
    return role.placed[context.rank]


def coordinate(layout: Layout, axis: str, rank: int) -> int:
    """A rank's coordinate along an axis; 0 if the layout has none of that name."""
    mesh = layout.mesh
    if axis not in mesh.names:
        return 0
    return rank // mesh.strides[mesh.names.index(axis)] % mesh.size(axis)


@dataclass(frozen=True)
class RolePlace:
    """The place of a GPU in a role: its rank, the copy of the model that it belongs to, and the
    GPUs of its tensor parallel group."""

    role: Role
    rank: int
    stage: int
    copy: int
    tensor: np.ndarray

    def text(self, language: str) -> str:
        """Such as "actor stage 1, replica 3, tp 0–3" or "rollout engine 6, tp 12–13"."""
        layout, words = self.role.layout, [self.role.name]
        if layout.made_by.copy == "engine":
            words.append(ROLES["engine"][language].format(number=self.copy))
        elif layout.mesh.size("dp") > 1:
            words.append(ROLES["replica"][language].format(number=self.copy))
        if layout.mesh.size("pp") > 1:
            words.append(ROLES["stage"][language].format(number=self.stage))
        if len(self.tensor) > 1:
            words.append(f"tp {ranges_text(self.tensor.tolist(), 4)}")
        name, *rest = words
        listed = ROLES["comma"][language].join(rest)
        return f"{name} {listed}" if listed else name


def place_of(role: Role, rank: int) -> RolePlace:
    layout = role.layout
    tensor = np.empty(0, dtype=np.int64)
    for grouping in groups_of(layout):
        if grouping.name in ("tp", "attention_tp") and not len(tensor):
            tensor = np.sort(role.placed.take(grouping.members(rank)))
    return RolePlace(role, rank, coordinate(layout, "pp", rank), layout.copy_of(rank), tensor)


def groups_of(layout: Layout) -> list[Grouping]:
    """The main kinds of a layout, larger than 1; for a server those inside an engine."""
    return [grouping for grouping in layout.main if 1 < grouping.size <= layout.joint_gpus]


def places_of_gpu(plan: Plan, gpu: int) -> list[RolePlace]:
    """The places of a GPU, in the order of the roles' turns."""
    return [place_of(role, rank) for role, rank in plan.roles_of(gpu)]
