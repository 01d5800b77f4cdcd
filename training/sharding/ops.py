"""What is whole of a stage's parameters and gradients under FSDP while one of its ops runs.

A stage passes between few states, by what ran before the op:

    ""       nothing: all is cut              "F"    a forward         "FI"   half of a backward
    "FB"     a backward behind a forward      "FIW"  one in two halves
    "FBF"    another forward behind that, and so on (`behind`)
    "FBu"    and the runtime gathered the stage, or with "r" cut it

so an op is played once for each of them (`fsdp.FsdpPart`), module by module, however many
micro-batches there are. Under a pipeline a stage is neither cut nor reduced before its last op,
and of a rank with several the runtime gathers each one ahead (`stages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from groups.kept import kept

from ..model import Model
from ..recipe import Training
from ..split import Split
from .fsdp import Flags, FsdpPart, Rules
from .held import LayersHeld, modules_held, seat_of, sharding_of, unlike
from .record import Record
from .step import rules_of, syncs
from .units import Module
from .value import DataParallel

GATHERED, CUT = "u", "r"
"""In a state: the runtime gathered the stage since, or cut it again."""


class ModuleAlive(NamedTuple):
    """While one wrapped module runs: the layers of its stage before and behind it, as shares of
    all, and the most bytes of gathered weights, gradients on their way and buffers."""

    start: float
    end: float
    bytes: int


@dataclass(frozen=True, eq=False)
class StageOps:
    """The ops of one stage of a rank. stands_for: for each module that is played the number of
    layers, of itself and of equal ones behind it; is_first: of the model, whose input has no
    gradient, so that the second half of a backward is all of it; is_ahead: whether the runtime
    gathers stages before it runs them; runs, rests: what was played before.
    """

    how: DataParallel
    modules: tuple[Module, ...]
    rules: Rules
    stands_for: tuple[int, ...]
    pp: int
    is_first: bool
    is_ahead: bool
    runs: dict[tuple[str, str, bool], tuple[ModuleAlive, ...]] = field(default_factory=dict)
    rests: dict[str, int] = field(default_factory=dict)

    def alive(self, kind: str, before: str, *, is_last: bool) -> tuple[ModuleAlive, ...]:
        """Module by module, while an op of this kind (F, B, I or W) runs behind such ops; behind
        the last module of a backward what is left is reduced. is_last: of the step."""
        key = (kind, before, is_last and self.pp == 1)
        if key not in self.runs and self.pp > 1 and kind in "FB" and not self.is_ahead:
            for kinds in CHAINS:
                _learn(self, kinds)
        if key not in self.runs:
            self.runs[key] = _alive(self, *key)
        return self.runs[key]

    def left(self, before: str) -> int:
        """Bytes behind such ops."""
        if before not in self.rests:
            self.rests[before] = sum(self.played(before).record.now.values())
        return self.rests[before]

    def reduced(self, before: str) -> int:
        """The most bytes while a pipeline's runtime reduces all sums behind the last op."""
        if f"{before} reduced" not in self.rests:
            part = self.played(before)
            part.record.moments = []
            part.reduce("")
            sizes = (size for _, size in part.record.moments)
            self.rests[f"{before} reduced"] = max(sizes, default=0)
        return self.rests[f"{before} reduced"]

    def played(self, kinds: str) -> FsdpPart:
        """The stage behind ops of such kinds."""
        part = FsdpPart(self.modules, self.rules, Record())
        self.run(part, kinds, is_last=False)
        return part

    def run(self, part: FsdpPart, kinds: str, *, is_last: bool) -> None:
        """Runs ops of such kinds."""
        part.flags = Flags(sync=False, reshard=False, last=False)
        if self.pp == 1:
            part.flags = syncs(self.how, is_last)
        for kind in kinds:
            part.record.module = 0
            if kind in CUT + GATHERED:
                part.reshard()
            if kind == GATHERED:
                part.unshard()
                part.wait()
            elif kind == "F":
                part.forward("")
            elif kind == "B" or (kind == "W" and self.is_first):
                part.backward("")
            elif kind == "W":
                part.weights("")
            elif kind == "I" and not self.is_first:
                part.backward("", weights=False)


