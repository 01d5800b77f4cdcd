"""What clouds, Kubernetes and topology tools say of machines, as JSON or YAML that was read.

    AWS         Instances[].NetworkNodes, from the top down: the last is the closest switch
    GCP         physicalHost /cluster/rack/host, or physicalHostTopology{cluster, block, subblock}
    Kubernetes  nodes with labels (KEYS), alone or in a list
    topograph   its models: blocks with a switch, nodes and the domain as an annotation
    plain       {host: rack}, {rack: [hosts]}, [{"host": ..., "rack": ..., "slots": ...}], [host]

Sources: EC2 describe-instance-topology and its EKS labels; Compute Engine view-instance-topology
and its GKE labels; NVIDIA/topograph docs/reference/node-labels.md and tests/models;
intelligent-machine-learning/dlrover #1750.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .fabric import NAMELESS
from .files import HEADINGS
from .hostlist import expand_hostlist
from .slurm import is_yaml_topology, read_yaml_topology
from .values import Hosts, Level, Remark, bad_document, host_twice, no_hosts, once

KEYS = {
    "nvidia.com/gpu.clique": "partition",
    "accelerator.topograph.run/domain": "domain",
    "ds.coreweave.com/nvlink.domain": "domain",
    "network.topology.nvidia.com/accelerator": "domain",
    "cloud.google.com/gce-topology-subblock": "subblock",
    "cloud.google.com/gce-topology-block": "block-1",
    "topology.kubernetes.io/rack": "rack",
    "network.topology.nvidia.com/leaf": "switch",
    "network.topology.nvidia.com/spine": "switch-1",
    "network.topology.nvidia.com/core": "switch-2",
}
"""Labels of Kubernetes nodes and the level that each is, the closest first."""

TIER = re.compile(r"fabric\.topograph\.run/tier-([0-9])", re.ASCII)
LAYER = re.compile(r"topology\.k8s\.aws/network-node-layer-([0-9])", re.ASCII)

_PATH = re.compile(r"([A-Za-z0-9][\w.-]*)\s*:?\s+(/[\w.-]+(?:/[\w.-]+)+)/?\s*$", re.ASCII)

Places = dict[str, dict[str, str]]
"""Level -> machine -> place, levels closest first."""


def read_document(document: Any, topology: str = "") -> Hosts:
    """Machines of a document that was read, whichever of these it is.

    topology: which of the topologies of a topology.yaml.

    Errors: LayoutError for a document of no such form.
    """
    for fits, read in READERS:
        if fits(document):
            return read(document)
    if is_yaml_topology(document):
        return read_yaml_topology(document, topology)
    raise bad_document("it is none of the forms in which clouds, Slurm or people list machines")


def _hosts(form: str, rows: Iterable[tuple[str, Mapping[str, str]]], *remarks: Remark) -> Hosts:
    """Machines with the places of each; levels stand in the order in which the rows have them."""
    levels: Places = {}
    names = []
    for name, places in rows:
        names.append(name)
        for kind, place in places.items():
            levels.setdefault(kind, {})[name] = place
    if not names:
        raise no_hosts()
    if len(set(names)) < len(names):
        raise host_twice(Counter(names).most_common(1)[0][0], "keep one entry for each host")
    order = sorted(levels, key=_distance)
    found = tuple(Level(kind, levels[kind]) for kind in order)
    return Hosts(form, once(names), levels=found, remarks=remarks)


def _distance(kind: str) -> tuple[int, str]:
    """How far a level is from the machine: an NVLink domain, a rack, a switch, those above."""
    base, _, height = ("", "", "9") if kind == "cluster" else kind.partition("-")
    near = ("partition", "domain", "subblock", "rack", "block", "switch")
    far = 10 * int(height) if height else 0
    return (near.index(base) if base in near else len(near)) + far, kind


# -- AWS -------------------------------------------------------------------------------------------


def _is_aws(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("Instances"), list)


def _aws(value: Mapping[str, Any]) -> Hosts:
    remarks = [Remark("names-are-instances")]
    if value.get("NextToken"):
        remarks.append(Remark("more-pages"))
    return _hosts("aws-topology", map(_instance, value["Instances"]), *remarks)


def _instance(one: Any) -> tuple[str, dict[str, str]]:
    if not isinstance(one, dict) or not isinstance(one.get("InstanceId"), str):
        raise bad_document("each entry of Instances needs an InstanceId")
    nodes = one.get("NetworkNodes") or []
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise bad_document("NetworkNodes must be a list of names")
    return one["InstanceId"], _upwards("switch", nodes[::-1])


def _upwards(kind: str, places: Sequence[str]) -> dict[str, str]:
    """The closest place and those above it."""
    return {f"{kind}-{height}" if height else kind: place for height, place in enumerate(places)}


# -- GCP -------------------------------------------------------------------------------------------


def _is_gcp(value: Any) -> bool:
    rows = _gcp_rows(value)
    return bool(rows) and all(isinstance(one, dict) and _status(one) is not None for one in rows)


def _gcp_rows(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = value.get("items") if "items" in value else [value]
    return value if isinstance(value, list) else []


def _status(one: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Where an instance says that it stands."""
    status = one.get("resourceStatus", one)
    has = isinstance(status, dict) and ({"physicalHost", "physicalHostTopology"} & set(status))
    return status if has else None


