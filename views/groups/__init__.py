"""The Groups view: the picture of a layout, and its groups as a table."""
