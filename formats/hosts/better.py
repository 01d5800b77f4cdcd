"""A better order of a job's machines, from what their text says of them."""

from __future__ import annotations

from typing import Any

from groups.conventions import MEGATRONS
from groups.layout import Layout

from .distribution import even_slots
from .order import BetterOrder, best_order, order_for
from .placing import placement_of
from .values import Hosts


def better_order(layout: Layout, hosts: Hosts, objective: str = "dp-first") -> BetterOrder:
    """The order of a job's machines under which fewest groups cross racks, and what is above them.

    With other layouts, where the order of ranks is Megatron's. Errors: as `best_order`; LayoutError
    for machines that are not as many as the job needs, and with uneven slots.
    """
    slots = even_slots(hosts, layout.gpus_per_node)
    placement_of(hosts, layout.world_size, slots)
    options: dict[str, Any] = {"gpus_per_node": slots, "objective": objective}
    options["above"] = hosts.above_racks
    if layout.expert is None or layout.framework not in MEGATRONS:
        return order_for(layout.every, hosts.names, hosts.racks, **options)
    same = layout.stated_job
    sizes = {name: getattr(same, name) for name in ("tp", "cp", "pp", "ep", "etp", "order")}
    return best_order(hosts.names, hosts.racks, **options, **sizes)
