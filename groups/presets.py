"""Published layouts to start from, each with its source and with what the source does not state.

They stand in published.txt, whose first lines say how; here they become presets that can be drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

GPUS_PER_NODE = 8
"""What a source that says nothing of its nodes is taken to mean."""

LAYOUT = (
    *("nodes", "gpus_per_node", "gpus"),
    *("tp", "cp", "pp", "ep", "etp", "dp", "edp"),
    "framework",
)
"""What of a published layout is no fact about the model."""


@dataclass(frozen=True)
class Preset:
    """A layout somebody published.

    >>> bloom = PRESETS["bloom-176b"]
    >>> bloom.world_size, bloom.tp, bloom.pp, bloom.dp
    (384, 4, 12, 8)
    >>> bloom.model["layers"], "tp" in bloom.derived, "cp" in bloom.derived
    (70, False, True)
    """

    name: str  # as published, without the number of GPUs
    family: str  # under which a long list groups it
    nodes: int
    gpus_per_node: int
    tp: int
    cp: int
    pp: int
    ep: int
    etp: int | None
    framework: str  # a key of CONVENTIONS
    model: Mapping[str, int]  # layers, hidden, experts, vpp, seq, micro_batch, global_batch ...
    derived: tuple[str, ...]  # names of what the source does not state, "world_size" among them
    source: tuple[str, ...]
    url: str  # empty where the source has no address
    note: str  # empty if there is nothing to know

    @property
    def world_size(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def dp(self) -> int:
        """Data parallel size of dense layers: what remains of the world."""
        return self.world_size // (self.tp * self.cp * self.pp)

    @property
    def edp(self) -> int:
        """Data parallel size of experts, whose tp is etp, or tp where that is not given."""
        etp = self.tp if self.etp is None else self.etp
        return self.world_size // (etp * self.ep * self.pp)


def url_of(source: str) -> str:
    """The address of a source: an arXiv page, a file on GitHub, a model card, or none.

    >>> url_of("arXiv:2407.21783v3 Table 4, Fig. 5")
    'https://arxiv.org/abs/2407.21783v3'
    >>> url_of("THUDM/GLM-130B 212215c logs/main-log-en.md (MP=4, PP=8)")
    'https://github.com/THUDM/GLM-130B/blob/212215c/logs/main-log-en.md'
    >>> url_of("tiiuae/falcon-180B model card, Training Procedure")
    'https://huggingface.co/tiiuae/falcon-180B'
    """
    paper = re.match(r"arXiv:(\d{4}\.\d{5}(?:v\d+)?)", source)
    if paper:
        return f"https://arxiv.org/abs/{paper[1]}"
    file = re.match(r"([\w.-]+/[\w.-]+) ([0-9a-f]{7,40}) ([\w./-]+\w)", source)
    if file:
        return f"https://github.com/{file[1]}/blob/{file[2]}/{file[3]}"
    card = re.match(r"([\w.-]+/[\w.-]+) model card", source)
    return f"https://huggingface.co/{card[1]}" if card else ""


_SHARED = re.compile("(family|name|source|stated|assumed|note): (.*)")


def _presets(text: str) -> Iterator[tuple[str, Preset]]:
    """Blocks: lines of what some layouts share, and a table of what each has of its own."""
    for block in text.replace("\n    ", " ").split("\n\n"):
        shared: dict[str, list[str]] = {}
        table = []
        for line in block.strip().splitlines():
            if match := _SHARED.fullmatch(line):
                shared.setdefault(match[1], []).append(match[2])
            else:
                table.append(re.split("  +", line))
        (_, *columns), *rows = table
        for key, *cells in rows:
            row = {column: cell for column, cell in zip(columns, cells) if cell != "-"}
            filled = {name: [line.format(**row) for line in of] for name, of in shared.items()}
            yield key, _preset(row, filled)


def _preset(row: Mapping[str, str], shared: Mapping[str, list[str]]) -> Preset:
    """A published layout with everything that drawing needs, and what of it was not stated."""
    stated = {name: cell for name, cell in row.items() if name[0] not in "_~"}
    assumed = {name[1:]: cell for name, cell in row.items() if name[0] == "~"}
    for values, lines in ((stated, "stated"), (assumed, "assumed")):
        pairs = (pair.partition("=") for line in shared.get(lines, []) for pair in line.split())
        values |= {name: value for name, _, value in pairs}
    known = {**assumed, **stated}
    size = {name: int(value) for name, value in known.items() if name != "framework"}
    gpus_per_node = size.get("gpus_per_node", GPUS_PER_NODE)
    model = {name: value for name, value in size.items() if name not in LAYOUT}
    if "layers_per_virtual_stage" in size:
        stage = size["layers"] // size["pp"]
        model = {"vpp": stage // size["layers_per_virtual_stage"], **model}
    no_experts = size.get("ep", 1) == 1  # then etp and edp say nothing
    derived = tuple(
        "world_size" if name == "gpus" else name
        for name in (*LAYOUT, *model)
        if name not in stated and not (no_experts and name in ("etp", "edp"))
    )
    return Preset(
        name=(shared.get("name") or shared["family"])[0],
        family=shared["family"][0],
        nodes=size["nodes"] if "nodes" in size else size["gpus"] // gpus_per_node,
        gpus_per_node=gpus_per_node,
        **{axis: size.get(axis, 1) for axis in ("tp", "cp", "pp", "ep")},
        etp=size.get("etp"),
        framework=known["framework"],
        model=model,
        derived=derived,
        source=tuple(shared["source"]),
        url=url_of(shared["source"][0]),
        note=row.get("_note", "".join(shared.get("note", []))),
    )


_TEXT = Path(__file__).with_name("published.txt").read_text(encoding="utf-8")
PRESETS: dict[str, Preset] = dict(_presets(_TEXT.partition("\n\n\n")[2]))
"""Every preset by a stable id."""
