"""The row of this view in the list of all."""

from __future__ import annotations

from ..base.view import View
from .view import estimate_html

VIEW = View("estimate", "step", estimate_html)
