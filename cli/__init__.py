"""The command line, ``python -m groups``: groups and ranks for pipes and scripts."""
