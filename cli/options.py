"""The words of a command line: its options, its help, and the sentences that refuse it.

Options are the fields of a `Job` with dashes, so that what a refusal offers can be given back.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn

from groups.errors import LayoutError, alternative_text
from groups.job import Job

PROGRAM = "python -m groups"

GUIDE = """\
commands:
  groups [NAME ...]     the ranks of every group, or of the groups named (needs no word)
  ranks [NAME ...]      node, GPU and coordinates of every rank, and the index of its groups
  rank N                one rank: its place, its groups and peers, its pipeline neighbours
  share RANKS           the groups that all of these ranks are in, smallest first: 3,11 or 16-23;
                        - reads a log or a list from standard input; files and folders of
                        logs and Flight Recorder dumps say who is missing
  audit [NAME ...]      how many groups leave a node or an NVLink domain (--domains)
  order [LAUNCHER]      a better order of the machines of --hosts, for slurm, openmpi, rankfile or
                        torchrun; without a word what it changes, and why
  slow FILE             the ranks, groups and stages whose measured numbers stand out (--worse); CSV
                        or JSON of one number a rank, or by host; - is standard input
  serve FILE            the groups of the server that a vLLM or SGLang command starts
  layout                sizes, what remains of them, and the meshes
  emit [FRAMEWORK]      the launch flags that ask for the layout: megatron, nemo, deepspeed,
                        megatron-deepspeed, torchtitan, torchtitan-toml, vllm, sglang
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


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(message)


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:  # else it is as wide as the environment says
        super().__init__(prog, max_help_position=26, width=100)


def options_parser() -> argparse.ArgumentParser:
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
    for name in SIZES:
        layout.add_argument(option(name), metavar="N", dest=name, help=SIZES[name])
    _add(layout, "levels")
    layout.add_argument(
        "--hybrid", action=argparse.BooleanOptionalAction, help="hybrid context parallel groups"
    )
    _add(layout.add_mutually_exclusive_group(), "framework", "order")
    _add(layout.add_mutually_exclusive_group(), "preset", "args")
    _add(layout, "run")
    machines = parser.add_argument_group("machines (rank, ranks, audit, share, order, slow)")
    _add(
        machines,
        "hosts",
        "include",
        "exclude",
        "num_nodes",
        "num_gpus",
        "racks",
        "objective",
        "model",
        "cluster",
        "global_batch",
    )
    machines.add_argument(
        "--worse", choices=("high", "low"), default="high", help="which numbers are slow (high)"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=("text", "json", "csv"), default="text")
    _add(output, "domains")
    output.add_argument("-h", "--help", action="store_true", help="this text")
    return parser


def _add(group: argparse._ActionsContainer, *names: str) -> None:
    for name in names:
        metavar, text = TEXTS[name]
        group.add_argument(option(name), metavar=metavar, help=text)


TEXTS = {
    "levels": ("NxN", "hierarchical context parallel sizes"),
    "framework": ("ID", "whose order of ranks (megatron; see frameworks)"),
    "order": (None, "an order of your own, fastest axis first, such as tp-cp-ep-dp-pp"),
    "preset": ("ID", "begin with a published layout (see presets)"),
    "args": ("FILE", "begin with the launch flags in a file; - is standard input"),
    "run": ("NAME", "the run or role of --args, where it holds several"),
    "hosts": ("FILE", "host file, Slurm list or topology, cloud or fabric report"),
    "include": ("HOSTS", "of a DeepSpeed host file, as its launcher takes it (a@b:0,2)"),
    "exclude": ("HOSTS", "the same, left out"),
    "num_nodes": ("N", "its first hosts"),
    "num_gpus": ("N", "the first GPUs of each"),
    "racks": ("FILE", "where they stand, if another file says it (topology.conf)"),
    "objective": ("KINDS", "what counts first (time; ep,tp+cp,dp,pp)"),
    "model": ("ID", "for order: whose waited time counts (llama3-70b ...)"),
    "cluster": ("ID", "and on whose links (dgx-h100)"),
    "global_batch": ("N", "and samples of a step"),
    "domains": ("N,N", "GPUs in a domain, for audit (a node, 4, 8, 16, 32, 72)"),
}
"""Options of one text: what it is called, and what it says."""

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


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# -- messages ------------------------------------------------------------------------------------


def sentence(error: Exception) -> str:
    """What is wrong, the options that would work, and what Megatron says."""
    if not isinstance(error, LayoutError):
        return str(error)
    what = error.what
    for name, own in OF_MATHS.items():
        what = what.replace(name, own)
    fixes = [_fix(alternative) for alternative in error.alternatives]
    if fixes:
        what += f"; try {' or '.join(fixes)}"
    elif error.why:
        what += f": {error.why}"
    return what + (f" (Megatron: {error.quote})" if error.quote else "")


def _fix(alternative: Mapping[str, Any]) -> str:
    """An alternative as the options to give: ``--tp 2 --pp 4``."""
    if "group" in alternative:
        return str(alternative["group"])
    if not set(alternative) <= {*FIELDS, "preset", "domains"}:
        return alternative_text(alternative)
    return " ".join(_asoption(name, value) for name, value in alternative.items())


def _asoption(name: str, value: Any) -> str:
    if value is None:
        return f"without {option(name)}"
    if isinstance(value, bool):
        return option(name) if value else option(f"no_{name}")
    text = "x".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return f"{option(name)} {text}"


def one_line(text: str) -> str:
    """On one line, and nothing that a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
