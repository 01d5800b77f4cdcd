"""Launch commands and configurations of training frameworks: read into a job, written from one.

`args` is the face of the reader, `emit` writes. Nothing that is read is ever executed.
"""