def behind(before: str, kind: str) -> str:
    """The state behind one more op.

    >>> behind("", "F"), behind("F", "F"), behind("FI", "W"), behind("FB", "F"), behind("FBF", "B")
    ('F', 'FF', 'FIW', 'FBF', 'FB')

    Gradients of a second half (W) are summed as the next backward begins.
    """
    before = before.rstrip(CUT + GATHERED)
    summed, fresh = before.startswith("FB"), "W" in before
    if kind == "B" or (kind == "I" and fresh):
        summed, fresh = True, False
    base = "FB" * summed + "FIW" * (fresh or kind == "W")
    forwards = "FF" if before in ("F", "FF", "FFI") else "F"
    return base + {"F": forwards, "I": forwards + "I"}.get(kind, "")


CHAINS = ("FFBB", "FBFB")
"""Runs of ops in which a stage passes through all states without halves of backwards."""


def _learn(ops: StageOps, kinds: str) -> None:
    """Plays ops one behind the other, and keeps what is alive in each and between them."""
    part, before = FsdpPart(ops.modules, ops.rules, Record()), ""
    for kind in kinds:
        ops.runs.setdefault((kind, before, False), _during(ops, part, kind, is_last=False))
        before = behind(before, kind)
        ops.rests.setdefault(before, sum(part.record.now.values()))


def _alive(ops: StageOps, kind: str, before: str, is_last: bool) -> tuple[ModuleAlive, ...]:
    first = (
        "F" if kind in "BI" and before.rstrip(CUT + GATHERED).endswith(("B", "W")) else ""
    )  # which waits since then
    return _during(ops, ops.played(first + before), kind, is_last=is_last)


def _during(ops: StageOps, part: FsdpPart, kind: str, *, is_last: bool) -> tuple[ModuleAlive, ...]:
    record = part.record
    record.module, record.moments = 0, [(0, sum(record.now.values()))]
    ops.run(part, kind, is_last=is_last)
    most = [
        (module, max(size for _, size in moments))
        for module, moments in groupby(record.moments, key=lambda moment: moment[0])
    ]
    return tuple(_placed(ops, most))


def _placed(ops: StageOps, most: Sequence[tuple[int, int]]) -> list[ModuleAlive]:
    """Bytes by module with the layers that have run before and behind each of them."""
    layers = ops.stands_for
    total = max(1, sum(layers))
    order = [at for at in range(len(layers)) if layers[at]]
    sizes: dict[int, int] = {}
    for module, size in most:
        sizes[module] = max(sizes.get(module, 0), size)
    found, done = [], 0
    for module, size in sizes.items():
        run = layers[module] if module in order else 0
        start, end = done / total, (done + run) / total
        found.append(ModuleAlive(start, end, size))
        done += run
    if done < total:  # what nothing changes for
        found.append(ModuleAlive(done / total, 1.0, found[-1].bytes))
    return found


@kept
def ops_of(
    model: Model, split: Split, training: Training, held: LayersHeld, *, is_ahead: bool = False
) -> StageOps:
    """The ops of a stage that holds so many layers of each kind.

    >>> from training.models import MODELS
    >>> how = Training(engine="fsdp2", zero=3, units="torchtitan")
    >>> ops = ops_of(MODELS["llama3-8b"].model, Split(dp=8), how, LayersHeld((32,), True, True, 0))
    >>> max(module.bytes for module in ops.alive("B", "F", is_last=True))
    3588268032
    """
    how = sharding_of(training, split)
    modules = modules_held(model, split, training, held)
    if split.pp == 1 and how.sync in ("every", "replicas") and not how.keeps_whole(1):
        played = unlike(modules)  # of layers between equal ones nothing stays
    else:
        played = modules
    rules = rules_of(how, played, seat_of(split, training), 0, 0)
    return StageOps(
        how, played, rules, _stands_for(modules, played), split.pp, held.is_first, is_ahead
    )


def _stands_for(modules: Sequence[Module], kept: Sequence[Module]) -> tuple[int, ...]:
    """For each kept module how many layers it stands for: itself, and equal ones behind it."""
    counts = dict.fromkeys((module.name for module in kept), 0)
    name = kept[0].name
    for module in modules:
        name = module.name if module.name in counts else name
        counts[name] += module.name.startswith("layers.")
    return tuple(counts.values())
