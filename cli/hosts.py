"""The commands about machines: a better order for launchers, and slow ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from formats.documents.tables import Table
from groups.errors import in_any_case, not_a_choice
from groups.mesh import whole_number

from .inputs import CommandLine, number_of
from .messages import CommandError


def order(inputs: CommandLine) -> Iterator[str] | Table:
    """The better order of the machines of --hosts for the layout: for a launcher, or explained."""
    from diagnosis.machines.order import TIME, better_order
    from formats.hosts.launchers import FILES, launcher_files

    launcher = in_any_case(inputs.words[0], FILES) if inputs.words else None
    if launcher not in (None, *FILES):
        raise not_a_choice("launcher", launcher, FILES)
    layout = inputs.layout()
    hosts = inputs.hosts()
    seconds, options = None, inputs.options
    if options.model is not None:
        from training.estimate import seconds_waited

        from .state import machine_named

        batch = whole_number(number_of(options.global_batch or 0), "global_batch", minimum=0)
        seconds = seconds_waited(layout, options.model, machine_named(inputs), batch)
    better = better_order(layout, hosts, options.objective or TIME, seconds)
    if launcher:
        if inputs.format != "text":
            raise CommandError("order for a launcher prints text only")
        return iter([launcher_files(better.names, better.gpus_per_node)[str(launcher)]])
    return _explained(better)


def slow_ranks(inputs: CommandLine) -> Table:
    """The ranks, groups and stages whose measurements stand out."""
    from diagnosis.slow.outliers import slow
    from formats.measurements import read_measurements

    layout = inputs.layout()
    text = inputs.text(inputs.words[0])
    values = read_measurements(text, layout.world_size, inputs.placement(layout))
    outliers = slow(values, layout.every, worse=inputs.options.worse or "high")
    columns = ["names", "indices", "value", "deviations", "ranks"]
    rows = [
        [list(of.names), list(of.indices), of.value, of.times, list(of.ranks)] for of in outliers
    ]
    before = [] if outliers else ["no rank, group or stage stands out"]
    return Table("slow", columns, rows, layout=layout, before=before)


def _explained(better: Any) -> Table:
    """The groups of each kind before and after, the reasons, and the order itself."""
    from texts.shapes import words

    columns = ["kind", "groups", "leave_node", "racks_before", "racks_after", "least"]
    rows: list[list[Any]] = [
        [kind.kind, kind.groups, kind.leave_node, kind.before, kind.after, kind.least]
        for kind in better.kinds
    ]
    texts = words("nodes", "ORDER_REASONS")
    reasons = [texts[note.code].en.format(**note.facts) for note in better.reasons]
    reasons += [
        f"--{name} {value} keeps the {fix.kind} groups in a {fix.place}."
        for fix in better.fixes
        for name, value in fix.changes.items()
    ]
    if better.costs:
        columns += ["seconds_before", "seconds_after"]
        for row, kind in zip(rows, better.kinds):
            each = better.costs.get(kind.kind, 0.0)
            row += [round(each * kind.before, 6), round(each * kind.after, 6)]
        waited = f"{better.cost_before:.3g} s of a step, in this order {better.cost:.3g} s"
        reasons.insert(0, f"Waited for groups in several racks: {waited}.")
    fields = {**better.document, "upper": [vars(upper) for upper in better.upper]}
    fields |= {"reasons": reasons, "fixes": [vars(fix) for fix in better.fixes]}
    before = ["groups on several nodes, and in several racks before and after"]
    after = [*reasons, "", *better.names]
    return Table("order", columns, rows, fields=fields, before=before, after=after)
