"""Collectives: what each leaves on every rank, the messages it is made of, what it costs.

>>> from training.collectives import apply
>>> [tensor.tolist() for tensor in apply("all_reduce", [[0], [1]], [[0, 1]])]
[[1], [1]]
"""

from .operations import COLLECTIVES, apply
