"""The Traffic view: the bytes sent in a step, and their links."""
