"""Painters of inline SVG, for the page."""
