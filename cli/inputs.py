"""What a command line asks for: the layout that its options, a preset or launch flags make."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from formats.logs.evidence import MOST_BYTES, MOST_FILES, too_much_evidence
from groups.conventions import CONVENTIONS, OWN
from groups.errors import LayoutError, not_a_choice, quoted
from groups.job import Job
from groups.layout import Layout
from groups.placement import Placement
from groups.presets import LAYOUT, PRESETS

from .options import FIELDS, OF_MATHS, PROGRAM, SIZES, CommandError


@dataclass
class CommandLine:
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
        """The job, not yet checked, and what launch flags say of its model.

        Options stand over a preset or launch flags.
        """
        given = {name: getattr(self.options, name) for name in FIELDS}
        given = {name: value for name, value in given.items() if value is not None}
        given |= {name: number_of(given[name]) for name in SIZES if name in given}
        if "levels" in given:
            given["levels"] = tuple(map(number_of, re.split("[x,]", given["levels"])))
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
            return values, {}
        if self.options.args is not None:
            from .launch import job_from_flags  # a large room that few commands enter

            path, run = self.options.args, self.options.run or ""
            file = "standard input" if path == "-" else path
            values, model, remarks = job_from_flags(self.text(path), file, given, run)
            self.remarks += remarks
            return values, model
        if self.options.run is not None:
            raise CommandError("--run is of --args: give the file that holds the runs")
        return {}, {}

    def layout(self) -> Layout:
        return checked(self.wanted()[0])

    def placement(self, layout: Layout) -> Placement | None:
        """Where the ranks stand by name, if --hosts says it.

        Errors: LayoutError for a text of no hosts, and for hosts too few or too many.
        """
        if self.options.hosts is None:
            return None
        from formats.hosts.placing import placement_of

        return placement_of(self.hosts(), layout.world_size, layout.gpus_per_node)

    def hosts(self) -> Any:
        """The machines of --hosts, standing where --racks says (`formats.hosts.values.Hosts`)."""
        from formats.hosts.reading import read_hosts  # its YAML is not numpy: few commands need it
        from texts.hosts import HOSTS_REMARKS

        if self.options.hosts is None:
            raise CommandError("say which machines there are: --hosts FILE")
        text = self.text(self.options.hosts)
        for name in ("include", "exclude", "num_nodes", "num_gpus"):
            if (value := getattr(self.options, name)) is not None:
                text += f"\n--{name} {value!r}"
        hosts = read_hosts(text)
        if self.options.racks is not None:
            hosts = hosts.with_places(read_hosts(self.text(self.options.racks)))
        self.remarks += [HOSTS_REMARKS[note.code].en.format(**note.facts) for note in hosts.remarks]
        return hosts

    def files(self) -> dict[str, bytes] | None:
        """The bytes of the files and folders that all words name; None where one names none.

        Errors: LayoutError for more than a log's reader takes.
        """
        named = [Path(word) for word in self.words]
        if not named or not all(path.exists() for path in named):
            return None
        inside = (sorted(path.iterdir()) if path.is_dir() else [path] for path in named)
        files = [file for listed in inside for file in listed if file.is_file()]
        if sum(file.stat().st_size for file in files) > MOST_BYTES or len(files) > MOST_FILES:
            raise too_much_evidence()
        try:
            return {str(file): file.read_bytes() for file in files}
        except OSError as error:
            raise CommandError(f"cannot read {error.filename}: {error.strerror}") from None

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


def checked(job: Job) -> Layout:
    """The layout of a job. Errors: LayoutError whose alternatives are changes of it that work."""
    try:
        return job.layout()
    except LayoutError as error:
        raise error.replace(alternatives=_working(job, error.alternatives)) from None


def _working(job: Job, alternatives: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The alternatives that a job can be changed by, and that work."""
    working = []
    for alternative in alternatives:
        changes = {OF_MATHS.get(name, name): value for name, value in alternative.items()}
        framework = {"framework": OWN} if "order" in changes else {}
        try:
            replace(job, **changes, **framework).layout()
        except (LayoutError, TypeError):
            continue
        working.append(changes)
    return working


def number_of(text: Any) -> Any:
    """A whole number; anything else as it is, to be refused in words."""
    is_number = isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII)
    return int(text) if is_number else text


def _choice(control: str, value: str, choices: Collection[str]) -> str:
    if value in choices:
        return value
    near = [choice for choice in choices if value and value.lower() in choice]
    near = near or difflib.get_close_matches(value.lower(), choices)
    fixes = [{control: choice} for choice in near[:3]]
    said = f"{quoted(value)} is no {control}; `{PROGRAM} {control}s` lists them"
    raise not_a_choice(control, value, choices, fixes).replace(what=said)
