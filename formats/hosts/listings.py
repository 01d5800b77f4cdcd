"""What programs print of machines: pods and their nodes, Slurm's jobs and partitions, and logs
whose lines name a host and a global rank.

    kubectl get pods -o wide   pods in the order of the numbers in their names, a master first
    scontrol show job, squeue  the nodes of the job
    srun --label hostname      the machine of every task
    slurm.conf, scontrol       Nodes of the one partition, or of the default one
    a log                      the host of every rank

>>> text = "NAME   READY   STATUS    NODE\\nw-10   1/1   Running   c\\nw-2   1/1   Running   b"
>>> read_pods(text).names
('b', 'c')

Sources: kubernetes/kubectl (get -o wide); Kubernetes StatefulSet, LeaderWorkerSet and Kubeflow's
PyTorchJob name pods with their ordinals; slurm.conf(5), scontrol(1); NVIDIA/nccl src/init.cc;
Lightning-AI/pytorch-lightning src/lightning/fabric/utilities/distributed.py.
"""

from __future__ import annotations

import re
from collections import Counter

from diagnosis.machines.hosts import Hosts, no_hosts
from groups.notes import Note

from ..errors import refusal
from .slurm import expand_hostlist
from .values import bad_document

_CELL = re.compile(r"\S+(?: \S+)*")
_HOST = r"([A-Za-z][A-Za-z0-9_.-]{0,252})"
_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"GLOBAL_RANK: {{0,2}}(?P<rank>\d{{1,7}})\b.{{0,80}}? on (?P<host>{_HOST})",
        rf"^(?P<host>{_HOST}):\d{{1,9}}:\d{{1,9}} \[\d{{1,3}}\] NCCL INFO .{{0,80}}?"
        rf"\b[rR]ank (?P<rank>\d{{1,7}}) n[rR]anks (?P<of>\d{{1,7}})\b",
        rf"\[(?P<host>{_HOST}):rank ?(?P<rank>\d{{1,7}})\]",
        rf"(?<![A-Za-z_])(?:global[_ ])?rank[ =:]{{1,3}}(?P<rank>\d{{1,7}})\b.{{0,80}}?"
        rf"\b(?:host|hostname|node)[ =:]{{1,3}}(?P<host>{_HOST})",
        rf"\b(?:host|hostname|node)[ =:]{{1,3}}(?P<host>{_HOST})\b.{{0,80}}?"
        rf"(?<![A-Za-z_])(?:global[_ ])?rank[ =:]{{1,3}}(?P<rank>\d{{1,7}})\b",
    )
)
LONGEST = 600
"""The longest line that is searched, in characters."""
LEAST = 2
DONE = ("Completed", "Succeeded", "Failed", "Error", "Evicted", "Terminating")
FIRST = ("master", "leader", "chief", "head")
"""Names of pods that come before the workers."""


def read_listing(text: str) -> Hosts | None:
    """The machines of a text that a program printed; None for any other text.

    Errors: LayoutError for one that leaves its machines open.
    """
    head = text.split("\n", 1)[0]
    if " NODE" in head and {"NAME", "STATUS"} <= {*head.split()}:
        return read_pods(text)
    if "NODELIST(REASON)" in head:
        return _of_queue(text)
    if labelled := _labelled(text):
        return labelled
    if "JobId=" in text and "NodeList=" in text:
        return _of_job(text)
    if "PartitionName=" in text or text.startswith("NodeName="):
        return _of_partition(text)
    return _of_ranks(text)


# -- Kubernetes ------------------------------------------------------------------------------------


def read_pods(text: str) -> Hosts:
    """The nodes of pods, in the order of the numbers at the end of their names; pods without a node
    are left out, and said."""
    lines = [_cells(line) for line in text.splitlines() if line.strip()]
    pods: list[tuple[str, str]] = []
    waiting: list[tuple[str, str]] = []
    at, own = lines[0].index("NODE"), lines[0].index("NAME")
    status = lines[0].index("STATUS") if "STATUS" in lines[0] else None
    for row in lines[1:]:
        node = row[at] if len(row) > at else "<none>"
        done = status is not None and row[status] in DONE
        if len(row) <= own or "launcher" in row[own] or done:
            continue
        (waiting if node == "<none>" else pods).append((row[own], node))
    jobs = {_job(name) for name, _ in (*pods, *waiting)}
    if len(jobs) > 1:
        what = f"NAME {', '.join(sorted(jobs))}"[:200]
        raise bad_document(refusal("listing-of-several", "hosts", what=what, count=len(jobs)))
    pods.sort(key=lambda pod: _ordinal(pod[0]))
    if not pods:
        raise no_hosts()
    names = dict.fromkeys(node for _, node in pods)
    facts = {"pods": ", ".join(name for name, _ in waiting)[:200], "count": len(waiting)}
    return Hosts("pods", tuple(names), remarks=(Note("pods-pending", facts),) if waiting else ())


