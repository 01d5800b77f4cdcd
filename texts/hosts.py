# ruff: noqa: RUF001
"""Words of machines as they are: refusals, remarks, reasons for an order, notes on launchers."""

from __future__ import annotations

from .shapes import Text

HOSTS_REFUSALS: dict[str, Text] = {
    "bad-host-line": Text(
        "Line {line}, {value}, does not fit a text of {form}.",
        "第 {line} 行 {value} 不符合 {form} 的写法。",
    ),
    "bad-hostlist": Text(
        "{value} is not a host list: write names with numbers and ranges, such as n[1-4,7].",
        "{value} 不是主机列表；写法是主机名加方括号内的编号和区间，例如 n[1-4,7]。",
    ),
    "too-many-hosts": Text(
        "{value} names {count} machines, more than {limit}.",
        "{value} 表示 {count} 台机器，超过上限 {limit}。",
    ),
    "too-many-to-order": Text(
        "{count} hosts are more than the {limit} that are put in order: order each pod by itself.",
        "{count} 台主机超过可排序的上限 {limit}：请按 pod 分别排序。",
    ),
    "host-twice": Text(
        "The host {host} is named twice. Keep one line for each host.",
        "主机 {host} 出现了两次；每台主机只保留一行。",
    ),
    "no-hosts": Text("The text names no hosts.", "文本中没有主机名。"),
    "bad-host-document": Text("The document cannot be read: {what}.", "无法读取该文档：{what}。"),
    "host-without-slots": Text(
        "The host {host} has no slots: leave out a host that runs nothing.",
        "主机 {host} 没有槽位：不运行进程的主机请去掉。",
    ),
    "rank-missing": Text(
        "The text has {count} ranks, but not rank {rank}.",
        "文本中有 {count} 个 rank，却没有 rank {rank}。",
    ),
    "bad-host-filter": Text(
        "{value} is no filter of these hosts, such as worker-0@worker-1:0,2.",
        "{value} 不是这些主机的筛选条件；写法例如 worker-0@worker-1:0,2。",
    ),
    "bad-tasks-per-node": Text(
        "{value} does not say the tasks of {count} machines, as 8(x2),4 does of three.",
        "{value} 没有说明 {count} 台机器的任务数；三台机器的写法例如 8(x2),4。",
    ),
    "switches-in-a-ring": Text(
        "The switch {switch} stands above itself.", "交换机 {switch} 位于它自己之上。"
    ),
    "clique-not-said": Text(
        "The CliqueId of {value} is N/A, so its NVLink domain is not known.",
        "{value} 的 CliqueId 为 N/A，无法确定其 NVLink 域。",
    ),
    "fabric-differs": Text(
        "The GPUs of {host} stand in different NVLink domains: {places}.",
        "{host} 的 GPU 位于不同的 NVLink 域：{places}。",
    ),
    "slots-unknown": Text(
        "The text does not say how many GPUs {host} has: write slots=N, or say GPUs per node.",
        "文本没有说明 {host} 有多少 GPU：请写 slots=N，或给出每节点 GPU 数。",
    ),
    "uneven-slots": Text(
        "The host {host} has {slots} slots, others have {most}: this needs equal nodes.",
        "主机 {host} 有 {slots} 个槽位，其他主机有 {most} 个：此处要求各节点相同。",
    ),
    "host-without-rack": Text(
        "Nothing says in which rack the host {host} stands ({count} of {hosts}): say where, "
        "or leave them out.",
        "没有说明主机 {host} 位于哪个机架（{hosts} 台中有 {count} 台）：请补充，或去掉这些主机。",
    ),
    "bad-objective": Text(
        "{value} is no objective: write kinds in levels, such as ep, tp+cp, dp, pp.",
        "{value} 不是目标；请按优先级写出各类组，例如 ep, tp+cp, dp, pp。",
    ),
    "bad-cost": Text(
        "{value} is no cost of {kind}: a cost is a number from 0 up.",
        "{value} 不是 {kind} 的代价：代价是不小于 0 的数。",
    ),
    "too-few-hosts": Text(
        "The layout needs {world} GPUs, and the hosts that are named ({hosts}) have {slots}.",
        "布局需要 {world} 个 GPU，而 {hosts} 台主机只有 {slots} 个。",
    ),
    "too-many-hosts-for-job": Text(
        "The layout needs {world} GPUs, and the hosts that are named ({hosts}) have {slots}. "
        "Left over: {spare}.",
        "布局需要 {world} 个 GPU，而 {hosts} 台主机有 {slots} 个：多出 {spare} 台主机。",
    ),
    "bad-measurements": Text(
        "{value} in line {line} is no measurement: write rank,value with a number for each rank.",
        "第 {line} 行的 {value} 不是测量值；请写 rank,value，每个 rank 一个数。",
    ),
    "no-measurements": Text(
        "The text has no column of numbers for ranks.", "文本中没有按 rank 排列的数值列。"
    ),
    "measurement-twice": Text(
        "Rank {rank} has two measurements.", "rank {rank} 有两个测量值。"
    ),
    "measurement-of-no-host": Text(
        "The measurements name the host {host}, which is not one of the job's.",
        "测量值中的主机 {host} 不属于该作业。",
    ),
}  # fmt: skip
"""By the code of their LayoutError."""

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
