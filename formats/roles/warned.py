"""What a plan that was read is warned of."""

from __future__ import annotations

from collections.abc import Iterable

from groups.notes import Note
from groups.plan_notes import notes_of
from training.models import MODELS

from .model import PlanRead, RoleRead


def warnings_of(read: PlanRead) -> list[Note]:
    """What there is to say of the plan of a text, with the models of its roles as they are known.

    >>> from formats.roles import read_plan
    >>> read = read_plan("python3 train.py --actor-num-gpus-per-node 6 --rollout-num-gpus 8 "
    ...     "--rollout-num-gpus-per-engine 8")
    >>> [note.code for note in warnings_of(read)]
    ['tp-crosses-by-start', 'engines-straddle', 'gpus-unused']
    """
    return notes_of(read.plan, kv_heads_of(read.roles))


def kv_heads_of(roles: Iterable[RoleRead]) -> dict[str, int]:
    """KV heads of each role's model, by the role's name; unknown models are left out."""
    found: dict[str, int] = {}
    for read in roles:
        published = MODELS.get(str(read.training.get("model", "")))
        if published and published.model.kv_heads and not published.model.kv_lora_rank:
            found[read.name] = published.model.kv_heads
    return found
