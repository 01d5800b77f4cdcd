"""Every process group that Megatron creates, and the two grids over the same ranks behind them."""

from .grids import ORDER
from .parallel_state import dense_groupings, groupings, process_groups
