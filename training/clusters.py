"""Clusters by what a step needs of them: link speeds one way, memory and peak of one GPU.

    nvlink   bytes per second that one GPU sends to the GPUs of its NVLink domain
    nic      bytes per second that one GPU sends out of it, through its own network card
    memory   bytes of one GPU; the GB of memory that vendors print are GiB
    peak     bf16 floating point operations per second of one GPU, without sparsity

Vendors mostly print NVLink both ways (A100 600, H100 900, H800 400, GB200 1800 GB/s); a ring sends
one way, at half of that. All are limits of the hardware: what programs reach is lower.

Left out, for want of a stated speed or because one number a GPU does not describe their links: Jean
Zay (4 Omni-Path links a node), TPU v4 and TPU7x (a torus).
"""

from __future__ import annotations

from dataclasses import dataclass

GB, GIB = 1e9, 2**30
"""Bytes: links are given in gigabytes a second, memory in gibibytes."""


@dataclass(frozen=True)
class Cluster:
    """One kind of machine.

    >>> h100 = CLUSTERS["dgx-h100"]
    >>> h100.nvlink / GB, h100.nic / GB, h100.memory / GIB, h100.domain_of(8)
    (450.0, 50.0, 80.0, 8)
    """

    name: str
    nvlink: float  # bytes per second, one way
    nic: float  # bytes per second, one way
    memory: int  # bytes
    peak: float  # operations per second
    source: tuple[str, ...]
    rack: int = 0  # GPUs of an NVLink domain of several nodes; 0: a node is a domain

    def domain_of(self, gpus_per_node: int) -> int:
        """GPUs that NVLink joins: those of a node, or of a rack where it joins nodes.

        >>> CLUSTERS["gb200-nvl72"].domain_of(4)
        72
        """
        return max(self.rack, gpus_per_node)


_LINKS = "stas00/ml-engineering 744d01e network/README.md"

CLUSTERS: dict[str, Cluster] = {
    "dgx-a100": Cluster(
        name="DGX A100, 80 GB",
        nvlink=300 * GB,
        nic=25 * GB,
        memory=80 * GIB,
        peak=312e12,
        source=(
            "arXiv:2104.04473 section 5 (8 x 200 Gb/s HDR a node, 312 teraFLOP/s)",
            f"{_LINKS} (NVLink 3: 300 GB/s one way)",
        ),
    ),
    "dgx-h100": Cluster(
        name="DGX H100",
        nvlink=450 * GB,
        nic=50 * GB,
        memory=80 * GIB,
        peak=989e12,
        source=(
            "arXiv:2406.11704 section 2.3 (450 GB/s each way, 8 x 400 Gb/s a node, 989 TFLOP/s)",
            "mlcommons/inference_results_v3.1 closed/Dell/systems/XE9680_H100_SXM_80GBx8_TRT.json"
            " (80 GB)",
        ),
    ),
    "hgx-h800": Cluster(
        name="HGX H800",
        nvlink=200 * GB,
        nic=50 * GB,
        memory=80 * GIB,
        peak=989e12,
        source=("arXiv:2505.09343 (NVLink 400 GB/s both ways, eight 400G network cards a node)",),
    ),
    "gb200-nvl72": Cluster(
        name="GB200 NVL72",
        nvlink=900 * GB,
        nic=50 * GB,
        memory=186 * GIB,
        peak=2500e12,
        rack=72,
        source=(
            f"{_LINKS} (NVLink 5, 900 GB/s one way, 72 GPUs)",
            "mlcommons/inference_results_v6.1 closed/Crusoe/systems/"
            "GB200-NVL72_GB200-186GB_aarch64x16_Dynamo.json (186 GB, one network card a GPU)",
        ),
    ),
}
"""Every cluster by a stable id. The machines of Llama 3 405B are as DGX H100, with RoCE in place of
InfiniBand, and their top network layer carries 1/7 (arXiv:2407.21783 section 3.3.1)."""
