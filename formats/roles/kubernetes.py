"""Servers in manifests of Kubernetes, and in recipes of srt-slurm.

Every `replicas` above a container multiplies it, and a LeaderWorkerSet gives each copy `size` pods:

    Deployment, StatefulSet   spec.replicas
    LeaderWorkerSet           spec.replicas, of spec.leaderWorkerTemplate.size pods each
    StormService              spec.replicas of all roles, each spec.template.spec.roles[].replicas
    RoleBasedGroup            spec.roles[].replicas

A recipe of srt-slurm deals the nodes of a kind among its workers, unless it gives their GPUs.

Sources: Kubernetes apps/v1; kubernetes-sigs/lws api/leaderworkerset/v1; vllm-project/aibrix
api/orchestration/v1alpha1 (StormService); NVIDIA/srt-slurm c88ef73 docs/config-reference.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..errors import refusal
from ..launch.syntax.files import read_file
from ..launch.syntax.words import Source
from .settings import RoleSettings

KINDS = ("prefill", "decode")
STARTS = re.compile(
    r"(?:vllm serve|dynamo\.(?:vllm|sglang)|sglang\.launch_server|trtllm-serve|vllm\.entrypoints)"
    r".*",
    re.DOTALL,
)
"""How the command of a server begins."""

SERVES = "vllm/vllm-openai"
"""The image whose entry point is ``vllm serve``."""

ROLES_OF_KV = {"kv_producer": "prefill", "kv_consumer": "decode"}


class PodRead(NamedTuple):
    """A server's command, what it is for, the GPUs of each of its pods and its copies."""

    kind: str
    text: str
    parts: list[int]
    replicas: int


Paths = Mapping[tuple[str, ...], str]


def documents_of(text: str) -> list[Paths]:
    """The documents of a YAML stream: the text of each value by its path."""
    parts = re.split(r"^---[^\n]*$", text, flags=re.MULTILINE)
    return [
        {entry.path: " ".join(word.text for word in entry.values) for entry in entries}
        for entries, _, _ in (read_file(Source.of(part), "yaml") for part in parts if part.strip())
    ]


def is_manifest(text: str) -> bool:
    """Whether a text holds manifests of pods that start servers."""
    starts = STARTS.search(_plain(text)) or SERVES in text
    return "containers" in text and "apiVersion" in text and bool(starts)


def pods_of(text: str) -> Iterator[PodRead]:
    """The servers of a manifest. Errors: LayoutError for replicas that are no whole number."""
    for paths in documents_of(text):
        containers = dict.fromkeys(
            path[: at + 2]
            for path in paths
            for at, part in enumerate(path[:-1])
            if part == "containers"
        )
        for container in containers:
            words = [paths.get((*container, name), "") for name in ("command", "args")]
            plain = _plain(" ".join(words))
            if SERVES in paths.get((*container, "image"), "") and not STARTS.search(plain):
                plain = f"vllm serve {plain}"
            start = STARTS.search(plain)
            if start is None:
                continue
            copies, kind = 1, ""
            for depth in range(len(container)):
                above = container[:depth]
                copies *= _count(paths, (*above, "replicas"))
                named = paths.get((*above, "name"), "") or paths.get(
                    (*above, "metadata", "name"), ""
                )
                kind = next((own for own in KINDS if own in named.lower()), kind)
            own = next((k for role, k in ROLES_OF_KV.items() if role in start[0]), kind)
            pods = _count(paths, (*_above(container, "leaderWorkerTemplate"), "size"))
            gpus = _gpus(paths, container)
            if copies:
                yield PodRead(own or "server", start[0], [gpus] * pods if gpus else [], copies)


def _plain(text: str) -> str:
    """A command that a manifest lists, in one line."""
    return " ".join(re.sub(r"[\[\]\"',\\]", " ", text).split())


def _above(path: tuple[str, ...], part: str) -> tuple[str, ...]:
    return path[: path.index(part) + 1] if part in path else ("",)


def _count(paths: Paths, path: tuple[str, ...]) -> int:
    text = paths.get(path, "1")
    if not text.isdigit():
        name = ".".join(path)
        facts = {"setting": name, "value": repr(text[:40]), "expected": "a whole number"}
        raise refusal("setting-wrong", name, {name: 1}, **facts)
    return int(text)


def _gpus(paths: Paths, container: tuple[str, ...]) -> int:
    for what in ("limits", "requests"):
        text = paths.get((*container, "resources", what, "nvidia.com/gpu"), "")
        if text.isdigit():
            return int(text)
    return 0


# -- srt-slurm -------------------------------------------------------------------------------------

SERVERS = {
    "vllm": ("vllm serve", "vllm_config"),
    "sglang": ("python3 -m sglang.launch_server --model-path", "sglang_config"),
    "trtllm": ("", "trtllm_config"),
}
WORKERS = ("prefill", "decode", "agg")


def is_recipe(names: set[str]) -> bool:
    """Whether a file is a recipe of srt-slurm, by the names of its settings."""
    return any(f"resources.{kind}_workers" in names for kind in WORKERS) and any(
        name.startswith("backend.") for name in names
    )


def workers_of(settings: RoleSettings) -> Iterator[PodRead]:
    """The servers of a recipe, and the GPUs of each on its nodes."""
    each = settings.count("resources.gpus_per_node", 8)
    engine = settings.word("backend.type", default="sglang")
    if engine not in SERVERS:
        facts = {"setting": "backend.type", "value": repr(engine), "expected": ", ".join(SERVERS)}
        raise refusal("setting-wrong", "backend.type", {"backend.type": "sglang"}, **facts)
    for kind in WORKERS:
        workers = settings.count(f"resources.{kind}_workers", 0, least=0, note="")
        if not workers:
            continue
        nodes = settings.count(f"resources.{kind}_nodes", 0, least=0, note="") or 1
        gpus = settings.count(
            f"resources.gpus_per_{kind}", max(1, nodes * each // workers), note=""
        )
        whole = [each] * (gpus // each) + ([gpus % each] if gpus % each else [])
        yield PodRead(
            "server" if kind == "agg" else kind, _options(settings, engine, kind), whole, workers
        )


def _options(settings: RoleSettings, engine: str, kind: str) -> str:
    """The command of a worker, or the file of options that TensorRT-LLM takes."""
    start, section = SERVERS[engine]
    names = {"agg": ("aggregated", "agg")}.get(kind, (kind,))
    model = settings.text("model.path") or "model"
    options = {
        path.removeprefix(f"backend.{section}.{name}."): " ".join(word.text for word in words)
        for (_, path), words in settings.reading.settings.items()
        for name in names
        if path.startswith(f"backend.{section}.{name}.")
    }
    if not start:
        lines = [
            f"{name.replace('-', '_')}: {value}"
            for name, value in options.items()
            if "." not in name
        ]
        return "\n".join([f"model: {model}", "cuda_graph_config: null", *lines])
    words = [start, model]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value.lower() != "false":
            words += [option] if value.lower() == "true" else [option, f"'{value}'"]
    return " ".join(words)
