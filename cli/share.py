"""The command share: the groups that ranks share, and the verdict of a hang's log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from formats.documents.exports import groups_by_name
from formats.documents.tables import Table
from formats.values import Facts
from groups.grouping import SharedGroups, parse_ranks, shared_groups
from groups.layout import Layout
from groups.placement import Placement, nodes_spanned

from .inputs import CommandLine
from .messages import fix_text

if TYPE_CHECKING:
    from diagnosis.hang.model import Log


def share(inputs: CommandLine) -> Table:
    from diagnosis.hang.case import case_of
    from formats.logs import log_in, ranks_of, read_log  # no other command reads any
    from formats.logs.bounds import COMMAND_LINE, PAGE
    from request.answers.hang.verdict import verdict_of

    layout = inputs.layout()
    placement = inputs.placement(layout)
    if (files := inputs.files()) is not None:
        text = ""
        log: Log | None = read_log(files, layout.every, COMMAND_LINE)
    else:
        text = inputs.text("-") if inputs.words == ["-"] else " ".join(inputs.words)
        log = log_in(text, layout.every, PAGE.bytes)
    if log is None:
        return _shared_by(inputs, layout, placement, parse_ranks(text, layout.world_size))
    case = case_of(log, layout, placement)
    ranks = ranks_of(log, case.world)
    return _shared_by(inputs, layout, placement, ranks, verdict_of(case))


def _shared_by(
    inputs: CommandLine,
    layout: Layout,
    placement: Placement | None,
    ranks: Sequence[int],
    verdict: Facts | None = None,
) -> Table:
    """The groups of some ranks, without ranks that the layout lacks; and the verdict of a log, with
    the next things to do."""
    account, steps = [], []
    if verdict:
        account += verdict["account"]
        fits = " or ".join(map(fix_text, verdict["fits"]))
        account += [
            f"{one}{f' Try {fits}.' if fits else ''}" for one in [verdict["contradicts"]] if one
        ]
        for step in verdict["next"]:
            steps += [step["what"], *(f"    {line}" for line in step["command"].split("\n"))]
    groups = [kind for kind in groups_by_name(layout).values() if kind.size > 1]
    is_inside = max(ranks, default=0) < layout.world_size
    together, apart = shared_groups(groups, ranks) if is_inside else ([], [])
    none = [] if together or not is_inside else ["no group has all of these ranks"]
    parted = ", ".join(f"{kind.name} ({kind.groups})" for kind in apart)
    left = [f"not together in (groups they are in): {parted}"] if apart else []
    return Table(
        "share",
        *shared_rows(inputs, layout, together, placement),
        layout=layout,
        fields={
            "ranks": list(ranks),
            "apart": [vars(kind) for kind in apart],
            **(verdict or {}),
        },
        before=[*account, *none],
        after=[*left, *steps],
    )


def shared_rows(
    inputs: CommandLine,
    layout: Layout,
    together: Iterable[SharedGroups],
    placement: Placement | None,
) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows; text prints an index once if all names of a group have it."""
    rows: list[list[Any]] = []
    for shared in together:
        indices = list(shared.indices)
        if inputs.format == "text":
            indices = list(dict.fromkeys(indices))
        members = list(shared.ranks)
        spanned = int(nodes_spanned([members], layout.gpus_per_node)[0])
        hosts = []
        if placement is not None:
            nodes = list(dict.fromkeys(placement.nodes[members].tolist()))
            spanned, hosts = len(nodes), [[placement.hosts[node] for node in nodes]]
        rows.append([list(shared.names), indices, len(members), spanned, *hosts, members])
    named = ["hosts"] if placement is not None else []
    return ["names", "indices", "size", "nodes_spanned", *named, "ranks"], rows
