"""What is asked of an estimate, checked: a model, where it runs, how it is cut and trained."""

from __future__ import annotations

from dataclasses import dataclass, replace

from groups.alternatives import not_a_multiple
from groups.errors import LayoutError, not_a_choice
from groups.mesh import MAX_RANKS, whole_number

from ..clusters import CLUSTERS, Cluster
from ..memory import Training
from ..model import MAX_SIZE, Model
from ..split import Split
from ..traffic.demands import require

PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Number formats of the layers' matrix products; all else stays in 16 bits."""


@dataclass(frozen=True)
class Request:
    """One layout of one job on one cluster; every number checked.

    Attributes:
        split: sizes, with layers dealt out as evenly as they go.
        micro_batches: of one step, on each pipeline.
        domain: GPUs that NVLink joins, of a job of this size.
    """

    model: Model
    cluster: str
    gpus: int
    gpus_per_node: int
    split: Split
    training: Training
    global_batch: int
    precision: str
    flash: bool

    @property
    def machine(self) -> Cluster:
        return CLUSTERS[self.cluster]

    @property
    def micro_batches(self) -> int:
        return self.training.micro_batches

    @property
    def domain(self) -> int:
        return self.machine.domain_of_job(self.gpus, self.gpus_per_node)

    @property
    def tokens(self) -> float:
        """Of a micro-batch on one context parallel rank."""
        return self.training.micro_batch * self.model.sequence / self.split.cp


def request_of(
    model: Model,
    *,
    cluster: str,
    gpus: int,
    gpus_per_node: int,
    tp: int,
    pp: int,
    cp: int,
    ep: int,
    etp: int | None,
    vpp: int,
    micro_batch: int,
    global_batch: int,
    sequence: int,
    precision: str,
    zero: int,
    recompute: str,
    flash: bool,
    sequence_parallel: bool,
) -> Request:
    """The request, or a refusal that names what does not go together."""
    texts = {"cluster": (cluster, tuple(CLUSTERS)), "precision": (precision, PRECISIONS)}
    for name, (text, choices) in texts.items():
        if not isinstance(text, str) or text not in choices:
            raise not_a_choice(name, text, choices)
    numbers = {"gpus": gpus, "gpus_per_node": gpus_per_node, "tp": tp, "pp": pp, "cp": cp, "ep": ep}
    for name, number in numbers.items():
        whole_number(number, name, maximum=MAX_RANKS)
    whole_number(global_batch, "global_batch", maximum=MAX_SIZE)
    if whole_number(sequence, "sequence", maximum=MAX_SIZE) != model.sequence:
        model = replace(model, sequence=sequence)
    if model.kv_heads < tp and tp % model.kv_heads == 0 and not model.is_mla:
        # Each rank then has a copy of one KV head, as if there were as many as ranks.
        model = replace(model, kv_heads=tp) if model.heads % tp == 0 else model
    _require_precision(cluster, precision)
    dp, left = divmod(gpus, tp * pp * cp)
    if left:
        by = {"tp": tp, "pp": pp, "cp": cp}
        raise not_a_multiple("gpus", gpus, by, maximum=MAX_RANKS)
    micro_batches, left = divmod(global_batch, whole_number(micro_batch, "micro_batch") * dp)
    if left or not micro_batches:
        by = {"micro_batch": micro_batch, "dp": dp}
        raise not_a_multiple("global_batch", global_batch, by, maximum=MAX_SIZE)
    split = _dealt(model, tp, pp, cp, dp, ep, etp, vpp)
    training = Training(
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        schedule="interleaved" if split.vpp > 1 else "1f1b",
        zero=zero,
        recompute=recompute,
        sequence_parallel=sequence_parallel,
        flash=flash,
        dropout=not flash,
    )
    require(model, split, training)
    flat = (model, cluster, gpus, gpus_per_node, split, training)
    return Request(*flat, global_batch, precision, bool(flash))


def _dealt(
    model: Model, tp: int, pp: int, cp: int, dp: int, ep: int, etp: int | None, vpp: int
) -> Split:
    """Layers that pp x vpp does not divide are dealt out one more here, one less there.

    Where two layers more would divide, embedding and loss take a layer's place each, as Megatron's
    --account-for-embedding-in-pipeline-split has it.
    """
    stages = pp * (whole_number(vpp, "vpp") if pp > 1 else 1)
    even = model.layers % stages == 0
    account = not even and (model.layers + 2) % stages == 0
    if etp is None:
        etp = 1 if ep > 1 else tp
    return Split(
        tp=tp,
        pp=pp,
        cp=cp,
        dp=dp,
        ep=ep,
        etp=etp,
        vpp=vpp if pp > 1 else 1,
        account=account,
        spread="equal" if even or account else "nearly",
    )


def _require_precision(cluster: str, precision: str) -> None:
    machine = CLUSTERS[cluster]
    missing = (precision in ("fp8", "mxfp8") and not machine.fp8) or (
        precision == "nvfp4" and not machine.fp4
    )
    if missing:
        raise LayoutError(
            "no-such-numbers",
            f"{machine.name} has no {precision}",
            control="precision",
            alternatives=[],
            facts={"cluster": machine.name, "precision": precision},
        )
