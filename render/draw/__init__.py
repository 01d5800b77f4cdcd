"""Scenes -> marks, once for the page and for files."""
