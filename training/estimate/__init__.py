"""How long a step takes and how much memory it needs, as runs of others did: not a bound.

    >>> from training.models import MODELS
    >>> e = estimate(MODELS["llama3-70b"].model, cluster="dgx-h100", gpus=64, tp=4, pp=8, vpp=5,
    ...              global_batch=256, sequence=8192, precision="fp8")
    >>> e.low < e.seconds < e.high, e.fits, e.software
    (True, True, 'megatron')

What is counted stands in `work`, how it becomes time in `seconds`, by which constants in
`constants`, what fits in `memory`, and which public runs are near in `runs`.
"""

from .answer import Estimate, estimate, estimate_of, layer_time, seconds_waited
from .constants import SOFTWARE
from .request import Request
from .runs import MeasuredRun, error_table, nearest, runs, sources
