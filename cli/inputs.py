"""The inputs of a command line: its options, and the layout of these, a preset or a file.

Options are the fields of a `Job` with dashes, so that what a refusal offers can be given back;
guide.toml says what they mean.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

from formats.values import Document, Facts
from groups import __version__
from groups.alternatives import with_working
from groups.errors import LayoutError, in_any_case, not_a_choice, quoted
from groups.frameworks import FRAMEWORKS, OWN, framework_of
from groups.inputs import inputs_of
from groups.layout import Job, Layout
from groups.placement import Placement
from groups.presets import LAYOUT, PUBLISHED, SERVED
from groups.program import PROGRAM

from .counts import COUNTS, with_counts
from .guide import ON_OFF, asks_for_more, guide, ways_to_train
from .messages import FIELDS, CommandError, option
from .spelling import known_options, nearest

if TYPE_CHECKING:
    from diagnosis.machines.hosts import Hosts
    from formats.launch.items import Parsed
    from request.state import State

SIZES = (
    *("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp", "instances", "hpz", "gtp", "egtp"),
    *("dp", "dcp", "moe_dp"),
)

_EITHER = ("preset", "args")
"""Options that exclude each other."""

_OTHERWISE: dict[str, Document] = {
    "hybrid": {"action": argparse.BooleanOptionalAction},
    "gathers": {"action": argparse.BooleanOptionalAction},
    "expert_parallel": {"action": "store_const", "const": True},
    "account": {"action": "store_const", "const": "1"},
    "script": {"action": "store_const", "const": "1"},
    "speed": {"action": "store_const", "const": "1"},
    "served_guesses": {"action": "store_const", "const": "on"},
    "kv": {"action": "store_const", "const": "1"},
    "worse": {"choices": ("high", "low")},
    "format": {"choices": ("text", "json", "csv")},
}
"""Arguments of argparse for options that do not take any text."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(message)


_LAID_OUT = partial(argparse.RawDescriptionHelpFormatter, max_help_position=26, width=100)
"""The layout of help; by default its width would depend on the environment."""


def options_parser(argv: Sequence[str], command: str = "") -> argparse.ArgumentParser:
    """The parser of guide.toml, with the training options if the command line may use one; of a
    command alone with the options that it reads, whose help it writes."""
    parser = _Parser(prog=PROGRAM, formatter_class=_LAID_OUT, add_help=False, allow_abbrev=False)
    parser.color = False  # type: ignore[attr-defined]  # Pythons from 3.14 on colour their help
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    more = [*ways_to_train()] if asks_for_more(argv) else []
    either: argparse._MutuallyExclusiveGroup | None = None
    for section in guide().sections:
        group = parser.add_argument_group(section.title)
        every = (*section.options, *(more if section.trains else ()))
        for one in section.of(command, more) if command else every:
            rules = _OTHERWISE.get(one.name) or {"metavar": one.value}
            place: argparse._ActionsContainer = group
            if one.name in _EITHER:
                place = either = either or group.add_mutually_exclusive_group()
            place.add_argument(option(one.name), help=one.help, **rules)
    group.add_argument("-h", "--help", action="help", help="this text")
    if not command:
        group.add_argument("--version", action="version", version=__version__)
    return parser


def help_text(command: str = "") -> str:
    """The help of a command: what it answers, its options and its examples; without one all
    commands.

    >>> print(help_text("check").split("\\n\\n")[1])
    read a JSON document back and check it; - is standard input
    """
    examples = [one.format(program=PROGRAM) for one in guide().examples]
    if command:
        about = guide().command(command)
        parser = options_parser(["--help"], command)
        parser.usage = f"{PROGRAM} {command} {about.words} [OPTION ...]".replace("  ", " ")
        parser.description = textwrap.fill(about.help, 98)
        own = [one for one in examples if one.startswith(f"{PROGRAM} {command} ")]
        parser.epilog = _listed("example:", own) if own else None
        return parser.format_help()
    rows = [(f"{one.name} {one.words}".strip(), one.help) for one in guide().commands]
    listed = [line for words, text in rows for line in _beside(words, text)]
    return "\n".join(
        (
            f"usage: {PROGRAM} [COMMAND] [OPTION ...] [NAME ...]\n",
            "Which GPUs of a training job are in which process groups.\n",
            _listed("commands:", listed) + "\n",
            f"`{PROGRAM} COMMAND --help` tells the options that a command reads.\n",
            _listed("examples:", examples) + "\n",
            guide().notes,
        )
    )


def _beside(words: str, text: str) -> Iterator[str]:
    """A command and its words, with what it answers beside them."""
    indent = 22
    lines = textwrap.wrap(text, 96 - indent)
    if len(words) >= indent:
        yield words
        words = ""
    for line in lines:
        yield f"{words:<{indent}}{line}"
        words = ""


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join((title, *(f"  {line}" for line in lines)))


