"""The row of this view in the list of all."""

from descriptions import MEMORY

from ..base.view import View
from .api import memory_per_rank
from .pictures import memory_pictures, memory_slide, memory_summary
from .view import memory_html

VIEW = View(
    "memory",
    "step",
    memory_html,
    pictures=memory_pictures,
    slide=memory_slide,
    title=MEMORY["title"],
    summary=memory_summary,
    endpoints=(memory_per_rank,),
)
