"""How a model is trained on a layout, as the page says it: one batch and one schedule for all.

>>> from .resolve import resolve
>>> batch_of(resolve(State()), State())
Batch(micro_batch=1, micro_batches=8, dp=4, is_given=False)
>>> state = State(global_batch="64", micro_batch="2")
>>> batch_of(resolve(state), state).micro_batches
8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groups.alternatives import not_a_multiple
from groups.layout import Layout
from groups.mesh import whole_number
from groups.stages.holdings import MAX_BATCH
from training.models import said_of_preset
from training.pipeline import SCHEDULES
from training.pipeline.spec import MAX_MICRO_BATCHES

from .model import UNKNOWN
from .problems import refusal
from .state import State, as_text, is_empty, parse_number

ROUNDS = 4
"""Micro-batches taken for each pipeline stage where nobody says how many."""

MOST_UNASKED = 64 * 1024
"""Micro-batches times ranks of a pipeline that are taken at most where nobody says how many."""

DEFAULT_VIRTUAL = 2
"""Virtual stages of a rank where a schedule needs some and nobody says how many."""


@dataclass(frozen=True)
class Batch:
    """The samples of a step: micro_batches on each of dp pipelines, of micro_batch samples each.

    is_given: whether somebody said how many, and not only how large a micro-batch is.
    """

    micro_batch: int
    micro_batches: int
    dp: int
    is_given: bool

    @property
    def global_batch(self) -> int:
        return self.micro_batch * self.micro_batches * self.dp


def batch_of(layout: Layout, state: State) -> Batch:
    """As the micro-batches say, the global batch, or both; else `micro_batches_unasked`.

    Errors: LayoutError about a number that cannot be, or two that contradict one another.
    """
    dp = layout.mesh.size("dp")
    micro_batch = count_of(state.micro_batch, "micro_batch", 1)
    is_given = not (is_empty(state.micro_batches) and is_empty(state.global_batch))
    if not is_empty(state.micro_batches):
        count = whole_number(
            parse_number(state.micro_batches), "micro_batches", maximum=MAX_MICRO_BATCHES
        )
        batch = Batch(micro_batch, count, dp, is_given)
        if not is_empty(state.global_batch):
            _require_same(batch, count_of(state.global_batch, "global_batch", 1))
        return batch
    if not is_given:
        return Batch(micro_batch, micro_batches_unasked(layout.mesh.size("pp")), dp, is_given)
    samples = count_of(state.global_batch, "global_batch", 1)
    if samples % (micro_batch * dp):
        by = {"micro_batch": micro_batch, "dp": dp}
        raise not_a_multiple("global_batch", samples, by, maximum=MAX_BATCH)
    return Batch(micro_batch, samples // (micro_batch * dp), dp, is_given)


def micro_batches_unasked(pp: int) -> int:
    """Micro-batches where nobody says how many: four a stage, of a very long pipeline fewer.

    >>> micro_batches_unasked(4), micro_batches_unasked(1024)
    (16, 64)
    """
    return min(ROUNDS * pp, max(1, MOST_UNASKED // pp))


def count_of(value: Any, name: str, empty: int) -> int:
    return empty if is_empty(value) else whole_number(parse_number(value), name, maximum=MAX_BATCH)


def _require_same(batch: Batch, samples: int) -> None:
    """Refuse a global batch that the micro-batches contradict."""
    if samples == batch.global_batch:
        return
    fixes: list[dict[str, Any]] = [{"global_batch": batch.global_batch}]
    share = batch.micro_batch * batch.dp
    if samples % share == 0:
        fixes.insert(0, {"micro_batches": samples // share})
    facts = {
        "micro_batches": batch.micro_batches,
        "micro_batch": batch.micro_batch,
        "dp": batch.dp,
        "product": batch.global_batch,
        "global_batch": samples,
    }
    raise refusal("batches-disagree", "micro_batches", *fixes, **facts)


def with_micro_batches(layout: Layout, state: State, count: int) -> dict[str, Any]:
    """What sets so many micro-batches: the global batch where that is said, else their number."""
    if is_empty(state.global_batch):
        return {"micro_batches": count}
    micro_batch = 1 if is_empty(state.micro_batch) else parse_number(state.micro_batch)
    samples = count * micro_batch * layout.mesh.size("dp")
    return {
        "global_batch": samples,
        **({} if is_empty(state.micro_batches) else {"micro_batches": ""}),
    }


# -- the schedule --------------------------------------------------------------------------------


def schedule_name(state: State) -> Any:
    """The schedule of the pipeline: as chosen, or what the virtual stages suggest."""
    if not is_empty(state.schedule):
        return state.schedule
    vpp = parse_number(state.vpp)
    return "interleaved" if isinstance(vpp, int) and vpp > 1 else "1f1b"


def virtual_stages(state: State) -> int:
    """Virtual stages of each rank: as typed, else two where the schedule needs some, else one.

    >>> virtual_stages(State(schedule="interleaved")), virtual_stages(State())
    (2, 1)

    Errors: LayoutError for what is no whole number.
    """
    name = schedule_name(state)
    rule = SCHEDULES.get(name) if isinstance(name, str) else None
    return count_of(state.vpp, "vpp", DEFAULT_VIRTUAL if rule and rule.v is None else 1)


# -- published layouts ---------------------------------------------------------------------------

_PUBLISHED = """
megatron2021    cluster=dgx-a100 precision=fp16-fp16 zero=0 recompute=full
korthikanti     cluster=dgx-a100 zero=0 recompute=selective flash=off sequence_parallel=on
mtnlg           cluster=dgx-a100 precision=bf16-fp32 recompute=full
bloom           cluster=dgx-a100 precision=bf16-fp32 zero=1 recompute=full
glm-130b        cluster=dgx-a100-40gb recompute=full schedule=1f1b
opt-175b        cluster=dgx-a100 zero=3
palm-540b       zero=3 recompute=full global_batch=2048
llama3-405b     cluster=dgx-h100 precision=bf16-fp32 zero=2 recompute=none cp_algorithm=all_gather
deepseek-v3     cluster=hgx-h800 precision=fp8-fp32-bf16 products=fp8 zero=1 recompute=partial
deepseek-v3     schedule=dualpipe global_batch=15360
kimi-k2         cluster=hgx-h800 precision=bf16-fp32 zero=1 recompute=partial schedule=interleaved
nemotron4       cluster=dgx-h100 zero=1 schedule=interleaved
falcon-180b     cluster=dgx-a100-40gb zero=1 flash=on global_batch=2048
folding         cluster=dgx-h100
bridge          precision=fp8-bf16 products=mxfp8 zero=1
bridge-deepseek recompute=partial
"""
"""How the sources of published layouts train, as far as they say; by the beginning of their ids
(groups.published names the sources), all rows that fit one after the other.

