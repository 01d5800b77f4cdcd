"""Searches the order of equal nodes with the fewest groups in several racks.

An order, a rack for each place, is built, then mended, then proved if it can:

1. Built: rack after rack; and kind by kind, places that a group needs together are joined to
   blocks, as long as a rack can hold one; blocks within blocks are then packed into racks, the
   largest first, and a block that no rack holds whole is broken into the blocks inside it.
   Racks of c nodes hold floor(c / size) blocks of each size, so for blocks within blocks nothing
   is lost. All orders of kinds are tried: the first kind to be joined need not be the first of
   the key.
2. Mended: blocks of one size change places while that makes the key smaller.
3. Proved: by `is_least`, or by looking at every pattern of racks, racks of one size being
   interchangeable, and leaving one as soon as it is no better.

Nothing is drawn at random and nothing looks at a clock: the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice, permutations

import numpy as np

from .crossings import KindCrossings, Levels, ascending, is_least, key_of

MOST_PLACES, MOST_BRANCHES = 64, 60_000
"""The most places for an exhaustive search, and the most racks it tries: about half a second."""

FEW = 512
"""The most patterns that are continued from a place."""

MOST_WORK = 8_000_000
"""The most members of sets that the improvement may visit."""

MOST_TRIES = 6_000
"""The most exchanges that the improvement tries."""

MOST_ROWS = 20_000
"""The most sets that the construction merges, over all orders of kinds."""


Score = Callable[[np.ndarray], tuple[float, ...]]


def search(
    levels: Levels, racks_before: np.ndarray, score: Score, *, by_key: bool = True
) -> tuple[np.ndarray, bool]:
    """The best racks of the places found, and whether no order is proved to be better.

    The given ones stay where none are better.

    racks_before: the rack of each place, int64, racks numbered from 0. score: what shall be small.
    by_key: whether that is the key of the levels, so that it can be proved to be least.
    """
    capacities = np.bincount(racks_before).tolist()
    best, least_score = racks_before, score(racks_before)

    def is_proved() -> bool:
        key = key_of(levels, best)
        return not any(key) or (by_key and is_least(levels, key, capacities))

    kinds = [kind for level in levels for kind in level if len(kind.sets)]
    if is_proved():
        return best, True
    trees = _trees(kinds, len(racks_before), max(capacities))
    for racks in (
        *_by_rack(racks_before, capacities),
        *(_packed(tree, capacities) for tree in trees),
    ):
        if (new_score := score(racks)) < least_score:
            best, least_score = racks, new_score
            if is_proved():
                return best, True
    best = _mended(best, least_score, score, trees, kinds)
    if is_proved() or not by_key:
        return best, is_proved()
    pattern, is_whole = _every_pattern(levels, capacities, key_of(levels, best))
    return best if pattern is None else pattern, is_whole


def with_fewer(racks: np.ndarray, score: Score) -> np.ndarray:
    """The racks, or whole racks in a row where that has a smaller score."""
    capacities = np.bincount(racks).tolist()
    return min([racks, *_by_rack(racks, capacities)], key=score)


# -- built -----------------------------------------------------------------------------------------

Tree = list[np.ndarray]
"""Nested blocks of places, finest first: each array has the block of every place."""


def _by_rack(racks_before: np.ndarray, capacities: Sequence[int]) -> Iterator[np.ndarray]:
    """The racks one after the other, whole: in their own order, by falling and by rising size."""
    first = list(dict.fromkeys(racks_before.tolist()))
    for sign in (0, -1, 1):
        order = sorted(first, key=lambda rack: sign * capacities[rack])
        yield np.repeat(order, [capacities[rack] for rack in order])


def _trees(kinds: Sequence[KindCrossings], places: int, largest: int) -> list[Tree]:
    """A tree for each order of the kinds that fit into a rack, without duplicates."""
    useful = [kind for kind in kinds if int(kind.sizes.min()) <= largest]
    orders = max(2, MOST_ROWS // (1 + sum(len(kind.sets) for kind in useful)))
    trees: dict[tuple[bytes, ...], Tree] = {}
    for order in islice(permutations(useful), orders):
        tree = _tree(order, places, largest)
        trees.setdefault(tuple(block.tobytes() for block in tree), tree)
    return list(trees.values())


def _tree(order: Sequence[KindCrossings], places: int, largest: int) -> Tree:
    """Nested blocks: for each kind in turn, its sets merged with the blocks that they touch."""
    tree = [np.arange(places)]
    for kind in order:
        block = tree[-1]
        size = np.bincount(block)
        rows, is_first = ascending(block[kind.sets])
        fits = ((size[rows] * is_first).sum(axis=1) <= largest) & (is_first.sum(axis=1) > 1)
        rows, is_first = rows[fits], is_first[fits]
        if len(np.unique(rows[is_first])) < is_first.sum():  # a block in two sets: the first's
            taken = np.zeros(len(size), dtype=bool)
            whole = []
            for at, row in enumerate(rows):
                if not taken[row].any():
                    taken[row] = True
                    whole.append(at)
            rows = rows[whole]
        if len(rows):
            merged = np.arange(len(size))
            merged[rows] = rows[:, :1]
            tree.append(np.unique(merged[block], return_inverse=True)[1].reshape(-1))
    return tree


def _packed(tree: Tree, capacities: Sequence[int]) -> np.ndarray:
    """The racks of the places: whole blocks first, from the coarsest; the rest in pieces."""
    racks = np.full(len(tree[0]), -1)
    left = list(capacities)
    rooms = [(-room, rack) for rack, room in enumerate(left)]
    heapify(rooms)
    for block in reversed(tree):
        last = -1
        for members in _members(block, racks):
            if last < 0 or left[last] < len(members):
                while -rooms[0][0] != left[rooms[0][1]]:
                    heappop(rooms)  # the rack has less room by now
                last = rooms[0][1]
            if left[last] >= len(members):
                racks[members] = last
                left[last] -= len(members)
                heappush(rooms, (-left[last], last))
    return racks


def _members(block: np.ndarray, racks: np.ndarray) -> list[np.ndarray]:
    """The places of each block without a rack, larger blocks first, then in order."""
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.diff(block[order], prepend=-1))
    unplaced = [block for block in np.split(order, starts[1:]) if racks[block[0]] < 0]
    return sorted(unplaced, key=lambda block: (-len(block), block[0]))


# -- mended ----------------------------------------------------------------------------------------


def _mended(
    racks: np.ndarray, score: tuple[float, ...], ask: Score, trees: Sequence[Tree],
    kinds: Sequence[KindCrossings],
) -> np.ndarray:  # fmt: skip
    """Improves an order by exchanging blocks of equal size, coarse ones first, while the score
    falls."""
    work = sum(kind.sets.size for kind in kinds) or 1
    tries = min(MOST_TRIES, MOST_WORK // work)
    blocks = {block.tobytes(): block for tree in trees for block in reversed(tree)}
    while True:
        before = score
        for block in blocks.values():
            for first, other in _exchanges(block, racks, kinds):
                tries -= 1
                if tries <= 0:
                    return racks
                changed = racks.copy()
                changed[first], changed[other] = racks[other], racks[first]
                if (new_score := ask(changed)) < score:
                    racks, score = changed, new_score
        if score == before:
            return racks


def _exchanges(
    block: np.ndarray, racks: np.ndarray, kinds: Sequence[KindCrossings]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of blocks of equal size in different racks, both in sets that cross."""
    broken = np.zeros(len(racks), dtype=bool)
    for kind in kinds:
        broken[kind.sets[kind.crosses(racks)]] = True
    members = _members(block, np.full(len(racks), -1))
    hurt = [group for group in members if broken[group].any()]
    for at, group in enumerate(hurt):
        for other in hurt[at + 1 :]:
            if len(group) == len(other) and (racks[group] != racks[other]).any():
                yield group, other


