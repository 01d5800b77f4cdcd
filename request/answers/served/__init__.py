"""How fast servers answer, for how many at once, and which layout of them for a target."""
