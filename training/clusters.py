"""Clusters by what a step needs of them: link speeds one way, memory and peak of one GPU.

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
    fp8: float = 0.0  # operations per second
    fp4: float = 0.0
    hbm: float = 0.0  # bytes per second
    reached: float = 1.0
    link: float = 0.0  # bytes per second, one way
    host: float = 0.0  # bytes of a node

    def host_of(self, gpus_per_node: int) -> float:
        """Bytes of host memory beside so many GPUs; those of a rack are nodes of four.

        >>> CLUSTERS["gb200-nvl72"].host_of(8) / GB
        1920.0
        """
        return self.host * (-(-gpus_per_node // 4) if self.rack else 1)

    def domain_of(self, gpus_per_node: int) -> int:
        """GPUs that NVLink joins: those of a node, or of a rack where it joins nodes.

        >>> CLUSTERS["gb200-nvl72"].domain_of(4)
        72
        """
        return max(self.rack, gpus_per_node)

    def domain_of_job(self, gpus: int, gpus_per_node: int) -> int:
        """The same for a job of so many GPUs: of several racks it takes a power of two of each.

        Of 72 it takes 64, so that groups of 8, 16, 32 and 64 ranks stay in a rack.

        >>> gb200 = CLUSTERS["gb200-nvl72"]
        >>> gb200.domain_of_job(72, 4), gb200.domain_of_job(256, 4)
        (72, 64)
        """
        if gpus <= self.rack or self.rack <= gpus_per_node:
            return self.domain_of(gpus_per_node)
        return 2 ** (self.rack.bit_length() - 1)


_LINKS = "stas00/ml-engineering 744d01e network/README.md"
_GPUS = "stas00/ml-engineering 744d01e compute/accelerator/README.md"

_TABLE = """
id            name             nvlink nic memory rack  bf16   fp8   fp4   hbm reached link host
dgx-a100      DGX_A100,_80_GB     300  25     80    0   312     0     0  2000   0.869   31 2000
dgx-a100-40gb DGX_A100,_40_GB     300  25     40    0   312     0     0  1555   0.869   31 1000
dgx-h100      DGX_H100            450  50     80    0   989  1979     0  3350   0.803   63 2000
dgx-h200      DGX_H200            450  50    141    0   989  1979     0  4800   0.803   63 2000
hgx-h800      HGX_H800            200  50     80    0   989  1979     0  3350   0.803   63    0
dgx-b200      DGX_B200            900  50    180    0  2250  4500  9000  8000   0.776   63 2000
dgx-b300      DGX_B300            900 100    288    0  2250  4500 12600  8000   0.786   63 2000
gb200-nvl72   GB200_NVL72         900  50    186   72  2500  5000 10000  8000   0.729  225  960
gb300-nvl72   GB300_NVL72         900 100    288   72  2500  5000 15000  8000   0.729  225  960
"""
"""GB/s one way of NVLink and of a GPU's network card, GiB, GPUs of a rack, TFLOP/s by format, GB/s
of memory, the share of bf16's peak that products of matrices reach, GB/s one way to the host, GB of
its memory (a node's)."""

LINKS_TO_HOST = (
    f"{_LINKS} (one way PCIe 4 x16 31, PCIe 5 x16 63 GB/s; NVLink-C2C 450 GB/s, of two GPUs)",
    "NVIDIA's data sheets (DGX A100, H100, H200, B200, B300: 2 TB, A100 of 40 GB: 1 TB; GB200 and "
    "GB300: 480 GB a Grace, two of them beside four GPUs)",
)
"""Where the last two columns are from."""

_SOURCES: dict[str, tuple[str, ...]] = {
    "dgx-a100": (
        "arXiv:2104.04473 section 5 (8 x 200 Gb/s HDR a node, 312 teraFLOP/s)",
        f"{_LINKS} (NVLink 3: 300 GB/s one way)",
        f"{_GPUS} (2.00 TB/s; 271 TFLOP/s measured)",
    ),
    "dgx-a100-40gb": (
        "arXiv:2104.04473 section 5 (8 x 200 Gb/s HDR a node, 312 teraFLOP/s)",
        f"{_LINKS} (NVLink 3: 300 GB/s one way)",
        "NVIDIA A100 40GB data sheet (40 GB, 1,555 GB/s)",
        f"{_GPUS} (271 TFLOP/s measured on A100 SXM)",
    ),
    "dgx-h100": (
        "arXiv:2406.11704 section 2.3 (450 GB/s each way, 8 x 400 Gb/s a node, 989 TFLOP/s)",
        "mlcommons/inference_results_v3.1 closed/Dell/systems/XE9680_H100_SXM_80GBx8_TRT.json"
        " (80 GB)",
        f"{_GPUS} (fp8 1,979 TFLOP/s, 3.35 TB/s; 794 TFLOP/s measured in bf16)",
    ),
    "dgx-h200": (
        f"{_LINKS} (NVLink 4: 450 GB/s one way, 8 x 400 Gb/s a node)",
        f"{_GPUS} (989 and 1,979 TFLOP/s, 141 GB, 4.8 TB/s; products as on H100)",
    ),
    "hgx-h800": (
        "arXiv:2505.09343 (NVLink 400 GB/s both ways, eight 400G network cards a node)",
        f"{_GPUS} (H100 SXM, whose chip it is: fp8 1,979 TFLOP/s, 3.35 TB/s)",
    ),
    "dgx-b200": (
        f"{_LINKS} (NVLink 5: 900 GB/s one way, 8 x 400 Gb/s a node)",
        f"{_GPUS} (2,250, 4,500 and 9,000 TFLOP/s, 180 GB, 8 TB/s; 1,745 measured in bf16)",
    ),
    "dgx-b300": (
        f"{_LINKS} (NVLink 5: 900 GB/s one way, 8 x 800 Gb/s a node)",
        f"{_GPUS} (2,250, 4,500 and 12,600 TFLOP/s, 288 GB, 8 TB/s; 1,769 measured in bf16)",
    ),
    "gb200-nvl72": (
        f"{_LINKS} (NVLink 5, 900 GB/s one way, 72 GPUs)",
        "mlcommons/inference_results_v6.1 closed/Crusoe/systems/"
        "GB200-NVL72_GB200-186GB_aarch64x16_Dynamo.json (186 GB, one network card a GPU)",
        f"{_GPUS} (2,500, 5,000 and 10,000 TFLOP/s, 8 TB/s; 1,822 measured in bf16)",
    ),
    "gb300-nvl72": (
        f"{_LINKS} (NVLink 5, 900 GB/s one way, 72 GPUs; ConnectX-8: 800 Gb/s)",
        f"{_GPUS} (2,500, 5,000 and 15,000 TFLOP/s; memory as of B300; products as on GB200)",
    ),
}


def _cluster(row: str) -> tuple[str, Cluster]:
    key, name, *numbers = row.split()
    nvlink, nic, memory, rack, bf16, fp8, fp4, hbm, reached, link, host = map(float, numbers)
    return key, Cluster(
        name=name.replace("_", " "),
        nvlink=nvlink * GB,
        nic=nic * GB,
        memory=int(memory) * GIB,
        peak=bf16 * 1e12,
        source=_SOURCES[key],
        rack=int(rack),
        fp8=fp8 * 1e12,
        fp4=fp4 * 1e12,
        hbm=hbm * GB,
        reached=reached,
        link=link * GB,
        host=host * GB,
    )


CLUSTERS: dict[str, Cluster] = dict(map(_cluster, _TABLE.strip().splitlines()[1:]))
"""Every cluster by a stable id. The machines of Llama 3 405B are as DGX H100, with RoCE in place of
InfiniBand, and their top network layer carries 1/7 (arXiv:2407.21783 section 3.3.1)."""
