"""Which GPUs of a training job form which groups, and what they do: all rooms in one package.

>>> from package import __version__, fit
>>> str(fit(16, tp=2, pp=2))
'tp2-cp1-dp4-pp2'
"""

from groups import (
    MAX_RANKS,
    Axis,
    LayoutError,
    Mesh,
    __version__,
    coordinates,
    fit,
    group_index,
    parse_mesh,
    rank_groups,
    rank_of,
)
