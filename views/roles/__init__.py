"""Roles of a plan on the page: their tabs, the cluster that they share, one step of it."""
