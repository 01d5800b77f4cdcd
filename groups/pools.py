"""The GPUs that a framework gives each role of a job: runs of the pool that it makes of the
cluster.

The pool has the framework's own order of GPUs: slime sorts by the node's address as numbers and
then by GPU; NeMo-RL by NVLink domain and node. Where training and rollouts have separate GPUs, the
rollouts' follow the training's.

Sources: THUDM/slime 624b824 slime/ray/placement_group.py (_get_placement_group_layout),
slime/utils/arguments.py, slime/ray/rollout.py; NVIDIA-NeMo/RL 7ea279a nemo_rl/algorithms/grpo.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .budget import spend
from .errors import not_a_choice, refusal
from .layout import world_of
from .mesh import MAX_RANKS, whole_number


@dataclass(frozen=True)
class Pool:
    """The GPUs of a role: a run from the first one on; for a server, the size of its engines."""

    name: str
    first: int
    gpus: int
    engine: int | None = None

    @property
    def engines(self) -> int | None:
        """Whole engines on its GPUs; None for a role that trains."""
        return None if self.engine is None else self.gpus // self.engine


def slime(
    actor_nodes: int = 1,
    actor_gpus_per_node: int = 8,
    rollout_gpus: int | None = None,
    gpus_per_engine: int = 1,
    colocate: bool = False,
) -> tuple[Pool, ...]:
    """Actor and rollout of slime, by --actor-num-nodes and related options.

    With --colocate the rollout has the actor's number of GPUs unless it is set; with 0 GPUs there
    is no rollout.

    >>> [(pool.name, pool.first, pool.gpus) for pool in slime(2, 8, 32, gpus_per_engine=8)]
    [('actor', 0, 16), ('rollout', 16, 32)]
    >>> slime(colocate=True, gpus_per_engine=2)[1].engines
    4

    Errors: LayoutError for bad sizes, and without --colocate if the rollout's GPUs are not set.
    """
    sizes = {"actor_nodes": actor_nodes, "actor_gpus_per_node": actor_gpus_per_node}
    nodes, each = (whole_number(size, name, maximum=MAX_RANKS) for name, size in sizes.items())
    engine, actor = whole_number(gpus_per_engine, "gpus_per_engine"), nodes * each
    if rollout_gpus is None and not colocate:
        fixes = {"rollout_gpus": actor}, {"colocate": True}
        raise refusal("rollout-without-gpus", "rollout_gpus", *fixes)
    count = actor if rollout_gpus is None else rollout_gpus
    rollout = whole_number(count, "rollout_gpus", minimum=0, maximum=MAX_RANKS)
    first = 0 if colocate else actor
    serving = (Pool("rollout", first, rollout, engine),) if rollout else ()
    return Pool("actor", 0, actor), *serving


def nemo_rl(
    nodes: int,
    gpus_per_node: int,
    *,
    tp: int = 1,
    pp: int = 1,
    colocated: bool = True,
    generation_nodes: int | None = None,
    generation_gpus_per_node: int | None = None,
) -> tuple[Pool, ...]:
    """Policy and generation of NeMo-RL: cluster.num_nodes x cluster.gpus_per_node.

    If they are colocated, both have all GPUs. Otherwise a single node is split, and of several
    nodes the generation has whole ones (policy.generation.colocated.resources), after the policy's.

    >>> [(pool.first, pool.gpus) for pool in nemo_rl(1, 8, colocated=False,
    ...                                              generation_gpus_per_node=2)]
    [(0, 6), (6, 2)]

    Errors: LayoutError for a generation that leaves the policy nothing or takes parts of nodes.
    """
    sizes = {"nodes": nodes, "gpus_per_node": gpus_per_node, "tp": tp, "pp": pp}
    nodes, each, tp, pp = (whole_number(s, name, maximum=MAX_RANKS) for name, s in sizes.items())
    world, engine = nodes * each, tp * pp
    if colocated:
        return Pool("policy", 0, world), Pool("generation", 0, world, engine)
    if nodes == 1:
        if generation_nodes not in (None, 1):
            fixes = {"generation_nodes": 1}, {"generation_nodes": None}
            facts = {"control": "generation_nodes", "value": generation_nodes, "most": 1}
            raise refusal("generation-takes-too-much", "generation_nodes", *fixes, **facts)
        generation = _part("generation_gpus_per_node", generation_gpus_per_node, each)
    else:
        if generation_gpus_per_node != each:
            fix = {"generation_gpus_per_node": each}
            facts = {"each": each, "value": str(generation_gpus_per_node)}
            raise refusal("generation-takes-parts", "generation_gpus_per_node", fix, **facts)
        generation = each * _part("generation_nodes", generation_nodes, nodes)
    policy = world - generation
    return Pool("policy", 0, policy), Pool("generation", policy, generation, engine)


def _part(control: str, value: int | None, whole: int) -> int:
    """The generation's part of ``whole``; the policy has the rest."""
    part = whole_number(value, control)
    if part >= whole:
        fixes = ({control: whole - 1},) if whole > 1 else ({"colocated": True},)
        facts = {"control": control, "value": part, "most": whole - 1}
        raise refusal("generation-takes-too-much", control, *fixes, **facts)
    return part


