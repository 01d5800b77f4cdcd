"""The command line: groups, ranks and their tables of a layout, as text, JSON or CSV.

    python -m groups --nodes 2 --tp 2 --pp 2 dp tp

A command takes the layout from options, a preset or launch flags, and yields what it prints in
parts. What goes wrong is one line: a LayoutError with its cures as options, or a `CommandError`.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn, TextIO

from .audit import DOMAINS, Span, audit
from .conventions import CONVENTIONS
from .errors import LayoutError, alternative_text, quoted
from .exports import (
    OWN_PREFIX,
    VERSION,
    check_document,
    groups_by_name,
    groups_csv_parts,
    groups_json_parts,
    groups_text_parts,
    heading,
    job_of,
    meshes,
    opened,
    rank_columns,
    ranks_csv_parts,
    ranks_json_parts,
)
from .job import OWN, Job, Made, framework_name
from .mesh import MAX_RANKS, whole_number
from .placement import local_rank, node_of, nodes_spanned
from .presets import LAYOUT, PRESETS
from .ranks import coordinates, require_rank
from .sharing import Shared, parse_ranks, shared_groups

PROGRAM = "python -m groups"

MEMBERS = 16
"""Ranks of a group that a line of text writes out; JSON and CSV have all."""

GUIDE = """\
commands:
  groups [NAME ...]     the ranks of every group, or of the groups named (needs no word)
  ranks [NAME ...]      node, GPU and coordinates of every rank, and the index of its groups
  rank N                one rank: its place, its groups and peers, its pipeline neighbours
  share RANKS           the groups that all of these ranks are in, smallest first: 3,11 or 16-23;
                        - reads a log or a list from standard input
  audit [NAME ...]      how many groups leave a node or an NVLink domain (--domains)
  layout                sizes, what remains of them, and the meshes
  emit [FRAMEWORK]      the launch flags that ask for the layout: megatron, nemo, deepspeed,
                        megatron-deepspeed, torchtitan, torchtitan-toml
  check FILE            read a JSON document back and check it; - is standard input
  presets [WORD ...]    the published layouts, or those that have these words
  frameworks [WORD ...] the frameworks and the order of their axes

examples:
  python -m groups --nodes 2 --tp 2 --pp 2 dp tp
  python -m groups ranks --preset deepseek-v3 --format csv > ranks.csv
  python -m groups share - --nodes 64 --tp 8 --pp 4 < watchdog.log
  python -m groups audit --args launch.sh --domains 8,72

NAME is Megatron's: tp cp dp dp-cp pp mp embd ep etp edp ... (the layout command lists them); what a
framework itself names so is own.NAME. Exit status: 0, or 2 with one line on standard error.
docs/schema.md describes the JSON and the CSV.
"""


class CommandError(Exception):
    """A command line that cannot be understood, in one sentence."""


def run(argv: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Answer a command line; the exit status.

    >>> import io, sys
    >>> run(["--gpus-per-node", "4", "--tp", "2", "dp"], io.StringIO(), sys.stdout, sys.stderr)
    dp group 0: [0, 2]
    dp group 1: [1, 3]
    0
    """
    try:
        parser = _parser()
        if not {"-h", "--help"}.isdisjoint(argv):
            stdout.write(parser.format_help())
            return 0
        options = parser.parse_intermixed_args(argv)
        command, words = _command(options.words)
        asked = _Asked(options, words, stdin)
        parts = COMMANDS[command](asked)
        first = next(parts, "")  # what can be refused is refused before anything is written
    except (CommandError, LayoutError) as error:
        stderr.write(f"{PROGRAM}: {_line(_sentence(error))}\n")
        return 2
    stderr.writelines(f"{PROGRAM}: {_line(remark)}\n" for remark in asked.remarks)
    stdout.write(first)
    stdout.writelines(parts)
    return 0


