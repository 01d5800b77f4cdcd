"""An order of machines as what launchers obey.

    SLURM_HOSTFILE   a line a task: srun --distribution=arbitrary
    hostfile         host slots=N, in order: mpirun, deepspeed
    rankfile         rank by rank: mpirun --map-by rankfile:file=rankfile
    torchrun         static rendezvous with --node-rank; c10d sorts machines by name (c10d_order)

Notes on each are texts (texts/hosts.txt, LAUNCHER_NOTES) under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groups.mesh import MAX_RANKS, whole_number

from .distribution import c10d_order

FILES = ("slurm", "openmpi", "rankfile", "torchrun")


def launcher_files(
    names: Sequence[str], gpus_per_node: int, slots: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Texts by launcher, for machines in rank order.

    slots: ranks of each machine, where they differ.

    >>> files = launcher_files(["b", "a"], gpus_per_node=2)
    >>> print(files["slurm"] + files["openmpi"] + files["rankfile"], end="")
    b
    b
    a
    a
    b slots=2
    a slots=2
    rank 0=b slot=0
    rank 1=b slot=1
    rank 2=a slot=0
    rank 3=a slot=1
    """
    each = [whole_number((slots or {}).get(name, gpus_per_node), "gpus_per_node") for name in names]
    whole_number(sum(each), "ranks", maximum=MAX_RANKS)
    places = [(name, local) for name, count in zip(names, each) for local in range(count)]
    return {
        "slurm": "".join(f"{name}\n" for name, _ in places),
        "openmpi": "".join(f"{name} slots={count}\n" for name, count in zip(names, each)),
        "rankfile": "".join(
            f"rank {rank}={name} slot={local}\n" for rank, (name, local) in enumerate(places)
        ),
        "torchrun": _torchrun(names, each),
    }


def _torchrun(names: Sequence[str], each: Sequence[int]) -> str:
    """A command for each machine, with a warning where c10d would number them differently."""
    head = "# static rendezvous: run on each machine its line\n"
    if c10d_order(names) != list(names):
        head += "# not --rdzv-backend c10d: that sorts machines by name\n"
    return head + "".join(
        f"{name}: torchrun --nnodes {len(names)} --node-rank {rank} --nproc-per-node {count} "
        f"--master-addr {names[0]} --master-port 29500 ...\n"
        for rank, (name, count) in enumerate(zip(names, each))
    )
