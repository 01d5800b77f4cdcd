"""Writes a script that checks a job's groups on its own nodes, with torch.distributed.

The script is template.py with the job written into it: not the ranks, but the grids and the
requests to them, from which a few lines of plain Python work out the groups again. It needs torch;
this module does not, and neither imports the template.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from groups.grouping import Grouping
from groups.layout import Layout, framework_name
from groups.mesh import whole_number
from groups.placement import Placement

from ..documents.exports import groups_by_name, meshes

MAX_MEGABYTES = 65_536

ALSO = {"ep": "all-to-all", "hcp-l0": "all-to-all", "cp": "send/recv", "pp": "send/recv"}
"""Operations that some groups run in training besides all-reduce: these are measured too."""

BEGIN = "# -- what this script was written for --\n"
END = "# -- the same for every job from here on --\n"


def check_script(
    layout: Layout,
    names: str | Iterable[str] | None = None,
    *,
    megabytes: int = 64,
    job_text: str = "",
    placement: Placement | None = None,
) -> str:
    """The text of a Python script that checks these groups under torchrun.

    names: of groups, one or several, as in a document of groups; if left out, all of Megatron's
    names that have more than one rank. megabytes: the size of the buffer that is timed, of 10**6
    bytes; 0 times nothing. placement: the machines by name, on which the ranks must then stand.
    job_text: what the layout was made from, such as a launch command; it is kept as a comment.

    >>> from groups.layout import Job
    >>> text = check_script(Job(nodes=2, tp=2, pp=2).layout(), ["pp"])
    >>> for line in text[text.index("DENSE = "):].splitlines()[:5]:
    ...     print(line)
    DENSE = "tp2-cp1-dp4-pp2"
    <BLANKLINE>
    KINDS = [
        Kind("pp", DENSE, "pp", also="send/recv"),
    ]

    Errors: LayoutError for a name that the job has no groups of, with the nearest ones, and for a
    size that is no whole number from 0 to MAX_MEGABYTES.
    """
    size = whole_number(megabytes, "megabytes", minimum=0, maximum=MAX_MEGABYTES)
    chosen = groups_by_name(layout, [names] if isinstance(names, str) else names)
    if names is None:
        chosen = {name: grouping for name, grouping in layout.every.items() if grouping.size > 1}
    title = _title(layout)
    facts = [
        *(f"# {printable(line)}".rstrip() for line in job_text.splitlines()),
        f"TITLE = {json.dumps(title)}",
        f"WORLD_SIZE = {layout.world_size}",
        f"GPUS_PER_NODE = {layout.gpus_per_node}",
        f"MEGABYTES = {size}  # of 10**6 bytes; 0: no measurements",
        *_hosts(placement),
        "",
        *_requests(layout, chosen),
    ]
    template = Path(__file__).with_name("template.py").read_text(encoding="utf-8")
    example, after = template.partition(BEGIN)[0], template.partition(END)[2]
    shebang, _, head = example.split("\n", 2)
    launch = f"--nnodes {layout.nodes} --nproc-per-node {layout.gpus_per_node}"
    head = head.replace("--nnodes 2 --nproc-per-node 8", launch)
    lines = "\n".join(facts)
    return f"{shebang}\n# Written for {title}.\n{head}{BEGIN}{lines}\n{END}{after}"


def _hosts(placement: Placement | None) -> list[str]:
    """The machines in rank order, each with its number of consecutive ranks."""
    if placement is None:
        return ["HOSTS = []  # the machines are not named"]
    runs = [(node, len(list(ranks))) for node, ranks in groupby(placement.nodes.tolist())]
    lines = (f"    ({json.dumps(placement.hosts[node])}, {count})," for node, count in runs)
    return ["HOSTS = [", *lines, "]"]


def _requests(layout: Layout, chosen: Mapping[str, Grouping]) -> Iterator[str]:
    """Lines of the script: the grids, and the requests to them."""
    grids: dict[str, str] = {}
    for mesh_name, mesh in meshes(layout).items():
        grids.setdefault(str(mesh), mesh_name.upper().replace("-", "_"))
    grids_used = {str(grouping.mesh) for grouping in chosen.values()}
    yield from (f'{grids[grid]} = "{grid}"' for grid in grids if grid in grids_used)
    yield "" if grids_used else "# no groups: the placement is checked alone"
    yield "KINDS = ["
    for name, grouping in chosen.items():
        values = {"length": grouping.length, "stride": grouping.stride, "joined": grouping.joined}
        plain = {"length": 0, "stride": 1, "joined": 1}
        options = [f"{key}={value}" for key, value in values.items() if value != plain[key]]
        options += [f"places={grouping.places}"] if grouping.places else []
        options += [f'also="{ALSO[name]}"'] if name in ALSO else []
        request = [json.dumps(name), grids[str(grouping.mesh)], json.dumps(grouping.kind), *options]
        yield f"    Kind({', '.join(request)}),"
    yield "]"


def _title(layout: Layout) -> str:
    machines = f"{layout.nodes} node{'s' * (layout.nodes > 1)} of {layout.gpus_per_node}"
    experts = f", experts {layout.expert}" if layout.expert is not None else ""
    name = framework_name(layout.framework)
    gpus = f"{layout.world_size} GPU{'s' * (layout.world_size > 1)}"
    return f"{gpus}: {machines}, {name}, {layout.mesh}{experts}"


def printable(line: str) -> str:
    """A text without line breaks and control characters: a pasted command may contain any."""
    return "".join(c if c.isprintable() else " " for c in line)
