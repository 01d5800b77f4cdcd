"""The Collectives view: what one group does together."""
