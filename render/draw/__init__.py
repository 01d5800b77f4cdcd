"""Scenes -> marks, the same for the page and for files."""
