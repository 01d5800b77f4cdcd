"""The time of a step in words and as a document, and the measured one beside it."""
