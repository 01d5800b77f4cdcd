"""Reads any text about machines: its form is recognised by its content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import yaml

from diagnosis.machines.hosts import Hosts, no_hosts
from groups.budget import spend
from groups.errors import LayoutError, quoted, require_length

from ..errors import refusal
from .clouds import has_paths, read_document, read_paths
from .files import is_rankfile, is_table, read_lines, read_rankfile, read_table
from .filters import bad_filter, chosen_hosts, launch_options, written
from .listings import read_listing
from .nvidia import is_fabric, is_matrix, read_fabric, read_matrix, read_nccl
from .slurm import is_environment, is_topology, read_environment, read_topology
from .values import LONGEST_TEXT, bad_document

LONGEST_YAML = 300_000
MOST_BRACKETS = 5_000
"""Limits of a YAML, whose reader is slow."""

LONGEST_LINE = 4_000
"""The longest line in characters, except in lists, JSON and Slurm topologies."""

WORK_OF_A_WORD = 10
"""Units of a request's budget for reading one word."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LONG_SPACE = re.compile(r"(\s{100})\s+")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_YAML = re.compile(r"^[ \t]*(?:- +)?[\w./-]+:(?:\s|$)|^[ \t]*- \S", re.MULTILINE)
_OPTION = re.compile(r"(?:^|\s)(?:--?host|-H|--?hosts|-w|--nodelist)(?:\s+|=)([^\s-]\S*)", re.ASCII)


def read_hosts(text: str, racks: str | None = None) -> Hosts:
    """The machines of a text in rank order, with slots and racks if it has them.

    racks: another text that says where they stand, such as a topology.conf; None: the first alone.

    Host files (Open MPI, DeepSpeed, MPICH), rank files, Slurm host lists, a job's SLURM_*
    environment, topology.conf, topology.yaml, `scontrol show topology`, AWS, GCP and Kubernetes
    JSON or YAML, `nvidia-smi` fabric, `nvidia-smi topo -m` (`hosts.node`), lists and tables.

    A line of DeepSpeed's launcher among them chooses from a host file (`filters`).

    >>> hosts = read_hosts("node0 slots=8\\nnode1 slots=8")
    >>> hosts.names, hosts.racks, hosts.slots
    (('node0', 'node1'), {}, {'node0': 8, 'node1': 8})

    Errors: LayoutError for any other text, for a host named twice, for ranges that name more
    than MAX_HOSTS, for a text longer than LONGEST_TEXT; about ``racks`` where that is at fault.
    """
    if racks is not None and text == "":
        raise refusal("racks-without-hosts", "hosts")
    hosts = _read(text)
    if racks is None:
        return hosts
    try:
        places = _read(racks)
    except LayoutError as error:
        raise error.renamed({"hosts": "racks"}) from None
    return hosts.with_places(places)


def _read(text: str) -> Hosts:
    text, options = launch_options(_clean(text))
    if options:
        if not text.strip():
            why = "DeepSpeed's filters choose from a host file: give that as well"
            raise bad_filter(written(options), why)
        return chosen_hosts(_read(text), options)
    if (listing := read_listing(text)) is not None:
        return listing
    if text.startswith(("{", "[")):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise bad_document(refusal("document-json", "hosts", detail=str(error)[:80])) from None
        return read_document(document)
    is_long = max(map(len, text.splitlines()), default=0) > LONGEST_LINE
    for fits, read, takes_long_lines in READERS:
        if (takes_long_lines or not is_long) and fits(text):
            return read(text)
    option = _OPTION.search(text)
    return read_lines(option[1] if option else text)


def _clean(text: object) -> str:
    """The text without terminal colours and byte order marks. Errors: LayoutError if it is no text
    or too long."""
    if not isinstance(text, str):
        sentence = f"hosts must be a text: {quoted(text)} is not a text"
        raise refusal("not-a-text", "hosts", sentence=sentence, value=quoted(text))
    require_length(text, LONGEST_TEXT, "hosts")
    words = len(text.replace(",", " ").split())
    spend(WORK_OF_A_WORD * words + len(text) // 20, "words", control="hosts")
    text = _ESCAPE.sub("", text.replace("\ufeff", "").replace("\0", "")).strip("\r\n")
    if not text.strip():
        raise no_hosts()
    # Nobody writes more, and an expression that begins with spaces would try from each of them.
    text = _LONG_SPACE.sub(r"\1", text)
    return text if text[0] in "\t " and is_matrix(text) else text.strip()


def _read_yaml(text: str) -> Hosts:
    """YAML as plain values; aliases, which can expand without limit, are refused first."""
    spend(4 * len(text), "characters", control="hosts")
    if len(text) > LONGEST_YAML:
        raise bad_document(refusal("document-yaml-long", "hosts", limit=LONGEST_YAML))
    if max(text.count("["), text.count("{")) > MOST_BRACKETS:
        raise bad_document(refusal("document-yaml-brackets", "hosts"))
    try:
        if "*" in text and any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text, _LOADER)):
            raise bad_document(refusal("document-yaml-aliases", "hosts"))
        documents = [document for document in yaml.load_all(text, _LOADER) if document is not None]
    except LayoutError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        detail = " ".join(str(error).split())[:80]
        raise bad_document(refusal("document-yaml", "hosts", detail=detail)) from None
    return read_document(documents[0] if len(documents) == 1 else documents)


READERS: tuple[tuple[Callable[[str], object], Callable[[str], Hosts], bool], ...] = (
    (is_rankfile, read_rankfile, True),
    (lambda text: text.startswith("<"), read_nccl, True),
    (is_topology, read_topology, True),
    (is_environment, read_environment, True),
    (is_matrix, read_matrix, False),
    (is_fabric, read_fabric, False),
    (has_paths, read_paths, False),
    (_YAML.search, _read_yaml, False),
    (is_table, read_table, False),
)
"""A test of a text's form, its reader, and whether its lines may have any length."""
