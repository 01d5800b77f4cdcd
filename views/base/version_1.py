"""Links of version 1, as links of today that open the same."""

from __future__ import annotations

from collections.abc import Mapping

from groups.inputs import number_in
from training.pipeline import SCHEDULES

from .inputs import STARTS

FIRST_TYPE = "dp+tp+pp"
"""What a link of version 1 shows that names no type; one of version 2 follows the layout."""

COUNTING = ("memory", "traffic", "search", "compare")
"""Views that in version 1 had a schedule of their own, and the pipeline one of its."""


def as_version_2(parts: Mapping[str, str]) -> dict[str, str]:
    """A link of version 1 as one of today that opens the same.

    The pipeline had a schedule, virtual stages, groups, micro-batches and ends of its own, and drew
    a schedule that has chunks of its own whatever was typed; those that count a step took the
    global batch, one virtual stage where none are typed, and layers dealt out nearly equally where
    the stages do not divide them.
    """
    given = {"group_type": FIRST_TYPE, **parts}
    chunks, counted = given.pop("chunks", ""), given.pop("memory_schedule", "")
    view = given.get("show")
    if view in COUNTING:
        given |= {"schedule": counted, "micro_batches": "", "group_size": ""}
        given |= dict.fromkeys(("first_layers", "last_layers", "pipe_layout"), "")
        if counted:  # one that loops takes two of today
            given["vpp"] = given.get("vpp") or "1"
        if _is_uneven(given) and not given.get("spread"):
            given["spread"] = "nearly"
    elif view == "pipeline":
        if given.get("micro_batches"):
            given["global_batch"] = ""
        if chunks:
            is_looped = given.get("vpp", "") not in ("", "1")
            named = given.get("schedule") or ("interleaved" if is_looped else "1f1b")
            given |= {"schedule": named, "vpp": chunks}
        if _has_chunks(given.get("schedule")):
            given["vpp"] = ""
    else:
        given["schedule"] = given.get("schedule") or counted
        if not _has_chunks(given["schedule"]):
            given["vpp"] = given.get("vpp") or chunks
        elif given.get("vpp", "") not in ("", "1"):  # by which layers were told
            given["schedule"] = ""
        if given.get("global_batch"):
            given["micro_batches"] = ""
    return given


def _has_chunks(schedule: str | None) -> bool:
    """Whether a schedule has a number of chunks that cannot be chosen."""
    return schedule in SCHEDULES and SCHEDULES[schedule].v is not None


def _is_uneven(given: Mapping[str, str]) -> bool:
    """Whether Megatron would not deal the layers that are typed to the stages."""
    starts = {"layers": "", "pp": STARTS["pp"], "vpp": "1"}
    numbers = [number_in(given.get(name, start)) for name, start in starts.items()]
    sizes = [number for number in numbers if isinstance(number, int) and number > 0]
    if len(sizes) < len(numbers):
        return False
    layers, pp, vpp = sizes
    return pp == 1 < vpp or (layers + 2 * (given.get("account") == "1")) % (pp * vpp) > 0
