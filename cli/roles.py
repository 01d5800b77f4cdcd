"""The command roles: the plan of a configuration, or of a published one."""

from __future__ import annotations

from collections.abc import Iterator

from formats.documents.tables import Table
from formats.roles import PlanRead
from formats.values import Document
from groups.errors import quoted

from .inputs import CommandLine
from .messages import CommandError
from .state import machine_texts
from .training import Report


def roles(inputs: CommandLine) -> Table:
    """A row for each role; in CSV for each rank of each. Words answer settings that a text leaves
    open: trainer.nnodes=4."""
    from descriptions import ROLES
    from formats.roles.facts import COLUMNS, rank_rows
    from request.answers.roles.api import read_facts
    from request.state import State
    from training.roles import CROWDED

    read, options = _read(inputs), inputs.options
    if inputs.format == "csv":
        return Table("roles", COLUMNS, [*rank_rows(read.plan)])
    machines = {"cluster": options.cluster, "capacity": options.capacity}
    said = {name: text for name, text in machines.items() if text is not None}
    page = State(**{**machine_texts(inputs), **said})
    facts = read_facts(read, page)
    rows = [
        [
            *(role["name"], " ".join(f"{first}-{last}" for first, last in role["spans"][:4])),
            *(role["gpus"], role["engines"], role["framework"]),
            " ".join(f"{name}{size}" for name, size in role["sizes"].items() if size > 1),
        ]
        for role in facts["roles"]
    ]
    plan = read.plan
    before = [
        f"{plan.nodes:,} x {plan.gpus_per_node:,} GPUs, in turns: {', '.join(facts['turns'])}"
    ]
    after = [f"assumed: {note['text']}" for note in facts["assumed"]]
    after += [f"warning: {note['text']}" for note in facts["warnings"]]
    columns = ["role", "ranks", "gpus", "engines", "framework", "sizes"]
    lines = [*_fullest(facts["fullest"]), *map(_way, facts["would_fit"]), *after]
    if options.preset is not None and any(n["code"] == CROWDED for n in facts["warnings"]):
        lines.append(ROLES["unstated"]["en"])
    return Report("roles", columns, rows, before=before, after=lines, facts=facts)


def _fullest(fullest: Document) -> Iterator[str]:
    """The moment with least free memory; empty if no role's memory is known."""
    from request.units import gib

    if fullest["bytes"]:
        sizes = f"{gib(fullest['bytes'])} of {gib(fullest['capacity_bytes'])}"
        lacking = f"; not known of {', '.join(fullest['unknown'])}" * bool(fullest["unknown"])
        yield f"fullest moment: {fullest['phase']}, {sizes} on GPU {fullest['gpu']}{lacking}"


def _way(way: Document) -> str:
    """Changes after which the plan fits."""
    from request.units import gib

    changes = [
        f"{change['role']} "
        + (
            "gives its memory back between its turns"
            if change["away"]
            else " ".join(f"{name} {value}" for name, value in change["fields"].items())
        )
        for change in way["changes"]
    ]
    return f"would fit: {' and '.join(changes)}, {gib(way['bytes'])}"


def _read(inputs: CommandLine) -> PlanRead:
    from formats.roles import read_plan
    from formats.roles.presets import PLANS, preset_plan

    answers = dict(_answer(word) for word in inputs.words)
    options = inputs.options
    if options.args is not None:
        return read_plan(inputs.text(options.args), answers, options.run or "")
    if options.preset is not None:
        if answers:
            raise CommandError("a published plan leaves nothing open: say settings beside --args")
        return preset_plan(options.preset)
    names = ", ".join(PLANS)
    raise CommandError(f"say which plan: --args FILE, or --preset, one of {names}")


def _answer(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not (name and equals and value):
        raise CommandError(
            f"{quoted(word)} is no answer: write a setting, such as trainer.nnodes=4"
        )
    return name, value
