"""How long a step takes and how much memory it needs, as runs of others did: not a bound.

What is counted stands in `work`, how it becomes time in `seconds`, by which constants in
`constants`, what fits in `memory`, and which public runs are near in `runs`.
"""

from .answer import Estimate, estimate, estimate_of, layer_time, seconds_waited
from .constants import SOFTWARE
from .request import Request
from .runs import MeasuredRun, error_table, nearest_runs, runs, sources
from .used import CAUSAL, COUNTS, FULL, Use, operations_of, seconds_of, waterfall
