# ruff: noqa: RUF001
"""What each operation of a group does and where training uses it; each algorithm in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from .shapes import Text


@dataclass(frozen=True)
class OperationText:
    """An operation: what it does to the tensors of a group, and where training uses it."""

    does: Text
    used: Text


_SEQUENCE = Text(
    "Sequence parallelism, around the layers that tensor parallelism leaves whole.",
    "序列并行：用在张量并行不切分的那些层的前后。",
)
_EXPERTS = Text(
    "Expert parallelism: tokens to the ranks of their experts, and the results back.",
    "专家并行：把 token 送到其专家所在的 rank，再把结果送回。",
)

OPERATION_TEXTS: dict[str, OperationText] = {
    "all_reduce": OperationText(
        Text(
            "Every rank gets the sum of all tensors. It is a reduce-scatter, then an all-gather.",
            "每个 rank 都得到所有张量之和。它等于一次 reduce-scatter 再加一次 all-gather。",
        ),
        Text(
            "Data parallel gradients (dp-cp), and the activations of tensor parallel layers.",
            "数据并行的梯度（dp-cp），以及张量并行层的激活值。",
        ),
    ),
    "reduce_scatter": OperationText(
        Text(
            "The tensors are added and the sum is cut: each rank gets its own piece of it.",
            "所有张量相加后切开：每个 rank 得到和的一片。",
        ),
        Text(
            "Gradients for a sharded optimizer (ZeRO, FSDP), and sequence parallelism.",
            "分片优化器（ZeRO、FSDP）的梯度，以及序列并行。",
        ),
    ),
    "all_gather": OperationText(
        Text(
            "Every rank gets the tensors of all, joined in the order of the group.",
            "每个 rank 都得到所有张量，按组内顺序拼接。",
        ),
        Text(
            "Parameters after a sharded optimizer step (ZeRO, FSDP), and sequence parallelism.",
            "分片优化器更新之后的参数（ZeRO、FSDP），以及序列并行。",
        ),
    ),
    "broadcast": OperationText(
        Text("Every rank gets the tensor of the root.", "每个 rank 都得到根 rank 的张量。"),
        Text(
            "The batch, from the first rank of a tensor parallel group to the others; the weights "
            "at the start.",
            "由张量并行组的第一个 rank 把数据发给其他 rank；以及训练开始时的权重。",
        ),
    ),
    "reduce": OperationText(
        Text(
            "The root gets the sum of all tensors; the others keep theirs.",
            "根 rank 得到所有张量之和；其他 rank 的张量不变。",
        ),
        Text(
            "Losses and counters for the log of one rank.",
            "把损失和计数汇总到一个 rank 的日志。",
        ),
    ),
    "gather": OperationText(
        Text(
            "The root gets the tensors of all, joined; the others keep theirs.",
            "根 rank 得到所有张量的拼接；其他 rank 的张量不变。",
        ),
        Text(
            "Checkpoints and measurements that one rank writes.",
            "由一个 rank 写出的检查点和测量数据。",
        ),
    ),
    "scatter": OperationText(
        Text(
            "The tensor of the root is cut, and each rank gets its own piece.",
            "根 rank 的张量被切开，每个 rank 得到自己的一片。",
        ),
        Text(
            "Data or weights that one rank has read, dealt out to all.",
            "把一个 rank 读入的数据或权重分发给所有 rank。",
        ),
    ),
    "split": OperationText(
        Text(
            "Each rank keeps its own piece of its own tensor: nothing moves.",
            "每个 rank 只保留自己张量中属于自己的一片：没有通信。",
        ),
        Text(
            "Tensors that all ranks have alike, before layers that are split over them.",
            "所有 rank 都相同的张量，在进入按 rank 切分的层之前。",
        ),
    ),
    "all_to_all": OperationText(
        Text(
            "Each rank sends piece i of its tensor to rank i of the group, and joins what it gets.",
            "每个 rank 把自己张量的第 i 片发给组内第 i 个 rank，再把收到的各片拼接。",
        ),
        Text(
            "Tokens to their experts and back (ep); heads and sequence in Ulysses attention (cp).",
            "token 发往专家再返回（ep）；Ulysses 注意力中头与序列的互换（cp）。",
        ),
    ),
    "send_recv": OperationText(
        Text(
            "Each rank sends its tensor to the next one, round the ring.",
            "每个 rank 把自己的张量发给环上的下一个 rank。",
        ),
        Text(
            "Activations and their gradients between pipeline stages (pp); K and V in ring "
            "attention (cp).",
            "流水线各阶段之间的激活值及其梯度（pp）；环形注意力中的 K 和 V（cp）。",
        ),
    ),
    "_reduce": OperationText(
        Text(
            "Megatron's all-reduce inside its mappings.",
            "Megatron 各映射内部使用的 all-reduce。",
        ),
        Text("Inside the mappings of tensor parallelism.", "张量并行的各个映射内部。"),
    ),
    "_split": OperationText(
        Text(
            "Each rank keeps its own piece of the last dim: nothing moves.",
            "每个 rank 保留最后一维中属于自己的一片：没有通信。",
        ),
        Text("Inside the mappings of tensor parallelism.", "张量并行的各个映射内部。"),
    ),
    "_gather": OperationText(
        Text("An all-gather, joined along the last dim.", "沿最后一维拼接的 all-gather。"),
        Text("Inside the mappings of tensor parallelism.", "张量并行的各个映射内部。"),
    ),
    "copy_to_tensor_model_parallel_region": OperationText(
        Text(
            "Forward nothing happens; backward the gradients are all-reduced. Papers call it f.",
            "前向什么也不做；反向对梯度做 all-reduce。论文中记作 f。",
        ),
        Text("The input of a column parallel layer.", "列并行层的输入。"),
    ),
    "reduce_from_tensor_model_parallel_region": OperationText(
        Text(
            "Forward an all-reduce; backward nothing happens. Papers call it g.",
            "前向做 all-reduce；反向什么也不做。论文中记作 g。",
        ),
        Text(
            "The output of a row parallel layer and of the split embedding.",
            "行并行层的输出，以及切分的词嵌入的输出。",
        ),
    ),
    "scatter_to_tensor_model_parallel_region": OperationText(
        Text(
            "Forward each rank keeps its piece of the last dim; backward an all-gather.",
            "前向每个 rank 保留最后一维中自己的一片；反向做 all-gather。",
        ),
        Text(
            "The input of a row parallel layer that is not split yet.",
            "尚未切分的行并行层输入。",
        ),
    ),
    "gather_from_tensor_model_parallel_region": OperationText(
        Text(
            "Forward an all-gather of the last dim; backward each rank keeps its piece of its own "
            "gradient. An exact derivative would add the gradients of all ranks; Megatron takes "
            "them to be alike.",
            "前向沿最后一维做 all-gather；反向每个 rank 只保留自己梯度中的一片。"
            "严格的导数应把所有 rank 的梯度相加；Megatron 认为它们相同。",
        ),
        Text(
            "The output of a column parallel layer with gather_output.",
            "带 gather_output 的列并行层的输出。",
        ),
    ),
    "all_gather_last_dim_from_tensor_parallel_region": OperationText(
        Text(
            "Forward an all-gather of the last dim; backward a reduce-scatter.",
            "前向沿最后一维做 all-gather；反向做 reduce-scatter。",
        ),
        Text(
            "Where each rank goes on in its own way with the whole.",
            "各 rank 对拼接后的整体继续做不同计算的地方。",
        ),
    ),
    "reduce_scatter_last_dim_to_tensor_parallel_region": OperationText(
        Text(
            "Forward a reduce-scatter of the last dim; backward an all-gather.",
            "前向沿最后一维做 reduce-scatter；反向做 all-gather。",
        ),
        Text(
            "Where a sum is needed in pieces of the last dim.",
            "需要把和按最后一维分片的地方。",
        ),
    ),
    "scatter_to_sequence_parallel_region": OperationText(
        Text(
            "Forward each rank keeps its part of the sequence; backward an all-gather.",
            "前向每个 rank 保留序列中自己的一段；反向做 all-gather。",
        ),
        _SEQUENCE,
    ),
    "gather_from_sequence_parallel_region": OperationText(
        Text(
            "Forward an all-gather of the sequence; backward a reduce-scatter.",
            "前向对序列做 all-gather；反向做 reduce-scatter。",
        ),
        _SEQUENCE,
    ),
    "reduce_scatter_to_sequence_parallel_region": OperationText(
        Text(
            "Forward a reduce-scatter of the sequence; backward an all-gather.",
            "前向对序列做 reduce-scatter；反向做 all-gather。",
        ),
        _SEQUENCE,
    ),
    "all_to_all_sp2hp": OperationText(
        Text(
            "From a part of the tokens to a part of the hidden dim, by all-to-all; backward the "
            "other way.",
            "用 all-to-all 把“部分 token”换成“部分隐藏维”；反向则换回来。",
        ),
        _EXPERTS,
    ),
    "all_to_all_hp2sp": OperationText(
        Text(
            "From a part of the hidden dim to a part of the tokens, by all-to-all; backward the "
            "other way.",
            "用 all-to-all 把“部分隐藏维”换成“部分 token”；反向则换回来。",
        ),
        _EXPERTS,
    ),
}
"""By the names of training.collectives.operations."""


ALGORITHM_TEXTS: dict[str, OperationText] = {
    "ring_all_reduce": OperationText(
        Text("Ring", "环"),
        Text(
            "In each step every rank sends one chunk to the next: first a reduce-scatter, whose "
            "steps add, then an all-gather, whose steps copy. Every link is busy all the time; the "
            "steps grow with the group.",
            "每一步中每个 rank 都把一块发给下一个：先是 reduce-scatter，逐步相加；"
            "再是 all-gather，逐步复制。"
            "每条链路始终忙碌，但步数随组增大。",
        ),
    ),
    "tree_all_reduce": OperationText(
        Text("Tree", "树"),
        Text(
            "Sums go up a binary tree and the result comes down. Steps grow with the logarithm of "
            "the group only, but an inner member sends the whole buffer up once, and down to each "
            "of its children.",
            "和沿二叉树向上，结果再向下。步数只随组大小的对数增长，"
            "但中间成员要把整个缓冲区向上发送一次，并向每个子节点各发送一次。",
        ),
    ),
    "double_tree_all_reduce": OperationText(
        Text("Double tree (NCCL)", "双树（NCCL）"),
        Text(
            "Half of the buffer uses each of two trees at the same time; a parent in one tree is a "
            "leaf of the other, so that both directions of every link work.",
            "两棵树同时各传一半缓冲区；一棵树中的父节点在另一棵中是叶子，"
            "因此链路的收发都得到利用。",
        ),
    ),
    "ring_reduce_scatter": OperationText(
        Text("Ring", "环"),
        Text(
            "Each chunk goes round and every rank adds its own, until it ends where it belongs.",
            "每一块绕环一圈，各 rank 依次加上自己的部分，最后停在它的归属处。",
        ),
    ),
    "ring_all_gather": OperationText(
        Text("Ring", "环"),
        Text(
            "Each rank passes on what it got in the step before.",
            "每个 rank 把上一步收到的内容继续传下去。",
        ),
    ),
    "tree_broadcast": OperationText(
        Text("Binary tree", "二叉树"),
        Text(
            "Each level sends the whole buffer to both children.",
            "每一层把整个缓冲区发给两个子节点。",
        ),
    ),
    "ring_broadcast": OperationText(
        Text("Pipelined ring", "流水环"),
        Text(
            "The buffer is cut, and the chunks follow one another round the ring.",
            "缓冲区切成几块，一块接一块地沿环传递。",
        ),
    ),
    "tree_reduce": OperationText(
        Text("Binary tree", "二叉树"),
        Text(
            "Each level adds what its children send, up to the root.",
            "每一层把子节点发来的内容相加，直到根。",
        ),
    ),
    "direct_gather": OperationText(
        Text("One after the other", "逐个"),
        Text(
            "Every rank sends its tensor to the root; the root's link is the limit.",
            "每个 rank 都把张量发给根 rank；瓶颈是根 rank 的链路。",
        ),
    ),
    "direct_scatter": OperationText(
        Text("One after the other", "逐个"),
        Text(
            "The root sends every rank its piece; the root's link is the limit.",
            "根 rank 把各片发给各 rank；瓶颈是根 rank 的链路。",
        ),
    ),
    "pairwise_all_to_all": OperationText(
        Text("Pairwise exchange", "成对交换"),
        Text(
            "In step q every rank sends to the one q places on: nobody receives twice at once. "
            "The right half of the slots is what came from each rank.",
            "第 q 步中，每个 rank 发给相隔 q 个位置的 rank：没有人同时收两份。"
            "右半边的各槽是从各 rank 收到的内容。",
        ),
    ),
    "ring_attention": OperationText(
        Text("Ring attention", "环形注意力"),
        Text(
            "Each rank works on a block of K and V while it sends it on. Of 2 × cp chunks of the "
            "sequence rank r keeps r and its mirror image, so that under a causal mask every rank "
            "has the same work at every step.",
            "每个 rank 一边处理一块 K 和 V，一边把它传给下一个。序列切成 2 × cp 块，"
            "rank r 保留第 r 块及其镜像块，因此在因果掩码下每一步各 rank 的计算量相同。",
        ),
    ),
    "pipeline_forward": OperationText(
        Text("Pipeline, forward", "流水线前向"),
        Text(
            "Each stage sends the activations of a micro-batch to the next stage.",
            "每个阶段把一个 micro-batch 的激活值发给下一阶段。",
        ),
    ),
    "pipeline_backward": OperationText(
        Text("Pipeline, backward", "流水线反向"),
        Text(
            "Each stage sends the gradient of a micro-batch to the stage before it.",
            "每个阶段把一个 micro-batch 的梯度发给前一阶段。",
        ),
    ),
}
"""Title and what happens, by the names of training.collectives.algorithms."""
