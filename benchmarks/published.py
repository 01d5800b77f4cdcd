"""Part "published": where layouts that somebody ran stand in the search for their own job.

place     among all layouts of the same GPUs, model, batch and options, by the estimate's seconds
behind    how much longer its step takes than that of the first
what is not among the first FIRST has its reason in WHY

Fixed are the options that the source names or that its software had: no FlashAttention before 2022,
and before arXiv:2205.05198 neither sequence parallelism nor recomputation but of whole layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

from groups.presets import PRESETS
from training.estimate import Estimate
from training.models import model_of_preset
from training.recipe import Training
from training.search import SearchJob, SearchResult, search

from .page_client import Servers
from .timing import ResultTable

FIRST = 5
MOST = 60
"""Layouts among which one is looked for."""

OLD = Training(zero=0, sequence_parallel=False, flash=False, dropout=True, recompute="full")
KORTHIKANTI = Training(zero=0, flash=False, dropout=True)
BLOOM = Training(zero=1, sequence_parallel=False, flash=False, dropout=True, recompute="full")
TODAY = Training(zero=1)
FP8 = Training(zero=1, products="fp8")
MXFP8 = Training(zero=1, products="mxfp8")
DEEPSEEK = Training(zero=1, products="fp8", precision="fp8-fp32-bf16", schedule="dualpipe")

ROWS: tuple[tuple[str, Training, str], ...] = (
    ("dgx-a100", OLD, "megatron2021-1.7b megatron2021-3.6b megatron2021-7.5b megatron2021-18.4b"),
    ("dgx-a100", OLD, "megatron2021-39.1b megatron2021-76.1b megatron2021-145.6b"),
    ("dgx-a100", OLD, "megatron2021-310.1b megatron2021-529.6b megatron2021-1008.0b"),
    ("dgx-a100", KORTHIKANTI, "korthikanti-22b korthikanti-175b korthikanti-530b korthikanti-1t"),
    ("dgx-a100", OLD, "mtnlg-530b-280 mtnlg-530b-350 mtnlg-530b-420"),
    ("dgx-a100", BLOOM, "bloom-176b"),
    ("dgx-h100", TODAY, "llama3-405b-1 llama3-405b-2 llama3-405b-3"),
    ("dgx-h100", TODAY, "nemotron4-340b-1536 nemotron4-340b-3072 nemotron4-340b-6144"),
    ("dgx-h100", TODAY, "folding-mixtral-8x22b-mcore folding-mixtral-8x22b-folded"),
    ("dgx-h100", TODAY, "mcore-guide-mixtral-8x22b"),
    ("dgx-h100", FP8, "bridge-qwen3_235b_a22b-dgx-h100-256"),
    ("gb200-nvl72", MXFP8, "bridge-qwen3_235b_a22b-dgx-gb200-256"),
    ("gb300-nvl72", MXFP8, "bridge-qwen3_235b_a22b-dgx-gb300-256"),
    ("hgx-h800", DEEPSEEK, "deepseek-v3"),
    ("gb200-nvl72", MXFP8, "bridge-deepseekv3-dgx-gb200-256"),
    ("gb300-nvl72", MXFP8, "bridge-deepseekv3-dgx-gb300-256"),
)
BATCHES = {"deepseek-v3": 15_360, "mcore-guide-mixtral-8x22b": 256}
"""Samples of a step where the layout's source does not say: arXiv:2412.19437 section 4.2."""

BRIDGE = "NVIDIA-NeMo/Megatron-Bridge 067f987 src/megatron/bridge/perf_recipes/qwen"
"""Where the recipes stand of what that repository's docs/performance-summary.md reports."""

