"""A hang: who did not arrive, who waits, and how far it spreads."""
