"""Every process group that Megatron creates: two grids over the same ranks, and orders of its axes.

>>> from groups.megatron import process_groups
>>> process_groups(8, tp=2, pp=2)["pp"].tolist()
[[0, 4], [1, 5], [2, 6], [3, 7]]
"""

from .grids import ORDER
from .parallel_state import dense_groupings, groupings, process_groups
