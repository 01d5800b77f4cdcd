"""Memory of each rank in one training step, in bytes."""

from .per_stage import Training, memory_per_stage, zero_model_state_bytes