# -- verl ----------------------------------------------------------------------------------------


def verl_replicas(world: int, each: int, replica: int) -> tuple[int, ...]:
    """GPUs per node of one rollout replica of verl; each node is a separate server.

    world: GPUs of the rollout; each: GPUs of a node; replica: GPUs of one replica, tp x dp x pp.

    >>> verl_replicas(32, 8, 16), verl_replicas(8, 8, 2)
    ((8, 8), (2,))

    Errors: LayoutError for a replica of more than all GPUs, or of more than a node but not whole
    nodes.
    """
    node = min(each, replica)
    if replica > world or replica % node:
        works = [size for size in range(1, world + 1) if size <= each or size % each == 0]
        near = sorted(works, key=lambda size: (abs(size - replica), size))[:2]
        fixes = ({"replica": size} for size in near)
        facts = {"replica": replica, "world": world, "each": each}
        raise refusal("replica-does-not-fit", "replica", *fixes, **facts)
    return (node,) * (replica // node)


def packed(
    wanted: Mapping[str, Sequence[Sequence[int]]], gpus_per_node: int
) -> tuple[dict[str, tuple[int, ...]], int]:
    """The GPUs of pools that take a fixed number on each of their nodes, and the number of nodes
    used.

    wanted: for each role its pools, each a list of GPUs per node. Pools are placed in this order,
    each part on the first node with as many free GPUs, lowest GPU first.

    >>> packed({"actor": [[4, 4]], "rollout": [[2], [2], [2], [2]]}, 8)
    ({'actor': (0, 1, 2, 3, 8, 9, 10, 11), 'rollout': (4, 5, 6, 7, 12, 13, 14, 15)}, 2)

    Errors: LayoutError for a pool that wants more GPUs per node than a node has.
    """
    used: list[int] = []  # GPUs of each node
    first: dict[int, int] = {}  # the first node that may have so many left
    found: dict[str, tuple[int, ...]] = {}
    for name, pools in wanted.items():
        gpus: list[int] = []
        for pool in pools:
            at = 0  # nodes of one pool differ
            for part in pool:
                spend(1, "ranks")
                if part > gpus_per_node:
                    fix = {"gpus_per_node": part}
                    facts = {"pool": name, "part": part, "each": gpus_per_node}
                    raise refusal("pool-beyond-node", "gpus_per_node", fix, **facts)
                room = gpus_per_node - part
                first[part] = _next(used, first.get(part, 0), room)
                node = _next(used, max(at, first[part]), room)
                if node == len(used):
                    used.append(0)
                    world_of(len(used), gpus_per_node)
                start = node * gpus_per_node + used[node]
                gpus += range(start, start + part)
                used[node] += part
                at = node + 1
        found[name] = tuple(gpus)
    return found, len(used)


def _next(used: Sequence[int], node: int, room: int) -> int:
    """The first node from ``node`` on with at most ``room`` used GPUs; else the number of nodes."""
    while node < len(used) and used[node] > room:
        node += 1
    return node


# -- nodes -----------------------------------------------------------------------------------------

ADDRESS_RULES = ("text", "numbers", "domains")
"""How nodes are sorted: verl by address as text, slime by address as numbers, NeMo-RL by NVLink
domain and the node's place in the topology, if known."""


def node_order(places: Sequence[str] | Sequence[tuple[str, int]], rule: str) -> list[int]:
    """The indices of the nodes in the order in which they are numbered.

    places: addresses of nodes; for domains, the domain and the topology rank of each.

    >>> node_order(["10.0.0.9", "10.0.0.10"], "text"), node_order(["10.0.0.9", "10.0.0.10"],
    ...                                                           "numbers")
    ([1, 0], [0, 1])
    >>> node_order([("b", 2), ("a", 1), ("b", 3), ("a", 0)], "domains")
    [3, 1, 0, 2]

    Errors: LayoutError for another rule.
    """
    if rule not in ADDRESS_RULES:
        raise not_a_choice("rule", rule, ADDRESS_RULES, [{"rule": own} for own in ADDRESS_RULES])
    known = [(place[0], int(place[1])) for place in places if not isinstance(place, str)]
    if rule == "domains" and known:
        first: dict[str, int] = {}
        for domain, rank in known:
            first[domain] = min(rank, first.get(domain, rank))
        return sorted(range(len(known)), key=lambda n: (first[known[n][0]], known[n][1]))
    if rule == "domains":
        return [*range(len(places))]
    keys = [_key(str(place), rule) for place in places]
    return sorted(range(len(keys)), key=lambda n: keys[n])


def _key(address: str, rule: str) -> tuple[int, ...] | str:
    """An address as slime compares it: its four numbers, else the codes of its characters."""
    if rule == "text":
        return address
    parts = address.split(".")
    if all(part.isdigit() for part in parts):
        return tuple(int(part) for part in parts)
    return tuple(ord(character) for character in address)
