"""The result of reading a launch text: word by word, and as a job.

Words are codes and facts; views/launch/words.toml has their sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groups.errors import LayoutError
from groups.frameworks.sglang import sglang_groups
from groups.frameworks.trtllm import trtllm_groups
from groups.frameworks.vllm import vllm_groups
from groups.grouping import Grouping
from groups.layout import Job
from groups.notes import Note
from training.models import MODELS

from ..errors import refusal
from ..values import Document, Facts
from .flags import MODEL, TRAINING, published_model


@dataclass(frozen=True)
class Item:
    """A word of the text, with a code for how it was read."""

    code: str
    name: str
    value: str
    start: int
    end: int
    line: int  # from 1
    column: int  # from 1
    sets: str = ""  # the field that it set, or was to set
    facts: Facts = field(default_factory=dict)
    error: LayoutError | None = None  # the refusal of a layout's text
    written: tuple[int, int] | None = None  # where its value stands as it is; None: worked out


class Guess(NamedTuple):
    """The framework of the text."""

    name: str  # megatron, nemo, torchtitan, or the name of a Schema
    job: str  # the framework of a Job that numbers the ranks so


class Run(NamedTuple):
    """One of the runs, or of the roles, of a text: its name and its job."""

    name: str
    values: Mapping[str, object]


def run_named(wanted: str, names: Iterable[str]) -> str:
    """The run with this name, or with this number before its name; empty if there is none.

    >>> run_named("2", ["1: python", "2: vllm"]), run_named("vllm", ["1: python", "2: vllm"])
    ('2: vllm', '')
    """
    starts = f"{wanted.strip()}: "
    return next((name for name in names if name == wanted or name.startswith(starts)), "")


@dataclass(frozen=True)
class Parsed:
    """The job of a text, and how each word was read."""

    text: str
    values: dict[str, object]  # in the names of Job's fields and of MODEL
    assumed: dict[str, object]  # what is left open, and the program has a default for
    understood: tuple[Item, ...]
    ignored: tuple[Item, ...]
    unresolved: tuple[Item, ...]
    problems: tuple[Item, ...]
    missing: tuple[Note, ...]  # what is assumed and what is asked for, in codes and facts
    framework: Guess | None
    training: dict[str, object]  # of the training and the model's shape, in the names of TRAINING
    asks: tuple[str, ...]  # what it leaves open and nobody knows
    runs: tuple[Run, ...]  # to choose from: of a text that holds several, or a job's roles
    run: str  # that the values are of
    serving: dict[str, object]  # of a server's groups and memory, in the names of SERVING, SERVED
    defaulted: dict[str, str]  # "nodes": the variable whose default says how many there are
    ranks_of_copy: int = 0  # that data parallelism cuts one copy over, where the text says that

    def job(self) -> Job:
        """The job, with defaults for fields that the text leaves open; `Job.layout` checks it.

        Errors: LayoutError ``launch-asks`` with everything that has to be given first.
        """
        if self.asks:
            raise refusal("launch-asks", "launch", fields=", ".join(self.asks))
        known = {**self.assumed, **self.values}
        others = (*MODEL, *TRAINING)
        return Job(**{name: value for name, value in known.items() if name not in others})  # type: ignore[arg-type]

    def served_groups(self) -> dict[str, Grouping]:
        """The groups of the server that it starts, in the server's own order; empty if it starts no
        server or leaves its sizes open.

        >>> from formats.launch import parse
        >>> groups = parse("vllm serve m -tp 4 -dp 2 --enable-expert-parallel").served_groups()
        >>> groups["ep"].groups().tolist()
        [[0, 1, 2, 3, 4, 5, 6, 7]]

        Errors: LayoutError for sizes that the server would refuse.
        """
        name = self.framework.name if self.framework else ""
        if name not in ("vllm", "sglang", "tensorrt-llm") or self.asks:
            return {}
        values: Document = {**self.assumed, **self.values}
        sizes = {size: values.get(size, 1) for size in ("tp", "pp", "dcp")}
        if name == "tensorrt-llm":
            names, attention = ("tp", "pp", "cp", "ep"), values.get("dp") or 1
            sizes = {size: values.get(size, 1) for size in names}
            return trtllm_groups(**sizes, etp=values.get("etp"), attention_dp=attention > 1)
        if name == "sglang":
            attention = values.get("dp")
            sizes |= {"ep": values.get("ep", 1), "moe_dp": values.get("moe_dp", 1)}
            return sglang_groups(
                **sizes,
                dp=attention or int(str(self.serving.get("dp_served", 1))),
                dp_attention=attention is not None,
                attn_cp=values.get("cp", 1),
                shared_experts_tp=int(str(self.serving.get("shared_experts_tp", 1))),
                pdmux=bool(self.serving.get("pdmux")),
            )
        model = MODELS.get(published_model(str(self.training.get("named", ""))))
        moe = bool(values.get("expert_parallel") or (model and model.model.experts))
        eplb = bool(self.serving.get("eplb"))
        return vllm_groups(
            **sizes,
            pcp=values.get("cp", 1),
            dp=values.get("dp", 1),
            moe=moe,
            eplb=eplb,
            engram=values.get("engram", "none"),
            gpus_per_node=values.get("gpus_per_node", 8),
        )
