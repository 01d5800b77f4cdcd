"""The Pipeline view: a step of a pipeline over time."""
