"""Profiler traces: PyTorch's, of one rank or of the files of a job.

A trace is read as a stream, so that a large one needs little memory: `read_trace` keeps the
collectives, the steps and the times at which the GPU computed.
"""

from .bounds import TraceBounds
from .files import read_file, read_folder
from .rank import read_trace
