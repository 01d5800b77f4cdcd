"""Painters with matplotlib, for files: PNG, SVG and PDF."""
