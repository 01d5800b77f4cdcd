"""What to draw, as plain data that a test can read."""