def _command(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command and its words; without a command, the words are names of groups."""
    if words and words[0] in COMMANDS:
        return words[0], list(words[1:])
    return "groups", list(words)


# -- options -------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(message)


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:  # else it is as wide as the environment says
        super().__init__(prog, max_help_position=26, width=100)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [COMMAND] [LAYOUT] [NAME ...]",
        description="Which GPUs of a training job are in which process groups.",
        epilog=GUIDE,
        formatter_class=_Help,
        add_help=False,
        allow_abbrev=False,
    )
    parser.color = False  # type: ignore[attr-defined]  # Pythons from 3.14 on colour their help
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    layout = parser.add_argument_group("layout")
    for name, help_text in SIZES.items():
        layout.add_argument(_option(name), metavar="N", dest=name, help=help_text)
    layout.add_argument("--levels", metavar="NxN", help="hierarchical context parallel sizes")
    layout.add_argument(
        "--hybrid", action=argparse.BooleanOptionalAction, help="hybrid context parallel groups"
    )
    numbering = layout.add_mutually_exclusive_group()
    numbering.add_argument(
        "--framework", metavar="ID", help="whose order of ranks (megatron; see frameworks)"
    )
    numbering.add_argument(
        "--order", help="an order of your own, fastest axis first, such as tp-cp-ep-dp-pp"
    )
    start = layout.add_mutually_exclusive_group()
    start.add_argument("--preset", metavar="ID", help="begin with a published layout (see presets)")
    start.add_argument(
        "--args", metavar="FILE", help="begin with the launch flags in a file; - is standard input"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=("text", "json", "csv"), default="text")
    output.add_argument(
        "--domains", metavar="N,N", help="GPUs in a domain, for audit (a node, 4, 8, 16, 32, 72)"
    )
    output.add_argument("-h", "--help", action="store_true", help="this text")
    return parser


SIZES = {
    "nodes": "machines (1)",
    "gpus_per_node": "GPUs in each (8)",
    "tp": "tensor parallel size (1)",
    "pp": "pipeline stages (1)",
    "cp": "context parallel size (1)",
    "ep": "expert parallel size (1)",
    "etp": "tensor parallel size of experts (as tp)",
    "instances": "instances of the distributed optimizer (1)",
}

OF_MATHS = {
    "num_distributed_optimizer_instances": "instances",
    "hierarchical_context_parallel_sizes": "levels",
    "hybrid_context_parallel": "hybrid",
}
"""The field of `Job` of an argument of the maths, where they have different names."""

FIELDS = tuple(one.name for one in fields(Job))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclass
class _Asked:
    """A command line that was understood, and the layout that it asks for."""

    options: argparse.Namespace
    words: list[str]
    stdin: TextIO
    remarks: list[str] = field(default_factory=list)  # to be said beside the answer

    @property
    def format(self) -> str:
        return self.options.format

    @property
    def names(self) -> list[str] | None:
        """The names of groups among the words, or None for all."""
        return [name for word in self.words for name in word.split(",") if name] or None

    def wanted(self) -> tuple[Job, dict[str, Any]]:
        """The job, not yet checked, and what is known of its model.

        Options stand over a preset or launch flags.
        """
        given = {name: getattr(self.options, name) for name in FIELDS}
        given = {name: value for name, value in given.items() if value is not None}
        given |= {name: _number(given[name]) for name in SIZES if name in given}
        if "levels" in given:
            given["levels"] = tuple(map(_number, re.split("[x,]", given["levels"])))
        if "order" in given:
            given["framework"] = OWN
        values, model = self._start(given)
        values |= given
        if values.get("framework", OWN) != OWN:
            _choice("framework", values["framework"], CONVENTIONS)
        return Job(**values), model

    def _start(self, given: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Values of a job and of its model; what is ``given`` may be left open there."""
        if self.options.preset is not None:
            preset = PRESETS[_choice("preset", self.options.preset, PRESETS)]
            values = {name: getattr(preset, name) for name in LAYOUT if name in FIELDS}
            account = bool(preset.model.get("account_for_embedding"))
            return values, {**preset.model, "account": account}
        if self.options.args is not None:
            return _from_flags(self, self.options.args, given)
        return {}, {}

    def made(self) -> Made:
        """The layout. Errors: LayoutError whose alternatives are changes of the job that work."""
        return _checked(self.wanted()[0])

    def text(self, path: str) -> str:
        """What is in a file, or in standard input for a dash."""
        try:
            if path == "-":
                return self.stdin.read()
            with open(path, encoding="utf-8") as file:
                return file.read()
        except OSError as error:
            raise CommandError(f"cannot read {quoted(path)}: {error.strerror}") from None
        except ValueError:
            raise CommandError(f"cannot read {quoted(path)}: it is no UTF-8 text") from None


_SETTLED = ("given-twice", "contradiction", "two-frameworks")
"""What is wrong with launch flags where it is clear which of two words counts."""

_LEADS_TO = {
    "world": ("nodes", "gpus_per_node"),
    "tasks": ("nodes",),
    "tasks_per_node": ("gpus_per_node",),
    "single": ("nodes",),
    "shard": ("nodes",),
    "mapping": ("framework",),
    "data_first": ("framework",),
}
"""Fields of a job that follow from what else launch flags say."""


def _from_flags(
    asked: _Asked, path: str, given: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What launch flags say of a job and of its model; remarks about what they leave open.

    Errors: CommandError for a size that is no size or not said, unless it is ``given``.
    """
    from .launch_args import parse  # a large room that other commands do not enter

    parsed = parse(asked.text(path))
    if not parsed.values:
        raise CommandError(f"nothing in {_file(path)} says how a job is laid out")
    for item in (*parsed.problems, *parsed.unresolved):
        where = f"{_file(path)}:{item.line}:{item.column}: {item.sentence}"
        fields = [name for name in _LEADS_TO.get(item.sets, (item.sets,)) if name in FIELDS]
        said = set(parsed.values) - {"framework"}  # the order is open even so
        open_fields = [name for name in fields if name not in given and name not in said]
        is_broken = not item.sets and item in parsed.problems
        if (open_fields or is_broken) and item.code not in _SETTLED:
            cure = f" Give {' and '.join(map(_option, open_fields))}." if open_fields else ""
            raise CommandError(where + cure)
        if item.sets not in given:
            asked.remarks.append(where)
    for item in parsed.ignored:
        if item.code == "not-drawn":
            asked.remarks.append(f"{_file(path)}:{item.line}:{item.column}: {item.sentence}")
    for missing in parsed.missing:
        is_size = missing.facts.get("field") in ("tp", "pp", "cp", "ep")
        if not is_size and missing.facts.get("field") not in given:
            asked.remarks.append(f"{_file(path)}: {missing.sentence}")
    known = {**parsed.assumed, **parsed.values}
    job = {name: value for name, value in known.items() if name in FIELDS}
    return job, {name: value for name, value in known.items() if name not in FIELDS}


def _file(path: str) -> str:
    return "standard input" if path == "-" else path


def _checked(job: Job) -> Made:
    try:
        return _made(job)
    except LayoutError as error:
        raise error.but(alternatives=_working(job, error.alternatives)) from None


def _made(job: Job) -> Made:
    """The layout; a world that is too large is refused as its number of nodes."""
    nodes = whole_number(job.nodes, "nodes")
    gpus_per_node = whole_number(job.gpus_per_node, "gpus_per_node")
    if nodes * gpus_per_node > MAX_RANKS:
        raise LayoutError(
            "too-many-ranks",
            f"{quoted(nodes * gpus_per_node)} GPUs are more than {MAX_RANKS:,}",
            control="nodes",
            alternatives=[
                {"nodes": MAX_RANKS // gpus_per_node},
                {"gpus_per_node": MAX_RANKS // nodes},
            ],
            facts={"ranks": quoted(nodes * gpus_per_node), "limit": MAX_RANKS},
        )
    return job.made()


def _working(job: Job, alternatives: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The alternatives that a job can be changed by, and that work."""
    found = []
    for alternative in alternatives:
        changes = {OF_MATHS.get(name, name): value for name, value in alternative.items()}
        own = {"framework": OWN} if "order" in changes else {}
        try:
            _made(replace(job, **changes, **own))
        except (LayoutError, TypeError):
            continue
        found.append(changes)
    return found


def _number(text: Any) -> Any:
    """A whole number; anything else as it is, to be refused in words."""
    is_number = isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII)
    return int(text) if is_number else text


def _choice(control: str, value: str, choices: Collection[str]) -> str:
    if value in choices:
        return value
    near = [one for one in choices if value and value.lower() in one]
    near = near or difflib.get_close_matches(value.lower(), choices)
    raise LayoutError(
        "not-a-choice",
        f"{quoted(value)} is no {control}; `{PROGRAM} {control}s` lists them",
        control=control,
        alternatives=[{control: one} for one in near[:3]],  # type: ignore[dict-item]
        facts={"control": control, "value": quoted(value), "choices": ", ".join(choices)},
    )


# -- messages ------------------------------------------------------------------------------------


def _sentence(error: Exception) -> str:
    """What is wrong, the options that would work, and what Megatron says."""
    if not isinstance(error, LayoutError):
        return str(error)
    what = error.what
    for name, own in OF_MATHS.items():
        what = what.replace(name, own)
    cures = [_cure(alternative) for alternative in error.alternatives]
    if cures:
        what += f"; try {' or '.join(cures)}"
    elif error.why:
        what += f": {error.why}"
    return what + (f" (Megatron: {error.quote})" if error.quote else "")


def _cure(alternative: Mapping[str, Any]) -> str:
    """An alternative as the options to give: ``--tp 2 --pp 4``."""
    if "group" in alternative:
        return str(alternative["group"])
    if not set(alternative) <= {*FIELDS, "preset", "domains"}:
        return alternative_text(alternative)
    return " ".join(_as_option(name, value) for name, value in alternative.items())


def _as_option(name: str, value: Any) -> str:
    if value is None:
        return f"without {_option(name)}"
    if isinstance(value, bool):
        return _option(name) if value else _option(f"no_{name}")
    text = "x".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return f"{_option(name)} {text}"


def _line(text: str) -> str:
    """On one line, and nothing that a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """Rows to print as aligned text, JSON or CSV.

    fields: what the JSON says before the rows; its schema is ``parallel-<title>``.
    before, after: lines of the text around the rows.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    made: Made | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    def printed(self, form: str) -> Iterator[str]:
        return {"json": self._json, "csv": self._csv, "text": self._text}[form]()

    def _json(self) -> Iterator[str]:
        schema = f"parallel-{self.title}"
        about = {"schema": schema, "version": VERSION}
        yield opened({**(heading(self.made, schema) if self.made else about), **self.fields})
        rows = (f"\n    {json.dumps(dict(zip(self.columns, row)))}" for row in self.rows)
        yield f'  "rows": [{",".join(rows)}\n  ]\n}}\n'

    def _csv(self) -> Iterator[str]:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(map(_cell, row) for row in self.rows)
        yield out.getvalue()

    def _text(self) -> Iterator[str]:
        yield from (f"{line}\n" for line in self.before)
        if self.rows:
            yield from _aligned(self.columns, self.rows)
        yield from (f"{line}\n" for line in self.after)


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Numbers to the right, everything else to the left, the last column as long as it is."""
    cells = [list(columns), *([_cell(value, most=MEMBERS) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    numbers = [all(type(value) in (int, type(None)) for value in column) for column in zip(*rows)]
    for line in cells:
        aligned = (
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, numbers)
        )
        yield "  ".join(aligned).rstrip() + "\n"


def _cell(value: Any, most: int = 0) -> str:
    """A value as text; of a longer list than ``most`` the first ones and the last."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        if most and len(value) > most:
            value = [*value[: most - 2], "...", value[-1]]
        return " ".join(map(str, value))
    return "" if value is None else str(value)


# -- commands ------------------------------------------------------------------------------------


def _groups(asked: _Asked) -> Iterator[str]:
    made = _with_names(asked)
    parts = {"json": groups_json_parts, "csv": groups_csv_parts, "text": groups_text_parts}
    return parts[asked.format](made, asked.names)


def _with_names(asked: _Asked) -> Made:
    """The layout; a remark where a name of Megatron's is used for other groups by the framework."""
    made = asked.made()
    every = groups_by_name(made)
    for name in asked.names or ():
        own = every.get(OWN_PREFIX + name)
        if name in every and own is not None and own.spread != every[name].spread:
            framework = framework_name(made.framework)
            asked.remarks.append(f"{name} is Megatron's; what {framework} names so is {own.name}")
    return made


def _ranks(asked: _Asked) -> Iterator[str]:
    made = _with_names(asked)
    if asked.format == "text":
        return _ranks_text(made, asked.names or ())
    parts = {"json": ranks_json_parts, "csv": ranks_csv_parts}
    return parts[asked.format](made, asked.names)


def _ranks_text(made: Made, names: Iterable[str]) -> Iterator[str]:
    """Place and coordinates of every rank, and the groups that are named: all would be too wide."""
    columns = rank_columns(made, names)
    widths = [max(len(name), len(str(column.max()))) for name, column in columns.items()]
    yield "  ".join(name.rjust(width) for name, width in zip(columns, widths)) + "\n"
    for row in zip(*(column.tolist() for column in columns.values())):
        cells = ("-" if number < 0 else str(number) for number in row)
        yield "  ".join(cell.rjust(width) for cell, width in zip(cells, widths)) + "\n"


def _rank(asked: _Asked) -> Iterator[str]:
    if len(asked.words) != 1:
        raise CommandError("rank takes one rank, such as rank 5")
    made = asked.made()
    rank = require_rank(made.mesh, _number(asked.words[0]))
    node, local = int(node_of(rank, made.gpus_per_node)), int(local_rank(rank, made.gpus_per_node))
    places = {name: coordinates(mesh, rank) for name, mesh in meshes(made).items()}
    ring = made.every["pp"].neighbours(rank) if made.every["pp"].size > 1 else None
    together, apart = shared_groups(groups_by_name(made).values(), [rank])
    lines = [f"rank {rank} of {made.world_size}: node {node}, GPU {local}"]
    for name, place in places.items():
        lines.append(f"{name}: {', '.join(f'{axis} {at}' for axis, at in place.items())}")
    if ring:
        lines.append(f"pipeline: {ring[0]} -> {rank} -> {ring[1]}")
    none = [one.name for one in apart]
    return _Table(
        "rank",
        *_shared_rows(asked, made, together),
        made=made,
        fields={
            "rank": rank,
            "node": node,
            "local_rank": local,
            "coordinates": places,
            "pipeline": {"before": ring[0], "after": ring[1]} if ring else None,
            "in_none_of": none,
        },
        before=lines,
        after=[f"in none of: {' '.join(none)}"] if none else [],
    ).printed(asked.format)


def _share(asked: _Asked) -> Iterator[str]:
    if not asked.words:
        raise CommandError("share takes ranks, such as share 3,11 or share 16-23, or - for a log")
    made = asked.made()
    text = asked.text("-") if asked.words == ["-"] else " ".join(asked.words)
    ranks = parse_ranks(text, made.world_size)
    groups = [one for one in groups_by_name(made).values() if one.size > 1]
    together, apart = shared_groups(groups, ranks)
    parted = ", ".join(f"{one.name} ({one.groups})" for one in apart)
    return _Table(
        "share",
        *_shared_rows(asked, made, together),
        made=made,
        fields={"ranks": list(ranks), "apart": [vars(one) for one in apart]},
        before=[] if together else ["no group has all of these ranks"],
        after=[f"not together in (groups they are in): {parted}"] if apart else [],
    ).printed(asked.format)


def _shared_rows(
    asked: _Asked, made: Made, together: Iterable[Shared]
) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows; in text, an index that all names of a group have stands once."""
    rows = []
    for one in together:
        indices = list(dict.fromkeys(one.indices)) if asked.format == "text" else [*one.indices]
        spanned = int(nodes_spanned([one.ranks], made.gpus_per_node)[0])
        rows.append([list(one.names), indices, len(one.ranks), spanned, list(one.ranks)])
    return ["names", "indices", "size", "nodes_spanned", "ranks"], rows


def _audit(asked: _Asked) -> Iterator[str]:
    made = _with_names(asked)
    if asked.options.domains is None:
        node = made.gpus_per_node
        domains = sorted({node, *(size for size in DOMAINS if size <= made.world_size)})
    else:
        domains = [_number(part) for part in asked.options.domains.split(",")]
        domains = [whole_number(one, "domains", maximum=MAX_RANKS) for one in domains]
    found = audit(groups_by_name(made, asked.names).values(), domains)
    if asked.format == "text":
        columns = ["name", "size", "groups", *map(str, domains)]
        rows = [[row[0].name, row[0].size, row[0].groups, *map(_crossing, row)] for row in found]
        before = [
            "groups that leave a domain of so many GPUs (domains that the widest is on)",
            "! the next layer waits for these groups",
        ]
        return _Table("audit", columns, rows, before=before).printed("text")
    columns = ["name", "size", "groups", "domain", "crossing", "most", "slow"]
    rows = [
        [one.name, one.size, one.groups, one.domain, one.crossing, one.most, one.is_slow]
        for row in found
        for one in row
    ]
    return _Table("audit", columns, rows, made=made).printed(asked.format)


def _crossing(one: Span) -> str:
    if not one.crossing:
        return "-"
    return f"{one.crossing} ({one.most}){' !' if one.is_slow else ''}"


def _layout(asked: _Asked) -> Iterator[str]:
    _refuse_words(asked)
    made = asked.made()
    job, grids = job_of(made), meshes(made)
    sizes = {name: getattr(job, name) for name in ("nodes", "gpus_per_node")}
    sizes |= {"world_size": made.world_size}
    for mesh in (made.mesh, *((made.expert,) if made.expert else ())):
        sizes |= dict(zip(mesh.names, mesh.sizes))
    rows = {"framework": framework_name(made.framework), "order": job.order, **sizes, **grids}
    rows["groups"] = " ".join(groups_by_name(made))
    columns = ["name", "value"]
    table = [[name, value if type(value) is int else str(value)] for name, value in rows.items()]
    return _Table("layout", columns, table, made=made).printed(asked.format)


def _emit(asked: _Asked) -> Iterator[str]:
    from .launch_args import TARGETS, emit

    _text_only(asked, "emit")
    if len(asked.words) > 1:
        raise CommandError("emit takes one framework, such as emit torchtitan")
    job, model = asked.wanted()
    _checked(job)
    likely = job.framework if job.framework in TARGETS else "megatron"
    yield emit(job, model, asked.words[0] if asked.words else likely).rstrip("\n") + "\n"


def _text_only(asked: _Asked, command: str) -> None:
    if asked.format != "text":
        raise CommandError(f"{command} prints text only")


def _check(asked: _Asked) -> Iterator[str]:
    if len(asked.words) != 1:
        raise CommandError("check takes one file, or - for standard input")
    _text_only(asked, "check")
    document = check_document(asked.text(asked.words[0]))
    what = f"{document['schema']} version {document['version']}"
    yield f"{what}: {document['world_size']} ranks\n"


def _presets(asked: _Asked) -> Iterator[str]:
    columns = ["nodes", "gpus_per_node", "tp", "cp", "dp", "pp", "ep", "etp", "framework", "name"]
    rows = [
        [key, *(getattr(preset, column) for column in columns)] for key, preset in PRESETS.items()
    ]
    return _found("presets", asked, ["id", *columns], rows)


def _frameworks(asked: _Asked) -> Iterator[str]:
    columns = ["id", "order", "axes", "expert_axes", "basis", "name"]
    rows = [
        [
            key,
            one.order,
            [axis.name for axis in one.axes],
            [axis.name for axis in one.expert_axes],
            one.basis,
            one.name,
        ]
        for key, one in CONVENTIONS.items()
    ]
    return _found("frameworks", asked, columns, rows)


def _found(
    title: str, asked: _Asked, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Iterator[str]:
    """The rows that have all the words, in any case."""
    words = [word.lower() for word in asked.words]
    found = [row for row in rows if all(w in " ".join(map(_cell, row)).lower() for w in words)]
    return _Table(title, columns, found).printed(asked.format)


def _refuse_words(asked: _Asked) -> None:
    if asked.words:
        raise CommandError(f"{quoted(asked.words[0])} says nothing to this command")


COMMANDS: dict[str, Callable[[_Asked], Iterator[str]]] = {
    "groups": _groups,
    "ranks": _ranks,
    "rank": _rank,
    "share": _share,
    "audit": _audit,
    "layout": _layout,
    "emit": _emit,
    "check": _check,
    "presets": _presets,
    "frameworks": _frameworks,
}
