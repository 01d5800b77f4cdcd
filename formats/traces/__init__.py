"""Profiler traces: PyTorch's, of one rank or of the files of a job.

A trace is read as a stream, so that a large one needs little memory: `read_trace` keeps the
collectives, the steps and the times at which the GPU computed; `summary_of` works out of these what
is printed.
"""

from .bounds import TraceBounds
from .files import read_file, read_folder
from .model import Collective, RankTrace, TraceGroup, TraceStep
from .rank import read_trace
from .summary import GroupTime, JobSummary, RankSummary, job_of, summary_of
