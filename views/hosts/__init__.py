"""Machines as they are: the endpoints that read them and put them in a better order."""
