"""The words of the collectives: refusals, operations, algorithms, and the view that shows them."""

from __future__ import annotations

from .shapes import Text

COLLECTIVES_REFUSALS: dict[str, Text] = {
    "not-bytes": Text("{value} is not a number of bytes.", "{value} 不是字节数。"),
    "not-a-bandwidth": Text(
        "{value} is not a bandwidth in bytes per second.", "{value} 不是以字节每秒计的带宽。"
    ),
}
