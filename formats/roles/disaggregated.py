"""Servers that prefill and servers that decode: several commands of one script, a Dynamo graph, or
the values of llm-d's chart.

Source: vllm-project/vllm vllm/config/kv_transfer.py (kv_role), sgl-project/sglang server_args.py
(--disaggregation-mode), ai-dynamo/dynamo recipes/ (services of a DynamoGraphDeployment),
llm-d-incubation/llm-d-modelservice charts/llm-d-modelservice/values.yaml (parallelism).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from groups.layout import Job
from groups.notes import Note
from groups.pools import packed
from training.roles import Phase

from ..errors import refusal
from ..launch import parse
from ..launch.items import Parsed
from ..launch.meaning import meaning_of
from ..launch.meaning.choice import only_run
from ..launch.sayings import Reading
from ..launch.training import served_of
from .build import Known, Sketch, machines, plan_read
from .handover import refused_sizes
from .kubernetes import ROLES_OF_KV, STARTS, is_manifest, is_recipe, pods_of, workers_of
from .model import PlanRead
from .settings import RoleSettings

PHASES = (
    *(Phase("prefill", ("prefill",)), Phase("transfer", ("prefill", "decode"))),
    *(Phase("decode", ("decode",)), Phase("serve", ("server",))),
)
KINDS = ("prefill", "decode")
GRAPH = "spec.services."


@dataclass(frozen=True)
class ServerRead:
    """Servers of one kind: the options of one's command, and GPUs per node."""

    kind: str  # prefill or decode; empty where nothing says it
    parsed: Parsed
    parts: Sequence[int] = ()  # none: as many as its sizes make
    count: int = 1
    connector: str = ""  # that hands its KV cache over
    role: str = ""  # that the connector is told

    @property
    def job(self) -> Job:
        """One server; of vLLM's a dp that is not given is 1, for the others are servers too."""
        job = self.parsed.job()
        return replace(job, dp=1) if job.framework == "vllm" and job.dp is None else job

    @property
    def gpus(self) -> int:
        return self.job.nodes * self.job.gpus_per_node


def is_disaggregated(reading: Reading) -> bool:
    """Whether a text has servers of several kinds."""
    if is_graph(reading) or is_chart(reading) or is_recipe(_names(reading)):
        return True
    if is_manifest(reading.text):
        return True
    kinds = [_kind(reading, run) for run in _serving(reading)]
    return len(kinds) > 1 and any(kinds)


def is_graph(reading: Reading) -> bool:
    """Whether a file is a graph of Dynamo's."""
    words = reading.settings.get(("", "kind"), ())
    return any(word.text == "DynamoGraphDeployment" for word in words)


def _names(reading: Reading) -> set[str]:
    return {name for _, name in reading.settings}


def is_chart(reading: Reading) -> bool:
    """Whether a file holds the values of llm-d's chart."""
    names = _names(reading)
    own = any(name.startswith("modelArtifacts.") for name in names)
    return own and any(name.startswith(("decode.", "prefill.")) for name in names)


def read_disaggregated(settings: RoleSettings) -> PlanRead:
    """The plan of servers that prefill and decode. Errors: LayoutError for what is left open."""
    reading = settings.reading
    if is_graph(reading):
        found = [*_of_graph(settings)]
    elif is_chart(reading):
        found = [*_of_chart(settings)]
    elif is_recipe(_names(reading)) or is_manifest(reading.text):
        pods = workers_of(settings) if is_recipe(_names(reading)) else pods_of(reading.text)
        found = [
            ServerRead(
                pod.kind, _server(pod.text), pod.parts, pod.replicas, *connector_in(pod.text)
            )
            for pod in pods
        ]
    else:
        found = [
            ServerRead(_kind(reading, run), _of_command(reading, run), (), 1, *own)
            for run in _serving(reading)
            for own in [connector_in(_word(reading, run, "kv-transfer-config"))]
        ]
    if not found:
        raise refusal("no-server", "paste")
    servers = _named(settings, found)
    _require_equal(servers)
    largest = max(max(one.parts or (min(one.gpus, 8),)) for one in servers)
    each = settings.count("gpus_per_node", max(8, largest), note="")
    wanted: dict[str, list[Sequence[int]]] = {}
    jobs: dict[str, ServerRead] = {}
    for server in servers:
        name = _role_of(server, jobs)
        jobs.setdefault(name, server)
        parts = server.parts or _parts(server.gpus, each)
        if sum(parts) != server.gpus:
            facts = {"role": name, "sizes": server.gpus, "gpus": sum(parts)}
            raise refusal("gpus-are-not-sizes", "paste", **facts)
        wanted.setdefault(name, []).extend([parts] * server.count)
    placed, nodes = packed(wanted, each)
    settings.note(Note("servers-in-order", {"servers": ", ".join(wanted), "each": each}))
    sketches = [_sketch(name, jobs[name], placed[name], each) for name in wanted]
    framework = next(iter(jobs.values())).job.framework
    turns = tuple(wanted)
    return plan_read(
        *(framework, nodes, each, sketches, turns, PHASES, settings.notes), beside=turns
    )


