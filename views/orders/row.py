"""The row of this view in the list of all."""

from descriptions import PAGE

from ..base.view import View
from .view import orders_html, orders_pictures, orders_slide

VIEW = View(
    "orders",
    "see",
    orders_html,
    pictures=orders_pictures,
    slide=orders_slide,
    title=PAGE["moved_title"],
    pins_locally=True,
)
