"""A better order of a job's machines, from what their text says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groups.conventions import MEGATRONS
from groups.layout import Layout

from .order import KINDS, BetterOrder, best_order, order_for
from .placing import even_slots, placement_of
from .values import Hosts

TIME = "time"
"""The objective of seconds, where somebody says them; else of counts."""


def better_order(
    layout: Layout,
    hosts: Hosts,
    objective: str = TIME,
    seconds: Mapping[str, float] | None = None,
) -> BetterOrder:
    """The order of a job's machines under which fewest groups cross racks, and what is above them.

    seconds: of a step that are waited for each kind, as `training.estimate` has them: a kind's are
    spread over its groups evenly, and an order costs those of groups that cross.

    With other layouts, where the order of ranks is Megatron's. Errors: as `best_order`; LayoutError
    for machines that are not as many as the job needs, and with uneven slots.
    """
    slots = even_slots(hosts, layout.gpus_per_node)
    placement_of(hosts, layout.world_size, slots)
    costs = {
        kind: seconds[kind] / layout.every[kind].num_groups
        for kind in KINDS
        if seconds and seconds.get(kind) and kind in layout.every
    }
    options: dict[str, Any] = {"gpus_per_node": slots, "above": hosts.above_racks}
    options["objective"] = "dp-first" if objective == TIME else objective
    options["costs"] = costs if objective == TIME and costs else None
    if layout.expert is None or layout.framework not in MEGATRONS:
        found = order_for(layout.every, hosts.names, hosts.racks, **options)
    else:
        same = layout.stated_job
        sizes = {name: getattr(same, name) for name in ("tp", "cp", "pp", "ep", "etp", "order")}
        found = best_order(hosts.names, hosts.racks, **options, **sizes)
    before, after = (
        sum(costs.get(one.kind, 0.0) * getattr(one, when) for one in found.kinds)
        for when in ("before", "after")
    )
    return replace(found, costs=costs, cost=after, cost_before=before)
