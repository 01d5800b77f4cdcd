"""An order of machines as what launchers obey.

    SLURM_HOSTFILE   a line a task: srun --distribution=arbitrary
    hostfile         host slots=N, in order: mpirun, deepspeed
    rankfile         rank by rank: mpirun --map-by rankfile:file=rankfile
    torchrun         static rendezvous with --node-rank

torchrun's c10d and etcd rendezvous number machines by name, as text, and take no notice of
--node-rank (pytorch/pytorch #191190, torch/distributed/elastic/rendezvous/dynamic_rendezvous.py).
Notes on each are texts (texts/hosts.txt, LAUNCHER_NOTES) under the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

from groups.mesh import MAX_RANKS, whole_number

FILES = ("slurm", "openmpi", "rankfile", "torchrun")


def launcher_files(names: Sequence[str], gpus_per_node: int) -> dict[str, str]:
    """Texts by launcher, for machines in rank order.

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
    count = whole_number(gpus_per_node, "gpus_per_node")
    whole_number(len(names) * count, "ranks", maximum=MAX_RANKS)
    places = [(name, local) for name in names for local in range(count)]
    head = "# static rendezvous: run on each machine its line\n"
    if sorted(names) != list(names):
        head += "# not --rdzv-backend c10d: that sorts machines by name\n"
    return {
        "slurm": "".join(f"{name}\n" for name, _ in places),
        "openmpi": "".join(f"{name} slots={count}\n" for name in names),
        "rankfile": "".join(
            f"rank {rank}={name} slot={local}\n" for rank, (name, local) in enumerate(places)
        ),
        "torchrun": head
        + "".join(
            f"{name}: torchrun --nnodes {len(names)} --node-rank {rank} --nproc-per-node {count} "
            f"--master-addr {names[0]} --master-port 29500 ...\n"
            for rank, name in enumerate(names)
        ),
    }
