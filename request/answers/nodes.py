"""The endpoint for nodes and NVLink domains."""

from __future__ import annotations

import json

from groups.audit import DOMAINS, audit
from groups.layout import Layout

from ..endpoint import endpoint
from ..hosts import placement_from


@endpoint
def node_audit(layout: Layout, hosts: str = "", racks: str = "") -> str:
    """Which groups stay inside a node or an NVLink domain and which cross, as JSON.

    With hosts their racks, switches and domains are keys beside the sizes, "node" the hosts.

    Args:
        hosts: the job's machines in their order, as /read_hosts takes them; empty: none are named.
        racks: another text that says where they stand; empty: hosts.
        (the layout)
    """
    domains = sorted({layout.gpus_per_node, *DOMAINS})
    placement = placement_from(layout, hosts, racks)
    rows = audit(layout.every.values(), domains, placement.by_level() if placement else {})
    return json.dumps(
        {
            row[0].name: {
                span.level or str(span.domain): {
                    "groups": span.groups,
                    "crossing": span.crossing,
                    "most_domains": span.most,
                    "waits_for_links": span.is_slow,
                }
                for span in row
            }
            for row in rows
        }
    )
