"""Clusters by the numbers that a step depends on: link speeds one way, memory and peak of one GPU.

    nvlink   bytes per second that one GPU sends to the GPUs of its NVLink domain
    nic      bytes per second that one GPU sends out of it, through its own network card
    memory   bytes of one GPU; the GB of memory that vendors print are GiB
    peak     bf16 floating point operations per second of one GPU, without sparsity
    fp8, fp4 the same of 8-bit and 4-bit numbers; 0 where a GPU has none
    hbm      bytes per second between a GPU and its memory
    reached  share of the peak that the best of all matrix products reaches on the machine
    link     bytes per second one way between a GPU and its host: PCIe, or NVLink-C2C
    host     bytes of memory of a node; 0: not known

Vendors mostly print NVLink both ways (A100 600, H100 900, H800 400, GB200 1800 GB/s); a ring sends
one way, at half of that. All are limits of the hardware: what programs reach is lower.

Left out, for want of a stated speed or because one number a GPU does not describe their links: Jean
Zay (4 Omni-Path links a node), TPU v4 and TPU7x (a torus).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from groups.tables import Rows, read_table

GB, GIB, TERA = 1e9, 2**30, 1e12
"""Bytes of a gigabyte (links), of a gibibyte (memory), and of a terabyte."""


@dataclass(frozen=True)
class Cluster:
    """A type of machine.

    >>> h100 = CLUSTERS["dgx-h100"]
    >>> h100.nvlink / GB, h100.nic / GB, h100.memory / GIB, h100.domain_of(8)
    (450.0, 50.0, 80.0, 8)
    """

    name: str
    nvlink: float
    nic: float
    memory: int
    peak: float
    source: tuple[str, ...]
    rack: int = 0  # GPUs of an NVLink domain of several nodes; 0: a node is a domain
    fp8: float = 0.0
    fp4: float = 0.0
    hbm: float = 0.0
    reached: float = 1.0
    link: float = 0.0
    host: float = 0.0

    def host_of(self, gpus_per_node: int) -> float:
        """Bytes of host memory for ``gpus_per_node`` GPUs; in a rack, every four GPUs have a node.

        >>> CLUSTERS["gb200-nvl72"].host_of(8) / GB
        1920.0
        """
        return self.host * (-(-gpus_per_node // 4) if self.rack else 1)

    def domain_of(self, gpus_per_node: int) -> int:
        """Number of GPUs in an NVLink domain: a node, or a rack if NVLink joins its nodes.

        >>> CLUSTERS["gb200-nvl72"].domain_of(4)
        72
        """
        return max(self.rack, gpus_per_node)

    def domain_of_job(self, gpus: int, gpus_per_node: int) -> int:
        """Number of GPUs that a job uses in an NVLink domain; a power of two if it spans several
        racks.

        Of 72 GPUs the job uses 64, so that groups of 8, 16, 32 and 64 ranks stay in a rack.

        >>> gb200 = CLUSTERS["gb200-nvl72"]
        >>> gb200.domain_of_job(72, 4), gb200.domain_of_job(256, 4)
        (72, 64)
        """
        if gpus <= self.rack or self.rack <= gpus_per_node:
            return min(gpus, self.domain_of(gpus_per_node))
        return 2 ** (self.rack.bit_length() - 1)


@dataclass(frozen=True)
class ClusterRow:
    """A row of clusters.toml, in the units of vendors."""

    name: str
    nvlink_gb_per_s: float
    nic_gb_per_s: float
    memory_gib: int
    peak_tflop_per_s: float
    hbm_gb_per_s: float
    reached: float
    link_gb_per_s: float
    source: tuple[str, ...]
    host_gb: float = 0.0
    rack: int = 0
    fp8_tflop_per_s: float = 0.0
    fp4_tflop_per_s: float = 0.0

    def cluster(self) -> Cluster:
        return Cluster(
            name=self.name,
            source=self.source,
            rack=self.rack,
            reached=self.reached,
            memory=self.memory_gib * GIB,
            nvlink=self.nvlink_gb_per_s * GB,
            nic=self.nic_gb_per_s * GB,
            hbm=self.hbm_gb_per_s * GB,
            link=self.link_gb_per_s * GB,
            host=self.host_gb * GB,
            peak=self.peak_tflop_per_s * TERA,
            fp8=self.fp8_tflop_per_s * TERA,
            fp4=self.fp4_tflop_per_s * TERA,
        )


def _clusters() -> dict[str, Cluster]:
    rows = read_table(Path(__file__).with_name("clusters.toml"), dict[str, ClusterRow])
    return {name: row.cluster() for name, row in rows.items()}


CLUSTERS: Mapping[str, Cluster] = Rows(_clusters)
"""Every cluster by a stable id. The machines of Llama 3 405B are as DGX H100, with RoCE in place of
InfiniBand, and their top network layer carries 1/7 (arXiv:2407.21783 section 3.3.1)."""
