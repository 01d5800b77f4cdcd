"""The decoder layers of every pipeline stage: even, with embedding and loss counted as layers, or
with first and last set.

Layers, like ranks, count from 0; Megatron's layer_number is one more. With interleaving a stage
holds vpp chunks of the model, and the layers run through chunk 0 of every stage, then through chunk
1 of every stage, and so on. `layout_strings` reads the strings that assign layers by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise

from ..alternatives import MOST, in_ranges, nearest, not_a_multiple, with_changes
from ..errors import LayoutError, refusal
from ..mesh import MAX_RANKS

MAX_LAYERS = 10_000
"""The largest number of layers: some fifty times the deepest models that are trained."""


def stage_layers(
    layers: int,
    pp: int,
    vpp: int = 1,
    *,
    account: bool = False,
    first: int | None = None,
    last: int | None = None,
) -> list[list[int]]:
    """The decoder layers of every stage, numbered from 0 and assigned as in Megatron.

    A stage is a chunk of a rank: chunk 0 of every rank, then chunk 1 of every rank. Each has layers
    / pp / vpp of them. ``account``: the embedding takes the place of one layer in the first, and
    the loss in the last. ``first`` and ``last`` give the whole count of those ranks; the ranks
    between them share what is left.

    >>> stage_layers(8, pp=2, vpp=2)
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    >>> stage_layers(2, pp=4, account=True)
    [[], [0], [1], []]
    >>> stage_layers(7, pp=3, first=1, last=2)
    [[0], [1, 2, 3, 4], [5, 6]]

    Errors: LayoutError where Megatron refuses, fails, or would lose layers.
    Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_block.py
    get_num_layers_to_build and transformer_layer.py get_transformer_layer_offset.
    """
    ends = {name: size for name, size in (("first", first), ("last", last)) if size is not None}
    split = _in_range({"layers": layers, "pp": pp, "vpp": vpp, **ends}, account)
    refused = next(split.refusals(), None)
    if refused:
        error = refused()
        raise error.replace(alternatives=split.alternatives(error.control))
    return numbered(split.counts())


def numbered(counts: Iterable[int]) -> list[list[int]]:
    """Numbers the layers of stages with these counts.

    >>> numbered([1, 0, 2])
    [[0], [], [1, 2]]
    """
    return [list(range(*ends)) for ends in pairwise(accumulate(counts, initial=0))]


def needs_stages(vpp: int, pp: int) -> LayoutError:
    """The refusal of several chunks (vpp > 1) with a single stage."""
    return refusal("interleaving-needs-stages", "vpp", {"vpp": 1}, vpp=vpp, pp=pp)


def _in_range(requested: Mapping[str, object], account: bool) -> _Split:
    """The request with every size a whole number in range.

    Errors: LayoutError for the first size that is not; its fix is the nearest that fits the others.
    """
    limits = {name: (1, MAX_RANKS if name == "pp" else MAX_LAYERS) for name in requested}
    sizes, refusals = in_ranges(requested, limits)
    if not refusals:
        return _Split(account, **sizes)
    fixes: list[dict[str, int]] = []
    name = refusals[0].control or ""
    if len(refusals) == 1 and name in sizes:
        near = _Split(account, **sizes)
        values = near.fixes(name, sizes[name]) if any(near.refusals()) else [sizes[name]]
        fixes = [{name: value} for value in values]
    raise refusals[0].replace(alternatives=fixes)


@dataclass(frozen=True)
class _Split:
    """The arguments of stage_layers(), each in its range."""

    account: bool
    layers: int
    pp: int
    vpp: int
    first: int | None = None
    last: int | None = None

    @property
    def ends(self) -> dict[str, int]:
        """The ranks whose number of layers is set, first or last, with that number."""
        ends = {"first": self.first, "last": self.last}
        return {name: count for name, count in ends.items() if count is not None}

    @property
    def left(self) -> int:
        """The layers that the other ranks share evenly, embedding and loss counted where
        ``account`` is set."""
        return self.layers + 2 * self.account - sum(self.ends.values())

    @property
    def sharing(self) -> int:
        """The number of ranks that share them."""
        return self.pp - len(self.ends)

    def counts(self) -> list[int]:
        """The number of layers of each stage, for sizes that are not refused."""
        ranks = [self.left // self.sharing if self.sharing else 0] * self.pp
        for place, count in ((0, self.first), (-1, self.last)):
            ranks[place] = ranks[place] if count is None else count
        stages = [count // self.vpp for count in ranks] * self.vpp
        for place in (0, -1):
            stages[place] -= self.account
        return stages

    def alternatives(self, control: str | None) -> list[dict[str, int]]:
        """The nearest changes of a single size that are valid, those of ``control`` first."""
        if self.ends and self.account:
            return []  # no size is the cause
        sizes = {"layers": self.layers, "pp": self.pp, "vpp": self.vpp, **self.ends}
        changes: list[dict[str, int]] = []
        for name in sorted(sizes, key=lambda name: name != control):
            values = self.fixes(name, sizes[name])
            if name != control:
                values = sorted(values, key=lambda value: abs(math.log(value / sizes[name])))[:1]
            changes += [{name: value} for value in values]
        return changes[:MOST]

    def fixes(self, name: str, value: int) -> list[int]:
        """The nearest valid values of one size, below and above."""
        taken = sum(self.ends.values())
        most = {
            "layers": max(self.layers, taken) + self.pp * self.vpp,  # a multiple is on the way
            "pp": self.layers + 2,  # every stage has a layer, or the embedding or the loss
        }.get(name, self.layers)
        return nearest(
            value,
            lambda value: not any(with_changes(self, {name: value}).refusals()),
            maximum=min(most, MAX_RANKS if name == "pp" else MAX_LAYERS),
        )

    def refusals(self) -> Iterator[Callable[[], LayoutError]]:
        """Functions that make each refusal, in Megatron's order of checks; trying sizes only asks
        whether there is one."""
        if self.vpp > 1 and self.pp == 1:
            yield partial(needs_stages, self.vpp, self.pp)
        if self.ends:
            yield from self._refused_ends(next(iter(self.ends)))
        if self.sharing:
            yield from self._refused_shares()

    def _refused_ends(self, control: str) -> Iterator[Callable[[], LayoutError]]:
        """Refusals of first and last, and of the layers that they leave between them."""
        if self.account:
            yield partial(refusal, "ends-with-accounted", control)
        if self.sharing < 0:
            yield partial(refusal, "one-stage-has-no-ends", "pp", pp=self.pp)
        by = {"vpp": self.vpp}
        for name, count in self.ends.items():
            if count % self.vpp:
                quote = (
                    f"number of layers at {name} stage: {count}must be divisible by virtual "
                    f"pipelineparallel degree {self.vpp}"
                )
                yield partial(not_a_multiple, name, count, by, maximum=MAX_LAYERS, quote=quote)
        is_mismatch = bool(self.left) != bool(self.sharing)
        if self.left < 0 or is_mismatch:
            quote = (
                f"Mismatch: {self.left} middle layers remaining but {self.sharing} "
                "middle PP stages available."
            )
            facts = {"taken": self.layers - self.left, "layers": self.layers}
            facts |= {"left": max(self.left, 0), "stages": self.sharing}
            yield partial(refusal, "ends-leave-wrong", control, quote=quote * is_mismatch, **facts)
        if self.vpp > 1 and not self.sharing:
            yield partial(refusal, "chunks-need-middle-stages", "vpp", vpp=self.vpp, pp=self.pp)

    def _refused_shares(self) -> Iterator[Callable[[], LayoutError]]:
        """Refusals of layers that the stages, or the chunks of a stage, cannot share evenly."""
        share, remaining = divmod(self.left, self.sharing)
        if remaining:
            count = self.left - 2 * self.account
            parts = [f"{count} layer{'s' * (count != 1)}"]
            parts += ["the embedding", "the loss"] * self.account
            shared = f"{' and '.join(parts)} over {self.sharing} stages"
            texts = {"sentence": f"{shared} is not a whole number each", "quote": self._quote()}
            facts = {"count": self.left, "stages": self.sharing}
            yield partial(refusal, "layers-do-not-divide", "layers", **texts, **facts)
        if share % self.vpp:
            quote = f"num_layers_per_pipeline_rank {share}"
            if self.ends:
                quote = (
                    f"number of layers on each middle pipeline rank:{share} must be divisible by"
                )
            elif self.account:
                quote = f"number of layers on each pipeline rank: {share}(after enable account_for_"
            facts = {"count": share, "vpp": self.vpp}
            yield partial(refusal, "chunks-do-not-divide", "vpp", quote=quote, **facts)

    def _quote(self) -> str:
        """Megatron's message for layers that the stages cannot share evenly."""
        if self.ends:
            return (
                f"number of layers at middle stage: {self.left} must be divisible bythe middle "
                f"pipeline model parallel size {self.sharing}"
            )
        if not self.account:
            return "num_layers should be divisible by pipeline_model_parallel_size"
        if self.vpp > 1:
            return f"num_layers: {self.left} after enableaccount_for_embedding_in_pipeline_split"
        return (
            f"number of middle layers: {self.left} must be divisible by middle "
            f"pipeline_model_parallel_size {self.pp}"
        )
