"""The layers that Megatron's mappings make, forward and backward, on the shards of one group.

    column parallel   Y_i = f(X) A_i       A cut by columns; every rank holds a slice of Y
    row parallel      Y = g(sum X_i A_i)   A cut by rows; every rank gets all of Y
    embedding         E = g(sum E_i)       the table cut by words; a rank gives 0 for words not its
    cross entropy     three all-reduces: the largest logit, the target's, the sum of exponentials

f is copy_to_tensor_model_parallel_region and g reduce_from_.. (`operations`); a column
parallel layer, anything element by element, and a row parallel layer so cost one all-reduce
forward and one backward. With sequence parallelism X and Y are shards of the sequence: an
all-gather before the first layer and a reduce-scatter after the second, and backward the same and
one all-gather more, for X is not kept whole but gathered again.

Results equal the unsplit computation. NVIDIA/Megatron-LM d98e8a6, layers.py and cross_entropy.py of
megatron/core/tensor_parallel; Shoeybi et al., arXiv:1909.08053.

Shards are lists, one array for each member of the group, of which tensors every member has alike
are one array. A function that ends in _back takes the gradient of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from groups.errors import LayoutError, quoted
from training.collectives.functions import pieces_of
from training.collectives.operations import apply, arrays_of

Shards = list[np.ndarray]


def shards_of(whole: np.ndarray, members: int, dim: int) -> Shards:
    """A tensor cut into equal shards along a dim, one for each member.

    >>> [shard.tolist() for shard in shards_of(np.array([[1, 2], [3, 4]]), 2, dim=1)]
    [[[1], [3]], [[2], [4]]]

    Errors: LayoutError if it does not split.
    """
    return list(pieces_of(np.asarray(whole), members, dim))


def column_parallel(x: np.ndarray, weights: Shards) -> Shards:
    """Y_i = X A_i: each member's columns of Y, with no communication.

    ``x``: shape (..., in), alike on every member; ``weights``: shards of shape (in, out / t).

    >>> x, a = np.array([[1, 2]]), np.array([[1, 2], [3, 4]])
    >>> [y.tolist() for y in column_parallel(x, shards_of(a, 2, dim=1))]
    [[[7]], [[10]]]
    """
    copies = _mapped("copy_to_tensor_model_parallel_region", [x] * len(weights))
    return [copy @ weight for copy, weight in zip(copies, weights)]


def column_parallel_back(
    x: np.ndarray, weights: Shards, gradients: Shards
) -> tuple[np.ndarray, Shards]:
    """Gradients of X, by one all-reduce, and of each member's weights.

    >>> dx, _ = column_parallel_back(np.array([[1.0]]), [np.array([[2.0]]), np.array([[3.0]])],
    ...                              [np.array([[1.0]]), np.array([[10.0]])])
    >>> dx.tolist()
    [[32.0]]
    """
    partial = [gradient @ weight.T for gradient, weight in zip(gradients, weights)]
    whole = _mapped("copy_to_tensor_model_parallel_region", partial, "backward")[0]
    return whole, [_flat(x).T @ _flat(gradient) for gradient in gradients]


def row_parallel(xs: Shards, weights: Shards) -> np.ndarray:
    """Y = sum of X_i A_i, by one all-reduce; every member gets it.

    ``xs``: shards of shape (..., in / t), ``weights``: shards of shape (in / t, out).

    >>> row_parallel([np.array([[1]]), np.array([[2]])], [np.array([[3]]), np.array([[4]])])
    array([[11]])
    """
    partial = [x @ weight for x, weight in zip(xs, weights)]
    return _mapped("reduce_from_tensor_model_parallel_region", partial)[0]


def row_parallel_back(xs: Shards, weights: Shards, gradient: np.ndarray) -> tuple[Shards, Shards]:
    """Gradients of each member's X_i and weights, with no communication.

    >>> row_parallel_back([np.array([[1]])], [np.array([[3]])], np.array([[10]]))
    ([array([[30]])], [array([[10]])])
    """
    copies = _mapped("reduce_from_tensor_model_parallel_region", [gradient] * len(xs), "backward")
    return (
        [copy @ weight.T for copy, weight in zip(copies, weights)],
        [_flat(x).T @ _flat(copy) for x, copy in zip(xs, copies)],
    )


def sequence_column_parallel(xs: Shards, weights: Shards) -> Shards:
    """Y_i = X A_i of an X that is cut by sequence, its first dim: one all-gather.

    >>> xs = [np.array([[1]]), np.array([[2]])]
    >>> [y.tolist() for y in sequence_column_parallel(xs, [np.array([[3]]), np.array([[4]])])]
    [[[3], [6]], [[4], [8]]]
    """
    gathered = _mapped("gather_from_sequence_parallel_region", xs)
    return [x @ weight for x, weight in zip(gathered, weights)]


def sequence_column_parallel_back(
    xs: Shards, weights: Shards, gradients: Shards
) -> tuple[Shards, Shards]:
    """Gradients of each member's X_i, by a reduce-scatter, and of its weights.

    X is gathered again, which the count of arXiv:2205.05198 leaves out.

    >>> one = [np.array([[1.0]])]
    >>> sequence_column_parallel_back(one, [np.array([[3.0]])], [np.array([[2.0]])])
    ([array([[6.]])], [array([[2.]])])
    """
    gathered = _mapped("gather_from_sequence_parallel_region", xs)
    partial = [gradient @ weight.T for gradient, weight in zip(gradients, weights)]
    return (
        _mapped("gather_from_sequence_parallel_region", partial, "backward"),
        [_flat(x).T @ _flat(gradient) for x, gradient in zip(gathered, gradients)],
    )


def sequence_row_parallel(xs: Shards, weights: Shards) -> Shards:
    """Each member's part by sequence of Y = sum of X_i A_i: one reduce-scatter.

    >>> xs = [np.array([[1], [2]]), np.array([[3], [4]])]
    >>> [y.tolist() for y in sequence_row_parallel(xs, [np.array([[1]]), np.array([[10]])])]
    [[[31]], [[42]]]
    """
    partial = [x @ weight for x, weight in zip(xs, weights)]
    return _mapped("reduce_scatter_to_sequence_parallel_region", partial)


def sequence_row_parallel_back(
    xs: Shards, weights: Shards, gradients: Shards
) -> tuple[Shards, Shards]:
    """Gradients of each member's X_i and weights: one all-gather.

    >>> one = [np.array([[1.0]])]
    >>> sequence_row_parallel_back(one, [np.array([[3.0]])], [np.array([[2.0]])])
    ([array([[6.]])], [array([[2.]])])
    """
    gathered = _mapped("reduce_scatter_to_sequence_parallel_region", gradients, "backward")
    return (
        [gradient @ weight.T for gradient, weight in zip(gathered, weights)],
        [_flat(x).T @ _flat(gradient) for x, gradient in zip(xs, gathered)],
    )


def vocabulary_parallel_embedding(tokens: np.ndarray, tables: Shards) -> np.ndarray:
    """The rows of the whole table for the tokens, by one all-reduce; every member gets them.

    ``tables``: shards of shape (V / t, h), member i's words being i V/t and on. A member answers 0
    for a word that is not its own.

    >>> tables = [np.array([[1], [2]]), np.array([[3], [4]])]
    >>> vocabulary_parallel_embedding(np.array([2, 0]), tables).tolist()
    [[3], [1]]

    Errors: LayoutError for a token outside the vocabulary.
    """
    rows = []
    for first, table in zip(_firsts(tables, 0), tables):
        own, is_own = _own(tokens, first, len(table))
        rows.append(np.where(is_own[..., None], table[own], 0))
    _require_tokens(tokens, sum(len(table) for table in tables))
    return _mapped("reduce_from_tensor_model_parallel_region", rows)[0]


def vocabulary_parallel_embedding_back(
    tokens: np.ndarray, tables: Shards, gradient: np.ndarray
) -> Shards:
    """The gradient of each member's rows of the table, with no communication.

    >>> vocabulary_parallel_embedding_back(
    ...     np.array([1, 1]), [np.zeros((2, 1))], np.array([[1.0], [2.0]]))[0].tolist()
    [[0.0], [3.0]]
    """
    found = []
    for first, table in zip(_firsts(tables, 0), tables):
        own, is_own = _own(tokens, first, len(table))
        rows = np.zeros_like(table, dtype=float)
        np.add.at(rows, own[is_own], gradient[is_own])
        found.append(rows)
    return found


@dataclass(frozen=True)
class CrossEntropy:
    """The loss of every token, and what the backward pass needs.

    Attributes:
        loss: shape of the targets.
        softmax: shards of shape (..., V / t).
        targets: as given.
    """

    loss: np.ndarray
    softmax: Shards
    targets: np.ndarray


def vocabulary_parallel_cross_entropy(logits: Shards, targets: np.ndarray) -> CrossEntropy:
    """log(sum of exp(logit)) - logit of the target, without gathering the logits.

    ``logits``: shards of shape (..., V / t). Three all-reduces of one number for each token: the
    largest logit, which is taken off all so that none overflows, the target's logit, and the sum.

    >>> logits = [np.array([[0.0, 0.0]]), np.array([[0.0, 0.0]])]
    >>> found = vocabulary_parallel_cross_entropy(logits, np.array([3]))
    >>> found.loss.round(4).tolist()  # log 4
    [1.3863]

    Errors: LayoutError for a target outside the vocabulary.
    """
    _require_tokens(targets, sum(shard.shape[-1] for shard in logits))
    largest = _reduced([shard.max(axis=-1) for shard in logits], reduction="max")
    shifted = [shard - largest[..., None] for shard in logits]
    of_target = _reduced(
        [
            np.where(is_own, np.take_along_axis(shard, own[..., None], -1)[..., 0], 0.0)
            for shard, (own, is_own) in zip(shifted, _targets(targets, logits))
        ]
    )
    exponentials = [np.exp(shard) for shard in shifted]
    total = _reduced([one.sum(axis=-1) for one in exponentials])
    softmax = [one / total[..., None] for one in exponentials]
    return CrossEntropy(np.log(total) - of_target, softmax, targets)


def vocabulary_parallel_cross_entropy_back(found: CrossEntropy, gradient: np.ndarray) -> Shards:
    """The gradient of each member's logits: softmax, less 1 at the target; no communication.

    >>> logits = [np.array([[0.0, 0.0]]), np.array([[0.0, 0.0]])]
    >>> found = vocabulary_parallel_cross_entropy(logits, np.array([3]))
    >>> [shard.tolist() for shard in vocabulary_parallel_cross_entropy_back(found, np.ones(1))]
    [[[0.25, 0.25]], [[0.25, -0.75]]]
    """
    back = []
    for shard, (own, is_own) in zip(found.softmax, _targets(found.targets, found.softmax)):
        hit = np.arange(shard.shape[-1]) == np.where(is_own, own, -1)[..., None]
        back.append((shard - hit) * gradient[..., None])
    return back


def _mapped(op: str, shards: Sequence[np.ndarray], direction: str = "forward") -> Shards:
    return apply(op, list(shards), [list(range(len(shards)))], direction=direction)


def _reduced(shards: Shards, reduction: str = "sum") -> np.ndarray:
    return apply("all_reduce", shards, [list(range(len(shards)))], reduction=reduction)[0]


def _flat(tensor: np.ndarray) -> np.ndarray:
    return tensor.reshape(-1, tensor.shape[-1])


def _firsts(shards: Shards, dim: int) -> list[int]:
    """The first word of each member."""
    sizes = [shard.shape[dim] for shard in shards]
    return [sum(sizes[:place]) for place in range(len(sizes))]


def _own(tokens: np.ndarray, first: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens counted from a member's first word, 0 where they are not its own, and whether so."""
    is_own = (tokens >= first) & (tokens < first + size)
    return np.where(is_own, tokens - first, 0), is_own


def _targets(targets: np.ndarray, shards: Shards) -> list[tuple[np.ndarray, np.ndarray]]:
    firsts = _firsts(shards, -1)
    return [_own(targets, first, shard.shape[-1]) for first, shard in zip(firsts, shards)]


def _require_tokens(tokens: np.ndarray, words: int) -> None:
    given = arrays_of([tokens])[0]
    outside = given[(given < 0) | (given >= words)]
    if outside.size:
        raise LayoutError(
            "not-in-vocabulary",
            f"{quoted(outside.flat[0].item())} is no word: words go from 0 to {words - 1}",
            control="tokens",
            facts={"value": quoted(outside.flat[0].item()), "last": words - 1},
        )
