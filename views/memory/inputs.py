"""What the Memory view is asked: its own fields and the column, read into a problem to solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from groups import LayoutError
from groups.alternatives import MOST
from groups.errors import not_a_choice, quoted
from groups.mesh import whole_number
from groups.stages.holdings import MAX_BATCH
from training.clusters import CLUSTERS, Cluster
from training.memory.per_stage import PRECISIONS, StageMemory, Training, largest, memory_per_stage
from training.model import Model
from training.pipeline.in_flight import SCHEDULES
from training.split import SPREADS, Split, held_by_ranks

from ..base.model import ON_OFF, ChosenModel, ModelAsked, model_of, one_of
from ..base.state import Controls, Layout, is_empty, read, typed
from ..base.training import (
    Batch,
    batch_of,
    schedule_name,
    virtual_stages,
    with_micro_batches,
)

GIB = 2**30


@dataclass(frozen=True)
class MemoryAsked(ModelAsked):
    """What the Memory view is asked, unchecked; empty: what `Problem` says it takes."""

    precision: Any = ""
    zero: Any = ""
    recompute: Any = ""
    sequence_parallel: Any = ""
    cluster: Any = ""
    spread: Any = ""
    capacity: Any = ""  # GiB of a GPU; empty: the cluster's
    of_rank: Any = ""  # whose data parallel group ZeRO is pictured for; the pinned one's, else 0's

    def with_rank(self, rank: int) -> MemoryAsked:
        """Of this rank, unless another is asked for."""
        return replace(self, of_rank=rank) if is_empty(self.of_rank) else self


DEFAULTS = {
    "precision": "bf16-fp32",
    "zero": "1",
    "recompute": "selective",
    "sequence_parallel": "on",
    "cluster": "dgx-h100",
}
"""What counts where a field is empty; the spread follows from the layers."""

COLUMN = (
    *("tp", "pp", "cp", "ep", "etp", "instances", "vpp", "account"),
    *("layers", "experts", "micro_batch", "global_batch", "micro_batches", "schedule"),
)
"""Controls of the column that a cure may change."""

OF_SCHEDULES = {"p": "pp", "v": "vpp"}
"""The page's names of sizes that schedules call otherwise."""


@dataclass(frozen=True)
class Problem:
    """A model, how it is split and trained, on GPUs of how many bytes."""

    chosen: ChosenModel
    split: Split
    training: Training
    cluster_id: str
    capacity: float  # bytes
    batch: Batch

    @property
    def model(self) -> Model:
        return self.chosen.model

    @property
    def cluster(self) -> Cluster:
        return CLUSTERS[self.cluster_id]

    def stages(self) -> tuple[StageMemory, ...]:
        return memory_per_stage(self.model, self.split, self.training)


def problem_of(layout: Layout, controls: Controls, asked: MemoryAsked) -> Problem:
    """What is asked, checked field by field.

    Errors: LayoutError about the field or the control that cannot be.
    """
    chosen = model_of(asked, controls)
    split = Split.of(
        layout.mesh,
        layout.expert,
        vpp=virtual_stages(controls),
        account=controls.account is True,
    )
    split = replace(split, spread=_spread(chosen.model, split, asked))
    batch = batch_of(layout, controls)
    schedule = schedule_name(controls)
    if not isinstance(schedule, str) or schedule not in SCHEDULES:
        instead = [{"schedule": "interleaved"}, {"schedule": "1f1b"}]
        raise not_a_choice("schedule", schedule, SCHEDULES, instead)
    recompute = _stated(asked, "recompute", ("none", "selective", "full"))
    training = Training(
        micro_batch=batch.micro_batch,
        micro_batches=batch.micro_batches,
        schedule=schedule,
        precision=_stated(asked, "precision", tuple(PRECISIONS)),
        zero=int(_stated(asked, "zero", ("0", "1", "2", "3"))),
        recompute=recompute,
        # The page has one field for both: without recomputation it keeps the scores.
        flash=recompute != "none",
        sequence_parallel=ON_OFF[_stated(asked, "sequence_parallel", tuple(ON_OFF))],
        instances=_whole(controls.instances, "instances", 1),
    )
    cluster = _cluster(asked)
    return Problem(chosen, split, training, cluster, _capacity(asked, CLUSTERS[cluster]), batch)


