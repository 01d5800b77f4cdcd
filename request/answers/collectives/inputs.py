"""The inputs of the Collectives view, checked: group, operation, tensors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain, count

import numpy as np

from formats.values import Document, Facts
from groups import LayoutError
from groups.errors import quoted
from groups.grouping import Grouping
from groups.inputs import number_in
from groups.layout import Layout
from groups.placement import nodes_spanned
from training.collectives.algorithms import ALGORITHMS
from training.collectives.cost import bus_factor, bytes_per_rank, least_seconds, steps
from training.collectives.operations import Operation, apply, operation_of
from training.machine import GB

from ...errors import refusal
from ...inputs import FIELDS, fields_of
from ...state import State, is_empty, pinned_group, require_choice
from ...trained import machine_of_state

MOST_MEMBERS = 16
"""The most members of a group whose tensors are drawn; of a larger group the first ones."""

MOST_NUMBERS = 64
"""The most numbers of one tensor, before or after."""

COST_OF = {
    "tokens_all_to_all": "all_to_all",
    "sum_at_root": "reduce",
    "join_at_root": "gather",
    "send_recv_back": "send_recv",
}
"""The collective that a function costs as much as, if it has another name."""

VALUES, DIRECTIONS = FIELDS["collective_values"].choices, FIELDS["collective_direction"].choices

Tensors = list[np.ndarray]


@dataclass(frozen=True)
class CollectiveSpec:
    """One operation in one group."""

    op: str
    direction: str
    operation: Operation  # its row of the table
    function: str  # of training.collectives.functions, that runs in this direction
    grouping: Grouping  # the kind of group
    index: int  # of one of its groups
    size: int  # ranks of that
    members: tuple[int, ...]  # the first of them, those that are drawn
    root: int  # a place among them
    shape: tuple[int, ...]  # of the tensors that the forward takes
    values: str  # how they are filled
    buffer_bytes: float  # what the cost is worked out for
    bytes_per_second: float
    algorithm: str = ""  # name in training.collectives.algorithms; empty if nothing moves

    @property
    def cost(self) -> str:
        """The name of the operation in training.collectives.cost."""
        return COST_OF.get(self.function, self.function)

    def cost_facts(self) -> Document:
        op, n, size = self.cost, self.size, self.buffer_bytes
        return {
            "as": op,
            "buffer_bytes": size,
            "bytes_per_rank": bytes_per_rank(op, n, size),
            "bus_factor": bus_factor(op, n),
            "steps": steps(op, n),
            "link_bytes_per_second": self.bytes_per_second,
            "least_seconds": least_seconds(op, n, size, self.bytes_per_second),
        }

    @property
    def options(self) -> dict[str, int]:
        return {"root": self.root} if "root" in self.operation.options else {}

    @property
    def algorithms(self) -> list[str]:
        """Algorithms for the operation, by name."""
        return [name for name, (op, *_) in ALGORITHMS.items() if op == self.cost]


def resolve_inputs(layout: Layout, state: State) -> tuple[CollectiveSpec, State, list[LayoutError]]:
    """The operation, the inputs that apply, and refusals of those that do not.

    An input that cannot be is left out, as if it were empty, and told; everything else stays.
    """
    problems: list[LayoutError] = []
    blank = (name for name in fields_of("collectives") if is_empty(getattr(state, name)))
    state = replace(state, **dict.fromkeys(blank, ""))  # such as spaces
    while True:
        try:
            return _resolved(layout, state), state, problems
        except LayoutError as error:
            field = error.control or ""
            assert not is_empty(getattr(state, field))  # an empty input always counts
            problems.append(_with_working_fixes(layout, state, error))
            state = replace(state, **{field: ""})


def _with_working_fixes(layout: Layout, state: State, error: LayoutError) -> LayoutError:
    """The refusal with up to three changes that were tried and make this input valid."""

    def works(change: Facts) -> bool:
        try:
            _resolved(layout, replace(state, **change))
        except LayoutError as other:
            return other.control != error.control
        return True

    offered = [*error.alternatives, {error.control or "": ""}]
    return error.replace(alternatives=[change for change in offered if works(change)][:3])


def _resolved(layout: Layout, state: State) -> CollectiveSpec:
    op, direction = state.value("collective"), state.value("collective_direction")
    operation = operation_of(op)
    function = getattr(operation, direction)
    if not function:
        forward = {"collective_direction": "forward"}
        raise refusal("no-backward", "collective_direction", forward, operation=op)
    many = (name for name, grouping in layout.every.items() if grouping.size > 1)
    name = next(many, next(iter(layout.every)))
    if not is_empty(state.collective_group):
        name = _choice("collective_group", state.collective_group, layout.every)
    grouping = layout.every[name]
    index = _index(grouping, state)
    ranks = ranks_of(grouping, index)
    members = tuple(ranks[:MOST_MEMBERS].tolist())
    has_root, is_shaped = "root" in operation.options, not is_empty(state.collective_shape)
    spec = CollectiveSpec(
        op=op,
        direction=direction,
        operation=operation,
        function=function,
        grouping=grouping,
        index=index,
        size=len(ranks),
        members=members,
        values=state.value("collective_values"),
        # Without a root a rank that was asked for as one is no mistake: it waits for its turn.
        root=_root(state, members, name, index) if has_root else 0,
        buffer_bytes=1e6 * state.value("collective_mb"),
        bytes_per_second=speed(layout, ranks, state),
        shape=shape_of(state.collective_shape)
        if is_shaped
        else default_shape(operation, len(members)),
    )
    if is_shaped:
        tensors = chain(*exchanged(spec, [members]))  # refuses what does not split
        if max(tensor.size for tensor in tensors) > MOST_NUMBERS:
            raise _too_large(spec.shape)
    return replace(spec, algorithm=_algorithm(spec, state.collective_algorithm))


def speed(layout: Layout, ranks: np.ndarray, state: State) -> float:
    """Bytes per second one way: of the field in GB/s, else of the job's cluster.

    There NVLink inside a node, the network card if the group leaves it.
    """
    leaves = int(nodes_spanned(ranks[None], layout.gpus_per_node)[0]) > 1
    cluster = machine_of_state(state)
    link = cluster.nic if leaves else cluster.nvlink
    typed: float | None = state.value("collective_gbs")
    return link if typed is None else GB * typed


def default_shape(operation: Operation, n: int) -> tuple[int, ...]:
    """A valid shape whose numbers are readable.

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


