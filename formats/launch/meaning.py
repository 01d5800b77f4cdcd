"""What the words of a text come to together: a layout, what is assumed, and what is asked for."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from groups.conventions import MEGATRONS
from groups.notes import Note
from groups.stages.layout_strings import parse_layout

from . import flags
from .flags import AXES, OPTIONS, plain_name
from .items import Guess, Item, Parsed, Said, choice_of
from .unsaid import UNSAID, Unsaid

IN_ALL = ("world", "tasks")
"""Fields that count all GPUs of the job."""

GPUS_PER_NODE = 8
"""GPUs of a node where the text does not say."""


class Meaning(Unsaid):
    """What the words of a text come to together."""

    defaults: dict[str, str]  # of variables that nothing sets, where they count

    def parsed(self, run: str) -> Parsed:
        """run: the one that is asked for, if any."""
        self._deepspeeds_own()
        choice = self.choice = choice_of(
            self.said, self._first_schema(), self.stated, run, recipes=self.form == "python"
        )
        if choice.is_open:
            names = ", ".join(run.name for run in choice.runs)
            facts = {"count": len(choice.runs), "names": names[:200]}
            self.missing.append(Note("several-runs", facts))
        understood: list[Item] = []
        stated = self._settled(choice.counting(self.said), understood)
        noted = len(self.missing)
        guess = self._framework(stated, choice.chosen if choice.of_roles else "")
        values = self._layout(stated)
        assumed = self._machines(stated, values)
        if guess:
            values["framework"] = guess.job
        else:
            self.missing.append(Note("unknown-framework", {"form": self.form}))
        self._axes(values, assumed, guess)
        self._nodes(values, assumed)
        defaulted = self._defaulted(stated, {*values, *assumed})
        self.missing[noted:noted] = [
            Note(
                "nodes-default" if name in defaulted.values() else "variable-default",
                {"name": name, "value": value},
            )
            for name, value in self.defaults.items()
        ]
        known = {name: said.value for name, said in stated.items()} | values
        self._batch(known, assumed)
        if guess and guess.name in MEGATRONS and "hidden" in known and self.starts:
            self._training(known, assumed, UNSAID)
        if schema := self._first_schema():
            self._training(known, assumed, schema.unsaid)
        if guess:
            self._vocabulary(known, assumed, guess)
        return Parsed(
            text=self.text,
            values={name: values[name] for name in _ORDER if name in values},
            assumed=assumed,
            understood=tuple(sorted(understood, key=lambda item: item.start)),
            ignored=tuple(self.ignored),
            unresolved=tuple(self.unresolved),
            problems=tuple(sorted(self.problems, key=lambda item: item.start)),
            missing=tuple(self.missing),
            framework=guess,
            training={name: known[name] for name in flags.TRAINING if name in known},
            asks=tuple(self.asks),
            runs=choice.runs if len(choice.runs) > 1 else (),
            run=choice.chosen,
            serving={name: known[name] for name in flags.SERVING if name in known},
            defaulted=defaulted,
        )

    def _deepspeeds_own(self) -> None:
        """``--model-parallel-size``, which Megatron removed, is tp in scripts of DeepSpeed."""
        if not any(name == "deepspeed" for name, _ in self.speaking):
            return
        row = OPTIONS["tensor-model-parallel-size"]
        for item in self.removed:
            if plain_name(item.name) == "model-parallel-size" and item.value.isdigit():
                understood = replace(item, code="understood", sets="tp", facts={})
                self.said.append(Said("tp", int(item.value[:9]), understood, row, None))

    def _settled(self, sayings: Sequence[Said], understood: list[Item]) -> dict[str, Said]:
        """The one saying that counts for each field; another that differs is a contradiction."""
        by_field: dict[str, list[Said]] = {}
        for said in sayings:
            by_field.setdefault(said.field, []).append(said)
        settled: dict[str, Said] = {}
        defaults: dict[str, str] = {}
        for name, given in by_field.items():
            rank = min(said.row.rank for said in given)
            chosen = next(said for said in reversed(given) if said.row.rank == rank)
            settled[name] = chosen
            shown: set[tuple[Any, str]] = set()
            for said in given:
                if name == "tasks_per_node" and said.value == 1:
                    # One launcher a node: it says nothing of the GPUs.
                    self.ignored.append(replace(said.item, code="no-group", sets=""))
                elif said.value == chosen.value:
                    item = said.item if name not in IN_ALL else replace(said.item, sets="gpus")
                    understood.append(item)
                elif (said.value, said.item.name) not in shown:
                    shown.add((said.value, said.item.name))
                    is_same = said.item.name == chosen.item.name
                    code = "given-twice" if is_same else "contradiction"
                    facts = {"kept": chosen.item.value or "on", "by": chosen.item.name}
                    self.problems.append(replace(said.item, code=code, facts=facts))
            if chosen.default:
                defaults.setdefault(*chosen.default)
        self.defaults = defaults
        return settled

    def _framework(self, stated: Mapping[str, Said], role: str) -> Guess | None:
        """The framework by what only it has; several are a contradiction.

        role: the one that is asked for, empty for the usual one.
        """
        first: dict[str, Item] = {}
        for name, item in self.speaking:
            first.setdefault(name, item)
        self._refuse_removed(first)
        if schema := self._first_schema():
            return Guess(schema.name, schema.job_of(self.stated, role))
        if not first and self.programs and not self._left("may-hold-options"):
            first["megatron"] = program = self.programs[0]
            self.missing.append(Note("megatron-program", {"name": program.name}))
        if not first:
            return None
        said = {name: setting.value for name, setting in stated.items()}
        if {"deepspeed", "megatron"} <= first.keys():
            name = "deepspeed" if said.get("ep", 1) > 1 else "megatron-deepspeed"
            item = first.pop("deepspeed")
            del first["megatron"]
            first = {name: item, **first}
        name, *others = first
        for other in others:
            facts = {"other": other, "kept": name}
            self.problems.append(replace(first[other], code="two-frameworks", sets="", facts=facts))
        job = "megatron" if name == "nemo" else name
        if job == "megatron" and said.get("mapping"):
            job = "megatron-pp-dp"
            name = job if name == "megatron" else name
        if job == "deepspeed" and said.get("data_first"):
            job = "deepspeed-data-first"
        elif job == "deepspeed":
            job = _deepspeed_of(said)
        return Guess(name, job)

    def _refuse_removed(self, first: Mapping[str, Item]) -> None:
        """Options that Megatron removed; in other frameworks' scripts they are unknown ones."""
        megatron = any(name.startswith("megatron") for name in first)
        if "deepspeed" in first or "megatron-deepspeed" in first:
            return
        for item in self.removed:
            alone = not first and plain_name(item.name) == "model-parallel-size"
            if megatron or alone:
                self.problems.append(item)
            else:
                self.ignored.append(replace(item, code="unknown", facts={}))

    def _layout(self, stated: Mapping[str, Said]) -> dict[str, Any]:
        """The values of Job's and the model's own fields, and what follows from the others."""
        said = {name: setting.value for name, setting in stated.items()}
        values = {name: said[name] for name in said if name in _ORDER and said[name] != -1}
        values |= {name: 1 for name in ("tp", "pp") if values.get(name) == 0}  # off elsewhere
        if {"micro_batch", "accumulation", "shard"} <= {*said}:
            batch = said["micro_batch"] * said["accumulation"] * said["shard"]
            values.setdefault("global_batch", batch)
        ends = [stated[n] for n in ("embedding", "loss") if n in stated and stated[n].value]
        if len(ends) == 2:  # counted as a layer each, both or none
            values["account"] = True
        elif ends:
            self.ignored.append(replace(ends[0].item, code="only-one-accounted", sets=""))
        self._layers(stated, values, len(ends))
        values |= self._attention(said, values)
        values |= self._weight_shards(stated, values)
        if "local_batch" in said and values.get("pp", 1) == 1:
            values.setdefault("micro_batch", said["local_batch"])
        for tokens, name in (("micro_tokens", "micro_batch"), ("step_tokens", "global_batch")):
            if "seq" in said and said.get(tokens, -1) > 0 and said[tokens] % said["seq"] == 0:
                values.setdefault(name, said[tokens] // said["seq"])
        replicate = stated.get("replicate")
        if replicate and replicate.value > 1:
            self.ignored.append(replace(replicate.item, code="not-drawn", sets=""))
        return values

    def _attention(self, said: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, int]:
        """Sizes tp and cp of SGLang's attention, whose cp lies inside of what it calls tp; where
        its dp lies there too, they are left together."""
        tp, cp = values.get("tp", 1), said.get("served_cp", 0)
        is_apart = cp and "sglang" in self.schemas and not said.get("dp_attention")
        return {"tp": tp // cp, "cp": cp} if is_apart and tp % cp == 0 else {}

    def _weight_shards(
        self, stated: Mapping[str, Said], values: Mapping[str, Any]
    ) -> dict[str, int]:
        """Sizes gtp and egtp: how often the slices of tp, and of etp, are cut again."""
        tp, found = values.get("tp", 1), {}
        sizes = {"shards": ("gtp", tp), "expert_shards": ("egtp", values.get("etp") or tp)}
        for name, (axis, size) in sizes.items():
            if name in stated and stated[name].value % size:
                self._differs(stated[name], "shards-do-not-fit", size)
            elif name in stated:
                found[axis] = stated[name].value // size
        return found

    def _layers(self, stated: Mapping[str, Said], values: dict[str, Any], accounted: int) -> None:
        """Layers from their number or a layout; chunks from how many layers one has."""
        layout, count = stated.get("layout"), stated.get("layers")
        if layout:
            stages = parse_layout(layout.value)
            inside = [layer for stage in stages for layer in stage]
            if count and count.value != inside.count("decoder"):
                self._differs(count, "layout-has", inside.count("decoder"))
            if inside[-1:] != ["loss"]:
                self._differs(layout, "layout-cut", len(inside))
                return
            values["layers"] = layout.value
            values.pop("vpp", None)
            chunks, rest = divmod(len(stages), values.get("pp", 1))
            if chunks > 1 and not rest:  # as Megatron makes them of a layout
                values["vpp"] = chunks
            return
        chunk = stated.get("chunk")
        if not chunk:
            return
        layers = count.value if count else 0
        vpp, left = divmod(layers + accounted, values.get("pp", 1) * chunk.value)
        if count is None:
            self._differs(chunk, "needs-layers", 0)
        elif left or not vpp:
            self._differs(chunk, "chunks-do-not-fit", layers)
        elif "vpp" in values and values["vpp"] != vpp:
            self._differs(chunk, "chunks-differ", vpp)
        else:
            values["vpp"] = vpp

    def _differs(self, said: Said, code: str, count: int) -> None:
        self.problems.append(replace(said.item, code=code, facts={"count": count}))

    def _machines(self, stated: Mapping[str, Said], values: dict[str, Any]) -> dict[str, Any]:
        """Nodes and GPUs per node, where the text gives them by other names."""
        assumed: dict[str, Any] = {}
        tasks = stated.get("tasks_per_node")
        if "gpus_per_node" not in values and tasks and tasks.value > 1:
            values["gpus_per_node"] = tasks.value
        if "nodes" not in values and "single" in stated and stated["single"].value:
            values["nodes"] = 1
        shard = self._world_of_degrees(stated, values)
        world = stated.get("world") or (None if "gpus_per_node" in values else stated.get("tasks"))
        if world is None and "nodes" not in values:
            world = stated.get("tasks") if not (tasks and tasks.value == 1) else None
        if world and world.field == "tasks" and world.value == values.get("nodes"):
            world = None  # one launcher a node
        size = world.value if world else shard
        if size is None:
            return assumed
        nodes, gpus = values.get("nodes"), values.get("gpus_per_node")
        known = nodes or gpus or min(size, GPUS_PER_NODE)
        if nodes and gpus:
            counts_nodes = bool(world) and world.row.rank == flags.VARIABLE_RANK and size == nodes
            if world and world.field == "world" and size != nodes * gpus and not counts_nodes:
                self._differs(world, "world-differs", nodes * gpus)
        elif size % known:
            if world:
                self._differs(world, "world-does-not-divide", known)
        elif nodes or gpus:
            values["gpus_per_node" if nodes else "nodes"] = size // known
        else:
            assumed.update(nodes=size // known, gpus_per_node=known)
            facts = {"world": size, "gpus_per_node": known, "nodes": size // known}
            self.missing.append(Note("nodes-of-world", facts))
        return assumed

    def _defaulted(self, stated: Mapping[str, Said], known: Collection[str]) -> dict[str, str]:
        """The variable that nothing sets, and whose default says how many nodes there are."""
        sources = ("nodes",) if "nodes" in stated else IN_ALL
        named = [stated[name].default for name in sources if name in stated]
        default = next(filter(None, named), None)
        return {"nodes": default.name} if default and "nodes" in known else {}

    def _world_of_degrees(
        self, stated: Mapping[str, Said], values: Mapping[str, Any]
    ) -> int | None:
        """The GPUs that the sizes of a server fill, or torchtitan's degrees unless one is left to
        be what remains. Attention's data parallel size lies inside a server's tp."""
        said = {name: setting.value for name, setting in stated.items()}
        size: int = math.prod(values.get(name, 1) for name in ("tp", "pp"))
        if set(self.schemas) & {"vllm", "sglang"}:
            if not any(name in values for name in AXES):
                return None
            size *= values.get("cp", 1)
            return size * (1 if said.get("dp_attention") else said.get("dp_served", 1))
        shard = said.get("shard", -1)
        if shard == -1:
            return None
        size *= values.get("cp", 1) * shard * said.get("replicate", 1)
        nodes, gpus = values.get("nodes"), values.get("gpus_per_node")
        here = (nodes or 1) * (gpus or 1)
        if size % here or (nodes and gpus and here != size):
            self._differs(stated["shard"], "degrees-differ", size)
        return size if size <= flags.limit_of("world") else None

    def _nodes(self, values: Mapping[str, Any], assumed: dict[str, Any]) -> None:
        """The fewest nodes that hold the sizes, where the text does not say how many there are."""
        known = {**assumed, **values}
        if self.asks:
            for name in ("nodes", "gpus_per_node"):
                if name not in known:
                    self._ask(name)
            return
        if "gpus_per_node" not in known:
            self._assume(assumed, "gpus_per_node", GPUS_PER_NODE)
        if "nodes" in known:
            return
        size = {**dict.fromkeys(AXES, 1), **assumed, **values}
        assumed["nodes"] = fewest_nodes(size)
        facts = {"field": "nodes", "assumed": assumed["nodes"]}
        self.missing.append(Note("fewest-nodes", facts))


def _deepspeed_of(said: Mapping[str, Any]) -> str:
    """DeepSpeed's job: with sequence groups of Ulysses, with groups of ZeRO++, or neither."""
    if said.get("cp", 1) > 1:
        return "deepspeed-ulysses"
    is_data = all(said.get(name, 1) <= 1 for name in ("tp", "pp", "ep"))
    has_groups = said.get("quantized") or said.get("hpz", 1) > 1
    return "deepspeed-zeropp" if is_data and has_groups else "deepspeed"


def fewest_nodes(size: Mapping[str, Any]) -> int:
    """The fewest nodes that hold these sizes.

    >>> fewest_nodes({"tp": 1, "cp": 1, "pp": 4, "ep": 8, "etp": 1, "gpus_per_node": 8})
    4
    """
    gtp, egtp = size.get("gtp", 1), size.get("egtp", 1)
    dense = size["tp"] * size["cp"] * size["pp"] * gtp
    expert = (size.get("etp") or size["tp"]) * size["ep"] * size["pp"] * egtp
    world = math.lcm(dense, expert if size["ep"] * egtp > 1 else 1, size["gpus_per_node"])
    return int(world // size["gpus_per_node"])


_ORDER = (
    *("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp", "framework"),
    *("instances", "levels", "hybrid", "gtp", "egtp", "gathers", *flags.MODEL),
)