def _gcp(value: Any) -> Hosts:
    rows = []
    for one in _gcp_rows(value):
        if not isinstance(one.get("name"), str):
            raise bad_document("each instance needs a name")
        status = _status(one) or {}
        said = status.get("physicalHostTopology")
        if isinstance(said, dict):
            path = {key: said.get(key) for key in ("cluster", "block", "subblock")}
            rows.append((one["name"], path))
        else:
            rows.append((one["name"], _parts(str(status.get("physicalHost") or ""))))
    return _hosts("gcp-topology", _by_path(rows))


def _parts(path: str) -> dict[str, Any]:
    """/cluster/rack/host: the names of the places, from the top down."""
    parts = [part for part in path.split("/") if part][:-1]
    return dict(zip(("cluster", "rack") if len(parts) < 3 else ("zone", "cluster", "rack"), parts))


def _by_path(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Places by name; a rack by cluster/rack, and wherever one name means places of two paths."""
    paths: dict[tuple[str, str], set[str]] = {}
    for _, said in rows:
        for kind, name, path in _walked(said):
            paths.setdefault((kind, name), set()).add(path)
    for host, said in rows:
        yield (
            host,
            {
                "block-1" if kind == "block" else kind: path
                if kind == "rack" or len(paths[kind, name]) > 1
                else name
                for kind, name, path in reversed(list(_walked(said)))
            },
        )


def _walked(said: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    path: list[str] = []
    for kind, name in said.items():
        if name:
            path.append(str(name))
            yield kind, str(name), "/".join(path)


def is_paths(text: str) -> bool:
    """Whether lines have a machine and a path such as /cluster/rack/host."""
    return bool(_path_rows(text))


def _path_rows(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    found = [match.groups() for match in map(_PATH.search, lines) if match]
    return found if len(found) == len(lines) else []  # type: ignore[return-value]


def read_paths(text: str) -> Hosts:
    """Lines with a machine and its physicalHost: a log of GCP, or a table of ranks.

    >>> read_paths("0 n0 /c/b/x\\n8 n1 /c/a/y").racks
    {'n0': 'c/b', 'n1': 'c/a'}
    """
    rows = [(host, _parts(path)) for host, path in _path_rows(text)]
    return _hosts("gcp-topology", _by_path(rows))


# -- Kubernetes ------------------------------------------------------------------------------------


def _is_kubernetes(value: Any) -> bool:
    rows = _kubernetes_rows(value)
    return bool(rows) and all(_labels(one) is not None for one in rows)


def _kubernetes_rows(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        return value["items"]
    return value if isinstance(value, list) else [value]


def _labels(one: Any) -> Mapping[str, Any] | None:
    """The labels of a node; of a bare mapping, itself where a key is a known label."""
    if not isinstance(one, dict):
        return None
    metadata = one.get("metadata", one)
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if isinstance(labels, dict):
        return labels
    known = any(isinstance(key, str) and _level(key) for key in one)
    return one if known else None


def _level(label: str) -> str:
    return KEYS.get(label) or ("tier" if TIER.fullmatch(label) or LAYER.fullmatch(label) else "")


def _kubernetes(value: Any) -> Hosts:
    rows, remarks = [], []
    for one in _kubernetes_rows(value):
        metadata = one.get("metadata", one)
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not name:
            name = NAMELESS
            remarks.append(Remark("host-without-name", {"host": name}))
        rows.append((str(name), _labelled(_labels(one) or {})))
    return _hosts("kubernetes", rows, *remarks)


def _labelled(labels: Mapping[str, Any]) -> dict[str, str]:
    found = {KEYS[key]: str(value) for key, value in labels.items() if key in KEYS and value}
    if "partition" in found:  # ClusterUUID.CliqueID
        found.setdefault("domain", found["partition"].rpartition(".")[0])
    tiers = {match[1]: str(labels[key]) for key in labels if (match := TIER.fullmatch(str(key)))}
    layers = {match[1]: str(labels[key]) for key in labels if (match := LAYER.fullmatch(str(key)))}
    upwards = [tiers[n] for n in sorted(tiers)] or [layers[n] for n in sorted(layers, reverse=True)]
    return {**found, **_upwards("switch", upwards)}


# -- topograph -------------------------------------------------------------------------------------


def _is_topograph(value: Any) -> bool:
    rows = value.get("blocks") if isinstance(value, dict) else None
    return isinstance(rows, list) and all(isinstance(one, dict) and "nodes" in one for one in rows)


def _topograph(value: Mapping[str, Any]) -> Hosts:
    return _hosts("topograph", _blocks(value["blocks"], value.get("switches")))


def _blocks(
    blocks: Iterable[Mapping[str, Any]], switches: Any
) -> Iterator[tuple[str, dict[str, str]]]:
    parent = {
        str(child): str(one.get("name", one.get("switch")))
        for one in (switches if isinstance(switches, list) else ())
        if isinstance(one, dict)
        for child in one.get("switches") or ()
    }
    for block in blocks:
        said = block.get("annotations") or block.get("labels") or {}
        ends = {str(key).rpartition("/")[2]: str(name) for key, name in dict(said).items()}
        above = [str(block.get("switch") or block.get("name") or block.get("block") or "")]
        while above[-1] in parent and len(above) < 8:
            above.append(parent[above[-1]])
        places = _upwards("switch", above if above[0] else [])
        if "domain" in ends:
            places["domain"] = ends["domain"]
        nodes = block["nodes"] if isinstance(block["nodes"], list) else [block["nodes"]]
        for host in (host for part in nodes for host in expand_hostlist(str(part))):
            yield host, places


# -- plain -----------------------------------------------------------------------------------------


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, (str, dict)) for one in value)
    return isinstance(value, dict) and bool(value) and all(isinstance(key, str) for key in value)


def _plain(value: Any) -> Hosts:
    if isinstance(value, dict):
        return _mapping(value)
    if all(isinstance(one, str) for one in value):
        return _hosts("list", ((name, {}) for name in value))
    return _records(value)


def _mapping(value: Mapping[str, Any]) -> Hosts:
    """{host: rack}, {rack: [hosts]}, {host: slots} or {host: [its GPUs]}."""
    every = list(value.values())
    if len(value) == 1 and isinstance(every[0], (list, dict)) and next(iter(value)) in (
        "hosts", "nodes", "racks",
    ):  # fmt: skip
        return read_document(every[0])
    if all(isinstance(one, str) for one in every):
        return _hosts("host-rack", ((host, {"rack": rack}) for host, rack in value.items()))
    if all(isinstance(one, list) and all(isinstance(h, str) for h in one) for one in every):
        rows = ((host, {"rack": rack}) for rack, hosts in value.items() for host in hosts)
        return _hosts("host-rack", rows)
    counts = {
        host: len(one) if isinstance(one, list) else one
        for host, one in value.items()
        if isinstance(one, (list, int)) and not isinstance(one, bool)
    }
    if len(counts) < len(value) or min(counts.values()) < 1:
        raise bad_document("each host needs a rack, a number of slots or a list of its GPUs")
    return Hosts("host-slots", once(counts), counts)


def _records(value: Sequence[Any]) -> Hosts:
    """[{"host": "n0", "rack": "r0", "slots": 8}, ...], under any name of `files.HEADINGS`."""
    known = {word: key for key, words in HEADINGS.items() for word in words}
    rows, slots = [], {}
    for one in value:
        said = {known.get(str(key).lower(), ""): item for key, item in dict(one).items()}
        if not isinstance(said.get("host"), str) or not said["host"]:
            raise bad_document('each entry needs a "host"')
        kinds = (kind for kind in ("rack", "switch", "block", "domain") if said.get(kind))
        places = {kind: str(said[kind]) for kind in kinds}
        rows.append((said["host"], places))
        if isinstance(said.get("slots"), int) and said["slots"] > 0:
            slots[said["host"]] = said["slots"]
    found = _hosts("table", rows)
    return Hosts(found.form, found.names, slots, found.levels)


READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Hosts]], ...] = (
    (_is_aws, _aws),
    (_is_gcp, _gcp),
    (_is_topograph, _topograph),
    (_is_kubernetes, _kubernetes),
    (lambda value: not is_yaml_topology(value) and _is_plain(value), _plain),
)
