"""The row of this view in the list of all."""

from descriptions import RUN

from ..base.view import View
from .view import hang_html, hang_pictures, hang_verdict

VIEW = View(
    "hang",
    "run",
    hang_html,
    pictures=hang_pictures,
    title=RUN["hang_title"],
    summary=hang_verdict,
)
