"""The algorithms of the collectives, each as its messages, step by step.

Rings, pairwise exchange: NCCL and MPI practice, with the chunks numbered as in "bandwidth optimal
all-reduce" (Patarasuk and Yuan, JPDC 2009). Trees: NVIDIA/nccl, src/graph/trees.cc: in a double
binary tree a rank that has children in one tree is a leaf of the other (place 0 of an odd number
has one in each), so that with half of the buffer in each no rank sends more than all of it down.
Ring attention: arXiv:2310.01889, with the zig-zag chunks that balance causal attention
(NVIDIA/Megatron-LM, get_batch_on_this_cp_rank).

>>> for name in ALGORITHMS:
...     steps = algorithm_of(name, 3).steps
...     sent = ([f"{m.sender}{m.receiver}.{m.chunk}" for m in step] for step in steps[:4])
...     print(f"{name:22}", len(steps), *map(" ".join, sent), sep=" | ")  # sender receiver . chunk
ring_all_reduce        | 4 | 01.0 12.1 20.2 | 01.2 12.0 20.1 | 01.1 12.2 20.0 | 01.0 12.1 20.2
double_tree_all_reduce | 4 | 12.0 20.1 | 20.0 01.1 | 02.0 10.1 | 21.0 02.1
tree_all_reduce        | 4 | 12.0 | 20.0 | 02.0 | 21.0
ring_reduce_scatter    | 2 | 01.2 12.0 20.1 | 01.1 12.2 20.0
ring_all_gather        | 2 | 01.0 12.1 20.2 | 01.2 12.0 20.1
tree_broadcast         | 2 | 02.0 | 21.0
ring_broadcast         | 5 | 01.0 | 12.0 01.1 | 12.1 01.2 | 12.2 01.3
tree_reduce            | 2 | 12.0 | 20.0
direct_gather          | 2 | 10.1 | 20.2
direct_scatter         | 2 | 01.1 | 02.2
pairwise_all_to_all    | 2 | 01.1 12.2 20.0 | 02.2 10.0 21.1
pipeline_forward       | 5 | 01.0 | 12.0 01.1 | 12.1 01.2 | 12.2 01.3
pipeline_backward      | 5 | 21.0 | 10.0 21.1 | 10.1 21.2 | 10.2 21.3
ring_attention         | 2 | 01.0 12.1 20.2 | 01.2 12.0 20.1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, zip_longest

from groups.mesh import whole_number

from .functions import place_of
from .transfers import Algorithm, Steps, Transfer

MOST_MEMBERS = 64
"""The largest group whose steps are listed: a ring all-reduce of n has 2n(n-1) messages."""

CHUNKS = 4
"""The number of chunks, or micro-batches, in a pipelined algorithm."""


# -- rings ---------------------------------------------------------------------------------------


def ring_reduce_scatter(n: int, owned: int = 0) -> Steps:
    """Step q: rank r sends chunk r + owned - 1 - q to rank r + 1, which adds it; in the end rank r
    has chunk r + owned.

    Chunks and ranks count modulo n. ``owned`` is 0 in NCCL and MPI, 1 as half of an all-reduce.
    """
    return _ring(n, lambda r, q: r + owned - 1 - q, adds=True)


def ring_all_gather(n: int, owned: int = 0) -> Steps:
    """Step q: rank r, which starts with chunk r + owned, sends chunk r + owned - q to r + 1."""
    return _ring(n, lambda r, q: r + owned - q)


def ring_all_reduce(n: int) -> Steps:
    """A ring reduce-scatter, then a ring all-gather of its results: 2(n-1) steps."""
    return ring_reduce_scatter(n, owned=1) + ring_all_gather(n, owned=1)


def ring_broadcast(n: int, root: int = 0, chunks: int = CHUNKS) -> Steps:
    """Chunks go round the ring from the root: chunks + n - 2 steps; in the middle all links are
    busy."""
    return _chain(_ring_from(root, n), chunks)


def _ring(n: int, chunk: Callable[[int, int], int], **how: bool) -> Steps:
    """n-1 steps in which every rank r sends one chunk to r + 1."""
    return tuple(
        tuple(Transfer(r, (r + 1) % n, chunk(r, q) % n, chunk(r, q) % n, **how) for r in range(n))
        for q in range(n - 1)
    )


# -- trees ---------------------------------------------------------------------------------------


def tree_parents(n: int) -> list[int | None]:
    """The parent of each place in NCCL's binary tree, where leaves and inner nodes alternate.

    With b the lowest set bit of place p, the parent is p with b cleared and bit 2b set, or only
    with b cleared if that is outside the group; place 0 is the root, and has one child.

    >>> tree_parents(8)
    [None, 2, 4, 2, 0, 6, 4, 6]
    """
    parents: list[int | None] = [None]
    for place in range(1, n):
        bit = place & -place
        above = (place ^ bit) | (bit << 1)
        parents.append(above if above < n else place ^ bit)
    return parents


def second_tree_parents(n: int) -> list[int | None]:
    """The second tree of a double tree: the first mirrored or, for odd n, shifted by one.

    >>> second_tree_parents(8)
    [1, 3, 1, 7, 5, 3, 5, None]
    """
    if n % 2:
        return _rooted(n, 1)
    return [None if up is None else n - 1 - up for up in tree_parents(n)[::-1]]


def tree_broadcast(n: int, root: int = 0) -> Steps:
    """Down a binary tree, one level per step: the whole buffer goes to both children at once."""
    return _down(_rooted(n, root))


def tree_reduce(n: int, root: int = 0) -> Steps:
    """Up a binary tree, the deepest level first: every parent adds its children's buffers."""
    return _up(_rooted(n, root))


