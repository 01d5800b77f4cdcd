# ruff: noqa: RUF001
"""The words of the views Hang and Hosts, and of measurements."""

from __future__ import annotations

from .shapes import Control, Text

RUN_CONTROLS: dict[str, Control] = {
    "evidence": Control(
        Text("What the hang left behind", "挂起时留下的内容"),
        Text(
            "Watchdog lines, a launcher's log or an NCCL report; or drop files on the page.",
            "看门狗的日志行、启动器日志或 NCCL 报告；也可以把文件拖到页面上。",
        ),
    ),
    "digest": Control(
        Text("What the files said", "文件的内容摘要"),
        Text("What was read of the files.", "从文件中读到的内容。"),
    ),
    "hosts": Control(
        Text("Machines, in rank order", "机器（按 rank 顺序）"),
        Text(
            "A host file, a Slurm host list or topology, or what a cloud says of its nodes.",
            "主机文件、Slurm 主机列表或拓扑，或云平台给出的节点信息。",
        ),
    ),
    "racks": Control(
        Text("Where they stand (optional)", "机器的位置（可选）"),
        Text(
            "A topology.conf or another text with racks, switches or NVLink domains.",
            "topology.conf，或其他写明机架、交换机、NVLink 域的文本。",
        ),
    ),
    "objective": Control(
        Text("What must not cross first", "优先避免跨机架的组"),
        Text(
            "Kinds of groups by what a crossing costs, the dearest first.",
            "按跨机架的代价排列各类组，代价最高的在前。",
        ),
    ),
    "measures": Control(
        Text("One number per GPU (optional)", "每个 GPU 一个数（可选）"),
        Text(
            "CSV or JSON by rank, or by host: bandwidth, step time, temperature.",
            "按 rank 或主机给出的 CSV 或 JSON：带宽、步时、温度。",
        ),
    ),
    "worse": Control(
        Text("Which numbers are worse", "哪种数更差"),
        Text("High for times and heat, low for bandwidth.", "时间和温度是大的差，带宽是小的差。"),
    ),
}
"""Inputs of these views."""