WHY: Mapping[str, tuple[tuple[str, ...], str]] = {
    "megatron2021-18.4b": (
        ("tp",),
        "its tp was the node's size by rule (arXiv:2104.04473 section 3.2); tp 2 with stages and "
        "chunks saves more waiting for tp than its bubble costs",
    ),
    "megatron2021-39.1b": (
        ("tp",),
        "its tp was the node's size by rule (arXiv:2104.04473 section 3.2); tp 2 with more stages "
        "saves more waiting for tp than its bubble costs",
    ),
    "mcore-guide-mixtral-8x22b": (
        ("tp", "ep"),
        "a recommendation, not a run, that cuts experts by tp 4; whole experts spread by ep wait "
        "less, as MoE Parallel Folding found",
    ),
    "bridge-qwen3_235b_a22b-dgx-h100-256": (
        ("ep",),
        "its ep of 32 leaves the node: half of its step waits for it, as run 40 of 80 s. Its "
        "recipe overlaps that exchange (overlap_moe_expert_parallel_comm), yet 77 s were measured. "
        "Nobody published a run with ep 8 in the node, as on B300, nor why not",
    ),
    "bridge-qwen3_235b_a22b-dgx-gb200-256": (
        ("compute", "bubble", "pp"),
        "within 5 % of layouts with fewer stages, which fill 84 to 94 % of the memory, it 54 % as "
        "run. Graphs of whole iterations, which its recipe takes, hold buffers that the estimate "
        "does not count; whether they decided is not said",
    ),
    "bridge-qwen3_235b_a22b-dgx-gb300-256": (
        ("compute", "bubble", "pp"),
        "within 7 % of layouts with fewer stages, which fill 66 to 89 % of the memory, it 58 % as "
        "run. Graphs of whole iterations, which its recipe takes, hold buffers that the estimate "
        "does not count; whether they decided is not said",
    ),
}
"""Parts of the estimate in which a layout loses to the first all that it loses, and the reason in
words. What runs set is in their recipes, see BRIDGE."""


@dataclass(frozen=True)
class Placed:
    """A published layout in its own search; place 0: not among the first MOST."""

    name: str
    place: int
    found: SearchResult
    own: Estimate | None

    @property
    def behind(self) -> float:
        """Its step over that of the first, less 1."""
        assert self.own
        return self.own.seconds / self.found.best[0].seconds - 1


def placed(name: str, cluster: str, training: Training) -> Placed:
    """Where a published layout stands."""
    preset, model = PRESETS[name], model_of_preset(name)
    assert model
    job = SearchJob(
        model,
        training,
        preset.model.get("global_batch") or BATCHES[name],
        preset.world_size,
        preset.gpus_per_node,
        cluster,
        cp=preset.cp,
        fixed=frozenset({"recompute"} if training.recompute == "full" else ()),
    )
    found = search(job, most=MOST)
    experts = bool(model.experts)
    sizes = (preset.tp, preset.cp, preset.pp, preset.ep if experts else 1)
    etp = (preset.etp or preset.tp) if experts else preset.tp
    for place, estimate in enumerate(found.best, 1):
        split = estimate.request.split
        if (split.tp, split.cp, split.pp, split.ep, split.etp) == (*sizes, etp):
            return Placed(name, place, found, estimate)
    return Placed(name, 0, found, None)


def everything() -> Iterator[Placed]:
    for cluster, training, names in ROWS:
        for name in names.split():
            yield placed(name, cluster, training)


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    began = perf_counter()
    rows = [_row(placed) for placed in everything()]
    first = sum(1 for row in rows if not row[-1])
    yield ResultTable(
        "Published layouts in their own search",
        ("layout", "place", "of", "behind", "why"),
        rows,
        f"{first} of {len(rows)} are among the first {FIRST}; "
        f"{(perf_counter() - began) / len(rows):.2f} s a search.",
    )


def _row(placed: Placed) -> tuple[str, ...]:
    place = str(placed.place) if placed.place else f"> {MOST}"
    behind = f"{100 * placed.behind:.1f} %" if placed.own else "–"
    why = "" if 0 < placed.place <= FIRST else WHY.get(placed.name, ((), "?"))[1]
    return placed.name, place, str(len(placed.found.seconds)), behind, why
