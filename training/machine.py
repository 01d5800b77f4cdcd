"""A machine, described: one GPU, and the links between GPUs. Nothing depends on its name.

    memory   bytes of one GPU, as nvidia-smi or rocm-smi prints them
    seen     bytes of them that programs get: without what the driver keeps
    peak     operations per second in 16 bits (bf16; fp16 where there is no bf16), without sparsity
    fp8, fp4 the same of 8-bit and 4-bit numbers; 0 where a GPU has none
    hbm      bytes per second between a GPU and its memory
    reached  share of the peak that the best of all matrix products reaches
    nvlink   bytes per second that one GPU sends, one way, to the others of its domain together:
             NVLink, xGMI, ICI, PCIe or whatever else joins them
    pair     the same to one of them alone; 0: as much as to all, as through a switch
    nic      bytes per second that one GPU sends out of its domain, through its own network card
    spine    by how much fewer bytes pass between pods of ``pod`` nodes than their cards send: 7
             where the top layer of the network carries a seventh of it
    link     bytes per second one way between a GPU and its host: PCIe, or NVLink-C2C
    host     bytes of memory of a node; 0: not known

A number that is 0 and cannot be is unknown: `require` refuses what depends on it. Vendors mostly
print links both ways (A100 600, H100 900, MI300X 896 GB/s): a ring sends one way, at half of that.

How fast k GPUs of a domain exchange follows from the fabric:

    switch   each sends at ``nvlink``, whoever receives
    mesh     a wire of ``pair`` joins each two, so that k of them use k - 1 wires of each: two GPUs
             of an MI300X node get 64 GB/s, eight 448
    torus    a GPU has two wires on each axis; a group uses those of the axes along which its
             members stand, one of them where they do not go all round it, and groups that stand
             interleaved on an axis share its wires
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise as pairwise_of
from math import prod
from typing import Annotated, NamedTuple, get_type_hints

from groups.errors import LayoutError

from .errors import refusal

GB, GIB, TERA = 1e9, 2**30, 1e12
"""Bytes of a gigabyte (links), of a gibibyte (memory), and of a terabyte."""

MIB, GBIT = 2**20, 1e9 / 8
"""Bytes of a mebibyte, and of a gigabit."""


class PrintedAs(NamedTuple):
    """How a number of a machine is written by those who print it: the column of a row (clusters)
    and the input of one's own (described), both in units of ``size``."""

    column: str
    size: float
    input: str = ""


SWITCH, MESH, TORUS = "switch", "mesh", "torus"
FABRICS = (SWITCH, MESH, TORUS)

USUAL_REACHED = 0.74
"""Share of the peak that the best products reach where nobody measured it: the median of the GPUs
of which somebody did (stas00/ml-engineering, "Maximum Achievable FLOPS")."""

USUAL_SEEN = 0.995
"""Share of a GPU's memory that programs get where no log tells: H100 0.994, B200 0.996, GB300
0.997; of A100 0.991."""

NUMBERS = {
    "memory": ("unknown-memory", "capacity"),
    "peak": ("unknown-peak", "peak"),
    "hbm": ("unknown-hbm", "hbm"),
    "nvlink": ("unknown-nvlink", "nvlink"),
    "nic": ("unknown-nic", "nic"),
}
"""Numbers without which something cannot be told: the refusal, and the input that takes it."""


