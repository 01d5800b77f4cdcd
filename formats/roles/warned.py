"""What a plan that was read is warned of."""

from __future__ import annotations

from groups.notes import Note
from groups.plan_notes import notes_of

from .build import kv_heads_of
from .memory import crowded
from .model import PlanRead


def warnings_of(read: PlanRead, capacity: float | None = None) -> list[Note]:
    """What there is to say of the plan of a text, with the models of its roles as they are known.

    capacity: bytes of a GPU, whose roles are asked for whether they fit together.

    >>> from formats.roles import read_plan
    >>> read = read_plan("python3 train.py --actor-num-gpus-per-node 6 --rollout-num-gpus 8 "
    ...     "--rollout-num-gpus-per-engine 8")
    >>> [note.code for note in warnings_of(read)]
    ['tp-crosses-by-start', 'engines-straddle', 'gpus-unused']
    """
    crowding = [] if capacity is None else [*crowded(read, capacity)]
    return [*notes_of(read.plan, kv_heads_of(read.roles)), *crowding]
