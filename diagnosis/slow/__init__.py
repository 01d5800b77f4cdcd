"""Slow instead of hung: who waits for whom in a step, from the traces of its ranks.

`JobCalls` takes traces one after the other, `slowness_of` measures, `verdict_of` and `account_of`
say who is slow.
"""

from .account import account_of
from .calls import JobCalls
from .measure import slowness_of
from .model import Slowness
from .verdict import Culprit, verdict_of
