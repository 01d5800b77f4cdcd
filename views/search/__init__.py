"""The Search view: the best layouts for a model on these GPUs."""
