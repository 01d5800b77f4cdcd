"""WHICH ranks are together: pure numbers, no page, no drawing, no environment.

A mesh of named axes numbers the ranks, and every kind of group is a request to it. A `job.Job` is
worked out to a `layout.Layout`: both grids and every group.

>>> from groups import fit, rank_groups
>>> mesh = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)
>>> str(mesh)
'tp2-cp1-dp4-pp2'
>>> rank_groups(mesh, "dp").tolist()
[[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]
"""

from .errors import LayoutError
from .fitting import fit
from .mesh import DEFAULT_ORDER, MAX_RANKS, Axis, Mesh, parse_mesh
from .ranks import coordinates, group_index, group_of, index_of, rank_groups, rank_of
