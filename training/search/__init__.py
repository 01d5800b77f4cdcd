"""Layouts for a model on a cluster: all valid ones, each with its best options, the fastest first.

    cost    seconds of a step as training.estimate says them, with the constants of one software
    fits    what the estimate says a GPU must have (training.estimate.memory) is within its memory,
            or likely so

Of every valid layout each way to train on it is timed (`space` says which, `timed` how). From the
quickest on, memory is worked out, and the first way of a layout that fits, or is close and
likely fits, stands for it. Where there is none, those come first that lack least memory.

Errors of the estimate are larger than differences between neighbours: `sure` says of two layouts
how sure it is that one is quicker. What is not VARIED is as on screen.
"""

from .published import Placed, published_layouts
from .quickest import MOST, ROOM_OF_EXCHANGE, SearchResult, search
from .reasons import alone, compared
from .space import LEAST_TOKENS, MOST_SAMPLES, VARIED, SearchJob, valid_splits
from .sure import Order, kept_orders, law_of, order_of
from .timed import software_for
