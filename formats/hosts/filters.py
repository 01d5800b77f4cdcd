"""DeepSpeed's filters of a host file: --include, --exclude, --num_nodes, --num_gpus.

    worker-0 slots=4
    worker-1 slots=4
    deepspeed --include worker-1:0,2 train.py       GPUs 0 and 2 of worker-1

Hosts keep the order of the host file; a filter's GPUs are sorted. --num_nodes N takes the first N
hosts, --num_gpus N the GPUs 0 to N-1 of each, whatever slots it has; neither goes with a filter.
Source: deepspeedai/DeepSpeed, launcher/runner.py (parse_resource_filter, main).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from diagnosis.machines.hosts import Hosts
from groups.errors import LayoutError, quoted, require_length
from groups.mesh import MAX_RANKS

from ..errors import refusal

OPTIONS = {"-i": "include", "--include": "include", "-e": "exclude", "--exclude": "exclude"}
OPTIONS |= {"--num_nodes": "num_nodes", "--num_gpus": "num_gpus", "--num_accelerators": "num_gpus"}
"""The launcher's options about its host file."""

LONGEST_LAUNCH = 100_000
"""The longest launcher lines, in characters: shlex takes quadratic time in a word's length."""

_LAUNCH = re.compile(
    r"^[ \t]*(?:(?:[A-Z_]{1,80}=\S{0,255}[ \t]{1,8}){0,16}(?:\S{0,255}/)?deepspeed"
    r"(?=[ \t])(?=[^\n]*(?:[ \t]-|\.py))"
    r"|(?:-i|-e|--include|--exclude|--num_nodes|--num_gpus|--num_accelerators)[ \t=])[^\n]*$",
    re.MULTILINE,
)
_PART = r"[\w.-]+(?::[0-9]+(?:,[0-9]+)*)?"
_FILTER = re.compile(f"{_PART}(?:@{_PART})*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,7}", re.ASCII)


def is_filter(text: str) -> bool:
    """Whether a text is a filter and nothing else."""
    return bool(_FILTER.fullmatch(text) and re.search(r"@.*:|:.*[@,]", text))


def launch_options(text: str) -> tuple[str, dict[str, str]]:
    """The text without the lines of DeepSpeed's launcher, and the options in them about the host
    file.

    >>> launch_options("a slots=2\\ndeepspeed -e a:1 --master_port 29500 train.py --include x")
    ('a slots=2\\n', {'exclude': 'a:1'})
    """
    if "deepspeed" not in text and not re.search(r"^[ \t]*-", text, re.MULTILINE):
        return text, {}
    text = re.sub(r"\\[ \t]*\n", " ", text)
    options: dict[str, str] = {}
    lines = _LAUNCH.findall(text)
    require_length("".join(lines), LONGEST_LAUNCH, "hosts")
    for line in lines:
        try:
            words = shlex.split(line)
        except ValueError:
            raise bad_filter(line, "a quote is open") from None
        for at, word in enumerate(words):
            name, sign, value = word.partition("=")
            if name.endswith(".py"):
                break  # what follows is the script's
            if name in OPTIONS:
                options[OPTIONS[name]] = value if sign else "".join(words[at + 1 : at + 2])
    return _LAUNCH.sub("", text), options


def chosen_hosts(hosts: Hosts, options: Mapping[str, str]) -> Hosts:
    """The machines that the launcher uses of its host file; `devices` are the remaining GPUs of
    each.

    >>> four = Hosts("hostfile", ("a", "b"), {"a": 4, "b": 4})
    >>> chosen_hosts(four, {"num_nodes": "1", "num_gpus": "2"}).devices
    {'a': (0, 1)}
    >>> dict(chosen_hosts(four, {"include": "b:2,0@a:1"}).devices)
    {'a': (1,), 'b': (0, 2)}

    Errors: LayoutError for filters beside one another or beside numbers, and for a host or GPU that
    is not there.
    """
    empty = next((name for name, value in options.items() if not value), "")
    if empty:
        raise bad_filter(f"--{empty}", "it needs a value")
    filters = {name: options[name] for name in ("exclude", "include") if name in options}
    fixes = [{name: value} for name, value in filters.items()]
    if filters and len(filters) < len(options):
        why = "DeepSpeed takes filters or numbers: leave --num_nodes and --num_gpus out"
        raise bad_filter(written(options), why, *fixes, code="host-filter-and-number")
    if len(filters) == 2:
        why = "it does not go with --include: give one of them"
        raise bad_filter(filters["exclude"], why, *fixes[::-1], code="host-filters-both")
    for how, text in filters.items():
        return _filtered(hosts, text, includes=how == "include")
    nodes = _count(options, "num_nodes", len(hosts.names))
    gpus = _count(options, "num_gpus", MAX_RANKS)
    names = hosts.names[:nodes] if nodes else hosts.names
    if gpus:
        return _left(hosts, dict.fromkeys(names, tuple(range(gpus))))
    return _left(hosts, {name: tuple(range(hosts.slots[name] or 0)) for name in names})