def _spread(model: Model, split: Split, asked: MemoryAsked) -> str:
    """As asked; else equal where the layers divide, and nearly equal where they do not."""
    if not is_empty(asked.spread):
        return one_of("spread", asked.spread, SPREADS)
    try:
        held_by_ranks(model, replace(split, spread="equal"))
    except LayoutError:
        return "nearly"
    return "equal"


@dataclass(frozen=True)
class Way:
    """A change that was tried and works: of the view's fields, or of the column."""

    changes: dict[str, Any]
    is_of_column: bool


def cures(error: LayoutError, layout: Layout, controls: Controls, asked: MemoryAsked) -> list[Way]:
    """The alternatives of a refusal that really work, here."""
    found = []
    for alternative in error.alternatives:
        way = _way(alternative, layout, controls)
        if way and solved(way, layout, controls, asked):
            found.append(way)
    return found[:MOST]


def _way(alternative: Mapping[str, Any], layout: Layout, controls: Controls) -> Way | None:
    """An alternative of the maths in the page's names."""
    changes = {OF_SCHEDULES.get(name, name): value for name, value in alternative.items()}
    if "m" in changes:
        changes |= with_micro_batches(layout, controls, changes.pop("m"))
    if "sequence_parallel" in changes:
        changes["sequence_parallel"] = "off"
    is_of_column = [name in COLUMN for name in changes]
    if all(is_of_column):
        return Way(changes, True)
    return None if any(is_of_column) else Way(changes, False)


def solved(
    way: Way, layout: Layout, controls: Controls, asked: MemoryAsked
) -> tuple[StageMemory, ...]:
    """The stages once a change is made; none if it is refused."""
    try:
        if way.is_of_column:
            controls = controls.changed({n: str(v) for n, v in way.changes.items()})
            layout = read(controls)
        else:
            asked = replace(asked, **{n: str(v) for n, v in way.changes.items()})
        return problem_of(layout, controls, asked).stages()
    except LayoutError:
        return ()


def ways_to_fit(
    problem: Problem, layout: Layout, controls: Controls, asked: MemoryAsked
) -> list[tuple[Way, float]]:
    """Changes after which the fullest stage fits, with its bytes then; the mildest first."""
    training, split = problem.training, problem.split
    tries: list[Way] = []
    if split.tp > 1 and not training.sequence_parallel:
        tries.append(Way({"sequence_parallel": "on"}, False))
    tries += [Way({"zero": zero}, False) for zero in range(training.zero + 1, 3)]
    if training.micro_batch > 1:
        tries.append(Way({"micro_batch": 1}, True))
    if training.recompute == "none":
        tries.append(Way({"recompute": "selective"}, False))
    tries.append(Way({"recompute": "full"}, False))
    tries += [Way({name: 2 * getattr(split, name)}, True) for name in ("tp", "pp", "ep", "cp")]
    if training.zero < 3:
        tries.append(Way({"zero": 3}, False))
        tries.append(Way({"zero": 3, "recompute": "full"}, False))
    tries += [Way({"tp": 2 * split.tp, "pp": 2 * split.pp}, True)]
    found: list[tuple[Way, float]] = []
    for way in tries:
        if len(found) == MOST:
            break
        stages = solved(way, layout, controls, asked)
        if stages and largest(stages).total <= problem.capacity:
            found.append((way, largest(stages).total))
    return found


def _cluster(asked: MemoryAsked) -> str:
    value = DEFAULTS["cluster"] if is_empty(asked.cluster) else asked.cluster
    if not isinstance(value, str) or value not in CLUSTERS:
        instead = [{"cluster": name} for name in [*CLUSTERS][:3]]
        raise not_a_choice("cluster", value, CLUSTERS, instead)
    return value


def _capacity(asked: MemoryAsked, cluster: Cluster) -> float:
    """Bytes of a GPU, from GiB, else the cluster's; a fraction is a number too."""
    if is_empty(asked.capacity):
        return float(cluster.memory)
    value = typed(asked.capacity)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 100_000:
        raise LayoutError(
            "not-a-capacity",
            f"{quoted(value)} is not a number of GiB",
            control="capacity",
            alternatives=[{"capacity": cluster.memory // GIB}],
            facts={"value": quoted(value)},
        )
    return value * GIB


def _whole(value: object, name: str, empty: int) -> int:
    return empty if is_empty(value) else whole_number(typed(value), name, maximum=MAX_BATCH)


def _stated(asked: MemoryAsked, name: str, choices: tuple[str, ...]) -> str:
    value = getattr(asked, name)
    return one_of(name, DEFAULTS[name] if is_empty(value) else value, choices)
