"""The Traffic view: what is sent in a step, over which links."""
