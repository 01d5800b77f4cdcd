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

from ..base.model import ON_OFF, ChosenModel, model_of, one_of
from ..base.resolve import Layout, resolve
from ..base.state import OF_GROUPS, State, is_empty, is_fix, merged, parse_number
from ..base.training import (
    Batch,
    batch_of,
    schedule_name,
    virtual_stages,
    with_micro_batches,
)

GIB = 2**30


DEFAULTS = {
    "precision": "bf16-fp32",
    "zero": "1",
    "recompute": "selective",
    "sequence_parallel": "on",
    "cluster": "dgx-h100",
}
"""What counts where a field is empty; the spread follows from the layers."""


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


def problem_of(layout: Layout, state: State) -> Problem:
    """What is asked, checked field by field.

    Errors: LayoutError about the field or the control that cannot be.
    """
    chosen = model_of(state)
    split = Split.of(
        layout.mesh,
        layout.expert,
        vpp=virtual_stages(state),
        account=state.account is True,
    )
    split = replace(split, spread=_spread(chosen.model, split, state))
    batch = batch_of(layout, state)
    schedule = schedule_name(state)
    if not isinstance(schedule, str) or schedule not in SCHEDULES:
        instead = [{"schedule": "interleaved"}, {"schedule": "1f1b"}]
        raise not_a_choice("schedule", schedule, SCHEDULES, instead)
    recompute = _stated(state, "recompute", ("none", "selective", "full"))
    training = Training(
        micro_batch=batch.micro_batch,
        micro_batches=batch.micro_batches,
        schedule=schedule,
        precision=_stated(state, "precision", tuple(PRECISIONS)),
        zero=int(_stated(state, "zero", ("0", "1", "2", "3"))),
        recompute=recompute,
        # The page has one field for both: without recomputation it keeps the scores.
        flash=recompute != "none",
        sequence_parallel=ON_OFF[_stated(state, "sequence_parallel", tuple(ON_OFF))],
        instances=_whole(state.instances, "instances", 1),
    )
    cluster = _cluster(state)
    return Problem(chosen, split, training, cluster, _capacity(state, CLUSTERS[cluster]), batch)


def with_rank(state: State, rank: int) -> State:
    """ZeRO pictured for this rank, unless another is asked for."""
    return replace(state, of_rank=rank) if is_empty(state.of_rank) else state


def _spread(model: Model, split: Split, state: State) -> str:
    """As asked; else equal where the layers divide, and nearly equal where they do not."""
    if not is_empty(state.spread):
        return one_of("spread", state.spread, SPREADS)
    try:
        held_by_ranks(model, replace(split, spread="equal"))
    except LayoutError:
        return "nearly"
    return "equal"


Changes = dict[str, Any]
"""Changes of the state that were tried and work."""


def fixes_of(error: LayoutError, layout: Layout, state: State) -> list[Changes]:
    """The alternatives of a refusal that really work, here."""
    found = []
    for alternative in error.alternatives:
        changes = _in_fields(alternative, layout, state)
        if changes and stages_after(changes, layout, state):
            found.append(changes)
    return found[:MOST]


def _in_fields(alternative: Mapping[str, Any], layout: Layout, state: State) -> Changes:
    """An alternative of the maths in the page's names; empty if it is none of the page's."""
    if not is_fix(alternative):
        return {}
    changes = merged(alternative)
    if "micro_batches" in changes:
        changes |= with_micro_batches(layout, state, changes.pop("micro_batches"))
    if "sequence_parallel" in changes:
        changes["sequence_parallel"] = "off"
    return changes


def stages_after(changes: Changes, layout: Layout, state: State) -> tuple[StageMemory, ...]:
    """The stages once a change is made; none if it is refused."""
    changed = state.changed({name: str(value) for name, value in changes.items()})
    try:
        if not OF_GROUPS.isdisjoint(changes):
            layout = resolve(changed)
        return problem_of(layout, changed).stages()
    except LayoutError:
        return ()


def fixes_to_fit(problem: Problem, layout: Layout, state: State) -> list[tuple[Changes, float]]:
    """Changes after which the fullest stage fits, with its bytes then; the mildest first."""
    training, split = problem.training, problem.split
    tries: list[Changes] = []
    if split.tp > 1 and not training.sequence_parallel:
        tries.append({"sequence_parallel": "on"})
    tries += [{"zero": zero} for zero in range(training.zero + 1, 3)]
    if training.micro_batch > 1:
        tries.append({"micro_batch": 1})
    if training.recompute == "none":
        tries.append({"recompute": "selective"})
    tries.append({"recompute": "full"})
    tries += [{name: 2 * getattr(split, name)} for name in ("tp", "pp", "ep", "cp")]
    if training.zero < 3:
        tries.append({"zero": 3})
        tries.append({"zero": 3, "recompute": "full"})
    tries += [{"tp": 2 * split.tp, "pp": 2 * split.pp}]
    found: list[tuple[Changes, float]] = []
    for changes in tries:
        if len(found) == MOST:
            break
        stages = stages_after(changes, layout, state)
        if stages and largest(stages).total <= problem.capacity:
            found.append((changes, largest(stages).total))
    return found


def _cluster(state: State) -> str:
    value = DEFAULTS["cluster"] if is_empty(state.cluster) else state.cluster
    if not isinstance(value, str) or value not in CLUSTERS:
        instead = [{"cluster": name} for name in [*CLUSTERS][:3]]
        raise not_a_choice("cluster", value, CLUSTERS, instead)
    return value


def _capacity(state: State, cluster: Cluster) -> float:
    """Bytes of a GPU, from GiB, else the cluster's; a fraction is a number too."""
    if is_empty(state.capacity):
        return float(cluster.memory)
    value = parse_number(state.capacity)
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
    return empty if is_empty(value) else whole_number(parse_number(value), name, maximum=MAX_BATCH)


def _stated(state: State, name: str, choices: tuple[str, ...]) -> str:
    value = getattr(state, name)
    return one_of(name, DEFAULTS[name] if is_empty(value) else value, choices)
