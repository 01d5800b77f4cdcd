"""The rank in a search of published layouts for the same model and machines.

Estimates are wrong by more than neighbours differ: a layout that somebody chose and ran for a job
is worth a look wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from groups.presets import PRESETS

from ..models import model_of_preset, training_of_preset
from .quickest import SearchResult, sizes_of
from .space import SearchJob


@dataclass(frozen=True)
class Placed:
    """A published layout with its rank in a search.

    Attributes:
        preset: its id, one of groups.presets.
        place: rank among all layouts that may fit; 0: not among these.
        slower: additional time of its quickest way relative to the first layout; 0.1 is 10 %.
    """

    preset: str
    place: int
    slower: float


def published_layouts(job: SearchJob, result: SearchResult) -> Iterator[Placed]:
    """Published layouts for this model and cluster that are not among the best, by rank.

    >>> from training.models import MODELS
    >>> from training.recipe import Training
    >>> from .quickest import search
    >>> job = SearchJob(MODELS["mixtral-8x22b"].model, Training(),
    ...                 global_batch=256, gpus=256, gpus_per_node=8, cluster="dgx-h100")
    >>> placed, *_ = published_layouts(job, search(job))
    >>> placed.preset, placed.place > 10, 0 < placed.slower < 0.3
    ('mcore-guide-mixtral-8x22b', True, True)
    """
    best = {sizes_of(estimate.request.split) for estimate in result.best}
    found: dict[tuple[int, ...], Placed] = {}
    for name, preset in PRESETS.items():
        model = model_of_preset(name)
        own = (preset.world_size, training_of_preset(name).get("cluster", job.machine.id))
        if model is None or own != (job.gpus, job.machine.id):
            continue
        if replace(model, sequence=job.model.sequence) != job.model:
            continue
        at = (preset.tp, preset.cp, preset.pp, preset.ep, preset.etp or preset.tp)
        if at not in best and at not in found:
            seconds = result.quickest.get(at, float("inf"))
            is_placed = seconds < float("inf")
            place = result.place(seconds) if is_placed else 0
            slower = seconds / result.seconds[0] - 1.0 if is_placed else 0.0
            found[at] = Placed(name, place, slower)
    yield from sorted(found.values(), key=lambda placed: placed.place or len(result.seconds) + 1)
