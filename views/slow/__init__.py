"""The Slow view: who keeps a running job waiting, from traces of it."""
