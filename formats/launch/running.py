"""Reads a running layout as a launch text: a printed device mesh or a rank's process groups.

>>> parsed = parsed_running("DeviceMesh((dp=4, tp=2), 'cuda', stride=(2, 1))")
>>> parsed.values
{'tp': 2, 'pp': 1, 'cp': 1, 'ep': 1, 'framework': 'device-mesh'}
>>> str(parsed.job().layout().mesh)
'tp2-cp1-dp4-pp1'
"""

from __future__ import annotations

from groups.frameworks import OWN
from groups.notes import Note
from groups.running import read_running

from .items import Item, Parsed

_SIZES = ("tp", "pp", "cp", "ep", "etp", "framework")


def parsed_running(text: str) -> Parsed:
    """The running layout in the form of a parsed text. Errors: as `read_running`."""
    running = read_running(text)
    layout = running.layout()
    job = layout.job
    values = {name: getattr(job, name) for name in _SIZES if getattr(job, name) is not None}
    values |= {"order": job.order} if job.framework == OWN else {}
    machines: dict[str, object] = {"nodes": job.nodes, "gpus_per_node": job.gpus_per_node}
    places = ((one, text.find(one.name)) for one in running.named)
    understood = [
        Item(
            *("understood", one.name, str(len(one.ranks)), at, at + len(one.name)),
            *(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)),
            sets=one.kind or "",
        )
        for one, at in places
        if at >= 0 and one.kind in values
    ]
    return Parsed(
        text=text,
        values=values,
        assumed=machines,
        understood=tuple(understood),
        **dict.fromkeys(("ignored", "unresolved", "problems", "asks", "runs"), ()),
        missing=(Note("nodes-of-world", {"world": running.world, **machines}),),
        framework=None,
        training={},
        run="",
        serving={},
        defaulted={},
        ranks_of_copy=0,
    )
