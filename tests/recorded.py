"""Cases that the frameworks themselves printed, and how they are compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groups import LayoutError

DATA = Path(__file__).parent / "data"


def load(name: str) -> list[dict]:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"]


CASES = {name: load(name) for name in ("deepspeed", "devicemesh", "horovod", "mesh_tensorflow")}


def cases(name: str, *kinds: str) -> list:
    return [pytest.param(c, id=c["id"]) for c in CASES[name] if c["kind"] in kinds]


def refusal(function, *args, **kwargs) -> LayoutError:
    with pytest.raises(LayoutError) as caught:
        function(*args, **kwargs)
    return caught.value


def as_sets(groups) -> set[frozenset[int]]:
    return {frozenset(map(int, group)) for group in groups}
