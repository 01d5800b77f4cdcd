# ruff: noqa: RUF001
"""The words about hangs: what a log shows, where the waiting begins, what cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .shapes import Text

HANG: dict[str, Text] = {
    "never-entered": Text(
        "GPU {rank}{place} never entered {op} {seq} of its {kind} group.",
        "GPU {rank}{place}没有进入其 {kind} 组的第 {seq} 次 {op}。",
    ),
    "came-late": Text(
        "GPU {rank}{place} entered {op} {seq} of its {kind} group only when the others had timed "
        "out.",
        "GPU {rank}{place} 进入其 {kind} 组的第 {seq} 次 {op} 时，其他 rank 已经超时。",
    ),
    "other-op": Text(
        "GPU {rank}{place} called {own_op} where its {kind} group called {other_op} ({seq}).",
        "在其 {kind} 组的第 {seq} 次操作中，GPU {rank}{place} 调用了 {own_op}，"
        "而其他 rank 调用的是 {other_op}。",
    ),
    "other-size": Text(
        "GPU {rank}{place} called {op} {seq} of its {kind} group with {own_sizes}, the others with "
        "{other_sizes}.",
        "GPU {rank}{place} 在其 {kind} 组的第 {seq} 次 {op} 中用了 {own_sizes}，其他 rank 用的是 "
        "{other_sizes}。",
    ),
    "other-order": Text(
        "GPU {rank}{place} entered its groups in another order than its peers: look at {op} {seq} "
        "of its {kind} group.",
        "GPU {rank}{place} 进入各组的顺序与其他 rank 不同：请查看其 {kind} 组的第 {seq} 次 {op}。",
    ),
    "several-absent": Text(
        "GPUs {ranks} did not enter {op} {seq} of their {kind} group.",
        "GPU {ranks} 没有进入其 {kind} 组的第 {seq} 次 {op}。",
    ),
    "several-late": Text(
        "GPUs {ranks} entered {op} {seq} of their {kind} group only when the others had timed out.",
        "GPU {ranks} 进入其 {kind} 组的第 {seq} 次 {op} 时，其他 rank 已经超时。",
    ),
    "several-different": Text(
        "GPUs {ranks} called something else than the others in {op} {seq} of the {kind} group.",
        "在 {kind} 组的第 {seq} 次 {op} 中，GPU {ranks} 的调用与其他 rank 不同。",
    ),
    "several-order": Text(
        "GPUs {ranks} entered their groups in another order than their peers: look at {op} {seq} "
        "of the {kind} group.",
        "GPU {ranks} 进入各组的顺序与其他 rank 不同：请查看 {kind} 组的第 {seq} 次 {op}。",
    ),
    "parties-differ": Text(
        "The members of the {kind} group called different things at {seq}, and no majority tells "
        "who is right: {parties}.",
        "{kind} 组的成员在第 {seq} 次操作中调用不一致，且没有多数可以判断谁对：{parties}。",
    ),
    "no-dump": Text(
        "{op} {seq} of the {kind} group waits, and of GPUs {ranks} there is no dump: one of them "
        "is missing, or stuck unseen.",
        "{kind} 组的第 {seq} 次 {op} 在等待，而 GPU {ranks} 没有转储："
        "其中之一缺席，或卡在看不到的地方。",
    ),
    "all-arrived": Text(
        "All members entered {op} {seq} of the {kind} group with the same sizes: look for a device "
        "or a link, not for a missing GPU.",
        "{kind} 组的所有成员都以相同大小进入了第 {seq} 次 {op}："
        "应查设备或链路，而不是找缺席的 GPU。",
    ),
    "one-of": Text(
        "{op} {seq} of the {kind} group waits. One of GPUs {ranks} is to blame; the evidence does "
        "not tell which.",
        "{kind} 组的第 {seq} 次 {op} 在等待。问题出在 GPU {ranks} 之一，但证据无法判断是哪一个。",
    ),
    "unclear": Text(
        "{op} {seq} of the {kind} group waits; the evidence does not tell for whom.",
        "{kind} 组的第 {seq} 次 {op} 在等待，但证据无法判断在等谁。",
    ),
    "nothing-stuck": Text(
        "Every recorded operation has ended: these dumps show no hang.",
        "所有记录的操作都已结束：这些转储中没有挂起。",
    ),
    "waits-here": Text("{count} others wait there.", "另有 {count} 个 GPU 在那里等待。"),
    "waits-here-one": Text("One other waits there.", "另有 1 个 GPU 在那里等待。"),
    "waits-in-all": Text(
        "Through them {count} GPUs wait in all.", "受其影响，共有 {count} 个 GPU 在等待。"
    ),
    "spreads": Text(
        "Through them wait {pipelines} pipelines, and in the end {count} of {world} GPUs.",
        "受其影响，{pipelines} 条流水线在等待，最终共 {count}/{world} 个 GPU 在等待。",
    ),
    "spreads-one": Text(
        "Through them waits a pipeline, and in the end {count} of {world} GPUs.",
        "受其影响，1 条流水线在等待，最终共 {count}/{world} 个 GPU 在等待。",
    ),
    "spreads-flat": Text(
        "In the end {count} of {world} GPUs wait for them.",
        "最终共 {count}/{world} 个 GPU 在等待。",
    ),
    "place-host-device": Text(" (host {host}, device {device})", "（主机 {host}，设备 {device}）"),
    "place-host": Text(" (host {host})", "（主机 {host}）"),
    "place-node": Text(" (node {node}, device {device})", "（节点 {node}，设备 {device}）"),
    "place-device": Text(" (device {device})", "（设备 {device}）"),
}
"""By the code of a `Note` of `formats.logs.account`."""

HANG_NOTES: dict[str, Text] = {
    "ranks-ambiguous": Text(
        "[Rank {ranks}] without [rankN] in front: the same number stands for different processes, "
        "so these are places in groups that the text does not name.",
        "[Rank {ranks}] 前没有 [rankN]：同一编号对应不同进程，因此它们是文本未指明的组内的序号。",
    ),
    "lines-hidden": Text(
        "Ray hid repeated lines of other ranks: that a rank says nothing proves nothing.",
        "Ray 隐藏了其他 rank 的重复行：某个 rank 没有输出并不能说明什么。",
    ),
    "barrier-reached": Text(
        "GPU {rank} did reach the barrier; rank 0's log names the one that did not.",
        "GPU {rank} 到达了屏障；未到达者见 rank 0 的日志。",
    ),
    "barrier-of-all": Text(
        "The barrier's numbers are read as GPUs of the job: a monitored barrier is of all ranks "
        "unless the program gave it another group.",
        "屏障中的编号按整个作业的 GPU 编号理解：除非程序另外指定了组，"
        "monitored barrier 面向所有 rank。",
    ),
    "barrier-short": Text(
        "{arrived} of {world} ranks arrived at the store's barrier; the text does not name the "
        "others.",
        "{world} 个 rank 中有 {arrived} 个到达了 store 屏障；文本没有指出其余的。",
    ),
    "fingerprints-differ": Text(
        "Ranks {ranks} of a group called different things. The first is who printed the line, the "
        "second the first one that differs: this is no verdict.",
        "组内 rank {ranks} 的调用不一致。前者是打印该行的 rank，后者是第一个不同者：这不是结论。",
    ),
    "missing-in-group": Text(
        "Ranks {ranks} of the group did not arrive: these are places in the group, not GPUs.",
        "组内 rank {ranks} 没有到达：这是组内序号，而不是 GPU 编号。",
    ),
    "counts-differ": Text(
        "NCCL counts different operations on the ranks of {communicator}. In a running job that is "
        "normal; ask again and see whether the counts move.",
        "NCCL 在 {communicator} 的各 rank 上记录的操作数不同。"
        "作业运行时这很正常；请再次查询，看计数是否变化。",
    ),
    "process-unreachable": Text(
        "The process of rank {rank} of {communicator} did not answer NCCL's query.",
        "{communicator} 中 rank {rank} 的进程没有回应 NCCL 的查询。",
    ),
    "text-cut": Text(
        "The text is long: it was read up to the line {before}.",
        "文本过长：只读到 {before} 这一行。",
    ),
    "file-unreadable": Text("{file} was left out: {why}.", "{file} 未读取：{why}。"),
    "dump-without-rank": Text(
        "{file}: no rank at the end of its name, and its groups do not tell which it is.",
        "{file}：文件名末尾没有 rank，从其所在的组也无法判断。",
    ),
    "entries-unreadable": Text(
        "{file}: {count} entries are not of the recorder's format.",
        "{file}：{count} 条记录不符合记录器的格式。",
    ),
}
"""By the code of a note of a log: what the reader must know."""


def hang_sentence(code: str, facts: Mapping[str, Any], language: str) -> str:
    """The sentence of a note, with its facts.

    >>> facts = {"rank": 37, "host": "gpu-04", "device": 5, "op": "all_reduce", "seq": 4812,
    ...          "kind": "tp"}
    >>> hang_sentence("never-entered", facts, "en")
    'GPU 37 (host gpu-04, device 5) never entered all_reduce 4,812 of its tp group.'
    >>> hang_sentence("waits-here", {"count": 7}, "zh")
    '另有 7 个 GPU 在那里等待。'

    Errors: KeyError for a code without a sentence.
    """
    text = HANG[code] if code in HANG else HANG_NOTES[code]
    told = {name: _told(value, language) for name, value in facts.items()}
    return text[language].format(**{"place": _place(facts, language), **told})


def _place(facts: Mapping[str, Any], language: str) -> str:
    known = [name for name in ("host", "node", "device") if facts.get(name) is not None]
    if "host" in known:
        known = [name for name in known if name != "node"]
    code = "place-" + "-".join(known) if known != ["node", "device"] else "place-node"
    return HANG[code][language].format(**facts) if known else ""


def _told(value: Any, language: str) -> str:
    """Numbers with commas, lists of ranks in one line, parties with who called what."""
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, tuple):
        return str(value)
    if any(isinstance(one, tuple) for one in value):
        between = "; " if language == "en" else "；"
        return between.join(f"{_told(ranks, language)} {op} {sizes}" for ranks, op, sizes in value)
    listed = ", ".join(str(one) for one in value[:16])
    return listed + (f" … ({len(value):,})" if len(value) > 16 else "")
