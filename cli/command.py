"""The command line: groups, ranks and tables of a layout, as text, JSON or CSV.

    python -m groups --nodes 2 --tp 2 --pp 2 dp tp

A command takes the layout from a `CommandLine` (options, a preset or launch flags) and yields what
it prints in parts. What goes wrong is one line: a LayoutError with its fixes as options, or a
`CommandError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from operator import attrgetter
from typing import Any, TextIO

from formats.documents import exports
from formats.documents.check import check_document
from formats.documents.exports import groups_by_name, meshes
from formats.documents.tables import Table, cell
from formats.values import Document
from groups import __version__, budget
from groups.audit import DOMAINS, Span, audit
from groups.errors import LayoutError, in_any_case, quoted
from groups.frameworks import FRAMEWORKS
from groups.grouping import shared_groups
from groups.layout import Layout, framework_name
from groups.mesh import MAX_RANKS, coordinates, require_rank, whole_number
from groups.placement import Placement
from groups.presets import PUBLISHED
from groups.program import PROGRAM

from .guide import GuideCommand, guide
from .inputs import (
    CommandLine,
    Options,
    checked,
    help_text,
    number_of,
    options_parser,
    read_options,
)
from .messages import CommandError, one_line, option, sentence
from .share import share, shared_rows

LIMIT = 8 * budget.LIMIT
"""Units of work of one command: its user waits alone, and tables are written in parts."""


def run(argv: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Runs a command line; returns the exit status.

    >>> import io, sys
    >>> run(["--gpus-per-node", "4", "--tp", "2", "dp"], io.StringIO(), sys.stdout, sys.stderr)
    dp group 0: [0, 2]
    dp group 1: [1, 3]
    0
    """
    try:
        if not {"-h", "--help"}.isdisjoint(argv):
            named = (in_any_case(word, COMMANDS) for word in argv)
            command = next((str(name) for name in named if name in COMMANDS), "")
            stdout.write(help_text(command))
            return 0
        if "--version" in argv:
            stdout.write(f"parallel-groups {__version__}\n")
            return 0
        options = Options(read_options(options_parser(argv), argv))
        words = options.words
        if words and in_any_case(words[0], COMMANDS) in COMMANDS:
            words = [str(in_any_case(words[0], COMMANDS)), *words[1:]]
        if words[:1] == ["model"] and len(words) == 1:  # also a group of DeepSpeed's
            words = ["groups", *words]
        if not words or words[0] not in COMMANDS:
            words = ["groups", *words]  # without a command, the words are names of groups
        about = guide().command(words[0])
        inputs = CommandLine(options, words[1:], stdin, usual_format=about.format)
        _require_words(about, inputs)
        with budget.within(LIMIT):
            answer = COMMANDS[words[0]](inputs)
            parts = answer.printed(inputs.format) if isinstance(answer, Table) else answer
            first = next(parts, "")  # what can be refused is refused before anything is written
        if options.unread:
            raise CommandError(f"{option(options.unread[0])} says nothing to {words[0]} here")
    except (CommandError, LayoutError) as error:
        stderr.write(f"{PROGRAM}: {one_line(sentence(error))}\n")
        return 2
    remarks = dict.fromkeys(map(one_line, inputs.remarks))  # a file may be read twice
    stderr.writelines(f"{PROGRAM}: {remark}\n" for remark in remarks)
    stdout.write(first)
    stdout.writelines(parts)
    return 0


def _require_words(command: GuideCommand, inputs: CommandLine) -> None:
    count = len(inputs.words)
    if count < command.least or (command.most is not None and count > command.most):
        raise CommandError(f"{command.name} takes {command.takes}")
    if inputs.format not in command.formats:
        raise CommandError(f"{command.name} prints {' or '.join(command.formats)} only")


def _groups(inputs: CommandLine) -> Iterator[str]:
    layout = inputs.layout()
    parts = {"json": exports.groups_json_parts, "csv": exports.groups_csv_parts}
    write = parts.get(inputs.format, exports.groups_text_parts)
    return write(layout, inputs.names, inputs.placement(layout))


def _ranks(inputs: CommandLine) -> Iterator[str]:
    layout = inputs.layout()
    placement = inputs.placement(layout)
    if inputs.format == "text":
        return _ranks_text(layout, inputs.names or (), placement)
    parts = {"json": exports.ranks_json_parts, "csv": exports.ranks_csv_parts}
    return parts[inputs.format](layout, inputs.names, placement)


def _ranks_text(layout: Layout, names: Iterable[str], placement: Placement | None) -> Iterator[str]:
    """Place and coordinates of every rank, and the groups that are named: all would be too wide."""
    columns = exports.rank_columns(layout, names, placement)
    places = dict(placement.columns()) if placement else {}
    widths = [max(len(name), len(str(column.max()))) for name, column in columns.items()]
    widths += [max(len(name), *map(len, column)) for name, column in places.items()]
    titles = zip((*columns, *places), widths)
    yield "  ".join(name.rjust(width) for name, width in titles) + "\n"
    for row in zip(*(column.tolist() for column in columns.values()), *places.values()):
        texts = ("-" if index in (-1, "") else str(index) for index in row)
        yield "  ".join(text.rjust(width) for text, width in zip(texts, widths)) + "\n"


