"""The inputs of the Collectives view, checked: which group, which operation, which tensors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np

from groups import LayoutError
from groups.errors import quoted
from groups.grouping import Grouping
from groups.layout import Layout
from groups.mesh import whole_number
from groups.placement import nodes_spanned
from training.clusters import CLUSTERS, GB
from training.collectives.algorithms import ALGORITHMS, algorithm_of
from training.collectives.mappings import Operation
from training.collectives.operations import OPERATIONS, apply, operation_of

from ..base.problems import refusal
from ..base.state import State, fields_of, is_empty, parse_number, pinned_group, require_choice
from ..base.trained import cluster_of

MOST_MEMBERS = 16
"""Members of a group whose tensors are drawn; of a larger group the first ones stand for it."""

MOST_STEPPED = 8
"""Members of a group whose steps are drawn."""

MOST_NUMBERS = 64
"""Numbers of one tensor, before or after."""

COST_OF = {
    "tokens_all_to_all": "all_to_all",
    "sum_at_root": "reduce",
    "join_at_root": "gather",
    "send_recv_back": "send_recv",
}
"""The collective that a function comes to on the wire, where it has another name."""

VALUES = ("count", "rank", "ones")
DIRECTIONS = ("forward", "backward")

Tensors = list[np.ndarray]
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class CollectiveSpec:
    """One operation in one group.

    Attributes:
        op, direction, operation: what is done, and its row of the table.
        function: of training.collectives.operations, that runs in this direction.
        grouping, index: the kind of group, and which of its groups.
        size: ranks of the group.
        members: the first of them, those that are drawn.
        root: a place among them.
        shape: of the tensors that the forward takes.
        values: how they are filled.
        algorithm: name in training.collectives.algorithms; empty if nothing moves.
        buffer_bytes, bytes_per_second: what the cost is worked out for.
    """

    op: str
    direction: str
    operation: Operation
    function: str
    grouping: Grouping
    index: int
    size: int
    members: tuple[int, ...]
    root: int
    shape: tuple[int, ...]
    values: str
    algorithm: str
    buffer_bytes: float
    bytes_per_second: float

    @property
    def cost(self) -> str:
        """The operation as training.collectives.cost knows it."""
        return COST_OF.get(self.function, self.function)

    @property
    def options(self) -> dict[str, int]:
        return {"root": self.root} if "root" in self.operation.options else {}


def resolve_inputs(layout: Layout, state: State) -> tuple[CollectiveSpec, State, list[LayoutError]]:
    """What is watched, the inputs that count, and what was wrong with those that do not.

    An input that cannot be is left out, as if it were empty, and told; everything else stays.
    """
    problems: list[LayoutError] = []
    inputs = {name: getattr(state, name) for name in fields_of("collectives")}
    blank = {name: "" for name, value in inputs.items() if is_empty(value)}  # such as spaces
    state = replace(state, **blank)
    while True:
        try:
            return _resolved(layout, state), state, problems
        except LayoutError as error:
            field = error.control or ""
            if is_empty(getattr(state, field, "")):
                raise  # an empty input always counts: this cannot be mended by emptying it
            problems.append(_with_working_fixes(layout, state, error))
            state = replace(state, **{field: ""})


def _with_working_fixes(layout: Layout, state: State, error: LayoutError) -> LayoutError:
    """Up to three changes that were tried, and with which this input is no problem any more."""

    def works(change: Mapping[str, Any]) -> bool:
        try:
            _resolved(layout, replace(state, **change))
        except LayoutError as other:
            return other.control != error.control
        return True

    offered = [*error.alternatives, {error.control or "": ""}]
    return error.replace(alternatives=[change for change in offered if works(change)][:3])


def _resolved(layout: Layout, state: State) -> CollectiveSpec:
    op = _choice("collective", state.collective or "all_reduce", OPERATIONS)
    direction = _choice("collective_direction", state.collective_direction or "forward", DIRECTIONS)
    operation = operation_of(op)
    function = getattr(operation, direction)
    if not function:
        forward = {"collective_direction": "forward"}
        raise refusal("no-backward", "collective_direction", forward, operation=op)
    grouping = layout.every[_group_name(layout, state.collective_group)]
    name = grouping.name
    index, ranks = _group(grouping, state.collective_index, state.rank)
    members = tuple(ranks[:MOST_MEMBERS].tolist())
    has_root = "root" in operation.options
    values = _choice("collective_values", state.collective_values or "count", VALUES)
    watched = CollectiveSpec(
        op=op,
        direction=direction,
        operation=operation,
        function=function,
        grouping=grouping,
        index=index,
        size=len(ranks),
        members=members,
        # Without a root a rank that was asked for as one is no mistake: it waits for its turn.
        root=_root(state.collective_root, members, name, index) if has_root else 0,
        shape=default_shape(operation, len(members)),
        values=values,
        algorithm="",
        buffer_bytes=1e6 * positive("collective_mb", state.collective_mb, 100),
        bytes_per_second=speed(layout, ranks, state),
    )
    if not is_empty(state.collective_shape):
        watched = replace(watched, shape=shape_of(state.collective_shape))
        tensors_of(watched)  # refuses what does not split
    return replace(watched, algorithm=_algorithm(watched, state.collective_algorithm))


def algorithms_of(watched: CollectiveSpec) -> list[str]:
    return [name for name in ALGORITHMS if algorithm_of(name, 2).op == watched.cost]


def speed(layout: Layout, ranks: np.ndarray, state: State) -> float:
    """Bytes per second one way: as given in GB/s, else those of the job's cluster.

    There NVLink inside a node, the network card if the group leaves it.
    """
    leaves = int(nodes_spanned(ranks[None], layout.gpus_per_node)[0]) > 1
    cluster = CLUSTERS[cluster_of(state)]
    link = cluster.nic if leaves else cluster.nvlink
    return GB * positive("collective_gbs", state.collective_gbs, link / GB)


def default_shape(operation: Operation, n: int) -> tuple[int, ...]:
    """A shape that works and whose numbers can be read.

    >>> default_shape(operation_of("reduce_scatter"), 4), default_shape(operation_of("gather"), 4)
    ((4,), (1,))
    """
    if operation.forward == "tokens_all_to_all":
        few = 2 if n <= 4 else 1
        return (n, few) if operation.dims[0] == 0 else (few, n)
    if operation.forward in ("all_gather", "gather"):
        return (2,) if n <= 3 else (1,)
    if operation.forward in ("reduce_scatter", "scatter", "split", "all_to_all"):
        return (n if n > 1 else 2,)
    return (2,) if n <= 2 else (4,)


def tensors_of(watched: CollectiveSpec) -> tuple[Tensors, Tensors]:
    """Tensors of the drawn members before and after; backward: gradients of output and input.

    Errors: LayoutError about the shape, if it does not split or makes too many numbers.
    """
    n = len(watched.members)
    before, after = exchanged(watched, [list(range(n))], n, partial(filled, watched))
    if max(tensor.size for tensor in (*before, *after)) > MOST_NUMBERS:
        raise _too_large(watched.shape)
    return before, after


def exchanged(
    watched: CollectiveSpec, groups: Any, count: int, fill: Callable[[Shapes], Tensors]
) -> tuple[Tensors, Tensors]:
    """So many tensors before and after all groups ran it, ``fill`` making them of shapes.

    Errors: LayoutError about the shape, if it does not split.
    """
    run = partial(apply, watched.op, groups=groups, **watched.options)
    try:
        before = fill([watched.shape] * count)
        after = run(before, direction="forward")
        if watched.direction == "backward":
            before = fill([tensor.shape for tensor in after])
            after = run(before, direction="backward")
    except LayoutError as error:
        raise about_shape(watched, error) from None
    return before, after


def filled(watched: CollectiveSpec, shapes: Shapes) -> Tensors:
    """Numbers that tell who holds them: 10 times the place and then on, the rank, or ones."""
    tensors = []
    for place, (rank, shape) in enumerate(zip(watched.members, shapes)):
        if watched.values == "count":
            tensors.append(10 * place + np.arange(int(np.prod(shape))).reshape(shape))
        else:
            tensors.append(np.full(shape, rank if watched.values == "rank" else 1))
    return tensors


def contributors(watched: CollectiveSpec, before: list[np.ndarray]) -> list[np.ndarray]:
    """For each member's result whether each member contributed: bool, shape (*shape, members).

    The operations add every contribution once, so with a bit for each member the bits tell.
    """
    n = len(watched.members)
    bits = [np.full(tensor.shape, 1 << place) for place, tensor in enumerate(before)]
    masks = apply(
        watched.op, bits, [list(range(n))], direction=watched.direction, **watched.options
    )
    return [(tensor[..., None] >> np.arange(n)) & 1 == 1 for tensor in masks]


# -- single inputs -------------------------------------------------------------------------------


def _group_name(layout: Layout, given: Any) -> str:
    if not is_empty(given):
        return _choice("collective_group", given, layout.every)
    many = (name for name, grouping in layout.every.items() if grouping.size > 1)
    return next(many, next(iter(layout.every)))


def _group(grouping: Grouping, given: Any, rank: Any) -> tuple[int, np.ndarray]:
    """Which group, and its ranks: the asked one, that of the pinned rank, or the first."""
    last = grouping.num_groups - 1
    if is_empty(given):
        index = pinned_group(grouping, rank)
    else:
        index = whole_number(parse_number(given), "collective_index", minimum=0, maximum=last)
    return index, ranks_of(grouping, index)


def ranks_of(grouping: Grouping, index: int) -> np.ndarray:
    """The members of one group, without making the others where that is easy."""
    if grouping.is_plain:
        return grouping.members(int(grouping.firsts()[index]))
    return np.asarray(grouping.groups()[index])


def _root(given: Any, members: tuple[int, ...], name: str, index: int) -> int:
    if is_empty(given):
        return 0
    root = whole_number(parse_number(given), "collective_root", minimum=0)
    if root not in members:
        near = sorted(members, key=lambda rank: abs(rank - root))[:2]
        fixes = ({"collective_root": rank} for rank in near)
        facts = {"rank": root, "kind": name, "index": index}
        raise refusal("not-in-group", "collective_root", *fixes, **facts)
    return members.index(root)


def shape_of(given: Any) -> tuple[int, ...]:
    """A shape as it is typed, of few enough numbers to read.

    >>> shape_of("2x4")
    (2, 4)
    """
    text = given if isinstance(given, str) else quoted(given)
    parts = text.lower().replace("×", "x").replace("*", "x").split("x")[:9]
    sizes = tuple(parse_number(part) for part in parts)
    if len(sizes) > 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise refusal("not-a-shape", "collective_shape", value=quoted(given))
    if np.prod([float(size) for size in sizes]) > MOST_NUMBERS:
        raise _too_large(sizes)
    return sizes


def _too_large(shape: tuple[int, ...]) -> LayoutError:
    facts = {"shape": "x".join(map(str, shape)), "limit": MOST_NUMBERS}
    return refusal("too-many-numbers", "collective_shape", **facts)


def about_shape(watched: CollectiveSpec, error: LayoutError) -> LayoutError:
    """A refusal of the tensors, as one of the shape, with the sizes that split put in."""
    fixes = []
    at = error.facts.get("dim")
    for change in error.alternatives:
        if "size" in change and at is not None and at < len(watched.shape):
            sizes = (*watched.shape[:at], change["size"], *watched.shape[at + 1 :])
            fixes.append({"collective_shape": "x".join(map(str, sizes))})
    return error.replace(control="collective_shape", alternatives=fixes)


def _algorithm(watched: CollectiveSpec, given: Any) -> str:
    names = algorithms_of(watched)
    known = is_empty(given) or (isinstance(given, str) and given in ALGORITHMS)
    chosen = given if known else _choice("collective_algorithm", given, names)
    # Another operation has other algorithms: a choice that was made for one is no mistake.
    return chosen if chosen in names else next(iter(names), "")


def positive(field: str, given: Any, otherwise: float) -> float:
    if is_empty(given):
        return float(otherwise)
    number = parse_number(given)
    if (
        isinstance(number, bool)
        or not isinstance(number, (int, float))
        or not 1e-9 <= number <= 1e9
    ):
        raise refusal("not-positive", field, value=quoted(given), control=field)
    return float(number)


def _choice(field: str, given: Any, choices: Collection[str]) -> str:
    near = get_close_matches(given, choices, n=2, cutoff=0.3) if isinstance(given, str) else []
    return require_choice(field, given, choices, near)
