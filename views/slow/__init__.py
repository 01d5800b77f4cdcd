"""The Slow view."""
