"""Scenes as marks, and marks as files: PNG, SVG and PDF."""
