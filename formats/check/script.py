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
from groups.layout import OWN_PREFIX, Layout, framework_name
from groups.mesh import whole_number
from groups.placement import Placement
from training.recipe import Training
from training.sharding.sent import SHARD, exchanges
from training.sharding.words import UNSAID
from training.split import Split

from ..documents.exports import groups_by_name, meshes

MAX_MEGABYTES = 65_536

ALSO = {"ep": "all-to-all", "hcp-l0": "all-to-all", "cp": "send/recv", "pp": "send/recv"}
"""Operations that some groups run in training besides all-reduce: these are measured too."""

ASKED = ("all-gather", "reduce-scatter")
"""Operations among ranks that cut a copy of the states which are measured too, where their program
runs them."""

BEGIN = "# -- what this script was written for --\n"
END = "# -- the same for every job from here on --\n"


def check_script(
    layout: Layout,
    names: str | Iterable[str] | None = None,
    *,
    megabytes: int = 64,
    job_text: str = "",
    placement: Placement | None = None,
    training: Training | None = None,
) -> str:
    """The text of a Python script that checks these groups under torchrun.

    names: of groups, one or several, as in a document of groups; if left out, all that the
    framework makes with more than one rank, by its own names. megabytes: the size of the buffer
    that is timed, of 10**6 bytes; 0 times nothing. placement: the machines by name, on which the
    ranks must then stand. job_text: what the layout was made from, such as a launch command; it is
    kept as a comment. training: whose data parallelism says what is sent; the framework's own, if
    left out.

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
        chosen = _made(layout)
    title = _title(layout)
    facts = [
        *(f"# {printable(line)}".rstrip() for line in job_text.splitlines()),
        f"TITLE = {json.dumps(title)}",
        f"WORLD_SIZE = {layout.world_size}",
        f"GPUS_PER_NODE = {layout.gpus_per_node}",
        f"MEGABYTES = {size}  # of 10**6 bytes; 0: no measurements",
        *_hosts(placement),
        "",
        *_requests(layout, chosen, training),
    ]
    template = Path(__file__).with_name("template.py").read_text(encoding="utf-8")
    example, after = template.partition(BEGIN)[0], template.partition(END)[2]
    shebang, _, head = example.split("\n", 2)
    launch = f"--nnodes {layout.nodes} --nproc-per-node {layout.gpus_per_node}"
    head = head.replace("--nnodes 2 --nproc-per-node 8", launch)
    lines = "\n".join(facts)
    return f"{shebang}\n# Written for {title}.\n{head}{BEGIN}{lines}\n{END}{after}"


def _made(layout: Layout) -> dict[str, Grouping]:
    """The groups of more than one rank that the framework makes: by its own names, where it has
    some, with those of Megatron's that tie layers; of several with the same ranks the last, which
    is what it derives for a purpose."""
    every = {name: grouping for name, grouping in layout.every.items() if grouping.size > 1}
    own = {name: grouping for name, grouping in layout.own.items() if grouping.size > 1}
    if not own:
        return every
    ties = {name: every[name] for name in layout.made_by.ties if name in every}
    by_ranks = {_axes_of(grouping): name for name, grouping in own.items()}
    return {name: own[name] for name in own if name in by_ranks.values()} | ties


def _axes_of(grouping: Grouping) -> tuple[object, ...]:
    """What decides about the ranks of groups: their mesh, and the axes that have several."""
    mesh = grouping.mesh
    return mesh, frozenset(axis for axis in grouping.axes if mesh.size(axis) > 1)


def _cut_by(layout: Layout, training: Training | None) -> dict[str, str]:
    """The operations beside all-reduce of the groups that cut one copy of the states, by name."""
    framework = layout.made_by
    if training is None and framework.engine == Training.engine:
        return {}  # whether it has a distributed optimizer is an option
    cuts_weights = framework.engine == "zero" and (framework.replicates or framework.of_node)
    zero = 3 if cuts_weights else UNSAID[framework.engine][0]  # MiCS and hpZ are of stage 3
    how = training or Training(engine=framework.engine, zero=zero)
    rows = exchanges(how, Split(), PARAMETERS)
    run = {row.operation.replace("_", "-") for row in rows if row.among == SHARD}
    also = " ".join(name for name in ASKED if name in run)
    if not also:
        return {}
    found = dict.fromkeys(_cutting(layout), also)
    return found | ({f"{OWN_PREFIX}{HPZ}": ASKED[0]} if ASKED[0] in run else {})


def _cutting(layout: Layout) -> list[str]:
    """The groups whose ranks cut one copy: over all axes of data and of context, but the one that
    holds copies; Megatron's by their names."""
    framework = layout.made_by
    named = ("dp-cp", "edp") if layout.job.instances == 1 else ("intra-dp-cp", "intra-edp")
    found = [name for name in named if name in layout.every]
    for axes in (framework.axes, framework.expert_axes):
        over = {own.name for own in axes if own.axis in ("cp", "dp")} - {framework.replicates}
        for key, grouping in layout.own.items():
            several = {name for name in grouping.axes if grouping.mesh.size(name) > 1}
            here = {name for name in over if name in grouping.mesh.names}
            if here and several == {name for name in here if grouping.mesh.size(name) > 1}:
                found.append(key)
    return found


