"""Machines: which rank is where, and an order of them that fewer groups cross."""
