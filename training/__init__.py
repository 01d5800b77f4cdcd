"""WHAT the groups do in one training step: numbers only, no page, no drawing, no torch.

>>> from groups import parse_mesh, rank_groups
>>> from training.collectives import apply
>>> groups = rank_groups(parse_mesh("tp2-dp2"), "tp")
>>> [tensor.tolist() for tensor in apply("all_reduce", [[0], [1], [2], [3]], groups)]
[[1], [1], [5], [5]]
"""
