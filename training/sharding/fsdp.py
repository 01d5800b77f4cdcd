"""FSDP2 played: what ``fully_shard`` gathers, reduces and holds, micro-batch by micro-batch.

A module's hooks, in their order:

    forward     gather its unit (unless it is whole) -> run -> shard again (if it reshards)
    backward    gather again -> prefetch the unit before -> run -> shard -> reduce-scatter
    at the end  what no gradient of an input announced: the root, and the embedding of tokens

The output of an all-gather is copied out into parameters. In forward it is kept until the next
one is copied out, so that two of them are alive at once; in backward it is freed at once. The
input of a reduce-scatter is kept until the next unit has its gradients. With gradient sync off,
gradients stay whole and are summed in the format of reduction, which is wider.

Source: torch 2.13.0 torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_state.py and
_fsdp_collectives.py, foreach_all_gather and foreach_reduce.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .record import BYTES, Record
from .units import Module, Unit

SHARDED, KEPT, WHOLE = range(3)
"""States of a unit: cut over all ranks, over the ranks of a post-forward mesh, or whole."""


@dataclass(frozen=True)
class Rules:
    """How the units of one model part are gathered and reduced.

    gathered, reduced: formats of parameters and of gradients on their way; reshard: for each
    module by its index whether it is cut again after forward, or over how many ranks (an int
    above 1); replicate: ranks that hold the same shard, with the name of their group; prefetch:
    whether units are gathered ahead by their modules (torchtitan with expert parallelism) instead
    of by the order of the forward pass; tp: ranks that cut each token's row, whose norms' gradients
    are summed.
    """

    gathered: str = "bf16"
    reduced: str = "fp32"
    reshard: tuple[bool | int, ...] = ()
    replicate: tuple[int, str] = (1, "dp_replicate")
    prefetch: bool = False
    tp: int = 1
    tokens: int = 0
    width: int = 0


@dataclass
class Flags:
    """What a training loop sets: sync gradients, all-reduce them over replicas, shard after
    backward, and whether this backward is the last one of a step."""

    sync: bool = True
    all_reduce: bool = True
    reshard: bool = True
    last: bool = True


@dataclass(eq=False)
class _Group:
    """One param group while it runs."""

    unit: Unit
    module: int
    state: int = SHARDED
    pending: bool = False  # gathered, and not yet copied out
    is_async: bool = False
    posted: bool = False
    indices: list[int] = field(default_factory=list)
    fresh: int = 0  # elements with a gradient in the format of parameters
    summed: bool = False  # whether a sum in the format of reduction is held
    partial: bool = False


class FsdpPart:
    """One model part, a root that fully_shard wraps, on one rank.

    modules: as `units.modules_of`. Each call is what a training loop does, and leaves its
    collectives and what is alive in the record.

    Errors: none of its own; a layout is refused where its modules are made.
    """

    def __init__(self, modules: Sequence[Module], rules: Rules, record: Record, name: str = ""):
        self.modules, self.rules, self.record = modules, rules, record
        self.prefix = f"{name}/" if name else ""
        self.flags = Flags()
        self.groups = [
            [_Group(unit, at) for unit in module.units] for at, module in enumerate(modules)
        ]
        order = [at for at, module in enumerate(modules) if not module.is_root]
        tied = [at for at in order if modules[at].is_end and modules[at].takes_tokens]
        self.forward_order = [*(at for at in order if at not in tied)]
        self.wrapped = [0, *tied]  # begin before the others, and end behind them
        self.kept_output: tuple[_Group, int] | None = None
        self.inputs: list[int] = []  # reduce-scatter inputs that are alive
        self.after_forward: list[_Group] = []
        self.gradient_bytes = 0  # of whole units

    # -- sizes -----------------------------------------------------------------------------------

    def _all(self) -> Iterator[_Group]:
        for groups in self.groups:
            yield from groups

    def _whole_bytes(self, group: _Group) -> int:
        return group.unit.whole * BYTES[self.rules.gathered]

    def _name(self, group: _Group) -> str:
        return self.prefix + group.unit.name

    def _reshard(self, group: _Group) -> bool | int:
        return self.rules.reshard[group.module]

    @property
    def whole_bytes(self) -> int:
        """Bytes of the parameters that are whole now."""
        return sum(self._whole_bytes(each) for each in self._all() if each.state == WHOLE)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the parts that are kept between forward and backward (reshard to a number)."""
        return sum(
            self._whole_bytes(each) // int(self._reshard(each))
            for each in self._all()
            if each.state == KEPT
        )

    def _hold(self, group: _Group, fresh: int, *, summed: bool) -> None:
        """Sets what gradients a unit has."""
        more = group.unit.elements * (summed - group.summed) * BYTES[self.rules.reduced]
        self.gradient_bytes += more + (fresh - group.fresh) * BYTES[self.rules.gathered]
        group.fresh, group.summed = fresh, summed

    # -- gathering -------------------------------------------------------------------------------

    def _gather(self, group: _Group, *, is_async: bool = False) -> None:
        """Starts an all-gather, unless the unit is whole or on its way."""
        if group.pending or group.state == WHOLE:
            return
        group.pending, group.is_async = True, is_async
        mesh, unit, name = group.unit.group, group.unit, self._name(group)
        if mesh.size == 1:
            return
        size, of = unit.stored, mesh.name
        if group.state == KEPT:
            size, of = unit.whole // int(self._reshard(group)), "post_forward"
        self.record.alive("all_gather_buffers", self._whole_bytes(group), name)
        self.record.send("all_gather", of, name, (size, unit.whole), self.rules.gathered)

    def _wait(self, group: _Group, *, in_forward: bool) -> None:
        """Copies a gathered unit out; in forward its buffer is kept until the next one is."""
        if not group.pending:
            return
        group.pending, group.state = False, WHOLE
        name, size = self._name(group), self._whole_bytes(group)
        before = self.kept_output if in_forward else None
        self.record.alive("unsharded_params", size, name)
        if before:
            self._free_output()
        if group.unit.group.size == 1:
            return
        if in_forward and not group.is_async:
            self.kept_output = (group, size)
        else:
            self.record.alive("all_gather_buffers", -size, name)

    def _free_output(self) -> None:
        if self.kept_output:
            group, size = self.kept_output
            self.record.alive("all_gather_buffers", -size, self._name(group))
            self.kept_output = None

    def _shard(self, group: _Group, *, in_forward: bool = False) -> None:
        reshard = self._reshard(group) if in_forward else True
        if not reshard:
            return
        is_whole = group.state == WHOLE
        own_mesh = not isinstance(reshard, bool) and reshard < group.unit.group.size
        group.state = KEPT if in_forward and own_mesh else SHARDED
        if is_whole:
            self.record.alive("unsharded_params", -self._whole_bytes(group), self._name(group))

    def unshard(self) -> None:
        """Starts to gather all units, as a pipeline runtime does ahead of a stage's ops."""
        for group in self._all():
            self._gather(group, is_async=True)

    def wait(self) -> None:
        """Waits for what `unshard` started."""
        for group in self._all():
            if group.is_async:
                self._wait(group, in_forward=False)
                group.is_async = False

    def reshard(self) -> None:
        """Shards all units."""
        for group in self._all():
            self._shard(group)

    # -- forward ---------------------------------------------------------------------------------

    def forward(self, phase: str) -> None:
        """The forward pass of one micro-batch."""
        self.record.phase = phase
        for at in self.wrapped:
            self._enter(at)
        for at in self.forward_order:
            self._enter(at)
            self._between(at, forward=True)
            self._leave(at)
        for at in reversed(self.wrapped):
            if at:
                self._between(at, forward=True)
            self._leave(at)
        self._free_output()

    def _enter(self, at: int) -> None:
        self.record.module = at
        for group in self.groups[at]:
            self._gather(group)
            self._wait(group, in_forward=True)
        for other in self._prefetched(at, forward=True):
            for group in self.groups[other]:
                self._gather(group)

    def _leave(self, at: int) -> None:
        for group in self.groups[at]:
            self._shard(group, in_forward=True)
            group.indices.append(len(self.after_forward))
            self.after_forward.append(group)

    def _prefetched(self, at: int, *, forward: bool) -> list[int]:
        """The modules that a module gathers ahead, where it is said to."""
        if not self.rules.prefetch or at not in self.forward_order:
            return []
        place = self.forward_order.index(at) + (1 if forward else -1)
        return [self.forward_order[place]] if 0 <= place < len(self.forward_order) else []

    # -- backward --------------------------------------------------------------------------------

    def backward(self, phase: str, *, weights: bool = True) -> None:
        """The backward pass of one micro-batch; weights: whether the gradients of weights come
        now, or with a later `weights`."""
        self.record.phase = phase
        for group in self._all():
            group.posted = False
        for at in self.wrapped:
            self._begin(at, weights)
        for at in reversed(self.forward_order):
            self._begin(at, weights)
            self._between(at, forward=False)
            if not self.modules[at].takes_tokens:
                self._end(at)
        self._finish(weights)

    def _begin(self, at: int, weights: bool) -> None:
        self.record.module = at
        for group in self.groups[at]:
            self._gather(group)
            self._wait(group, in_forward=False)
            if not self.rules.prefetch:
                self._prefetch_before(group)
        for other in self._prefetched(at, forward=False):
            for group in reversed(self.groups[other]):
                self._gather(group)
        if weights:
            self._gradients(at)

    def _prefetch_before(self, group: _Group) -> None:
        if not group.indices:
            return
        index = group.indices.pop()
        if index > 0:
            self._gather(self.after_forward[index - 1])

    def _gradients(self, at: int, *, late: bool = False) -> None:
        """Gradients of a module's parameters come. Those of a table of words come last, behind all
        layers, also where the output uses it too: with the second of its two uses."""
        is_root = at in self.wrapped
        for group in self.groups[at]:
            waits = 0
            for each in group.unit.parameters:
                if is_root and not late and each.name.startswith("tok_embeddings"):
                    waits += each.elements
            fresh = max(group.fresh, group.unit.elements - waits)
            self._hold(group, fresh, summed=group.summed)

    def _end(self, at: int) -> None:
        for group in reversed(self.groups[at]):
            self._post(group)

    def _finish(self, weights: bool) -> None:
        self.record.module = -1
        for at in range(len(self.modules)):
            if at in self.wrapped and weights:
                self._gradients(at, late=True)
            for group in reversed(self.groups[at]):
                if not group.posted:
                    self._post(group)
        if self.flags.last:
            for group in self._all():
                group.indices.clear()
            self.after_forward.clear()
            self._free_inputs()

    def weights(self, phase: str) -> None:
        """The gradients of weights of a micro-batch whose `backward` left them out."""
        self.record.phase = phase
        for group in self._all():
            self._hold(group, group.unit.elements, summed=group.summed)
        self._recount("")

    def reduce(self, phase: str) -> None:
        """Reduces the sums of all micro-batches, as a pipeline runtime does behind the last."""
        self.record.phase = phase
        self.flags = Flags()
        for groups in self.groups:
            for group in groups:
                self._post(group)
        self._free_inputs()
        self.after_forward.clear()

    # -- reducing --------------------------------------------------------------------------------

    def _recount(self, name: str) -> None:
        self.record.share("unsharded_grads", self, self.gradient_bytes, name)

    def _post(self, group: _Group) -> None:
        """What follows a unit's backward: sum, shard, reduce."""
        group.posted = True
        name, is_wider = self._name(group), self.rules.reduced != self.rules.gathered
        self._recount(name)
        if not self.flags.sync:
            if self.flags.reshard:
                self._shard(group)
            if group.fresh and is_wider:
                self._hold(group, 0, summed=True)
            self._recount(name)
            return
        has_gradients = bool(group.fresh or group.summed)
        was_summed = group.summed
        self._hold(group, 0, summed=False)
        if self.flags.reshard:
            self._shard(group)
        if group is self.groups[group.module][-1]:
            self._free_inputs()
        if has_gradients:
            self._reduce(group, was_summed)
        self._recount(name)

    def _reduce(self, group: _Group, was_summed: bool) -> None:
        unit, rules, name = group.unit, self.rules, self._name(group)
        mesh, each = unit.group, BYTES[rules.reduced]
        self._sum_norms(group, was_summed)
        size = unit.whole * each
        self.inputs.append(size)
        self.record.alive("reduce_scatter_inputs", size, name)
        if mesh.size > 1:
            sizes = (unit.whole, unit.stored)
            self.record.send("reduce_scatter", mesh.name, name, sizes, rules.reduced)
        replicas, of = rules.replicate
        group.partial = not self.flags.all_reduce
        if replicas > 1 and self.flags.all_reduce:
            self.record.send("all_reduce", of, name, (unit.stored, unit.stored), rules.reduced)

    def _free_inputs(self) -> None:
        for size in self.inputs:
            self.record.alive("reduce_scatter_inputs", -size, "")
        self.inputs.clear()

    # -- tensor parallelism ----------------------------------------------------------------------

    def _between(self, at: int, *, forward: bool) -> None:
        """Collectives of tensor parallelism while a module runs: tokens are gathered before its
        linear layers and their sums scattered behind them, and the other way round in backward."""
        if self.rules.tp == 1:
            return
        module = self.modules[at]
        whole = self.rules.tokens * self.rules.width
        part = whole // self.rules.tp
        gather, scatter = ("all_gather", (part, whole)), ("reduce_scatter", (whole, part))
        if module.takes_tokens:
            ops = [scatter if forward else gather]
        elif module.is_end:
            ops = [gather if forward else scatter]
        else:
            ops = [gather, scatter] * 2
        for op, sizes in ops:
            self.record.send(op, "tp", None, sizes, self.rules.gathered)

    def _sum_norms(self, group: _Group, was_summed: bool) -> None:
        """Gradients of what tensor parallelism leaves whole are summed over its ranks, where each
        has other tokens."""
        if self.rules.tp == 1:
            return
        of = self.rules.reduced if was_summed else self.rules.gathered
        for each in group.unit.parameters:
            if each.axis is None and not each.expert:
                sizes = (each.elements, each.elements)
                self.record.send("all_reduce", "tp", self._name(group), sizes, of)
