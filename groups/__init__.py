"""WHICH ranks form a group: pure numbers, no page, no drawing, no environment.

A mesh of named axes numbers the ranks, and every kind of group is a request to it. `layout.Job`
holds the sizes that a user sets; its `layout.Layout` has both grids and every group.

>>> from groups import fit, rank_groups
>>> mesh = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)
>>> str(mesh)
'tp2-cp1-dp4-pp2'
>>> rank_groups(mesh, "dp").tolist()
[[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]
"""

from . import device_mesh, running  # they set Job.from_device_mesh, Layout.from_process_groups
from .alternatives import fit
from .errors import LayoutError
from .mesh import MAX_RANKS, Axis, Mesh, coordinates, group_index, parse_mesh, rank_groups, rank_of

__version__ = "1.0.0"