def read_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Parses the words of a command line. Errors: CommandError, with the nearest option."""
    known = [name for action in parser._actions for name in action.option_strings]
    switches = [
        name for one in parser._actions if one.metavar == ON_OFF for name in one.option_strings
    ]
    words = known_options(argv, known, switches)
    try:
        return parser.parse_intermixed_args(words)
    except CommandError as error:
        names = [word.partition("=")[0] for word in words if word.startswith("--")]
        near = [one for name in names if name not in known for one in nearest(name, known)]
        if not near:
            raise
        raise CommandError(f"{error}; did you mean {' or '.join(near)}?") from None


class Options:
    """The options of a command line, and which of those set no command has read yet."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._values = vars(options)
        self.unread = [name for name, value in self._values.items() if value is not None]

    def __getattr__(self, name: str) -> Any:
        if name in self.unread:
            self.unread.remove(name)
        return self._values.get(name)


@dataclass
class CommandLine:
    """A parsed command line, and its layout."""

    options: Options
    words: list[str]
    stdin: TextIO
    remarks: list[str] = field(default_factory=list)  # to be said beside the answer
    launch: Parsed | None = None  # what the launch file of --args says, once it is read
    config: str = ""  # the text of --args where that is the config.json of a model
    base: State | None = None  # what a word of the command says, under the options
    base_job: Job | None = None  # the job of that
    standard: str | None = None  # standard input, once it is read
    usual_format: str = "text"  # without --format

    @property
    def format(self) -> str:
        return str(self.options.format or self.usual_format)

    @property
    def names(self) -> list[str] | None:
        """The names of groups among the words, or None for all."""
        return [name for word in self.words for name in word.split(",") if name] or None

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one machine, for commands that take no other size of the job.

        Errors: LayoutError for no such number.
        """
        one = inputs_of(Job)["gpus_per_node"]
        return cast("int", one.or_default(one.entered(self.options.gpus_per_node or "")[1]))

    def wanted(self) -> tuple[Job, Document]:
        """The unchecked job, and the model of launch flags; options override both."""
        fields = {name: getattr(self.options, name) for name in (*FIELDS, *COUNTS)}
        fields = {name: value for name, value in fields.items() if value is not None}
        fields |= {name: number_of(fields[name]) for name in (*SIZES, *COUNTS) if name in fields}
        if "levels" in fields:
            fields["levels"] = tuple(map(number_of, re.split("[x,]", fields["levels"])))
        if "order" in fields:
            fields["framework"] = self._orders(fields["order"], fields.get("framework", OWN))
        has_count = any(name in fields for name in COUNTS)
        values, model = self._start([*fields, *(("nodes",) if has_count else ())])
        named = {**values, **fields}.get("framework", Job.framework)
        framework = framework_of(named if named == OWN else _choice("framework", named, FRAMEWORKS))
        # Of a server dp is a size of its attention.
        counted = COUNTS if framework.has_grids else ("gpus",)
        counts = {name: fields.pop(name) for name in counted if name in fields}
        values |= {**fields, "framework": framework.id}
        job = Job(**values)
        job = with_counts(job, counts, fields) if counts else job
        return (job if "instances" in fields else self._with_copies(job)), model

    def _with_copies(self, job: Job) -> Job:
        """A job of as many copies as its GPUs make, where a launch file says of how many ranks."""
        ranks = self.launch.ranks_of_copy if self.launch else 0
        if not ranks or not framework_of(job.framework).has("instances"):
            return job
        from formats.launch.meaning.sizes import copies_of

        sizes = {name: getattr(job, name) for name in ("nodes", "gpus_per_node", "tp", "pp")}
        return replace(job, instances=copies_of(job.framework, sizes, ranks) or job.instances)

    def _orders(self, order: str, name: str) -> str:
        """The framework of an order, which may be the one that is named beside it: where that has
        this order itself. Else Megatron's groups are those of the order, and a remark says so.

        Errors: LayoutError for an unknown framework.
        """
        if name == OWN:
            return OWN
        framework = FRAMEWORKS[_choice("framework", name, FRAMEWORKS)]
        axes = [axis for axis in order.lower().split("-") if axis != "ep"]
        if axes == [axis for axis in framework.order.split("-") if axis != "ep"]:
            return framework.id
        said = f"{framework.name} numbers its ranks {framework.order}"
        self.remarks.append(f"{said}: in the order {order} the groups are Megatron's")
        return OWN

    def _start(self, settled: Collection[str]) -> tuple[Document, Document]:
        """Values of a job and of its model; sizes that are ``settled`` already may be missing."""
        if self.base_job is not None:
            return {name: getattr(self.base_job, name) for name in FIELDS}, {}
        if self.options.preset is not None:
            preset = PUBLISHED[self.preset()]
            own = [name for name in LAYOUT if name in FIELDS and name not in SERVED]
            return {**{name: getattr(preset, name) for name in own}, **preset.served}, {}
        if self.options.args is not None:
            from formats.launch import parse  # a large room that few commands enter
            from training.configs.compact import is_config

            from .launch import job_from_flags

            path, run = self.options.args, self.options.run or ""
            file = "standard input" if path == "-" else path
            text = self.text(path)
            if is_config(text):  # which says the model, and nothing of how it is laid out
                self.config = text
                return {}, {}
            self.launch = parse(text, run)
            values, model, remarks = job_from_flags(self.launch, file, settled)
            self.remarks += remarks
            return values, model
        if self.options.run is not None:
            raise CommandError("--run is of --args: give the file that holds the runs")
        return {}, {}

    def preset(self) -> str:
        """The published layout of --preset. Errors: LayoutError for an unknown one."""
        return _choice("preset", self.options.preset, PUBLISHED)

    def layout(self) -> Layout:
        return checked(self.wanted()[0])

    def placement(self, layout: Layout) -> Placement | None:
        """The machine of every rank, with --hosts; else None. Errors: LayoutError."""
        if self.options.hosts is None:
            return None
        from diagnosis.machines.placing import placement_of

        return placement_of(self.hosts(), layout.world_size, layout.gpus_per_node)

    def hosts(self) -> Hosts:
        """The machines of --hosts, with the places of --racks."""
        from formats.hosts.reading import read_hosts  # its YAML is not numpy: few commands need it
        from texts.shapes import words

        if self.options.hosts is None:
            raise CommandError("say which machines there are: --hosts FILE")
        text, racks = self.text(self.options.hosts), self.options.racks
        for name in ("include", "exclude", "num_nodes", "num_gpus"):
            if (value := getattr(self.options, name)) is not None:
                text += f"\n--{name} {value!r}"
        hosts = read_hosts(text, None if racks is None else self.text(racks))
        texts = words("nodes", "HOSTS_REMARKS")
        self.remarks += [texts[note.code].en.format(**note.facts) for note in hosts.remarks]
        return hosts

    def files(self) -> dict[str, bytes] | None:
        """The contents of all named files, and of the files in named folders; None if a word is
        neither.

        Errors: LayoutError for more than a log's reader takes.
        """
        from formats.logs.bounds import COMMAND_LINE

        if not self.words or not all(map(os.path.exists, self.words)):
            return None
        named = map(Path, self.words)
        try:
            found = (file for path in named for file in _inside(path) if file.is_file())
            files = [*islice(found, COMMAND_LINE.files + 1)]
            COMMAND_LINE.require(len(files), sum(file.stat().st_size for file in files))
            return {str(file): file.read_bytes() for file in files}
        except OSError as error:
            name = error.filename or " ".join(self.words)
            raise CommandError(f"cannot read {quoted(name)}: {error.strerror}") from None

    def text(self, path: str) -> str:
        """The content of a file, or of standard input for a dash."""
        try:
            if path == "-":
                if self.standard is None:
                    self.standard = self.stdin.read()
                return self.standard
            with open(path, encoding="utf-8-sig") as file:
                return file.read()
        except OSError as error:
            raise CommandError(f"cannot read {quoted(path)}: {error.strerror}") from None
        except ValueError:
            raise CommandError(f"cannot read {quoted(path)}: it is not UTF-8 text") from None


def _inside(path: Path) -> Iterator[Path]:
    """A file, or all files in a folder and its subfolders, such as one per node."""

    def refuse(error: OSError) -> NoReturn:
        raise error

    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path, onerror=refuse):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names))


def checked(job: Job) -> Layout:
    """The layout of a job. Errors: LayoutError whose alternatives are changes of the job that
    work."""

    def attempt(changes: Facts) -> Layout:
        framework: Facts = {"framework": OWN} if "order" in changes else {}
        return replace(job, **changes, **framework).layout()

    try:
        return attempt({})
    except LayoutError as error:
        raise with_working(error, attempt) from None


def number_of(text: Any) -> Any:
    """A whole number; other texts unchanged, to be refused with a sentence."""
    is_number = isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII)
    return int(text) if is_number else text


def _choice(control: str, value: str, choices: Collection[str]) -> str:
    if (named := in_any_case(value, choices)) in choices:
        return str(named)
    near = [choice for choice in choices if value and value.lower() in choice]
    near = near or difflib.get_close_matches(value.lower(), choices)
    fixes = [{control: choice} for choice in near[:3]]
    message = f"{quoted(value)} is no {control}; `{PROGRAM} {control}s` lists them"
    raise not_a_choice(control, value, choices, fixes).replace(what=message)