def _rank(inputs: CommandLine) -> Table:
    layout = inputs.layout()
    rank = require_rank(layout.mesh, number_of(inputs.words[0]))
    node, local = divmod(rank, layout.gpus_per_node)
    places = {name: coordinates(mesh, rank) for name, mesh in meshes(layout).items()}
    ring = layout.every["pp"].neighbours(rank) if layout.every["pp"].size > 1 else None
    together, apart = shared_groups(groups_by_name(layout).values(), [rank])
    stands: Document = {}
    placement = inputs.placement(layout)
    if placement is not None:
        stands = {"host": placement.host(rank), **placement.places(rank)}
        node, local = int(placement.nodes[rank]), placement.local_rank(rank)
    machine = f"host {stands['host']}" if stands else f"node {node}"
    lines = [f"rank {rank} of {layout.world_size}: {machine}, GPU {local}"]
    lines += [f"{kind}: {place}" for kind, place in stands.items() if kind != "host"]
    for name, place in places.items():
        lines.append(f"{name}: {', '.join(f'{axis} {at}' for axis, at in place.items())}")
    if ring:
        lines.append(f"pipeline: {ring[0]} -> {rank} -> {ring[1]}")
    none = [kind.name for kind in apart]
    return Table(
        "rank",
        *shared_rows(inputs, layout, together, placement),
        layout=layout,
        fields={
            "rank": rank,
            "node": node,
            "local_rank": local,
            **stands,
            "coordinates": places,
            "pipeline": {"before": ring[0], "after": ring[1]} if ring else None,
            "in_none_of": none,
        },
        before=lines,
        after=[f"in none of: {' '.join(none)}"] if none else [],
    )


def _audit(inputs: CommandLine) -> Table:
    layout = inputs.layout()
    domains = _domains(inputs, layout)
    placement = inputs.placement(layout)
    levels = {} if placement is None else placement.by_level()
    spans = audit(groups_by_name(layout, inputs.names).values(), domains, levels)
    if inputs.format == "text":
        return _audit_text(spans, [*map(str, domains), *levels])
    fields = ["name", "size", "groups", "domain", "crossing", "most", "is_slow"]
    fields += ["level"] * bool(levels)
    rows = [list(attrgetter(*fields)(span)) for row in spans for span in row]
    columns = [field.removeprefix("is_") for field in fields]
    return Table("audit", columns, rows, layout=layout)


def _domains(inputs: CommandLine, layout: Layout) -> list[int]:
    """The requested sizes of domains; by default a node and those that the world fills."""
    if inputs.options.domains is None:
        usual = (size for size in DOMAINS if size <= layout.world_size)
        return sorted({layout.gpus_per_node, *usual})
    sizes = map(number_of, inputs.options.domains.split(","))
    return [whole_number(size, "domains", maximum=MAX_RANKS) for size in sizes]


def _audit_text(spans: Iterable[Sequence[Span]], domains: Sequence[str]) -> Table:
    """A table of names by domains; JSON and CSV have a row for each of its cells."""
    rows: list[list[Any]] = []
    for row in spans:
        cells = [f"{span.crossing} ({span.most}){' !' * span.is_slow}" for span in row]
        crossing = [cell if span.crossing else "-" for cell, span in zip(cells, row)]
        rows.append([row[0].name, row[0].size, row[0].groups, *crossing])
    before = [
        "groups that leave a domain of so many GPUs (domains that the widest is on)",
        "! the next layer waits for these groups",
    ]
    return Table("audit", ["name", "size", "groups", *domains], rows, before=before)


def _layout(inputs: CommandLine) -> Table:
    if inputs.words:
        raise CommandError(f"{quoted(inputs.words[0])} says nothing to this command")
    layout = inputs.layout()
    job, grids = layout.explicit_job, meshes(layout)
    sizes = {name: getattr(job, name) for name in ("nodes", "gpus_per_node")}
    sizes |= {"world_size": layout.world_size}
    for mesh in (layout.mesh, *((layout.expert,) if layout.expert else ())):
        sizes |= dict(zip(mesh.names, mesh.sizes))
    rows = {"framework": framework_name(layout.framework), "order": job.order, **sizes, **grids}
    rows["groups"] = " ".join(groups_by_name(layout))
    table = [[name, value if type(value) is int else str(value)] for name, value in rows.items()]
    return Table("layout", ["name", "value"], table, layout=layout)


