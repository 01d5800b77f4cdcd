"""The Launch view: launch files read and written."""
