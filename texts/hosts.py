# ruff: noqa: RUF001
"""Words of machines as they are: refusals, remarks, reasons for an order, notes on launchers."""

from __future__ import annotations

from .shapes import Text

HOSTS_REMARKS: dict[str, Text] = {
    "slots-added": Text(
        "{host} is named more than once: its slots are added up, as Open MPI does.",
        "{host} 出现了不止一次：按 Open MPI 的规则累加槽位。",
    ),
    "one-line-a-task": Text(
        "Each line is the host of one rank, as in SLURM_HOSTFILE (lines: {tasks}, hosts: {hosts}).",
        "{tasks} 行共有 {hosts} 台主机：每行是一个 rank 所在的主机，如 SLURM_HOSTFILE。",
    ),
    "host-in-two": Text(
        "{host} stands under {first} and under {second}; the first counts.",
        "{host} 同时列在 {first} 和 {second} 之下；以前者为准。",
    ),
    "aggregated-left-out": Text(
        "Line {line} joins other blocks and is no domain of its own.",
        "第 {line} 行是其他块的合并，本身不是一个域。",
    ),
    "other-topologies": Text(
        "Read is the topology {name}; the file also has {others}.",
        "读取的拓扑是 {name}；文件中还有 {others}。",
    ),
    "names-are-instances": Text(
        "The names are instance ids, not host names.", "名称是实例 ID，不是主机名。"
    ),
    "more-pages": Text(
        "The answer has a NextToken: more pages of it are missing here.",
        "该应答带有 NextToken：此处缺少后续页。",
    ),
    "host-without-name": Text(
        "The text does not name its machine; it is called {host} here.",
        "文本没有给出机器名；此处称为 {host}。",
    ),
    "fabric-not-ready": Text(
        "The NVLink fabric of {host} is not ready: it counts as in no domain.",
        "{host} 的 NVLink fabric 未就绪：不计入任何域。",
    ),
    "no-domain": Text(
        "{host} is in no NVLink domain of several machines.",
        "{host} 不在跨机器的 NVLink 域中。",
    ),
}
"""What to know beside what a text says, by the code of the remark."""

ORDER_REASONS: dict[str, Text] = {
    "order-kept-best": Text(
        "The order that is given is already best: no other has fewer crossings.",
        "当前顺序已是最优：没有别的顺序跨越更少。",
    ),
    "order-kept": Text(
        "No better order was found; that there is none is not proved.",
        "没有找到更好的顺序；但未证明不存在。",
    ),
    "fewer-cross": Text(
        "{kind}: {after} of {groups} groups are in more than one rack, {before} before.",
        "{kind}：{groups} 个组中有 {after} 个跨机架，原来是 {before} 个。",
    ),
    "more-cross": Text(
        "{kind}: {after} of {groups} groups are in more than one rack, {before} before: given up "
        "for what counts more.",
        "{kind}：{groups} 个组中有 {after} 个跨机架，原来是 {before} 个：为更重要的组作出的让步。",
    ),
    "larger-than-racks": Text(
        "{kind}: a group takes {nodes} nodes, and the largest rack has {rack}: no order keeps it "
        "in one.",
        "{kind}：一个组占 {nodes} 个节点，而最大的机架只有 {rack} 个：任何顺序都会跨机架。",
    ),
    "racks-hold-no-more": Text(
        "{kind}: at least {least} groups must be in several racks: the racks do not hold more of "
        "{nodes} nodes whole.",
        "{kind}：至少 {least} 个组必须跨机架：机架放不下更多 {nodes} 个节点的完整组。",
    ),
    "leaves-node": Text(
        "{kind}: {leave} of {groups} groups leave their node, in every order; another layout can "
        "mend that.",
        "{kind}：{groups} 个组中有 {leave} 个跨节点，任何顺序都如此；换布局才能改变。",
    ),
    "proved-least": Text(
        "No order has fewer crossings: that is proved.", "已证明没有跨越更少的顺序。"
    ),
}
"""Why an order is as it is, by the code of the reason."""

LAUNCHER_NOTES: dict[str, Text] = {
    "slurm": Text(
        "Each line is the host of one task. srun --distribution=arbitrary obeys it and no other "
        "option; RANK must be SLURM_PROCID.",
        "每行是一个任务所在的主机。只有 srun --distribution=arbitrary 遵循它；"
        "RANK 须取 SLURM_PROCID。",
    ),
    "openmpi": Text(
        "mpirun --hostfile fills the hosts in this order. The rank file says the same rank by "
        "rank; its slots are CPU cores.",
        "mpirun --hostfile 按此顺序填充主机。rank 文件逐个 rank 表达同样的内容；"
        "其中 slot 是 CPU 核。",
    ),
    "deepspeed": Text(
        "The deepspeed launcher numbers the hosts in the order of this file.",
        "deepspeed 启动器按此文件的顺序给主机编号。",
    ),
    "torchrun": Text(
        "Static rendezvous only: with c10d or etcd, torchrun sorts hosts by name as text and takes "
        "no notice of --node-rank.",
        "仅适用于静态 rendezvous：使用 c10d 或 etcd 时，torchrun 按主机名的字典序排列，"
        "不理会 --node-rank。",
    ),
}
"""What each launcher does with the file that is written for it."""

HOSTS_WORDS: dict[str, Text] = {
    "host": Text("host", "主机"),
    "rack": Text("rack", "机架"),
    "switch": Text("switch", "交换机"),
    "block": Text("block", "块"),
    "domain": Text("NVLink domain", "NVLink 域"),
    "partition": Text("NVLink partition", "NVLink 分区"),
    "subblock": Text("sub-block", "子块"),
    "cluster": Text("cluster", "集群"),
    "slow": Text(
        "{name} {index}: {value}, {times} deviations from the median of its kind.",
        "{name} {index}：{value}，偏离同类中位数 {times} 倍离差。",
    ),
    "none-slow": Text("No group or stage stands out.", "没有明显偏慢的组或阶段。"),
}
"""Names of levels, and sentences on measurements."""
