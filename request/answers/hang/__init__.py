"""A hang: the evidence that a page holds, and the verdict in words."""
