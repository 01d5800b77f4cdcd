"""Examples that the page offers: links of layouts, evidence of a hang, machines."""

from __future__ import annotations

from urllib.parse import quote

from groups.layout import Job
from request.answers.hang.example import watchdog_example

EVIDENCE = watchdog_example(Job(tp=4).layout())
"""A watchdog's output about one tp group of 4."""


HOSTS = "\n".join(f"gpu-{node}" for node in range(8))


RACKS = (
    "SwitchName=rack0 Nodes=gpu-0,gpu-2,gpu-4,gpu-6\nSwitchName=rack1 Nodes=gpu-1,gpu-3,gpu-5,gpu-7"
)
"""Machines alternating between two racks: neighbours in the order of ranks are never in the
same."""


_GPT = "micro_batch=4&global_batch=128&model=gpt-18.4b"


LINKS = {
    "playground-16": "rank=5",
    "llama3-405b-2": "preset=llama3-405b-2",
    "deepseek-v3": "preset=deepseek-v3&rank=405",
    "rack": "nodes=8&ep=16&etp=1&show=hosts",
    "hang": "tp=4&show=hang",
    "cost": f"tp=16&pp=1&{_GPT}&show=compare&kept={quote(f'?tp=8&pp=1&{_GPT}')}",
}
"""The link of each story."""


BRINGS: dict[str, dict[str, str]] = {
    "rack": {"hosts": HOSTS, "racks": RACKS},
    "hang": {"evidence": EVIDENCE},
}
"""Fields of stories that no link holds."""
