"""The command roles: the plan of a configuration, or of a published one."""

from __future__ import annotations

from formats.documents.tables import Table
from formats.roles import PlanRead
from groups.errors import in_any_case, nearest_names, not_a_choice, quoted

from .inputs import CommandLine
from .messages import CommandError
from .training import Report


def roles(inputs: CommandLine) -> Table:
    """A row for each role; CSV has one for each rank of each. Words answer what a text leaves
    open: trainer.nnodes=4."""
    from formats.roles.facts import COLUMNS, rank_rows, roles_facts
    from formats.roles.warned import warnings_of
    from texts.sentences import note_text

    read = _read(inputs)
    if inputs.format == "csv":
        return Table("roles", COLUMNS, [*rank_rows(read.plan)])
    facts = roles_facts(read)
    assumed = [note_text(note) for note in read.assumed]
    warnings = warnings_of(read, _capacity(inputs))
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
    after = [f"assumed: {text}" for text in assumed]
    after += [f"warning: {note_text(note)}" for note in warnings]
    others = {
        "assumed": [
            _note_document(note.code, note.facts, note_text(note)) for note in read.assumed
        ],
        "warnings": [_note_document(note.code, note.facts, note_text(note)) for note in warnings],
    }
    columns = ["role", "ranks", "gpus", "engines", "framework", "sizes"]
    return Report("roles", columns, rows, before=before, after=after, facts={**facts, **others})


def _capacity(inputs: CommandLine) -> float:
    """Bytes of a GPU of --cluster, or of --capacity."""
    from training.clusters import CLUSTERS
    from training.serving.server import GIB, seen_memory

    options = inputs.options
    if options.capacity is not None:
        try:
            return float(options.capacity) * GIB
        except ValueError:
            raise CommandError(f"{quoted(options.capacity)} is no number of GiB") from None
    cluster = str(in_any_case(options.cluster or "dgx-h100", CLUSTERS))
    if cluster not in CLUSTERS:
        fixes = [{"cluster": near} for near in nearest_names(cluster, CLUSTERS)]
        raise not_a_choice("cluster", cluster, CLUSTERS, fixes)
    return seen_memory(cluster)


def _note_document(code: str, facts: object, text: str) -> dict[str, object]:
    return {"code": code, "facts": facts, "text": text}


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
