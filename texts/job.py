# ruff: noqa: RUF001
"""The words of the picture of the job: a question, its answer for one GPU, labels, the card.

The server and the page's script (gradio/picture.js) fill in the same templates by the same rule
(views/groups/sentence.py).
"""

from __future__ import annotations

from .shapes import Text

JOB: dict[str, Text] = {
    "question": Text("Who is grouped with GPU {rank}?", "GPU {rank} 和谁在一组？"),
    # The sentence: a clause for each kind, then what leaves the node. Chinese has no space between
    # its own words, but one beside a number or a Latin word: GPUs bring theirs along.
    "says": Text("It {clauses}.", "它{clauses}。"),
    "says_tp": Text("shares each layer with {gpus}", "与{gpus}分担每一层"),
    "says_cp": Text("shares each sequence with {gpus}", "与{gpus}分担每条序列"),
    "says_ep": Text("exchanges tokens with {gpus}", "与{gpus}交换 token"),
    "says_first": Text("passes activations to {after}", "把激活值传给{after}"),
    "says_middle": Text(
        "passes activations from {before} to {after}", "从{before}接收激活值并传给{after}"
    ),
    "says_last": Text("receives activations from {before}", "从{before}接收激活值"),
    "says_dp": Text("averages gradients with {gpus}", "与{gpus}平均梯度"),
    "says_alone": Text("works alone", "单独工作"),
    "says_none": Text("None of its groups leaves the node.", "它的组都不跨出节点。"),
    "says_all": Text("All of its groups leave the node.", "它的组全部跨出节点。"),
    "says_only": Text("Only its {name} leaves the node.", "只有{name}跨出节点。"),
    "says_some": Text("Its {names} leave the node.", "{names}跨出节点。"),
    "name_tp": Text("tensor group", "张量组"),
    "name_cp": Text("context group", "上下文组"),
    "name_ep": Text("expert group", "专家组"),
    "name_pp": Text("pipeline", "流水线"),
    "name_dp": Text("data group", "数据组"),
    "one": Text("GPU {rank}", " GPU {rank} "),
    "few": Text("GPUs {ranks}", " GPU {ranks} "),
    "many": Text("{count} other GPUs", "另外 {count} 个 GPU "),
    "many_nodes": Text(
        "{count} other GPUs on {nodes} nodes", " {nodes} 个节点上的另外 {count} 个 GPU "
    ),
    "comma": Text(", ", "、"),
    "and": Text(" and ", " 和 "),
    "and_names": Text(" and ", "和"),
    "then": Text(", ", "，"),
    "last": Text(", and ", "，并"),
    "last_of_two": Text(" and ", "，并"),
    # The card.
    "place": Text("node {node}, local {local}", "节点 {node}，节点内 {local}"),
    "stage": Text("stage {stage}", "阶段 {stage}"),
    "layers": Text("layers {layers}", "第 {layers} 层"),
    "stays": Text("stays in its node", "留在节点内"),
    "crosses": Text("crosses {nodes} nodes", "跨 {nodes} 个节点"),
    "of": Text("{count} GPUs", "{count} 个 GPU"),
    "in_none": Text("in no such group", "不在这种组中"),
    "lead": Text("See what this group does in a step.", "查看这个组在一个训练步中做什么。"),
    "hint": Text(
        "Point at another GPU; click to keep it. Every view remembers the choice.",
        "指向其他 GPU 查看，单击固定；所有视图都记住这一选择。",
    ),
    # Labels of the picture, and what is beside it.
    "label_replica": Text("replica {first}", "副本 {first}"),
    "label_replicas": Text("replicas {first}–{last}", "副本 {first}–{last}"),
    "label_expert_replica": Text("expert replica {first}", "专家副本 {first}"),
    "label_expert_replicas": Text("expert replicas {first}–{last}", "专家副本 {first}–{last}"),
    "label_band": Text("{first}–{last}", "{first}–{last}"),
    "label_stage": Text("stage {first}", "阶段 {first}"),
    "label_layers": Text("layers {layers}", "{layers} 层"),
    "dense": Text("Dense layers", "稠密层"),
    "experts": Text("Experts", "专家"),
    "dense_body": Text("Columns are replicas, rows are stages.", "列是副本，行是阶段。"),
    "expert_body": Text(
        "Columns are the places in an expert group, rows are stages.",
        "列是专家组内的位置，行是阶段。",
    ),
    "node_end": Text("a node ends", "节点边界"),
    "described": Text(
        "{gpus} in {nodes}: columns are replicas, rows are stages. Arrow keys choose a GPU, Enter "
        "keeps it. {groups}",
        "{nodes}，共 {gpus}：列是副本，行是阶段。方向键选择 GPU，回车固定。{groups}",
    ),
    # The panels below.
    "colour_all": Text("Colour every group", "为每个组着色"),
    "more": Text("More", "更多"),
    "reads": Text("How to read this", "如何看图"),
}
