"""The seconds of a move at the speed of the links, and its busiest ranks.

    seconds   the longest that one rank sends or receives, over NVLink or through its network card
    least     the same of what must move whatever the rule: NVLink and the card both bring what a
              rank lacks, all cards of a node once what none of its ranks holds
    usual     what updates take in fact: USUAL times the seconds

The first two are limits of the hardware. Published updates take many times as long: tensors are
gathered, converted and packed on the way (radixark/miles docs/advanced/p2p-weight-transfer.md,
MoonshotAI/checkpoint-engine README.md).
"""

from __future__ import annotations

from typing import NamedTuple

from ..machine import Machine
from .weights import Moves

USUAL = {"direct": (10.0, 14.2), "gathered": (16.5, 81.0), "whole": (1.1, 2.6)}
"""Measured over seconds at link speed: least and most of the updates in published.csv of which both
layouts and the model are known, Qwen3 30B, Qwen3 235B and Kimi K2 of radixark/miles on H100; sent
from rank to rank (RDMA), which rule nearest is compared with, and gathered and broadcast (NCCL),
which rule first is compared with, and with whole tensors to every GPU, as they really went, rule
slime. All measured with servers on GPUs of their own."""

_COMPARED = {"first": "gathered", "verl": "whole", "slime": "whole"}


class Busiest(NamedTuple):
    """The rank that sends or receives the most bytes, and these bytes."""

    rank: int
    bytes: int


def busiest(moves: Moves, *, sender: bool) -> Busiest:
    """The rank that sends the most bytes to other ranks, or receives the most from them.

    >>> from groups.layout import Job
    >>> from training.models import MODELS
    >>> from training.moves import weight_moves
    >>> layout = Job(nodes=1).layout()
    >>> model = MODELS["llama3-8b"].model
    >>> moves = weight_moves(model, layout, layout, first_rank=8, rule="first")
    >>> busiest(moves, sender=True)
    Busiest(rank=0, bytes=16060522496)
    """
    of = moves.sent if sender else moves.received
    counts = of(far=False) + of(far=True)
    rank = int(counts.argmax())
    return Busiest(rank, int(counts[rank]))


def seconds_of(moves: Moves, cluster: Machine) -> float:
    """Seconds at link speed, with nodes as NVLink domains; 0 if nothing leaves a GPU."""
    near = max(int(of(far=False).max()) for of in (moves.sent, moves.received))
    far = max(int(of(far=True).max()) for of in (moves.sent, moves.received))
    return max(near / cluster.nvlink, far / cluster.nic)


def least_seconds(moves: Moves, cluster: Machine) -> float:
    """A lower bound on the seconds at link speed under any rule."""
    least, gpus = moves.least, moves.target.layout.gpus_per_node
    together = cluster.nvlink + cluster.nic
    return max(least.into_gpu / together, least.into_node / (gpus * cluster.nic))


def usual_seconds(moves: Moves, cluster: Machine) -> tuple[float, float]:
    """The least and most seconds of real updates of this size, by USUAL."""
    low, high = USUAL[_COMPARED.get(moves.rule, "direct")]
    seconds = seconds_of(moves, cluster)
    return low * seconds, high * seconds


def idle_senders(moves: Moves) -> int:
    """The number of source ranks that send nothing to others."""
    sent = moves.sent(far=False) + moves.sent(far=True)
    return int((sent[moves.source.first_rank : moves.source.after] == 0).sum())


def balance(moves: Moves) -> float:
    """The ratio of the busiest sender's bytes to the mean over all source ranks.

    1.0 if nothing is sent; 8.0 if one of eight ranks sends everything.
    """
    sent = moves.sent(far=False) + moves.sent(far=True)
    source = slice(moves.source.first_rank, moves.source.after)
    total = int(sent.sum())
    return float(sent[source].max()) * moves.source.ranks / total if total else 1.0