def _cells(line: str) -> list[str]:
    return _CELL.findall(line.replace("\t", "   "))


def _job(name: str) -> str:
    """The job of a pod: its name up to its number, without the word for its role.

    >>> {_job(name) for name in ("job-master-0", "job-worker-10", "job-0-1", "job-2-x7k2p")}
    {'job'}
    """
    words = name.split("-")
    first = next((at for at, word in enumerate(words) if word.isdigit()), len(words))
    kept = [word for word in words[:first] if word not in (*FIRST, "worker", "workers", "node")]
    return "-".join(kept) or name


def _ordinal(name: str) -> tuple[bool, tuple[int, ...], str]:
    """The place of a pod among the others.

    >>> sorted(["w-10", "w-2", "w-0-1", "w-0", "job-master-0"], key=_ordinal)
    ['job-master-0', 'w-0', 'w-0-1', 'w-2', 'w-10']
    """
    words = name.split("-")
    numbers = [int(word) for word in words if word.isdigit() and len(word) < 8]
    return not {*words} & {*FIRST}, tuple(numbers), name


# -- Slurm -----------------------------------------------------------------------------------------


def _of_job(text: str) -> Hosts:
    """The nodes of a job. Errors: LayoutError for several jobs, or one that has none yet."""
    listed = re.findall(r"(?<!\w)NodeList=(\S{1,60000})", text)
    listed = [name for name in listed if name != "(null)"]
    if len(set(listed)) != 1:
        raise bad_document(refusal("listing-of-several", "hosts", what="JobId", count=len(listed)))
    return Hosts("slurm-job", tuple(expand_hostlist(listed[0])))


def _of_queue(text: str) -> Hosts:
    """The nodes of the one job that runs. Errors: LayoutError for several."""
    rows = [line.split() for line in text.splitlines()[1:] if line.strip()]
    listed = {row[-1] for row in rows if row[-1][:1] != "("}
    if len(listed) != 1:
        facts = {"what": "JOBID", "count": len(listed)}
        raise bad_document(refusal("listing-of-several", "hosts", **facts))
    return Hosts("slurm-job", tuple(expand_hostlist(listed.pop())))


_LABEL = re.compile(rf"[ \t]*(\d{{1,7}}): {_HOST}[ \t\r]*")


def _labelled(text: str) -> Hosts | None:
    """The machine of every task, as ``srun --label hostname`` prints them in any order."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = [_LABEL.fullmatch(line[:LONGEST]) for line in lines]
    ranks = {int(match[1]): match[2] for match in found if match}
    if len(ranks) < max(LEAST, len(lines)) or len(ranks) != max(ranks) + 1:
        return None
    names = [ranks[rank] for rank in sorted(ranks)]
    return Hosts("rank-log", tuple(Counter(names)), Counter(names), ranks=tuple(names))


def _of_partition(text: str) -> Hosts:
    """The nodes of the only partition, or of the default one; without partitions, all nodes."""
    parts = re.split(r"(?<!\w)PartitionName=", text)[1:]
    found = {}
    for part in parts:
        nodes = re.search(r"(?<![\w])Nodes=(\S{1,60000})", part)
        if nodes:
            found[part.split(None, 1)[0]] = (nodes[1], "Default=YES" in part)
    chosen = [nodes for nodes, is_default in found.values() if is_default] if len(found) > 1 else []
    chosen = chosen or [nodes for nodes, _ in found.values()]
    if len(chosen) > 1:
        what = f"PartitionName {', '.join(found)}"[:200]
        raise bad_document(refusal("listing-of-several", "hosts", what=what, count=len(found)))
    if not chosen:
        chosen = [",".join(re.findall(r"(?<!\w)NodeName=(\S{1,60000})", text))]
    if chosen[0] == "ALL":
        chosen = [",".join(re.findall(r"(?<!\w)NodeName=(\S{1,60000})", text))]
    return Hosts("slurm-nodes", tuple(expand_hostlist(chosen[0])))


# -- logs ------------------------------------------------------------------------------------------


def _of_ranks(text: str) -> Hosts | None:
    """The machine of every rank, where the lines of a log name both and no rank is missing."""
    for pattern in _LINES:
        found: dict[int, dict[int, str]] = {}
        for line in text.splitlines():
            for match in pattern.finditer(line[:LONGEST]):
                size = int(match.groupdict().get("of") or 0)
                found.setdefault(size, {}).setdefault(int(match["rank"]), match["host"])
        ranks = found[max(found)] if found else {}
        if len(ranks) >= LEAST and len(ranks) == max(ranks) + 1:
            names = [ranks[rank] for rank in sorted(ranks)]
            return Hosts("rank-log", tuple(Counter(names)), Counter(names), ranks=tuple(names))
    return None
