"""Converts links of version 1 to links of version 2 that open the same page."""

from __future__ import annotations

from collections.abc import Mapping

from groups.frameworks import FRAMEWORKS
from groups.inputs import number_in
from groups.layout import EXPERTS_MAIN, MAIN
from training.pipeline import SCHEDULES

from .inputs import STARTS

FIRST_TYPE = "dp+tp+pp"
"""The type of groups of a version 1 link without one; in version 2 the type follows the layout."""

COUNTING = ("memory", "traffic", "search", "compare")
"""Views that had their own schedule in version 1, as the pipeline view had."""


def as_version_2(parts: Mapping[str, str]) -> dict[str, str]:
    """A link of version 1 as one of today that opens the same.

    The pipeline had a schedule, virtual stages, groups, micro-batches and ends of its own, and drew
    a schedule that has chunks of its own whatever was typed; those that count a step took the
    global batch, one virtual stage where none are typed, and layers dealt out nearly equally where
    the stages do not divide them.
    """
    texts = {"group_type": FIRST_TYPE, **parts}
    if "more" in texts:
        texts["more"] = _made(texts["more"], texts.get("framework", ""))
    chunks, counted = texts.pop("chunks", ""), texts.pop("memory_schedule", "")
    view = texts.get("show")
    if view in COUNTING:
        texts |= {"schedule": counted, "micro_batches": "", "group_size": ""}
        texts |= dict.fromkeys(("first_layers", "last_layers", "pipe_layout"), "")
        if counted:  # one that loops takes two of today
            texts["vpp"] = texts.get("vpp") or "1"
        if _is_uneven(texts) and not texts.get("spread"):
            texts["spread"] = "nearly"
    elif view == "pipeline":
        if texts.get("micro_batches"):
            texts["global_batch"] = ""
        if chunks:
            is_looped = texts.get("vpp", "") not in ("", "1")
            named = texts.get("schedule") or ("interleaved" if is_looped else "1f1b")
            texts |= {"schedule": named, "vpp": chunks}
        if _has_chunks(texts.get("schedule")):
            texts["vpp"] = ""
    else:
        texts["schedule"] = texts.get("schedule") or counted
        if not _has_chunks(texts["schedule"]):
            texts["vpp"] = texts.get("vpp") or chunks
        elif texts.get("vpp", "") not in ("", "1"):  # by which layers were told
            texts["schedule"] = ""
        if texts.get("global_batch"):
            texts["micro_batches"] = ""
    return texts


def _made(more: str, framework: str) -> str:
    """The groups of a link that its framework makes: version 1 drew Megatron's of any framework."""
    if framework not in FRAMEWORKS or FRAMEWORKS[framework].speaks_megatron:
        return more
    return ",".join(name for name in more.split(",") if name in (*MAIN, *EXPERTS_MAIN))


def _has_chunks(schedule: str | None) -> bool:
    """Whether a schedule has a fixed number of chunks."""
    return schedule in SCHEDULES and SCHEDULES[schedule].v is not None


def _is_uneven(texts: Mapping[str, str]) -> bool:
    """Whether Megatron would refuse the typed layers for these stages."""
    starts = {"layers": "", "pp": STARTS["pp"], "vpp": "1"}
    numbers = [number_in(texts.get(name, start)) for name, start in starts.items()]
    sizes = [number for number in numbers if isinstance(number, int) and number > 0]
    if len(sizes) < len(numbers):
        return False
    layers, pp, vpp = sizes
    return pp == 1 < vpp or (layers + 2 * (texts.get("account") == "1")) % (pp * vpp) > 0