PARAMETERS = 1e10
"""Of a rank: enough for ZeRO-3 to gather again in backward."""

HPZ = "zero_param_intra"
"""DeepSpeed's group of its secondary partition."""


def _hosts(placement: Placement | None) -> list[str]:
    """The machines in rank order, each with its number of consecutive ranks."""
    if placement is None:
        return ["HOSTS = []  # the machines are not named"]
    runs = [(node, len(list(ranks))) for node, ranks in groupby(placement.nodes.tolist())]
    lines = (f"    ({json.dumps(placement.hosts[node])}, {count})," for node, count in runs)
    return ["HOSTS = [", *lines, "]"]


def _requests(
    layout: Layout, chosen: Mapping[str, Grouping], training: Training | None
) -> Iterator[str]:
    """Lines of the script: the grids, and the requests to them."""
    grids: dict[str, str] = {}
    for mesh_name, mesh in meshes(layout).items():
        grids.setdefault(str(mesh), mesh_name.upper().replace("-", "_"))
    cut_by = _cut_by(layout, training)
    grids_used = {str(grouping.mesh) for grouping in chosen.values()}
    yield from (f'{grids[grid]} = "{grid}"' for grid in grids if grid in grids_used)
    yield "" if grids_used else "# no groups: the placement is checked alone"
    yield "KINDS = ["
    for name, grouping in chosen.items():
        values = {"length": grouping.length, "stride": grouping.stride, "joined": grouping.joined}
        plain = {"length": 0, "stride": 1, "joined": 1}
        options = [f"{key}={value}" for key, value in values.items() if value != plain[key]]
        options += [f"places={grouping.places}"] if grouping.places else []
        short = name.removeprefix(OWN_PREFIX)
        shown = name if short in chosen else short
        also = cut_by.get(name) or ALSO.get(short) or ALSO.get(_plays(layout, short))
        options += [f'also="{also}"'] if also else []
        request = [
            json.dumps(shown),
            grids[str(grouping.mesh)],
            json.dumps(grouping.kind),
            *options,
        ]
        yield f"    Kind({', '.join(request)}),"
    yield "]"


def _plays(layout: Layout, name: str) -> str:
    """The axis of Megatron's that an axis of the framework's plays."""
    framework = layout.made_by
    axes = (*framework.axes, *framework.expert_axes)
    return next((own.axis for own in axes if own.name == name), "")


def _title(layout: Layout) -> str:
    machines = f"{layout.nodes} node{'s' * (layout.nodes > 1)} of {layout.gpus_per_node}"
    experts = f", experts {layout.expert}" if layout.expert is not None else ""
    name = framework_name(layout.framework)
    gpus = f"{layout.world_size} GPU{'s' * (layout.world_size > 1)}"
    return f"{gpus}: {machines}, {name}, {layout.mesh}{experts}"


def printable(line: str) -> str:
    """A text without line breaks and control characters: a pasted command may contain any."""
    return "".join(c if c.isprintable() else " " for c in line)