def written(options: Mapping[str, str]) -> str:
    return " ".join(f"--{name} {value}" for name, value in options.items())


def _count(options: Mapping[str, str], name: str, most: int) -> int:
    """A number of the launcher's options; 0 if it is not set."""
    text = options.get(name, "0")
    if name in options and not (_NUMBER.fullmatch(text) and 1 <= int(text) <= most):
        limit = f"there are {most} hosts" if name == "num_nodes" else "a whole number, 1 or more"
        raise bad_filter(f"--{name} {text}", limit, {name: most} if name == "num_nodes" else {})
    return int(text)


def _filtered(hosts: Hosts, text: str, *, includes: bool) -> Hosts:
    """The machines that a filter such as ``worker-0@worker-1:0,2`` leaves."""
    gpus_of = _filter_parts(text, hosts)
    left: dict[str, tuple[int, ...]] = {}
    for name in hosts.names:
        every = range(hosts.slots[name] or 0)
        chosen = (gpus_of[name] or {*every}) if name in gpus_of else set()
        if gpus := tuple(gpu for gpu in every if (gpu in chosen) == includes):
            left[name] = gpus
    if not left:
        raise bad_filter(text, "it leaves no GPU", code="host-filter-empty")
    return _left(hosts, left)


def _filter_parts(text: str, hosts: Hosts) -> dict[str, set[int]]:
    """Host -> named GPUs; empty: all of them."""
    gpus_of: dict[str, set[int]] = {}
    for part in text.strip().split("@"):
        name, colon, listed = part.strip().partition(":")
        if name not in hosts.slots:
            fixes = ({"host": near} for near in get_close_matches(name, hosts.names[:10_000], 2))
            why = f"there is no host {quoted(name)}"
            raise bad_filter(part, why, *fixes, code="host-filter-unknown")
        gpus = [gpu.strip() for gpu in listed.split(",")] if colon else []
        slots = hosts.slots[name]
        if slots is None:
            raise bad_filter(part, f"nothing says how many GPUs {name} has: write {name} slots=N")
        if not all(_NUMBER.fullmatch(gpu) and int(gpu) < slots for gpu in gpus):
            why = f"{name} has the GPUs 0 to {slots - 1}"
            raise bad_filter(part, why, code="host-filter-gpus", host=name, last=slots - 1)
        gpus_of.setdefault(name, set()).update(map(int, gpus))
    return gpus_of


def _left(hosts: Hosts, devices: Mapping[str, tuple[int, ...]]) -> Hosts:
    """The machines with the remaining GPUs of each, in the same places."""
    counts = {name: len(gpus) or hosts.slots[name] for name, gpus in devices.items()}
    known = {name: gpus for name, gpus in devices.items() if gpus}
    bare = Hosts(hosts.form, tuple(devices), counts, devices=known, remarks=hosts.remarks)
    return bare.with_places(replace(hosts, remarks=()))


def bad_filter(
    part: str,
    why: str,
    *fixes: Mapping[str, object],
    code: str = "bad-host-filter",
    **facts: object,
) -> LayoutError:
    sentence = f"{quoted(part)} is no filter of these hosts: {why}"
    return refusal(
        code, "hosts", *filter(None, fixes), sentence=sentence, value=quoted(part), **facts
    )