# -- tensors -------------------------------------------------------------------------------------


def exchanged(spec: CollectiveSpec, groups: Iterable[Sequence[int]]) -> tuple[Tensors, Tensors]:
    """Tensors of all members of some groups, one group after the other, before and after.

    Errors: LayoutError about the shape, if it does not split.
    """
    number = count()
    within = [[next(number) for _ in ranks] for ranks in groups]
    places = [(place, rank) for ranks in groups for place, rank in enumerate(ranks)]

    shapes: list[tuple[int, ...]] = [spec.shape] * len(places)
    try:
        for direction in DIRECTIONS[: DIRECTIONS.index(spec.direction) + 1]:
            before = filled(spec, places, shapes)
            after = apply(spec.op, before, within, direction=direction, **spec.options)
            shapes = [tensor.shape for tensor in after]
    except LayoutError as error:
        raise _about_shape(spec, error) from None
    return before, after


def _about_shape(spec: CollectiveSpec, error: LayoutError) -> LayoutError:
    """A refusal of the tensors as a refusal of their shape."""
    shape = spec.shape
    at = int(str(error.facts.get("dim", len(shape))))
    sizes = (
        (*shape[:at], change["size"], *shape[at + 1 :])
        for change in error.alternatives
        if "size" in change and at < len(shape)
    )
    fixes = [{"collective_shape": shape_text(changed)} for changed in sizes]
    return error.replace(control="collective_shape", alternatives=fixes)


