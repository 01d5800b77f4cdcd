"""Memory of each rank in one training step, in bytes."""

from ..recipe import Training
from .per_stage import memory_per_stage, zero_model_state_bytes
