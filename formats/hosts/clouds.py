"""Machines in JSON or YAML of clouds, Kubernetes and topology tools.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from diagnosis.machines.hosts import NAMELESS, Hosts
from groups.notes import Note

from ..errors import refusal
from ..values import Facts
from .files import COLUMNS, LEVELS
from .slurm import hosts_of_lists, read_yaml_topology
from .values import bad_document, hosts_in_places, upwards

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
"""Labels of Kubernetes nodes with the level of each, the closest first."""

TIER = re.compile(r"fabric\.topograph\.run/tier-([0-9])", re.ASCII)
LAYER = re.compile(r"topology\.k8s\.aws/network-node-layer-([0-9])", re.ASCII)

_PATH = re.compile(r"([A-Za-z0-9][\w.-]*)\s*:?\s+(/[\w.-]+(?:/[\w.-]+)+)/?\s*$", re.ASCII)


def read_document(document: object) -> Hosts:
    """The machines of a parsed document, in any of the known forms.

    Errors: LayoutError for a document of no such form.
    """
    while isinstance(document, dict) and len(document) == 1:
        ((key, inside),) = document.items()
        if key not in ("hosts", "nodes", "racks") or not isinstance(inside, (list, dict)):
            break
        document = inside
    for read in READERS:
        if hosts := read(document):
            return hosts
    raise bad_document(refusal("document-of-no-form", "hosts"))


def _items(value: object) -> list[object]:
    """The entries of a list, of {"items": list}, or a single document."""
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        value = value["items"]
    return value if isinstance(value, list) else [value]


# -- AWS -------------------------------------------------------------------------------------------


def _aws(value: object) -> Hosts | None:
    if not isinstance(value, dict) or not isinstance(value.get("Instances"), list):
        return None
    remarks = [Note("names-are-instances")]
    if value.get("NextToken"):
        remarks.append(Note("more-pages"))
    rows = []
    for instance in value["Instances"]:
        if not isinstance(instance, dict) or not isinstance(instance.get("InstanceId"), str):
            raise bad_document(refusal("document-instance-id", "hosts"))
        nodes = instance.get("NetworkNodes") or []
        if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
            raise bad_document(refusal("document-network-nodes", "hosts"))
        rows.append((instance["InstanceId"], upwards("switch", nodes[::-1])))
    return hosts_in_places("aws-topology", rows, *remarks)


# -- GCP -------------------------------------------------------------------------------------------


def _gcp(value: object) -> Hosts | None:
    rows = list[tuple[str, Mapping[str, object]]]()
    for instance in _items(value):
        if not isinstance(instance, dict):
            return None
        status = instance.get("resourceStatus", instance)
        if not isinstance(status, dict) or not {"physicalHost", "physicalHostTopology"} & {*status}:
            return None
        topology = status.get("physicalHostTopology")
        if isinstance(topology, dict):
            places = {kind: topology.get(kind) for kind in ("cluster", "block", "subblock")}
        else:
            places = _parts(str(status.get("physicalHost") or ""))
        if not isinstance(name := instance.get("name"), str):
            raise bad_document(refusal("document-instance-name", "hosts"))
        rows.append((name, places))
    return hosts_in_places("gcp-topology", _by_path(rows)) if rows else None


def _parts(path: str) -> dict[str, object]:
    """/cluster/rack/host: the names of the places, from the top down."""
    parts = [part for part in path.split("/") if part][:-1]
    return dict(zip(("cluster", "rack") if len(parts) < 3 else ("zone", "cluster", "rack"), parts))


def _by_path(
    rows: Iterable[tuple[str, Mapping[str, object]]],
) -> Iterator[tuple[str, dict[str, str]]]:
    """Each machine with the names of its places, the lowest first.

    A rack is called by its whole path, cluster/rack, and so is any other place whose name occurs in
    two paths. rows: a machine, and the names of its places from the top down.
    """
    walked: list[tuple[str, list[tuple[str, str, str]]]] = []  # kind, name and path of each place
    paths: dict[tuple[str, str], set[str]] = {}
    for host, named in rows:
        kinds = {kind: str(name) for kind, name in named.items() if name}
        joined = accumulate(kinds.values(), "{}/{}".format)
        walked.append((host, [(*of, path) for of, path in zip(kinds.items(), joined)]))
        for kind, name, path in walked[-1][1]:
            paths.setdefault((kind, name), set()).add(path)
    for host, places in walked:
        levels = {}
        for kind, name, path in reversed(places):
            is_path = kind == "rack" or len(paths[kind, name]) > 1
            levels["block-1" if kind == "block" else kind] = path if is_path else name
        yield host, levels


def has_paths(text: str) -> bool:
    """Whether every line is a machine with a path such as /cluster/rack/host."""
    return all(_PATH.search(line) for line in text.splitlines() if line.strip())


def read_paths(text: str) -> Hosts:
    """Lines of a machine and its physicalHost: a log of GCP, or a table of ranks.

    >>> read_paths("0 n0 /c/b/x\\n8 n1 /c/a/y").racks
    {'n0': 'c/b', 'n1': 'c/a'}
    """
    matches = filter(None, map(_PATH.search, text.splitlines()))
    rows = ((match[1], _parts(match[2])) for match in matches)
    return hosts_in_places("gcp-topology", _by_path(rows))


# -- Kubernetes ------------------------------------------------------------------------------------


def _kubernetes(value: object) -> Hosts | None:
    rows, remarks = [], []
    for node in _items(value):
        metadata = node.get("metadata", node) if isinstance(node, dict) else None
        named = metadata if isinstance(metadata, dict) else {}
        labels = named.get("labels")
        if not isinstance(labels, dict):  # a bare mapping of labels
            labels = node if isinstance(node, dict) and any(map(_is_label, node)) else None
        if labels is None:
            return None
        if not named.get("name"):
            remarks.append(Note("host-without-name", {"host": NAMELESS}))
        rows.append((str(named.get("name") or NAMELESS), _labelled(labels)))
    return hosts_in_places("kubernetes", rows, *remarks) if rows else None


def _is_label(key: object) -> bool:
    return bool(key in KEYS or TIER.fullmatch(str(key)) or LAYER.fullmatch(str(key)))


def _labelled(labels: Mapping[str, object]) -> dict[str, str]:
    places = {KEYS[key]: str(value) for key, value in labels.items() if key in KEYS and value}
    if "partition" in places:  # ClusterUUID.CliqueID
        places.setdefault("domain", places["partition"].rpartition(".")[0])
    tiers, layers = (
        [str(labels[key]) for key in sorted(labels, key=str) if label.fullmatch(str(key))]
        for label in (TIER, LAYER)
    )
    return {**places, **upwards("switch", tiers or layers[::-1])}


# -- topograph -------------------------------------------------------------------------------------


def _topograph(value: object) -> Hosts | None:
    if not isinstance(value, dict) or not isinstance(blocks := value.get("blocks"), list):
        return None
    if not all(isinstance(block, dict) and "nodes" in block for block in blocks):
        return None
    switches = value.get("switches")
    parent = {
        str(child): str(switch.get("name", switch.get("switch")))
        for switch in (switches if isinstance(switches, list) else ())
        if isinstance(switch, dict) and isinstance(switch.get("switches"), list)
        for child in switch["switches"]
    }
    rows = []
    for block in blocks:
        annotations = block.get("annotations") or block.get("labels")
        annotations = annotations if isinstance(annotations, dict) else {}
        ends = {str(key).rpartition("/")[2]: str(name) for key, name in annotations.items()}
        above = [str(block.get("switch") or block.get("name") or block.get("block") or "")]
        while above[-1] in parent and len(above) < 8:
            above.append(parent[above[-1]])
        places = upwards("switch", above if above[0] else [])
        if "domain" in ends:
            places["domain"] = ends["domain"]
        rows += [(host, places) for host in hosts_of_lists(block["nodes"])]
    return hosts_in_places("topograph", rows)


# -- plain -----------------------------------------------------------------------------------------


def _plain(value: object) -> Hosts | None:
    if value and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return _mapping(value)
    if not value or not isinstance(value, list):
        return None
    if all(isinstance(item, str) for item in value):
        return hosts_in_places("list", ((name, {}) for name in value))
    return _records(value) if all(isinstance(item, (str, dict)) for item in value) else None


def _mapping(value: Facts) -> Hosts:
    """{host: rack}, {rack: [hosts]}, {host: slots} or {host: [its GPUs]}."""
    every = list(value.values())
    if all(isinstance(item, str) for item in every):
        rows = [(host, {"rack": rack}) for host, rack in value.items()]
        return hosts_in_places("host-rack", rows)
    if all(isinstance(item, list) and all(isinstance(h, str) for h in item) for item in every):
        rows = [(host, {"rack": rack}) for rack, hosts in value.items() for host in hosts]
        return hosts_in_places("host-rack", rows)
    counts = {
        host: len(gpus) if isinstance(gpus, list) and {*map(type, gpus)} == {int} else gpus
        for host, gpus in value.items()
    }
    if not all(type(count) is int and count > 0 for count in counts.values()):
        raise bad_document(refusal("document-host-values", "hosts"))
    return Hosts("host-slots", tuple(counts), counts)


def _records(value: Sequence[object]) -> Hosts:
    """[{"host": "n0", "rack": "r0", "slots": 8}, ...], with any of the names of
    `files.HEADINGS`."""
    rows, slots = [], {}
    for record in value:
        items = record.items() if isinstance(record, dict) else ()
        fields = {COLUMNS.get(str(key).lower(), ""): item for key, item in items}
        host = fields.get("host")
        if not isinstance(host, str) or not host:
            raise bad_document(refusal("document-host", "hosts"))
        rows.append((host, {kind: str(fields[kind]) for kind in LEVELS if fields.get(kind)}))
        if (count := fields.get("slots")) is not None:
            if type(count) is not int or count < 0:
                raise bad_document(refusal("document-slots", "hosts"))
            slots[host] = count
    return hosts_in_places("table", rows, slots=slots)


READERS: tuple[Callable[[object], Hosts | None], ...] = (
    *(_aws, _gcp, _topograph, _kubernetes, read_yaml_topology, _plain),
)
"""Readers in the order in which they are tried; each returns None for other forms."""