# -- proved ----------------------------------------------------------------------------------------


def _every_pattern(
    levels: Levels, capacities: Sequence[int], best: tuple[int, ...]
) -> tuple[np.ndarray | None, bool]:
    """A pattern with a smaller key than ``best`` or None, and whether the search was exhaustive.

    Place by place, all patterns at once: a set crosses for good as soon as two of its places
    differ, so one whose key so far is no smaller than the best leads to nothing better. A rack is
    touched after those of its size before it. Of too many the FEW best go on.
    """
    places, branches = sum(capacities), 0
    if places > MOST_PLACES:
        return None, False
    sizes = np.array(capacities, dtype=np.int8)
    racks = np.zeros((1, places), dtype=np.int8)
    keys = np.zeros((1, len(levels)), dtype=np.int64)
    used = np.eye(1, len(sizes) + 1, len(sizes), dtype=np.int8)  # of each rack, and 1
    before = [
        max((other for other in range(rack) if sizes[other] == sizes[rack]), default=len(sizes))
        for rack in range(len(sizes))
    ]
    for place in range(places):
        may_take = (used[:, :-1] < sizes) & (used[:, before] > 0)
        branches += int(np.count_nonzero(may_take))
        if branches > MOST_BRANCHES:
            may_take[np.lexsort(keys.T[::-1])[FEW:]] = False
        rows, chosen = np.nonzero(may_take)
        racks, used, keys = racks[rows], used[rows], keys[rows]
        racks[:, place] = chosen
        used[np.arange(len(rows)), chosen] += 1
        for depth, level in enumerate(levels):
            for kind in level:
                keys[:, depth] += kind.crossing_from(place, racks)
        apart = keys - best
        first = (apart != 0).argmax(axis=1)[:, None]  # level that tells
        better = np.take_along_axis(apart, first, axis=1)[:, 0] < 0
        racks, used, keys = racks[better], used[better], keys[better]
    least = np.lexsort(keys.T[::-1])[:1].tolist()
    return (racks[least[0]].astype(np.int64) if least else None), branches <= MOST_BRANCHES
