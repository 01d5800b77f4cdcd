"""The moves of a model's weights from one layout to another: in total, or one rank's slices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from formats.documents.tables import Table
from formats.values import Document
from groups.errors import in_any_case
from groups.layout import Layout
from request.context import Context

from .inputs import CommandLine, number_of
from .messages import CommandError
from .named import context_of_word, set_base
from .state import served_context, trained_context
from .training import Report

MOST_LINES = 20
"""The most rows of a text; JSON and CSV have all."""


def moves(inputs: CommandLine) -> Table | Iterator[str]:
    """A row for each pair of nodes or ranks, or for each slice of one rank or of all."""
    from formats.moves.script import moves_script
    from request.answers.moves.api import moves_facts
    from request.answers.moves.sides import ROLE, moves_between
    from training.moves.senders import RULES
    from training.serving.cache import KV_RULES

    options = inputs.options
    ends = {name: getattr(options, name) for name in ("from", "to")}
    for name, word in ends.items():
        if word is None:
            raise CommandError(f"say both layouts: --{name} is missing")
    rule = str(in_any_case(options.rule or "", (*RULES, *KV_RULES)))
    first = number_of(options.first_rank or "0")
    whose, by = options.rank, options.by or "node"
    inputs.words = [ends["to"], ends["from"]]  # of two words the last is what options stand over
    set_base(inputs, ends["from"])
    if options.kv:
        source = served_context(inputs, "")
        target = context_of_word(inputs, ends["to"], source)
        rank = None if whose in (None, "all") else number_of(whose)
        return _cache(source, target, (rule, first, rank, number_of(options.tokens or "0")))
    with trained_context(inputs) as source:
        begin = node = 0
        if ends["to"].startswith(ROLE):
            target, begin, first, node = _role(inputs, ends, source)
        else:
            target = context_of_word(inputs, ends["to"], source)
        rule = rule or str(target.state.value("moves_rule"))
        found = moves_between(source, target, rule, first, begin, node)
        if options.script:
            if inputs.format != "text":
                raise CommandError("--script prints text only")
            return iter([moves_script(found)])
        rank = number_of(whose) if whose not in (None, "all") else None
        facts = moves_facts(source, target, found, rank, by)
        before = _lines(facts, found.ranks)
        if whose is None:
            return _pairs(source.layout, facts, before, inputs.format)
        rows = found.rows() if whose == "all" else found.rows(rank)
        facts = {**facts, "rank": whose if whose == "all" else rank}
        return _slices(source.layout, facts, before, [*rows], inputs.format)


def _role(
    inputs: CommandLine, ends: dict[str, str], source: Context
) -> tuple[Context, int, int, int]:
    """Another role of a configuration with several, the first ranks of its first role and of that
    one, and the GPUs of a node.

    Errors: LayoutError for an unknown role, CommandError for a plan of no file.
    """
    from formats.roles import read_plan
    from request.answers.moves.sides import ROLE, require_runs
    from request.roles.opened import cast_of_plan
    from request.roles.text import MODEL

    if not os.path.exists(ends["from"]):
        raise CommandError(f"{ends['to']} is a role of a file: --from is none")
    read = read_plan(inputs.text(ends["from"]), {}, inputs.options.run or "")
    first, role = read.plan.roles[0], read.plan.role(ends["to"].removeprefix(ROLE).strip())
    require_runs(first, role)
    pages = {member.name: member.page for member in cast_of_plan(read, source.state).members}
    model = {name: getattr(source.state, name) for name in MODEL}
    page = Context.of(pages[role.name].changed(model))
    return page, first.first_rank, role.first_rank, read.plan.gpus_per_node


def _cache(source: Context, target: Context, sizes: tuple[str, int, int | None, int]) -> Table:
    """A row for what each rank that decodes receives from each that prefills, for one request."""
    from request.answers.moves.cache import cache_facts
    from request.units import bytes_text, seconds_text

    facts = cache_facts(source, target, *sizes)
    here, there = facts["source"], facts["target"]
    lines = [
        f"{facts['model']}: {here['name']} prefills, {there['name']} decodes; rule {facts['rule']}",
        f"a request of {facts['tokens']:,} tokens: {bytes_text(facts['cache_bytes'])} in "
        f"{facts['layers']} layers of {facts['kv_heads']} KV heads",
        f"at link speed: {seconds_text(facts['seconds'])}",
    ]
    ends = ("first_layer", "after_layer", "first_head", "after_head")
    columns = ["source", "target", *ends, "bytes"]
    rows = facts["moves"]
    return Report("moves", columns, rows, source.layout, before=lines, facts=facts)


def _pairs(layout: Layout, facts: Document, before: list[str], form: str) -> Report:
    by = facts["matrix"]["by"]
    rows = facts["matrix"]["cells"]
    after = []
    if form == "text" and len(rows) > MOST_LINES:
        after = [f"the largest of {len(rows):,}: --format csv has all"]
        rows = sorted(rows, key=lambda row: -row[2])[:MOST_LINES]
    columns = [f"from_{by}", f"to_{by}", "bytes"]
    return Report("moves", columns, rows, layout, before=before, after=after, facts=facts)


def _slices(
    layout: Layout, facts: Document, before: list[str], moved: list[Any], form: str
) -> Report:
    columns = ["rank", "tensor", "axis", "source", "source_start", "target_start", "length"]
    rows = [
        [row.target, row.tensor, row.axis, *(*part, None, None, None)[:4], size]
        for row in moved
        for part, size in zip(row.parts, row.sizes)
    ]
    facts["tensors"] = [
        {
            "tensor": row.tensor,
            "target": row.target,
            "axis": row.axis,
            "parts": [list(part) for part in row.parts],
            "bytes": list(row.sizes),
        }
        for row in moved
    ]
    return Report("moves", [*columns, "bytes"], rows, layout, before=before, facts=facts)


def _lines(facts: Document, ranks: int) -> list[str]:
    """Sentences about the bytes moved, and the busiest ranks."""
    from request.units import bytes_text, seconds_text

    source, target = (facts[side] for side in ("source", "target"))
    total = sum(facts["bytes"].values()) or 1
    where = "on the same GPUs" if target["first_rank"] < source["world_size"] else "on others"
    lines = [
        f"{facts['model']}: {source['name']} on {source['world_size']:,} GPUs to {target['name']} "
        f"on {target['world_size']:,}, {where}; rule {facts['rule']}"
    ]
    for name, text in _WHERE.items():
        count = facts["bytes"][name]
        lines.append(f"{text}: {bytes_text(count)} ({count / total:.1%})")
    sender, receiver = facts["busiest_sender"], facts["busiest_receiver"]
    lines.append(
        f"rank {sender['rank']} sends most, {bytes_text(sender['bytes'])}, "
        f"{facts['balance']:.1f} times the mean; rank {receiver['rank']} receives most, "
        f"{bytes_text(receiver['bytes'])}"
    )
    by_rule = ", ".join(
        f"{rule} {seconds_text(of['seconds'])}" for rule, of in facts["rules"].items()
    )
    least = seconds_text(facts["least_seconds"])
    return [*lines, f"at link speed: {by_rule}; no rule takes less than {least}"]


_WHERE = {
    "same_gpu": "stays on its GPU",
    "in_node": "within the node",
    "between_nodes": "between nodes",
}
