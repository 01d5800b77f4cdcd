"""The documents of formats.documents.exports, whole instead of in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from formats.documents import exports


def _whole(parts: Callable[..., Iterator[str]]) -> Callable[..., str]:
    def whole(*arguments: Any) -> str:
        return "".join(parts(*arguments))

    return whole


groups_json, groups_csv = _whole(exports.groups_json_parts), _whole(exports.groups_csv_parts)
ranks_json, ranks_csv = _whole(exports.ranks_json_parts), _whole(exports.ranks_csv_parts)