def _sketch(name: str, server: ServerRead, gpus: tuple[int, ...], each: int) -> Sketch:
    own = machines(len(gpus), each)
    job = replace(server.job, nodes=own["nodes"], gpus_per_node=own["gpus_per_node"])
    known = Known.of(server.parsed).also(**served_of(server.parsed))
    return Sketch(name, job, gpus=gpus, known=known)


def _role_of(server: ServerRead, jobs: Mapping[str, ServerRead]) -> str:
    """The role of a server: that of the others of its kind, if they are alike."""
    name, number = server.kind, 1
    while name in jobs and jobs[name].job != server.job:
        number += 1
        name = f"{server.kind}-{number}"
    return name


def _named(settings: RoleSettings, found: Sequence[ServerRead]) -> list[ServerRead]:
    """The servers with their kinds, which are asked for where nothing says them."""
    text = settings.text("roles")
    if text is None and all(server.kind for server in found):
        return [*found]
    kinds = [kind.strip().lower() for kind in (text or "").split(",")]
    if len(kinds) != len(found) or not {*kinds} <= {*KINDS}:
        half = max(1, len(found) // 2)
        works = ",".join(["prefill"] * half + ["decode"] * (len(found) - half))
        raise refusal("kinds-unknown", "roles", {"roles": works}, count=len(found))
    return [replace(server, kind=kind) for server, kind in zip(found, kinds)]


def connector_in(text: str) -> tuple[str, str]:
    """The connector that a server's options name, and its role; of several connectors none, for
    each of them may do it.

    >>> connector_in('{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}')
    ('P2pNcclConnector', 'kv_producer')
    """
    found = dict[str, list[str]]()
    for match in _CONNECTOR.finditer(text):
        found.setdefault(match[1], []).append(match[2])
    names, roles = found.get("connector", []), found.get("role", [])
    return names[0] if len(names) == 1 else "", roles[0] if roles else ""


_CONNECTOR = re.compile(r"kv_(connector|role)[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(\w{1,80})")


def _require_equal(servers: Sequence[ServerRead]) -> None:
    """Raises LayoutError for a connector that does not hand over between the servers' sizes."""
    sides = [[one for one in servers if one.kind == kind] for kind in KINDS]
    for first, other in itertools.product(*sides):
        name = first.connector or first.job.framework
        prefill, decode = (
            {axis: getattr(one.job, axis) for axis in ("tp", "pp", "cp")} for one in (first, other)
        )
        refused = refused_sizes(name, prefill, decode, other.role)
        if refused:
            facts = {**refused._asdict(), "connector": name, "kinds": ", ".join(KINDS)}
            raise refusal(facts.pop("code"), "paste", **facts)


def _parts(gpus: int, each: int) -> list[int]:
    return [each] * (gpus // each) + ([gpus % each] if gpus % each else [])


# -- scripts ---------------------------------------------------------------------------------------


def _serving(reading: Reading) -> list[str]:
    """The commands that start servers, without those for further nodes of the same one."""
    runs = [run for run, schema in reading.schema_of_run.items() if schema.serves]
    return [run for run in runs if _word(reading, run, "node-rank") in ("", "0")]


def _of_command(reading: Reading, run: str) -> Parsed:
    """The reading of one of several commands, as if it stood alone."""
    return meaning_of(only_run(reading, run))


def _word(reading: Reading, run: str, name: str) -> str:
    words = reading.settings.get((run, name), ())
    return " ".join(word.text for word in words)


def _kind(reading: Reading, run: str) -> str:
    """The purpose of a server, by its options."""
    mode = _word(reading, run, "disaggregation-mode").lower()
    if mode in KINDS:
        return mode
    for kind, role in (("prefill", "kv_producer"), ("decode", "kv_consumer")):
        marked = (run, f"is-{kind}-worker") in reading.settings
        if marked or role in _word(reading, run, "kv-transfer-config"):
            return kind
    return ""


# -- Kubernetes ------------------------------------------------------------------------------------


def _of_graph(settings: RoleSettings) -> Iterator[ServerRead]:
    """The services of a Dynamo graph that have GPUs."""
    names = [name for _, name in settings.reading.settings if name.startswith(GRAPH)]
    services = dict.fromkeys(name[len(GRAPH) :].split(".")[0] for name in names)
    for service in services:
        section = f"{GRAPH}{service}"
        gpus = settings.text(f"{section}.resources.limits.gpu", f"{section}.resources.requests.gpu")
        if gpus is None:
            continue
        each = settings.count(
            f"{section}.resources.limits.gpu", 1, f"{section}.resources.requests.gpu"
        )
        nodes = settings.count(f"{section}.multinode.nodeCount", 1, note="")
        text = _command(settings, f"{section}.extraPodSpec.mainContainer")
        kind = settings.word(f"{section}.subComponentType") or service.lower()
        named = [own for own in KINDS if own in kind]
        read = _server(text)
        shown = named[0] if len(named) == 1 else _kind_of(text)
        replicas = settings.count(f"{section}.replicas", 1, note="", least=0)
        if replicas:
            yield ServerRead(shown, read, [each] * nodes, replicas, *connector_in(text))


def _of_chart(settings: RoleSettings) -> Iterator[ServerRead]:
    """The decode and prefill pods of llm-d's chart."""
    for kind in ("prefill", "decode"):
        is_made = settings.switch(f"{kind}.create", default=settings.has(kind))
        replicas = settings.count(f"{kind}.replicas", 1, note="", least=0)
        if not (is_made and replicas):
            continue
        sizes = {
            name: settings.count(f"{kind}.parallelism.{name}", 1, note="")
            for name in ("tensor", "data", "dataLocal", "workers")
        }
        data_text = settings.text(f"{kind}.parallelism.data")
        data = sizes["data"] if data_text else sizes["dataLocal"] * sizes["workers"]
        model = settings.text("modelArtifacts.name") or "model"
        text = _command(settings, f"{kind}.containers.0")
        if "tensor-parallel-size" not in text:
            text += f" --tensor-parallel-size {sizes['tensor']}"
        if data > 1 and "data-parallel-size" not in text:
            text += f" --data-parallel-size {data}"
        server = _server(f"vllm serve {model} {text}")
        yield ServerRead(kind, server, (), replicas, *connector_in(text))


def _command(settings: RoleSettings, section: str) -> str:
    """The words of a container's command."""
    words = [
        word.text
        for name in ("command", "args")
        for word in settings.words(f"{section}.{name}") or ()
    ]
    return " ".join(words).replace("\\\n", " ")


def _server(text: str) -> Parsed:
    """The server that a container's command starts."""
    if text.startswith("model: "):  # TensorRT-LLM's file of options
        return _checked(parse(text))
    match = STARTS.search(text)
    starts = {"dynamo.sglang": "python3 -m sglang.launch_server", "dynamo.vllm": "vllm serve"}
    own = match[0] if match else text
    for name, start in starts.items():
        own = own.replace(name, start)
    if own.startswith("sglang.launch_server"):
        own = f"python3 -m {own}"
    if match is None:
        raise refusal("no-server", "paste")
    return _checked(parse(" ".join(own.split())))


def _checked(parsed: Parsed) -> Parsed:
    """Errors: LayoutError for sizes that a server's command leaves open."""
    if parsed.asks:
        raise refusal("role-asks", "paste", role="server", sizes=", ".join(parsed.asks))
    return parsed


def _kind_of(text: str) -> str:
    for kind in KINDS:
        if (
            ROLES_OF_KV.get(
                "kv_producer" if "kv_producer" in text else "kv_consumer" * ("kv_consumer" in text)
            )
            == kind
        ):
            return kind
        if f"--is-{kind}-worker" in text or re.search(rf"--disaggregation-mode[ =]{kind}", text):
            return kind
    return ""
