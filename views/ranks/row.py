"""The row of this view in the list of all."""

from ..base.view import View
from .api import rank_card, shared_by_ranks
from .view import ranks_html

VIEW = View("ranks", "see", ranks_html, endpoints=(rank_card, shared_by_ranks))
