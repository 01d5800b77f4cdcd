"""The Moves view: what moves between two layouts, and who sends it."""
