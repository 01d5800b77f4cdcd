"""One step of one rank under FSDP2, without a pipeline or through the stages of one.

Without a pipeline, micro-batches run forward and backward in turn. torch's pipelines run each
stage's ops without reducing, and reduce once behind the last (torch/distributed/pipelining/
stage.py, backward_maybe_with_nosync and perform_reduce_grad); a stage that a schedule of several
stages needs is gathered ahead (`stages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..model import Model
from .fsdp import Flags, FsdpPart, Rules
from .record import Record
from .stages import Action, actions_of
from .units import WRAPPINGS, Mesh1D, Module, local_parameters, modules_of, places_of
from .value import DataParallel


@dataclass(frozen=True)
class Seat:
    """Where a rank sits: its groups' sizes and its own place in each, (size, index)."""

    shard: tuple[int, int] = (1, 0)
    expert_shard: tuple[int, int] = (0, 0)  # of experts on a mesh of their own; 0: none
    tp: tuple[int, int] = (1, 0)
    ep: tuple[int, int] = (1, 0)
    pp: tuple[int, int] = (1, 0)


@dataclass
class PlayedStep:
    """A played step: the parts of the model on the rank, its record, and what is alive between."""

    parts: dict[int, FsdpPart]
    record: Record
    after_forward: list[tuple[int, int]] = field(default_factory=list)  # whole, kept bytes
    after_backward: list[tuple[int, int]] = field(default_factory=list)  # whole, gradient bytes
    after_op: list[tuple[str, int, int]] = field(default_factory=list)
    after_step: tuple[int, int] = (0, 0)


def modules_on(
    model: Model, how: DataParallel, seat: Seat, layers: Sequence[int], ends: tuple[bool, bool]
) -> list[Module]:
    """The wrapped modules of one stage on a rank."""
    places = places_of(model, tuple(layers), *ends)
    stage = local_parameters(model, places, seat.tp, seat.ep)
    dense = Mesh1D("fsdp", *seat.shard)
    experts = Mesh1D("efsdp", *seat.expert_shard) if seat.expert_shard[0] else None
    return modules_of(stage, WRAPPINGS[how.units], dense, experts, model.experts)


def rules_of(
    how: DataParallel, modules: Sequence[Module], seat: Seat, tokens: int, width: int
) -> Rules:
    """The rules of a stage's units."""
    pp = seat.pp[0]
    reshard = [how.reshard_of(pp, is_root=m.is_root, is_end=m.is_end) for m in modules]
    prefetch = WRAPPINGS[how.units].apart and seat.expert_shard[0] > 0
    replicate = (how.replicate, "dp_replicate")
    formats = (how.gathered, how.reduced)
    return Rules(*formats, tuple(reshard), replicate, prefetch, seat.tp[0], tokens, width)


def play(
    model: Model,
    how: DataParallel,
    seat: Seat | None = None,
    micro_batches: int = 1,
    tokens: int = 0,
) -> PlayedStep:
    """A step without a pipeline. tokens: of a micro-batch, for tensor parallelism's collectives.

    >>> from training.models import MODELS
    >>> how = DataParallel("fsdp2", "weights", shard=8, units="torchtitan", reshard="default")
    >>> step = play(MODELS["llama3-8b"].model, how, Seat(shard=(8, 0)))
    >>> step.record.fullest.bytes, step.record.fullest.unit
    (3588268032, 'norm+lm_head')
    """
    seat = seat or Seat(shard=(how.shard, 0))
    modules = modules_on(model, how, seat, range(model.layers), (True, True))
    rules = rules_of(how, modules, seat, tokens, model.hidden)
    return play_modules(modules, rules, how, micro_batches)


def play_modules(
    modules: Sequence[Module], rules: Rules, how: DataParallel, micro_batches: int
) -> PlayedStep:
    """A step of modules that are wrapped already."""
    record = Record()
    part = FsdpPart(modules, rules, record)
    step = PlayedStep({0: part}, record)
    for number in range(micro_batches):
        is_last = number == micro_batches - 1
        part.flags = syncs(how, is_last)
        part.forward(f"forward:{number}")
        step.after_forward.append((part.whole_bytes, part.kept_bytes))
        part.backward(f"backward:{number}")
        step.after_backward.append((part.whole_bytes, part.gradient_bytes))
    step.after_step = step.after_backward[-1]
    return step


def syncs(how: DataParallel, is_last: bool) -> Flags:
    """What a training loop without a pipeline sets for a micro-batch."""
    waits = how.sync in ("last", "kept") and not is_last
    return Flags(
        sync=not waits,
        all_reduce=is_last or how.sync != "replicas",
        reshard=not (waits and how.sync == "kept"),
        last=is_last or not how.last_flag,
    )


def play_stages(
    model: Model,
    how: DataParallel,
    seat: Seat,
    schedule: str,
    micro_batches: int,
    stage_layers: Sequence[Sequence[int]],
    tokens: int = 0,
) -> PlayedStep:
    """A step of one pipeline rank; schedule: torch's name; stage_layers: of every stage."""
    actions = actions_of(schedule, seat.pp[0], micro_batches, len(stage_layers))[seat.pp[1]]
    record, last = Record(), len(stage_layers) - 1
    parts = {}
    for stage in sorted({each.stage for each in actions}):
        ends = (stage == 0, stage == last)
        modules = modules_on(model, how, seat, stage_layers[stage], ends)
        rules = rules_of(how, modules, seat, tokens, model.hidden)
        parts[stage] = FsdpPart(modules, rules, record, f"stage{stage}")
        parts[stage].flags = Flags(sync=False, reshard=False, last=False)
    step = PlayedStep(parts, record)
    size = (tokens * model.hidden // seat.tp[0],) * 2
    record.phase = "setup"
    for action in actions:
        _run(action, step, size, how.gathered)
    step.after_step = _alive(step)
    return step


def _alive(step: PlayedStep) -> tuple[int, int]:
    parts = step.parts.values()
    return sum(p.whole_bytes for p in parts), sum(p.gradient_bytes for p in parts)


NAMES = {"F": "forward", "B": "backward", "I": "backward", "W": "weight"}
"""Names of the phases of ops."""


def _run(action: Action, step: PlayedStep, size: tuple[int, int], of: str) -> None:
    part, record, kind = step.parts[action.stage], step.record, action.kind
    if kind in NAMES:
        phase = f"{NAMES[kind]}:{action.stage}:{action.micro_batch}"
        part.wait()
        is_first = action.stage == 0
        if kind == "F":
            part.forward(phase)
        elif kind == "B" or (kind == "W" and is_first):
            part.backward(phase)
        elif kind == "W":
            part.weights(phase)
        elif not is_first:  # the first stage's input has no gradient: all of it is run by W
            part.backward(phase, weights=False)
        step.after_op.append((phase, *_alive(step)))
        record.phase = "between"
    elif kind == "unshard":
        part.unshard()
    elif kind == "reshard":
        part.reshard()
    elif kind == "reduce":
        part.reduce(f"reduce:{action.stage}")
        record.phase = "between"
    else:
        record.send(kind, "pp", None, size, of)
