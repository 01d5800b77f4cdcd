"""The number of copies of a token that travel to its experts.

Of E experts a token goes to k. An all-to-all sends a copy for each of them. DeepEP and HybridEP
send one to each NVLink domain, to the rank of the sender's own place there, which passes one on to
each rank of the domain that has an expert for it. With P places (domains, or ranks) that hold
equally many experts, and every choice of experts as likely as any other:

    reached(P)       the chance that a place has an expert of the token: 1 - C(E - E/P, k) / C(E, k)
    between domains  (P - 1) reached(P)                 P domains
    inside           n reached(n) (r - 1) / r           n ranks, r of them in a domain

A router that is limited to M of G groups of experts (DeepSeek-V3: nodes) chooses the groups first:
a place has j of them with the chance of a hypergeometric draw, and then E M / G experts to choose
from. Groups that do not divide among the places are dealt as the nearest number that does.

Source: arXiv:2412.19437 sections 2.1.2 and 3.2.2; deepseek-ai/DeepEP csrc/kernels/internode.cu.
"""

from __future__ import annotations

import math

from groups.kept import kept

from .model import Model


@kept
def reached(model: Model, places: int) -> float:
    """The probability that one of ``places`` equal places has an expert of a token.

    >>> from .models import MODELS
    >>> mixtral, deepseek = MODELS["mixtral-8x7b"].model, MODELS["deepseek-v3"].model
    >>> reached(mixtral, 8)  # two of eight experts
    0.25
    >>> round(8 * reached(deepseek, 8), 2)  # of eight nodes never more than four
    3.63
    """
    experts, groups, chosen = model.experts, model.router_groups, model.router_group_top_k
    if not groups:
        return 1.0 - _missed(experts, experts / places, model.top_k)
    left, group = experts * chosen / groups, experts / groups
    if places >= groups:
        return chosen / groups * (1.0 - _missed(left, experts / places, model.top_k))
    of_place = max(1, round(groups / places))
    ways = math.comb(groups, chosen)
    return sum(
        math.comb(of_place, j)
        * math.comb(groups - of_place, chosen - j)
        / ways
        * (1.0 - _missed(left, j * group, model.top_k))
        for j in range(1, min(of_place, chosen) + 1)
    )


def _missed(experts: float, own: float, k: int) -> float:
    """The probability that k distinct experts of ``experts`` include none of ``own``."""
    return math.prod(max(0.0, 1.0 - own / (experts - drawn)) for drawn in range(k))


def copies(model: Model, ranks: int, near: int) -> tuple[float, float]:
    """The expected copies of a token sent inside the sender's NVLink domain, and to other domains,
    if each place with a chosen expert gets one copy.

    ranks: size of an ep group; near: how many of its ranks are in one domain.

    >>> from .models import MODELS
    >>> inside, outside = copies(MODELS["deepseek-v3"].model, ranks=64, near=8)
    >>> round(inside, 2), round(outside, 2)  # of an all-to-all 0.88, 7.0
    (6.44, 3.18)
    """
    domains = max(1, round(ranks / near))
    inside = ranks * reached(model, ranks) * (near - 1) / near
    return inside, (domains - 1) * reached(model, domains)
