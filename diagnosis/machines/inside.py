"""The inside of a machine: which network card is close to which GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

NEAR = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Distances, from a single bridge to the whole machine."""


@dataclass(frozen=True)
class Node:
    """GPUs and cards of a machine. links: (device, device) -> NV18, PIX, SYS ... both ways."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    links: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def nearest(self, device: str) -> tuple[str, ...]:
        """The cards nearest to a GPU, or the GPUs nearest to a card; none at the largest
        distance."""
        others = self.nics if device in self.gpus else self.gpus
        how = {other: self.links.get((device, other)) for other in others}
        far = {other: NEAR.index(link) for other, link in how.items() if link in NEAR[:-1]}
        least = min(far.values(), default=0)
        return tuple(other for other in far if far[other] == least)

    @property
    def rails(self) -> dict[str, str]:
        """GPU -> its own card, if each is the only nearest one of the other."""
        cards = ((gpu, self.nearest(gpu)) for gpu in self.gpus)
        return {gpu: nics[0] for gpu, nics in cards if [self.nearest(n) for n in nics] == [(gpu,)]}

    @property
    def gpu_links(self) -> dict[str, int]:
        """The number of pairs of GPUs by their link: {"NV18": 28}."""
        pairs = (two for two in combinations(self.gpus, 2) if two in self.links)
        return dict(Counter(self.links[two] for two in pairs))
