"""The evidence that a page holds, beside its layout."""

from __future__ import annotations

from diagnosis.hang.case import MOST_CONNECTED, Case, case_of
from formats.logs import read_log

from ...context import Context
from ...hosts import placement_or_none
from ...state import is_empty
from .files import log_of


def case_on_page(context: Context) -> Case | None:
    """The evidence of the pasted text, else of the files; with the machines that the page names."""
    layout, state = context.layout, context.state
    if not is_empty(state.evidence):
        every = layout.every if layout.world_size <= MOST_CONNECTED else None
        log = read_log(state.evidence, every)
    elif not is_empty(state.digest):
        log = log_of(state.digest)
    else:
        return None
    return case_of(log, layout, placement_or_none(context))


def has_chain(case: Case) -> bool:
    """Whether a rank waits or is missing, and the ranks are the layout's."""
    is_known = case.log.diagnosis.first is not None or bool(case.log.missing)
    return is_known and case.world == case.layout.world_size