def tree_all_reduce(n: int) -> Steps:
    """A tree reduce, then a tree broadcast."""
    return _up(tree_parents(n)) + _down(tree_parents(n))


def double_tree_all_reduce(n: int) -> Steps:
    """Each half of the buffer goes up and down one of two trees, at the same time."""
    halves = [
        _up(parents, chunk) + _down(parents, chunk)
        for chunk, parents in enumerate((tree_parents(n), second_tree_parents(n)))
    ]
    return tuple(a + b for a, b in zip_longest(*halves, fillvalue=()))


def _rooted(n: int, root: int) -> list[int | None]:
    """The tree with its places rotated so that ``root`` is its root."""
    parents = tree_parents(n)
    moved = [parents[(place - root) % n] for place in range(n)]
    return [None if up is None else (up + root) % n for up in moved]


def _depth(parents: Sequence[int | None], place: int) -> int:
    """The number of steps from the root to a place."""
    above = parents[place]
    return 0 if above is None else 1 + _depth(parents, above)


def _down(parents: Sequence[int | None], chunk: int = 0) -> Steps:
    return _by_step(
        (_depth(parents, above), Transfer(above, place, chunk, chunk))
        for place, above in enumerate(parents)
        if above is not None
    )


def _up(parents: Sequence[int | None], chunk: int = 0) -> Steps:
    deepest = max(_depth(parents, place) for place in range(len(parents)))
    return _by_step(
        (deepest - _depth(parents, place), Transfer(place, above, chunk, chunk, adds=True))
        for place, above in enumerate(parents)
        if above is not None
    )


# -- direct messages -----------------------------------------------------------------------------


def pairwise_all_to_all(n: int) -> Steps:
    """Step q: rank r sends rank r + q + 1 its chunk; in a step every rank receives one message.

    Slots 0 to n-1 hold the chunks for each rank, slots n to 2n-1 the chunks from each rank.
    """
    return tuple(
        tuple(Transfer(r, (r + q) % n, (r + q) % n, n + r) for r in range(n)) for q in range(1, n)
    )


def direct_scatter(n: int, root: int = 0) -> Steps:
    """The root sends every other member its chunk, one after the other."""
    return tuple((Transfer(root, to, to, to),) for to in _ring_from(root, n)[1:])


