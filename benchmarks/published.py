"""Part "published": layouts that somebody ran, estimated and measured, and in their own search.

inside    whether the interval that the page shows and what the source measured have a second in
          common; off: how far the estimate lies from the nearest measured second
place     among all layouts of the same GPUs, model, batch and options, by the estimate's seconds
behind    how much longer its step takes than that of the first
what is not among the first FIRST has its reason in WHY

Fixed are the options that the source names or that its software had: no FlashAttention before 2022,
and before arXiv:2205.05198 neither sequence parallelism nor recomputation but of whole layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from groups.presets import PRESETS
from request.context import Context
from request.link import published
from request.state import State
from training.estimate import Estimate
from training.models import model_of_preset
from training.published import PublishedStep, published_steps
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
MXFP8 = Training(zero=1, products="mxfp8", precision="fp8-bf16")
LLAMA = Training(zero=1, recompute="norms,mlp_act")
DEEPSEEK = Training(
    zero=1,
    products="fp8",
    precision="fp8-fp32-bf16",
    schedule="dualpipe",
    recompute="mla_up_proj,norms,mlp_act",
)

ROWS: tuple[tuple[str, Training, str], ...] = (
    ("dgx-a100", OLD, "megatron2021-1.7b megatron2021-3.6b megatron2021-7.5b megatron2021-18.4b"),
    ("dgx-a100", OLD, "megatron2021-39.1b megatron2021-76.1b megatron2021-145.6b"),
    ("dgx-a100", OLD, "megatron2021-310.1b megatron2021-529.6b megatron2021-1008.0b"),
    ("dgx-a100", KORTHIKANTI, "korthikanti-22b korthikanti-175b korthikanti-530b korthikanti-1t"),
    ("dgx-a100", OLD, "mtnlg-530b-280 mtnlg-530b-350 mtnlg-530b-420"),
    ("dgx-a100", BLOOM, "bloom-176b"),
    ("dgx-h100", LLAMA, "llama3-405b-1 llama3-405b-2 llama3-405b-3"),
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
"""LLAMA: software of its own, which frees more of what a layer keeps than Megatron's modules do and
ran without recomputation (arXiv:2407.21783 section 3.3.2); counted as what costs least of that."""

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
    "folding-mixtral-8x22b-mcore": (
        ("compute", "bubble", "tp"),
        "within 4 % of the first: the baseline of MoE Parallel Folding (arXiv:2504.14960), which "
        "cuts experts by tp 2; whole experts wait less, as that paper found",
    ),
    "bridge-qwen3_235b_a22b-dgx-h100-256": (
        ("ep",),
        "its ep of 32 leaves the node: a third of its step waits for it, though its recipe hides "
        "what hides (overlap_moe_expert_parallel_comm); 77 s were measured. Nobody published a run "
        "with ep 8 in the node, as on B300, nor why not",
    ),
    "bridge-qwen3_235b_a22b-dgx-gb200-256": (
        ("compute",),
        "within 6 % of the first: of its 8 stages the last computes the output layer beside 12 of "
        "94 layers, which weighs less on two or four; these are close to what a GPU holds",
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
    steps = [(step, _estimated(step.preset)) for step in published_steps().values()]
    apart = [pair for pair in steps if pair[0].counted != "tokens"]
    yield ResultTable(
        "Published layouts, estimated and measured",
        ("layout", "estimate", "interval", "measured", "inside", "off"),
        [_measured_row(*pair) for pair in steps],
        f"{_figures(apart)} beside Megatron-Bridge; {_figures(steps)} of all.",
    )
    yield from _searched()


def _estimated(name: str) -> Estimate:
    context = Context.of(State(**published(name)))
    return context.trained.estimate(context.layout)


def _is_inside(step: PublishedStep, found: Estimate) -> bool:
    return found.low <= step.high and step.low <= found.high


def _figures(steps: Sequence[tuple[PublishedStep, Estimate]]) -> str:
    off = [step.off(found.seconds) for step, found in steps]
    inside = sum(_is_inside(*pair) for pair in steps)
    return (
        f"{inside} of {len(steps)} inside, median error {100 * median(off):.1f} %, "
        f"worst {100 * max(off):.0f} %"
    )


def _measured_row(step: PublishedStep, found: Estimate) -> tuple[str, ...]:
    measured = dict.fromkeys((f"{step.low:.3g}", f"{step.high:.3g}"))
    return (
        step.preset,
        f"{found.seconds:.3g} s",
        f"{found.low:.3g}–{found.high:.3g}",
        "–".join(measured),
        "yes" if _is_inside(step, found) else "no",
        f"{100 * step.off(found.seconds):.1f} %",
    )


def _searched() -> Iterator[ResultTable]:
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
