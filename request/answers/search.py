"""The endpoint for better layouts of the same model on the same GPUs."""

from __future__ import annotations

import json

from descriptions import REASONS, TRAFFIC
from formats.values import Document
from groups import LayoutError
from groups.notes import Note
from training.estimate import Estimate
from training.recompute import WORDS, modules_of
from training.search import alone, compared, order_of, published_layouts, search
from training.split import SIZES

from ..context import Context
from ..endpoint import empty_if_zero
from ..trained_endpoint import fit_facts, fixes_tried, job_facts, training_endpoint
from ..units import gib, seconds_text
from ..words import value_text, within_sentence
from .estimate.measured import measured_facts
from .estimate.words import estimate_facts, order_facts


@training_endpoint
def better_layouts(
    context: Context, cluster: str = "dgx-h100", capacity: float = 0.0, cp_algorithm: str = "p2p"
) -> str:
    """The best ten layouts of a model on so many GPUs, with their numbers and reasons, as JSON.

    The GPUs, orders, batch and training are those of the layout that is given; reasons compare with
    it. Of each layout micro-batch, vpp and recomputation are those that suit it best.

    Args:
        cluster: (the machines).
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cp_algorithm: how keys and values go round in a cp group: "p2p", "all_gather" or "a2a".
        (the training)
        (the layout)
    """
    texts = {"cluster": cluster, "cp_algorithm": cp_algorithm, "capacity": empty_if_zero(capacity)}
    with fixes_tried(context, **texts) as changed:
        return json.dumps(search_facts(changed))


def search_facts(context: Context) -> dict[str, object]:
    """The best layouts for the same model, batch and GPUs, as JSON values.

    Errors: LayoutError for what the model or the batch does not allow; a layout that is refused by
    itself is one of the facts.
    """
    trained = context.trained
    job = trained.job(context.layout)
    current, refusal = None, ""
    try:
        with fixes_tried(context):
            current = trained.estimate(context.layout)
    except LayoutError as error:
        refusal = str(error)
    result = search(job)
    first = result.best[0] if result.best else None
    return {
        **job_facts(trained),
        "cluster": trained.cluster_id,
        "world_size": job.gpus,
        "capacity_bytes": job.capacity,
        "tried": result.tried,
        "ways": result.ways,
        "too_large": result.too_large,
        "complete": result.complete,
        "given": current and _candidate(current, alone(current), first),
        "given_place": current and current.fits and result.place(current.seconds),
        "given_is_refused": refusal,
        **measured_facts(context),
        "published": [
            {"preset": placed.preset, "place": placed.place or None, "slower": placed.slower}
            for placed in published_layouts(job, result)
        ],
        "best": [
            {
                **_candidate(estimate, _reasons(estimate, current), first),
                "than_given": current and order_facts(order_of(estimate, current)),
            }
            for estimate in result.best
        ],
    }


def _reasons(estimate: Estimate, current: Estimate | None) -> list[Note]:
    is_same = current is not None and estimate.request == current.request
    return alone(estimate) if current is None or is_same else compared(estimate, current)


def _candidate(
    estimate: Estimate, reasons: list[Note], first: Estimate | None
) -> dict[str, object]:
    """A layout, and how sure it is that it is quicker than the first of the list."""
    split, training = estimate.request.split, estimate.request.training
    return {
        **{name: getattr(split, name) for name in SIZES},
        "account": split.account,
        "spread": split.spread,
        "memory_schedule": training.schedule,
        **({"group_size": training.group_size} if training.group_size else {}),
        "micro_batch": training.micro_batch,
        "micro_batches": training.micro_batches,
        "recompute": training.recompute,
        "ep_overlap": training.ep_overlap,
        **({"instances": training.instances} if training.instances > 1 else {}),
        **fit_facts(estimate.fit),
        **estimate_facts(estimate),
        "than_first": first and order_facts(order_of(estimate, first)),
        "reasons": [
            {"code": reason.code, "words": reason_text(reason, "en")} for reason in reasons
        ],
    }


def reason_text(reason: Note, language: str) -> str:
    facts: Document = dict(reason.facts)
    if "seconds" in facts:
        facts["seconds"] = seconds_text(facts["seconds"])
    facts |= {name: gib(facts[name]) for name in ("memory", "other") if name in facts}
    if "recompute" in facts:
        facts["recompute"] = _named_in_sentence(facts["recompute"], language)
    return REASONS[reason.code][language].format(**facts)


def _named_in_sentence(recompute: str, language: str) -> str:
    if recompute in WORDS:
        return within_sentence(value_text("recompute", recompute, language))
    return TRAFFIC["modules"][language].format(count=len(modules_of(recompute)))
