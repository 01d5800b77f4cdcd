"""A pipeline's schedule with its times: what is asked of it, the timeline, and the endpoint."""
