"""Jobs of every kind, and their check script as a module."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from groups.layout import Job, Layout
from groups.megatron.parallel_state import groupings


def with_gtp() -> Layout:
    every = groupings(32, tp=2, pp=2, ep=2, etp=1, gtp=2, egtp=2)
    return Layout(Job(nodes=4), every["tp"].mesh, every["ep"].mesh, every)


JOBS: dict[str, Layout] = {
    "one GPU": Job(gpus_per_node=1).layout(),
    "a plain one": Job(nodes=2, tp=2, pp=2).layout(),
    "experts of their own": Job(nodes=4, tp=2, cp=2, pp=2, ep=4, etp=1).layout(),
    "pp not last": Job(nodes=4, tp=2, pp=4, framework="own", order="tp-cp-ep-pp-dp").layout(),
    "cut: instances": Job(nodes=8, tp=2, cp=2, pp=2, ep=2, etp=2, instances=4).layout(),
    "cut: levels": Job(nodes=4, tp=2, cp=8, pp=2, levels=(2, 4)).layout(),
    "cut: short last runs": Job(nodes=3, tp=2, hybrid=True).layout(),
    "thinned: many stages": Job(nodes=3, pp=6).layout(),
    "gathered weights": with_gtp(),
    "llama3": Job(nodes=2, tp=2, cp=2, pp=2, framework="llama3").layout(),
    "deepspeed": Job(nodes=2, tp=2, pp=2, framework="deepspeed").layout(),
}


def loaded(text: str) -> ModuleType:
    """The script as a module: its plain functions, without torch."""
    module = ModuleType("check_groups")
    exec(compile(text, "check_groups.py", "exec"), module.__dict__)
    return module


def lists(groups) -> list[list[int]]:
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


PLAIN = JOBS["a plain one"]
