"""Inputs that several views have beside the column."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import (
    CP_CHOICES,
)
from request.inputs import FIELDS
from request.state import State

from ..base import form


def inputs_html(state: State) -> Markup:
    """The input that this view and Better layouts have beside the column."""
    row = FIELDS["cp_algorithm"].row
    algorithms = [(CP_CHOICES[name][state.language], name) for name in row.choices]
    return form.line(form.choice("cp_algorithm", state, algorithms, counts=row.counts))
