"""An order of machines as launchers take it.

    SLURM_HOSTFILE   a line a task: srun --distribution=arbitrary
    hostfile         host slots=N, in order: mpirun, deepspeed
    rankfile         rank by rank: mpirun --map-by rankfile:file=rankfile
    torchrun         static rendezvous with --node-rank

torchrun's c10d and etcd rendezvous number machines by name, as text, and take no notice of
--node-rank (pytorch/pytorch #191190, torch/distributed/elastic/rendezvous/dynamic_rendezvous.py).
Notes on each are texts (views/nodes/words.toml, LAUNCHER_NOTES) under the same names.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from groups.mesh import MAX_RANKS, whole_number

FILES = ("slurm", "openmpi", "rankfile", "torchrun")


def launcher_files(names: Sequence[str], gpus_per_node: int) -> dict[str, str]:
    """An order of machines in the formats of launchers, by the names of FILES.

    >>> files = launcher_files(["b", "a"], gpus_per_node=1)
    >>> files["slurm"], files["openmpi"], files["rankfile"]
    ('b\\na\\n', 'b slots=1\\na slots=1\\n', 'rank 0=b slot=0\\nrank 1=a slot=0\\n')
    """
    count = whole_number(gpus_per_node, "gpus_per_node")
    whole_number(len(names) * count, "ranks", maximum=MAX_RANKS)
    places = [(name, local) for name in names for local in range(count)]
    lines = {
        "slurm": [name for name, _ in places],
        "openmpi": [f"{name} slots={count}" for name in names],
        "rankfile": [f"rank {rank}={name} slot={at}" for rank, (name, at) in enumerate(places)],
        "torchrun": ["# static rendezvous: run on each machine its line"],
    }
    if sorted(names) != list(names):
        lines["torchrun"].append("# not --rdzv-backend c10d: that sorts machines by name")
    words = [shlex.quote(name) for name in names]
    lines["torchrun"] += [
        f"{word}: torchrun --nnodes {len(names)} --node-rank {rank} --nproc-per-node {count} "
        f"--master-addr {words[0]} --master-port 29500 ..."
        for rank, word in enumerate(words)
    ]
    return {launcher: "".join(f"{line}\n" for line in of) for launcher, of in lines.items()}