def filled(
    spec: CollectiveSpec, places: Iterable[tuple[int, int]], shapes: Iterable[tuple[int, ...]]
) -> Tensors:
    """Numbers that identify their holder: counting from 10 times its place, its rank, or ones."""

    def numbers(place: int, rank: int, shape: tuple[int, ...]) -> np.ndarray:
        if spec.values == "count":
            return 10 * place + np.arange(math.prod(shape)).reshape(shape)
        return np.full(shape, rank if spec.values == "rank" else 1)

    return [numbers(*who, shape) for who, shape in zip(places, shapes)]


def contributors(spec: CollectiveSpec, before: Tensors) -> tuple[Tensors, Tensors]:
    """The members that contributed to each number, before and after, as bit masks over their
    places.

    The operations run on tensors in which each member has its own bit: sums then show who is in.
    """
    bits = [np.full(tensor.shape, 1 << place) for place, tensor in enumerate(before)]
    group = [list(range(len(before)))]
    return bits, apply(spec.op, bits, group, direction=spec.direction, **spec.options)


def places_of(bits: int) -> tuple[int, ...]:
    """
    >>> places_of(0b1010)
    (1, 3)
    """
    return tuple(place for place in range(int(bits).bit_length()) if bits >> place & 1)


# -- single inputs -------------------------------------------------------------------------------


def _index(grouping: Grouping, state: State) -> int:
    """The index of the group: as selected, else that of the pinned rank, else the first."""
    if state.values["collective_index"] is None:
        return pinned_group(grouping, state.values["rank"])
    return state.number("collective_index", 0, least=0, most=grouping.num_groups - 1)


def ranks_of(grouping: Grouping, index: int) -> np.ndarray:
    """The members of one group, without making the other groups if that is possible."""
    if grouping.is_plain:
        return grouping.members(int(grouping.firsts()[index]))
    return np.asarray(grouping.groups()[index])


def _root(state: State, members: tuple[int, ...], name: str, index: int) -> int:
    if state.values["collective_root"] is None:
        return 0
    root = state.number("collective_root", 0, least=0)
    if root not in members:
        near = sorted(members, key=lambda rank: abs(rank - root))[:2]
        fixes = ({"collective_root": rank} for rank in near)
        facts = {"rank": root, "kind": name, "index": index}
        raise refusal("not-in-group", "collective_root", *fixes, **facts)
    return members.index(root)


def shape_of(value: object) -> tuple[int, ...]:
    """A typed shape, with few enough numbers to read.

    >>> shape_of("2x4")
    (2, 4)
    """
    text = value if isinstance(value, str) else quoted(value)
    parts = text.lower().replace("×", "x").replace("*", "x").split("x")[:9]
    numbers = [number_in(part) for part in parts]
    sizes = tuple(number for number in numbers if isinstance(number, int) and number > 0)
    if not len(sizes) == len(numbers) <= 3:
        raise refusal("not-a-shape", "collective_shape", value=quoted(value))
    if math.prod(sizes) > MOST_NUMBERS:
        raise _too_large(sizes)
    return sizes


def shape_text(shape: Iterable[object]) -> str:
    return "x".join(map(str, shape))


def _too_large(shape: tuple[int, ...]) -> LayoutError:
    facts = {"shape": shape_text(shape), "limit": MOST_NUMBERS}
    return refusal("too-many-numbers", "collective_shape", **facts)


def _algorithm(watched: CollectiveSpec, name: str) -> str:
    names = watched.algorithms
    known = is_empty(name) or name in ALGORITHMS
    chosen = name if known else _choice("collective_algorithm", name, names)
    # Another operation has other algorithms: a choice that was made for one is no mistake.
    return chosen if chosen in names else next(iter(names), "")


def _choice(field: str, name: str, choices: Collection[str]) -> str:
    return require_choice(field, name, choices, get_close_matches(name, choices, n=2, cutoff=0.3))