def direct_gather(n: int, root: int = 0) -> Steps:
    """Every other member sends its tensor to the root, one after the other."""
    return tuple((Transfer(place, root, place, place),) for place in _ring_from(root, n)[1:])


# -- attention and pipelines ----------------------------------------------------------------------


def ring_attention(n: int) -> Steps:
    """K and V go round a ring: at step q rank r computes with the block of rank r - q, then sends
    it on.

    No rank keeps another rank's block; after n-1 sends every rank has seen all blocks.
    """
    return _ring(n, lambda r, q: r - q, gives=True)


def pipeline_forward(n: int, chunks: int = CHUNKS) -> Steps:
    """Stage s sends micro-batch k to stage s + 1 at step k + s; every stage keeps its inputs."""
    return _chain(range(n), chunks)


def pipeline_backward(n: int, chunks: int = CHUNKS) -> Steps:
    """The gradients of the micro-batches, from the last stage to the first."""
    return _chain(range(n)[::-1], chunks)


# -- steps of single messages ---------------------------------------------------------------------


def _ring_from(root: int, n: int) -> list[int]:
    """All places in ring order, starting with the root."""
    return [(root + i) % n for i in range(n)]


def _chain(places: Sequence[int], chunks: int) -> Steps:
    """Messages from place to place: chunk k makes its hop h at step k + h."""
    hops = list(enumerate(pairwise(places)))
    return _by_step((k + h, Transfer(at, to, k, k)) for k in range(chunks) for h, (at, to) in hops)


def _by_step(moves: Iterable[tuple[int, Transfer]]) -> Steps:
    """Messages with the number of their step, grouped by step."""
    steps: list[list[Transfer]] = []
    for number, move in moves:
        steps.extend([] for _ in range(number + 1 - len(steps)))
        steps[number].append(move)
    return tuple(tuple(step) for step in steps)


# -- by name --------------------------------------------------------------------------------------

ALGORITHMS: dict[str, tuple[str, int | None, Callable[..., Steps]]] = {
    "ring_all_reduce": ("all_reduce", None, ring_all_reduce),
    "double_tree_all_reduce": ("all_reduce", 2, double_tree_all_reduce),
    "tree_all_reduce": ("all_reduce", 1, tree_all_reduce),
    "ring_reduce_scatter": ("reduce_scatter", None, ring_reduce_scatter),
    "ring_all_gather": ("all_gather", None, ring_all_gather),
    "tree_broadcast": ("broadcast", 1, tree_broadcast),
    "ring_broadcast": ("broadcast", CHUNKS, ring_broadcast),
    "tree_reduce": ("reduce", 1, tree_reduce),
    "direct_gather": ("gather", None, direct_gather),
    "direct_scatter": ("scatter", None, direct_scatter),
    "pairwise_all_to_all": ("all_to_all", None, pairwise_all_to_all),
    "pipeline_forward": ("send_recv", CHUNKS, pipeline_forward),
    "pipeline_backward": ("send_recv", CHUNKS, pipeline_backward),
    "ring_attention": ("all_gather", None, ring_attention),
}
"""By name: the collective, the chunks of its buffer (None: one a member), and the steps of n
members, with the place of the root where the collective is one of ROOTED."""

ROOTED = ("broadcast", "reduce", "gather", "scatter")
"""Collectives with a root."""


def algorithm_of(name: str, n: int, root: int = 0) -> Algorithm:
    """An algorithm by name, for a group of n members.

    >>> algorithm_of("tree_reduce", 4, root=2).root
    2

    Errors: LayoutError for more members than steps are listed for, and a root outside the group.
    """
    n = whole_number(n, "n", maximum=MOST_MEMBERS)
    op, chunks, steps_of = ALGORITHMS[name]
    if op in ROOTED:
        at = place_of(root, n)
        return Algorithm(name, op, n, chunks or n, steps_of(n, at), at)
    last = n - 1 if name == "pipeline_backward" else 0  # the stage where micro-batches start
    return Algorithm(name, op, n, chunks or n, steps_of(n), last)