megatron2021: examples/academic_paper_scripts/sc21 at d98e8a6 (fp16, uniform checkpoints, DDP).
korthikanti: Table 5's "present work". mtnlg: bf16; its TFLOP/s count the forward twice. bloom: its
slurm file. glm-130b: HFU is 4/3 of MFU. opt-175b, palm-540b: fully sharded; PaLM rematerializes
and ends with 2,048 samples a step (arXiv:2204.02311 section 5), DeepSeek-V3 with 15,360 (section
4.2). nemotron4: section 2.3 interleaves, with chunks that it does not number.
llama3: arXiv:2407.21783 section 3.3.2 (no checkpoints at 8K, FP32 gradients, weights kept after
the forward, all-gather of keys and values). deepseek-v3: arXiv:2412.19437 section 3.3. kimi-k2:
arXiv:2507.20534 section 2.4. falcon: arXiv:2311.16867 and the model card. bridge: perf_recipes at
067f987 (weights gathered in 8 bits, gradients in 16; of DeepSeek-V3 mla_up_proj is recomputed).
"""

_OLDER = ("megatron2021", "mtnlg", "bloom", "glm-130b", "opt-175b", "palm-540b")
"""Trained before FlashAttention (arXiv:2205.14135) and sequence parallelism (arXiv:2205.05198)."""

_SYSTEMS = {"h100": "dgx-h100", "gb200": "gb200-nvl72", "gb300": "gb300-nvl72"}
"""The cluster of Megatron-Bridge's rows, which name it."""


def _published(name: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for start, *said in map(str.split, _PUBLISHED.strip().splitlines()):
        if name.startswith(start):
            fields |= dict(change.split("=") for change in said)
    if name.startswith(_OLDER):
        fields |= {"flash": "off", "sequence_parallel": "off"}
    for system, cluster in _SYSTEMS.items():
        if f"-dgx-{system}-" in name:
            fields["cluster"] = cluster
            fields |= {"products": "fp8"} if system == "h100" else {}
    return fields


def training_of_preset(name: str) -> dict[str, str]:
    """The fields of the model and its training that choosing a published layout sets.

    >>> training_of_preset("nemotron4-340b-1536")
    {'model': 'nemotron4-340b', 'cluster': 'dgx-h100', 'zero': '1', 'schedule': 'interleaved'}
    >>> training_of_preset("mcore-guide-llama-3-8b"), training_of_preset("playground-16")
    ({'model': 'llama3-8b'}, {})
    """
    said = said_of_preset(name)
    model = said.name or ("" if name == "playground-16" else UNKNOWN)
    fields = {"model": model, **said.changes, **_published(name)}
    return {field: as_text(value) for field, value in fields.items() if value != ""}