def _emit(inputs: CommandLine) -> Iterator[str]:
    from formats.launch import TARGETS, emit

    job, model = inputs.wanted()
    layout = checked(job)
    if inputs.options.preset is not None and layout.is_server:
        from request.named.launch import options_of_page

        from .state import state_of

        model = options_of_page(layout, state_of(inputs, job))
    elif inputs.options.preset is not None:
        from formats.launch.training import options_of_preset

        model = options_of_preset(inputs.options.preset, job.pp)
    likely = job.framework if job.framework in TARGETS else "megatron"
    target = str(in_any_case(inputs.words[0], TARGETS)) if inputs.words else likely
    yield emit(job, model, target).rstrip("\n") + "\n"


def _serve(inputs: CommandLine) -> Table:
    """The groups of the server that a launch command starts, in the server's order of ranks; with
    --speed how fast it answers."""
    if inputs.options.speed:
        from .served import speed

        return speed(inputs)
    if not inputs.words:
        raise CommandError("serve takes one file, or - for standard input; without one --speed")
    from formats.launch import parse

    from .launch import choose_run

    read = parse(inputs.text(inputs.words[0]), inputs.options.run or "")
    if read.runs and not read.run:
        raise CommandError(choose_run(read, inputs.words[0]))
    groups = read.served_groups()
    if not groups:
        raise CommandError(
            "the text starts no server of vLLM, SGLang or TensorRT-LLM, or leaves its sizes open"
        )
    rows = [
        [name, index, list(map(int, ranks))]
        for name, grouping in groups.items()
        for index, ranks in enumerate(grouping.groups())
    ]
    return Table("served", ["name", "index", "ranks"], rows)


def _check(inputs: CommandLine) -> Iterator[str]:
    document = check_document(inputs.text(inputs.words[0]))
    yield "{schema} version {version}: {world_size} ranks\n".format(**document)


def _presets(inputs: CommandLine) -> Table:
    columns = ["nodes", "gpus_per_node", "tp", "cp", "dp", "pp", "ep", "etp", "framework", "name"]
    row_of = attrgetter(*columns)
    rows = [[key, *row_of(preset)] for key, preset in PUBLISHED.items()]
    found = _matching("presets", inputs, ["id", *columns], rows)
    measured = [_measured_cells(str(row[0])) for row in found.rows]
    return replace(
        found,
        columns=[*found.columns, "measured_seconds", "mfu", "source_says"],
        rows=[[*row, *cells] for row, cells in zip(found.rows, measured)],
    )


def _measured_cells(preset: str) -> tuple[object, object, object]:
    """What a published layout was measured to take, its MFU, and its source's own figure."""
    from request.answers.estimate.measured import measured_use, source_text
    from training.published import published_steps

    step = published_steps().get(preset)
    if step is None:
        return None, None, None
    mfu = measured_use(step).mfu
    middle = [sum(ends) / 2 for ends in ((step.low, step.high), mfu)]
    return round(middle[0], 3), round(middle[1], 4), source_text(step, "en")


def _frameworks(inputs: CommandLine) -> Table:
    columns = ["id", "order", "axes", "expert_axes", "basis", "name"]
    rows = []
    for key, row in FRAMEWORKS.items():
        axes = ([axis.name for axis in some] for some in (row.axes, row.expert_axes))
        rows.append([key, row.order, *axes, row.basis, row.name])
    return _matching("frameworks", inputs, columns, rows)


def _matching(
    title: str, inputs: CommandLine, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Table:
    """The rows that contain all the words, ignoring case."""
    words = [word.lower() for word in inputs.words]
    matching = [row for row in rows if all(w in " ".join(map(cell, row)).lower() for w in words)]
    return Table(title, columns, matching)


def _of_room(room: str, name: str = "") -> Callable[[CommandLine], Iterator[str] | Table]:
    """A command of another module, imported only when it runs."""

    def answer(inputs: CommandLine) -> Iterator[str] | Table:
        work: Callable[[CommandLine], Iterator[str] | Table]
        work = getattr(import_module(f".{room}", __package__), name or room)
        return work(inputs)

    return answer


COMMANDS: dict[str, Callable[[CommandLine], Iterator[str] | Table]] = {
    "groups": _groups,
    "ranks": _ranks,
    "rank": _rank,
    "share": share,
    "audit": _audit,
    "picture": _of_room("picture"),
    "order": _of_room("hosts", "order"),
    "slow": _of_room("slow"),
    "serve": _serve,
    "running": _of_room("running"),
    "trace": _of_room("traces", "trace"),
    "memory": _of_room("training", "memory"),
    "traffic": _of_room("training", "traffic"),
    "estimate": _of_room("training", "estimate"),
    "search": _of_room("training", "search"),
    "compare": _of_room("training", "compare"),
    "moves": _of_room("moves"),
    "roles": _of_room("roles"),
    "model": _of_room("model"),
    "layout": _layout,
    "emit": _emit,
    "check": _check,
    "presets": _presets,
    "frameworks": _frameworks,
}
