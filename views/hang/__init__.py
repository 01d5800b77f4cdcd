"""The Hang view: what a hang left behind, who is missing, and who waits for it."""
