"""Evidence about a slow step: traces, timers and summaries of them, read and written."""

from .files import as_json, read_summary
from .reading import read_evidence