RUN: dict[str, Text] = {
    "hang_title": Text("Which GPU did not arrive?", "哪个 GPU 没有到达？"),
    "hang_empty": Text(
        "Paste what the watchdog printed, or drop the Flight Recorder dumps of all ranks: the page "
        "says who is missing and who waits. Nothing is kept on the server.",
        "粘贴看门狗的输出，或拖入所有 rank 的 Flight Recorder 转储："
        "页面会指出谁缺席、谁在等待。服务器不保存任何内容。",
    ),
    "choose_files": Text("Choose files", "选择文件"),
    "files_hint": Text("or drop them here, 32 MB in all", "或拖到此处，合计不超过 32 MB"),
    "files_reading": Text("Reading the files …", "正在读取文件……"),
    "files_large": Text(
        "These files have more than 32 MB: choose the dumps of the group that hangs.",
        "文件超过 32 MB：请只选挂起的那个组的转储。",
    ),
    "files_failed": Text(
        "The files did not reach the server; try again.", "文件没有送达服务器，请重试。"
    ),
    "files_busy": Text(
        "The server is reading other files; try again in a moment.",
        "服务器正在读取其他文件，请稍后再试。",
    ),
    "files_read": Text("{files}: dumps of {dumps}.", "{files}，含 {dumps} 的转储。"),
    "files_forget": Text("Forget the files", "清除文件"),
    "hang_no_verdict": Text(
        "The text names GPUs, but does not show who is missing: counters or dumps decide that.",
        "文本提到了 GPU，但没有显示谁缺席：这要靠计数器或转储来判断。",
    ),
    "hang_nothing": Text(
        "The text names no GPU and no group of the job.", "文本没有提到作业的任何 GPU 或组。"
    ),
    "hang_named": Text("GPUs that the evidence names:", "证据提到的 GPU："),
    "show_groups_of": Text("Which groups do they share?", "它们同在哪些组？"),
    "gpu_button": Text("GPU {rank}", "GPU {rank}"),
    "chain_title": Text("Who waits for whom", "谁在等谁"),
    "chain_label": Text(
        "Every GPU on its node, marked by its part in the hang.",
        "各节点上的每个 GPU，标出它在挂起中的角色。",
    ),
    "role_culprit": Text("is missing, or did otherwise", "缺席，或做了别的操作"),
    "role_suspect": Text("one of these is to blame", "问题出在其中之一"),
    "role_first": Text("waits in the first group", "在第一个组中等待"),
    "role_hop": Text("waits from hop {hop} on", "从第 {hop} 跳开始等待"),
    "role_later": Text("waits from hop {hop} or later", "从第 {hop} 跳或更后开始等待"),
    "role_end": Text("waits in the end", "最终也会等待"),
    "role_free": Text("nothing is known", "没有信息"),
    "hops_title": Text("Hop by hop", "逐跳"),
    "hop_row": Text(
        "{kind}: {op} {seq}, {waiting} wait; through {through}",
        "{kind}：第 {seq} 次 {op}，{waiting} 在等待；经由 {through}",
    ),
    "operation": Text("operation", "操作"),
    "hop_first": Text(
        "{kind}: {op} {seq}, {waiting} wait", "{kind}：第 {seq} 次 {op}，{waiting} 在等待"
    ),
    "log_groups_title": Text("Groups of the evidence in this layout", "证据中的组与当前布局"),
    "column_gpus": Text("GPUs", "GPU"),
    "column_group_size": Text("Size", "大小"),
    "column_printed": Text("As printed", "原文"),
    "column_here": Text("In this layout", "当前布局中"),
    "column_fits": Text("Fits", "是否相符"),
    "fits_yes": Text("yes", "是"),
    "fits_no": Text("no", "否"),
    "fits_unknown": Text("cannot tell", "无法判断"),
    "more_rows": Text("{count} more are not listed.", "另有 {count} 行未列出。"),
    "contradicts": Text(
        "{count} contradict the layout on screen: {key} has {evidence}, here {layout}.",
        "有 {count}与当前布局矛盾：{key} 是 {evidence}，而当前布局是 {layout}。",
    ),
    "claim_place": Text("GPU {rank} at place {place}", "GPU {rank} 在组内的序号 {place}"),
    "contradicts_world": Text(
        "The evidence is of a job of {evidence} GPUs; the layout on screen has {layout}.",
        "证据来自 {evidence} 个 GPU 的作业；当前布局有 {layout} 个。",
    ),
    "at_least": Text("at least {count}", "至少 {count}"),
    "fits_none": Text(
        "No size or order that was tried fits all groups.", "尝试过的大小和顺序都不符合所有组。"
    ),
    "unknown_title": Text("What cannot be told", "无法判断的内容"),
    "no_dump_of": Text("There is no dump of GPUs {ranks}.", "没有 GPU {ranks} 的转储。"),
    "only_places": Text(
        "{ranks} are places in groups, not GPUs of the job.", "{ranks} 是组内序号，不是 GPU 编号。"
    ),
    "ambiguous": Text(
        "{ranks} may be GPUs or places in groups: the lines contradict each other.",
        "{ranks} 可能是 GPU，也可能是组内序号：各行互相矛盾。",
    ),
    "hosts_title": Text("Where do the groups stand?", "各组位于哪里？"),
    "hosts_empty": Text(
        "Paste the machines of the job: the page says which groups leave a node, a rack or an "
        "NVLink domain, and whether another order of the same machines keeps more of them inside.",
        "粘贴作业的机器列表：页面会指出哪些组跨节点、机架或 NVLink 域，"
        "以及同一批机器换个顺序能否让更多组留在内部。",
    ),
    "hosts_example": Text("Try an example", "试一个例子"),
    "hosts_said": Text("{hosts} for {gpus}, {places}.", "{hosts}，共 {gpus}，{places}。"),
    "hosts_no_places": Text("no racks or switches said", "未说明机架或交换机"),
    "hosts_places": Text("{count} × {level}", "{count} 个{level}"),
    "hosts_list": Text("Machines in rank order", "按 rank 顺序的机器"),
    "column_host": Text("Host", "主机"),
    "column_hosts": Text("Hosts: devices", "主机：设备"),
    "column_slots": Text("Slots", "槽位"),
    "slots_unsaid": Text("not said", "未说明"),
    "hosts_audit": Text("Which groups leave a node, a rack, a domain", "哪些组跨节点、机架、域"),
    "level_number": Text("{level}, level {number}", "第 {number} 级{level}"),
    "level_node": Text("Node", "节点"),
    "order_title": Text("A better order of the same machines", "同一批机器的更好顺序"),
    "order_needs_racks": Text(
        "For a better order, say where the machines stand: racks, switches or NVLink domains.",
        "要找更好的顺序，请说明机器的位置：机架、交换机或 NVLink 域。",
    ),
    "order_better": Text(
        "{moved} change place: groups in more than one rack go from {before} to {after} "
        "({objective}).",
        "{moved}换位置：跨机架的组从 {before} 变为 {after}（{objective}）。",
    ),
    "order_kept": Text(
        "Keep the order: {before} groups are in more than one rack ({objective}).",
        "保持当前顺序：跨机架的组为 {before}（{objective}）。",
    ),
    "order_above": Text(
        "In more than one {level}: from {before} to {after}.",
        "跨{level}的组从 {before} 变为 {after}。",
    ),
    "order_before": Text("As given", "当前顺序"),
    "order_after": Text("Better order", "更好的顺序"),
    "column_leave": Text("Leave a node", "跨节点"),
    "column_before": Text("In several racks, as given", "跨机架（当前）"),
    "column_after": Text("In several racks, better order", "跨机架（更好的顺序）"),
    "column_least": Text("At least, in any order", "任何顺序至少"),
    "of_groups": Text("{count} of {groups}", "{count}/{groups}"),
    "use_order": Text("Use this order", "采用此顺序"),
    "order_files": Text("For the launcher", "给启动器的文件"),
    "file_slurm": Text("Slurm: SLURM_HOSTFILE", "Slurm：SLURM_HOSTFILE"),
    "file_openmpi": Text("Open MPI, DeepSpeed: host file", "Open MPI、DeepSpeed：主机文件"),
    "file_rankfile": Text("Open MPI: rank file", "Open MPI：rank 文件"),
    "file_torchrun": Text("torchrun: static node ranks", "torchrun：静态节点编号"),
    "fix_node": Text("{kind} stays in a node with", "让 {kind} 不跨节点："),
    "fix_rack": Text("{kind} stays in a rack with", "让 {kind} 不跨机架："),
    "objective_dp": Text("ep, then tp and cp, then dp, then pp", "ep，再 tp 与 cp，再 dp，再 pp"),
    "objective_pp": Text("ep, then tp and cp, then pp, then dp", "ep，再 tp 与 cp，再 pp，再 dp"),
    "measures_title": Text("Measurements on the GPUs", "各 GPU 的测量值"),
    "measures_label": Text(
        "Measured: {least} to {most}, median {median}.",
        "测量值：{least} 到 {most}，中位数 {median}。",
    ),
    "measures_none": Text("not measured", "未测量"),
    "worse_high": Text("high is worse", "大的更差"),
    "worse_low": Text("low is worse", "小的更差"),
    "stage": Text("stage", "阶段"),
    "slow_of": Text(
        "{what}: {value}, {times} deviations off", "{what}：{value}，偏离 {times} 倍离差"
    ),
    "rank_host": Text("{host}, GPU {local} of it", "{host}，其第 {local} 个 GPU"),
    "host": Text("Host", "主机"),
}
"""What these views say."""
