"""The Hang view: which rank is missing, who waits for it, from the evidence of a hang."""
