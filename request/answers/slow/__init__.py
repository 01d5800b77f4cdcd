"""Who is slow, from files of a run: what they hold, what is seen in it, and the endpoint."""