@dataclass(frozen=True)
class Machine:
    """A type of machine; all numbers in bytes, operations and seconds.

    Attributes:
        id: its name in links and options; "own" for one that somebody describes.
        maker: of its GPUs, in small letters; "" of a machine of one's own.
        family: GPUs whose measured runs give it constants (training.estimate.constants).
        rack: GPUs of a domain of several nodes; 0: a node is a domain.
        on_bus: of machines on PCIe a number of GPUs, and the share of its link that each of so many
            was measured to reach, as its host joins them; more pairs alike.
        on_bus: pairs of a number of GPUs and the share of a PCIe link that each of so many reached
            where it was measured of this machine: they share what the host joins them by.
        axes: axes of the torus.
        per_node: GPUs of a usual node; 0: unknown.
        fp4_most: where sources differ on fp4, the highest.
        has_bf16: whether products of bf16 run at the peak, not only those of fp16.
        is_sheet: whether memory is the data sheet's, since no log of the GPU was found.
        changed: numbers that somebody gave in place of the row's.

    >>> from training.clusters import CLUSTERS
    >>> h100, mi300x = CLUSTERS["dgx-h100"], CLUSTERS["mi300x"]
    >>> h100.nvlink / GB, h100.nic / GB, round(h100.memory / GIB, 2), h100.domain_of(8)
    (450.0, 50.0, 79.65, 8)
    >>> [mi300x.inside(k) / GB for k in (2, 4, 8)], h100.inside(2) / GB
    ([64.0, 192.0, 448.0], 450.0)
    """

    name: str
    nvlink: Annotated[float, PrintedAs("link_gb_per_s", GB, "nvlink")]
    nic: Annotated[float, PrintedAs("nic_gbit_per_s", GBIT, "nic")]
    memory: Annotated[float, PrintedAs("memory_mib", MIB), PrintedAs("sheet_gib", GIB)]
    peak: Annotated[
        float, PrintedAs("bf16_tflop_per_s", TERA, "peak"), PrintedAs("fp16_tflop_per_s", TERA)
    ]
    source: tuple[str, ...] = ()
    id: str = "own"
    maker: str = ""
    family: str = ""
    rack: Annotated[int, PrintedAs("rack", 1, "domain")] = 0
    fp8: Annotated[float, PrintedAs("fp8_tflop_per_s", TERA, "peak_fp8")] = 0.0
    fp4: Annotated[float, PrintedAs("fp4_tflop_per_s", TERA, "peak_fp4")] = 0.0
    fp4_most: Annotated[float, PrintedAs("fp4_most_tflop_per_s", TERA)] = 0.0
    hbm: Annotated[float, PrintedAs("hbm_gb_per_s", GB, "hbm")] = 0.0
    reached: float = USUAL_REACHED
    link: Annotated[float, PrintedAs("host_link_gb_per_s", GB)] = 0.0
    host: Annotated[float, PrintedAs("host_gb", GB)] = 0.0
    known_seen: Annotated[float, PrintedAs("seen_gib", GIB)] = 0.0
    pair: Annotated[float, PrintedAs("pair_gb_per_s", GB, "pair")] = 0.0
    fabric: str = SWITCH
    axes: int = 0
    on_bus: tuple[tuple[int, float], ...] = ()
    pod: Annotated[int, PrintedAs("pod", 1, "pod")] = 0
    spine: Annotated[float, PrintedAs("spine", 1.0, "spine")] = 1.0
    per_node: int = 0
    has_bf16: bool = True
    is_sheet: bool = False
    unknown: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def seen(self) -> float:
        """Bytes of a GPU that programs get.

        >>> from training.clusters import CLUSTERS
        >>> [round(CLUSTERS[name].seen / GIB, 2) for name in ("dgx-h100", "dgx-h200")]
        [79.18, 139.7]
        """
        return self.known_seen or USUAL_SEEN * self.memory

    def host_of(self, gpus_per_node: int) -> float:
        """Bytes of host memory for ``gpus_per_node`` GPUs; in a rack, every four GPUs have a node.

        >>> from training.clusters import CLUSTERS
        >>> CLUSTERS["gb200-nvl72"].host_of(8) / GB
        1920.0
        """
        return self.host * (-(-gpus_per_node // 4) if self.rack else 1)

    def domain_of(self, gpus_per_node: int) -> int:
        """Number of GPUs in a domain: a node, or a rack or slice if the links join its nodes.

        >>> from training.clusters import CLUSTERS
        >>> CLUSTERS["gb200-nvl72"].domain_of(4)
        72
        """
        return max(self.rack, gpus_per_node)

    def domain_of_job(self, gpus: int, gpus_per_node: int) -> int:
        """Number of GPUs that a job uses in a domain; a power of two if it spans several racks.

        Of 72 GPUs the job uses 64, so that groups of 8, 16, 32 and 64 ranks stay in a rack.

        >>> from training.clusters import CLUSTERS
        >>> gb200 = CLUSTERS["gb200-nvl72"]
        >>> gb200.domain_of_job(72, 4), gb200.domain_of_job(256, 4)
        (72, 64)
        """
        if gpus <= self.rack or self.rack <= gpus_per_node:
            return min(gpus, self.domain_of(gpus_per_node))
        return int(2 ** (self.rack.bit_length() - 1))

    def pod_of(self, gpus_per_node: int) -> int:
        """GPUs of a pod, between which every card sends at full speed; 0: all of the cluster."""
        return self.pod * gpus_per_node if self.spine > 1 else 0

    # -- inside a domain ---------------------------------------------------------------------------

    def inside(
        self,
        members: int,
        places: Sequence[int] = (),
        slice_of: int = 0,
        *,
        pairwise: bool = False,
    ) -> float:
        """Bytes per second that each of a group's members in a domain sends to the others there.

        places: their numbers in the domain, for a torus; slice_of: GPUs of its slice. pairwise:
        whether each sends an equal part to each other one, not round a ring: on a torus such parts
        pass GPUs on their way.

        >>> from training.clusters import CLUSTERS
        >>> v6e = CLUSTERS["tpu-v6e"]
        >>> [v6e.inside(n, range(n), 256) / GB for n in (2, 16, 256)]
        [100.0, 200.0, 400.0]
        >>> v6e.inside(256, range(256), 256, pairwise=True) / GB
        50.0
        """
        if self.fabric == MESH and self.pair:
            return min(self.nvlink, self.pair * max(1, members - 1))
        if self.fabric == TORUS and self.axes and len(places) > 1:
            shape = slice_shape(slice_of or self.rack or self.per_node, self.axes)
            wires = _wires(tuple(places), shape, pairwise)
            return min(self.nvlink, wires * self.nvlink / (2 * self.axes))
        return min(self.nvlink, self.pair or self.nvlink) if members == 2 else self.nvlink

    def slower(
        self,
        members: int,
        places: Sequence[int] = (),
        slice_of: int = 0,
        *,
        pairwise: bool = False,
    ) -> float:
        """How many times slower than at ``nvlink`` such a group exchanges; 1 through a switch.

        >>> from training.clusters import CLUSTERS
        >>> CLUSTERS["mi300x"].slower(2), CLUSTERS["dgx-h100"].slower(2)
        (7.0, 1.0)
        """
        if self.fabric == SWITCH and not self.pair:
            return 1.0
        return self.nvlink / self.inside(members, places, slice_of, pairwise=pairwise)

    @property
    def one_pair(self) -> float:
        """Bytes per second from one GPU to another one of its domain, its neighbour on a torus."""
        if self.fabric == TORUS and self.axes:
            return self.pair or self.nvlink / (2 * self.axes)
        return self.pair or self.nvlink

    # -- what is unknown ---------------------------------------------------------------------------

    def require(self, *names: str) -> None:
        """Errors: LayoutError for a number of NUMBERS that is unknown, about its input."""
        for name in names:
            if not getattr(self, name):
                raise self.lacks(name)

    def lacks(self, name: str) -> LayoutError:
        """The refusal for want of one of NUMBERS, about its input."""
        code, control = NUMBERS[name]
        return refusal(code, control, machine=self.name)

    def require_links(self, gpus: int, gpus_per_node: int) -> None:
        """Errors: LayoutError where the speed of a link that a job needs is unknown."""
        if gpus > 1 and self.domain_of(gpus_per_node) > 1:
            self.require("nvlink")
        if gpus > self.domain_of(gpus_per_node):
            self.require("nic")


@cache
def units() -> dict[str, tuple[PrintedAs, ...]]:
    """How each attribute of a machine is written that has a unit; of several columns the first one
    counts that has a number.

    >>> units()["nic"]
    (PrintedAs(column='nic_gbit_per_s', size=125000000.0, input='nic'),)
    """
    hints = get_type_hints(Machine, include_extras=True)
    return {
        name: hint.__metadata__ for name, hint in hints.items() if hasattr(hint, "__metadata__")
    }


@lru_cache(maxsize=256)
def slice_shape(gpus: int, axes: int) -> tuple[int, ...]:
    """Sizes of the axes of a torus of so many GPUs, as equal as they can be.

    >>> slice_shape(256, 2), slice_shape(64, 3), slice_shape(32, 2)
    ((16, 16), (4, 4, 4), (4, 8))
    """
    if axes <= 1:
        return (gpus,)
    root = round(gpus ** (1.0 / axes))
    side = next(n for n in range(max(1, root), 0, -1) if gpus % n == 0)
    return (side, *slice_shape(gpus // side, axes - 1))


@lru_cache(maxsize=1024)
def _wires(places: tuple[int, ...], shape: tuple[int, ...], pairwise: bool = False) -> float:
    """Wires of a torus that each member of a group has for itself.

    Pairwise, e members along an axis pass e / 8 of what each of them sends over each of an axis'
    wires, both ways round, or e / 4 where the axis does not go round: half of all crosses the
    middle.

    >>> _wires((0, 1), (4, 4)), _wires((0, 1, 2, 3), (4, 4)), _wires((0, 2), (4, 4))
    (1.0, 2.0, 1.0)
    >>> _wires(tuple(range(16)), (4, 4), True), _wires(tuple(range(16)), (16, 16), True)
    (2.0, 0.5)
    """
    ring, slowest, stride = 0.0, float(2 * len(shape)), 1
    for size in shape:
        along = sorted({place // stride % size for place in places})
        if len(along) > 1:
            apart = min(after - one for one, after in pairwise_of(along))
            ways = 2.0 if len(along) * apart >= size else 1.0
            ring += ways / apart
            slowest = min(slowest, 4.0 * ways / len(along) / apart)
        stride *= size
    return slowest if pairwise else max(ring, 1.0 / prod(shape))


@dataclass(frozen=True)
class Links:
    """The links of a machine as a job's groups use them, of ranks that stand evenly apart.

    Attributes:
        domain: GPUs of a domain.
        pod: GPUs between which every card sends at full speed; 0: all.
    """

    machine: Machine
    domain: int
    pod: int = 0

    def slower(self, members: int, stride: int, *, pairwise: bool = False) -> float:
        """How many times slower than at ``nvlink`` so many ranks of a domain exchange."""
        machine = self.machine
        if members == 1 or (machine.fabric == SWITCH and not machine.pair):
            return 1.0
        places = range(0, members * stride, stride)
        return machine.slower(members, places, self.domain, pairwise=pairwise)


def over(amount: float, speed: float) -> float:
    """Seconds of an amount at a speed; none of nothing, whatever the speed."""
    return amount / speed if amount else 0.0
