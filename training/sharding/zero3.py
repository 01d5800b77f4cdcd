"""The gathers of ZeRO-3: its parameter coordinator, module by module.

In the first micro-batch of all each module gathers its own parameters and frees them behind it,
while their order is traced. From then on, as a module begins:

    1. its own parameters are gathered, where they are not there
    2. parameters of the next modules are gathered together, prefetch_bucket elements or more,
       unless max_live are there

and as it ends its parameters are freed, but those that are kept whole, that a gather ahead has
passed over, or that are used again within max_reuse elements. With the defaults a model below a
billion parameters is gathered once: what forward gathered is there in backward.

With a secondary partition (hpZ) the first gather behind an update is over all ranks, later ones
over hpz neighbours, which keep a copy between them.

Source: deepspeedai/DeepSpeed 0.19.8 deepspeed/runtime/zero/partitioned_param_coordinator.py,
_fetch_sub_module_impl and __params_to_release; partition_parameters.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from .ddp import readiness
from .record import Record
from .units import ModuleParameter
from .zero import ZeroConfig, partition, persistent

Visit = tuple[bool, bool, str]
"""Whether backward runs, whether the module begins or ends, and its name."""


class Coordinator:
    """The parameters of one rank, gathered as modules need them."""

    def __init__(self, parameters: Sequence[ModuleParameter], config: ZeroConfig, world: int):
        self.config, self.world = config, world
        self.of_module: dict[str, list[ModuleParameter]] = {}
        for each in parameters:
            self.of_module.setdefault(_module(each), []).append(each)
        if "lm_head" not in self.of_module and "norm" in self.of_module:
            self.of_module["lm_head"] = list(self.of_module.get("tok_embeddings", ()))
        self.kept = {each.name for each in persistent(parameters, config)}
        self.here: dict[str, int] = {}  # elements of what is gathered, by name
        self.there = 0  # their sum
        self.secondary = {each.name for each in parameters} if config.hpz > 1 else set()
        self.is_traced = False
        self.tree = _tree(self.of_module)
        self.order = [name for _, begins, name in self._visits() if begins]

    def begin_traced(self) -> None:
        """Begins behind micro-batches that were traced, with what is kept whole."""
        self.is_traced = True
        self.here = {each.name: each.elements for each in self._all() if each.name in self.kept}
        self.there = sum(self.here.values())

    def updated(self) -> None:
        """The weights were updated: the secondary partition is old."""
        self.secondary.clear()

    def run(self, record: Record, number: int) -> None:
        """One micro-batch, forward and backward."""
        self.step, self.seen = 0, dict.fromkeys((p.name for p in self._all()), -1)
        self.queue = deque(
            (each, at) for at, name in enumerate(self.order) for each in self._own(name)
        )
        for is_backward, begins, name in self._visits():
            record.phase = f"{'backward' if is_backward else 'forward'}:{number}"
            if begins:
                self._begin(record, name)
            else:
                self._end(name)
        self.is_traced = True

    def _all(self) -> Iterator[ModuleParameter]:
        for parameters in self.of_module.values():
            yield from parameters

    def _own(self, module: str) -> list[ModuleParameter]:
        return self.of_module.get(module, [])

    # -- the modules -----------------------------------------------------------------------------

    def _visits(self) -> Iterator[Visit]:
        """Modules in the order in which they begin and end, forward and then backward."""
        for is_backward in (False, True):
            for begins, name in _walk("", self.tree, backward=is_backward):
                yield is_backward, begins, name

    def _begin(self, record: Record, module: str) -> None:
        own = self._own(module)
        self._gather(record, [each for each in own if each.name not in self.here])
        if self.is_traced:
            self._take(own)
            self._ahead(record)
        self.step += 1

    def _take(self, own: Sequence[ModuleParameter]) -> None:
        """Takes a module's parameters from the queue, where no gather ahead has."""
        left = {each.name for each in own if self.seen[each.name] < self.step}
        while self.queue and left:
            each, at = self.queue.popleft()
            self.seen[each.name] = at
            left.discard(each.name)

    def _ahead(self, record: Record) -> None:
        config = self.config
        most, chosen, size = min(config.max_live - self.there, config.prefetch_bucket), {}, 0
        if not config.prefetch_bucket:
            return
        while self.queue and size < most:
            each, at = self.queue.popleft()
            self.seen[each.name] = max(self.seen[each.name], at)
            if each.name not in self.here and each.name not in chosen:
                chosen[each.name] = each
                size += each.elements
        self._gather(record, list(chosen.values()))

    def _end(self, module: str) -> None:
        names = {each.name for each in self._own(module)}
        if self.is_traced:
            names -= self.kept
            names -= {name for name in names if self.seen[name] > self.step}
            passed = 0
            for later in self.order[self.step :]:
                if passed >= self.config.max_reuse or not names:
                    break
                for each in self._own(later):
                    names.discard(each.name)
                    passed += each.elements
        self.there -= sum(self.here.pop(name, 0) for name in names)

    def _gather(self, record: Record, wanted: Sequence[ModuleParameter]) -> None:
        """One gather of all that have a secondary part, and one of the others."""
        for has_secondary in (True, False):
            chosen = [each for each in wanted if (each.name in self.secondary) is has_secondary]
            if not chosen:
                continue
            group, ranks = ("hpz", self.config.hpz) if has_secondary else ("dp", self.world)
            whole = sum(partition(each, self.world) for each in chosen) * self.world
            record.send("all_gather", group, None, (whole // ranks, whole), self.config.format)
            fresh = {each.name: each.elements for each in chosen if each.name not in self.here}
            self.here |= fresh
            self.there += sum(fresh.values())
            if self.config.hpz > 1:
                self.secondary.update(each.name for each in chosen)


Tree = dict[str, "Tree"]


def _module(parameter: ModuleParameter) -> str:
    return parameter.name.rpartition(".")[0]


def _tree(modules: dict[str, list[ModuleParameter]]) -> Tree:
    """Modules as a tree, in the order in which they run; lists of layers do not run."""
    ordered = [
        _module(each) for each in readiness(each for own in modules.values() for each in own)
    ]
    names = list(dict.fromkeys(reversed(list(ordered))))
    if "lm_head" in modules and "lm_head" not in names:
        names.append("lm_head")
    tree: Tree = {}
    for name in names:
        branch, parts = tree, name.split(".")
        if parts[0] == "layers":
            parts = [".".join(parts[:2]), *parts[2:]]
        for part in parts:
            branch = branch.setdefault(part, {})
    return tree


def _walk(name: str, tree: Tree, *, backward: bool) -> Iterator[tuple[bool, str]]:
    yield True, name
    for part, branch in reversed(tree.items()) if backward else tree.items():
        yield from _walk(f"{name}.{part}" if name else part, branch, backward=backward)
    yield False, name
