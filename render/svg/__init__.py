"""Scenes as inline SVG, for the page."""
