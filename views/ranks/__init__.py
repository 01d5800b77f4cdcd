"""The Ranks view: one rank in full, and what several share."""
