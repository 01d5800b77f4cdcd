"""The layout string: which layers each pipeline stage has, dealt out by hand.

    E embedding   t decoder   m multi-token prediction   L loss   | ends a stage

``x*n`` is n times the layer x, ``(...)*n`` n times what is between the parentheses, bars and all;
commas are for the eye. With pp stages on the wire, part k of the string goes to pp rank k % pp as
its chunk k // pp. Eight layers over two ranks with two chunks each:

    E t t | t t | t t | t t L       pp rank 0: Ett, tt
      0       1     0     1         pp rank 1: tt, ttL

Source: NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py, as in
megatron-core 0.16.1 (--pipeline-model-parallel-layout).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..alternatives import MOST, divisors, in_ranges, works
from ..errors import LayoutError, quoted, refusal
from ..mesh import MAX_RANKS, whole_number
from .layers import MAX_LAYERS, StageLayers, needs_stages, numbered

LETTERS: dict[str, str] = {"E": "embedding", "L": "loss", "t": "decoder", "m": "mtp"}
"""The layer that each letter means."""

MAX_TEXT = 2_048
"""Characters that a layout may be written with."""

_REPEATS = (re.compile(r"\(([^()]+)\)\*([0-9]+)"), re.compile(r"(.)\*([0-9]+)"))
"""What is repeated, in the order in which it is written out: parentheses, then single letters."""

MTP_RULE = (
    "the layers of multi-token prediction stand together after all decoder layers, in the last "
    "chunk of one rank"
)

_LIMITS: dict[str, tuple[int, int | None]] = {
    "layers": (1, MAX_LAYERS),
    "pp": (1, MAX_RANKS),
    "vpp": (1, MAX_LAYERS),
    "mtp": (0, MAX_LAYERS),
}

Stages = Sequence[Sequence[str]]


def is_layout(layers: object) -> bool:
    """Whether layers are said as a layout, not as a number.

    >>> is_layout("Ett|ttL"), is_layout("32"), is_layout(None)
    (True, False, False)
    """
    return isinstance(layers, str) and "t" in layers


def parse_layout(text: str) -> list[list[str]]:
    """The stages of a layout string, each with the names of its layers.

    >>> parse_layout("Et|(tt|)*2,L")
    [['embedding', 'decoder'], ['decoder', 'decoder'], ['decoder', 'decoder'], ['loss']]

    Errors: LayoutError for a letter that means no layer (a space, nested or unrepeated
    parentheses) and for more than MAX_LAYERS layers and stages.
    """
    if not isinstance(text, str):
        raise _bad_letter(text)
    if len(text) > MAX_TEXT:
        raise _too_long(MAX_TEXT)
    written = text.replace(",", "")
    for pattern in _REPEATS:
        repeats = pattern.findall(written)
        # A number of five digits is too much already, and the longest cannot be read as an int.
        long = any(len(times.lstrip("0")) > 5 for _, times in repeats)
        if long or sum(len(what) * int(times) for what, times in repeats) > MAX_LAYERS:
            raise _too_long(MAX_LAYERS)
        written = pattern.sub(lambda match: match[1] * int(match[2]), written)
    for letter in written:
        if letter != "|" and letter not in LETTERS:
            raise _bad_letter(letter)
    return [[LETTERS[letter] for letter in stage] for stage in written.split("|")]


def stages_of_layout(layout: str | Stages, pp: int) -> list[list[list[str]]]:
    """The layers of every stage by name: ``[pp rank][chunk] -> names``.

    >>> stages_of_layout("Et|t|t|tL", pp=2)
    [[['embedding', 'decoder'], ['decoder']], [['decoder'], ['decoder', 'loss']]]

    Errors: LayoutError if the stages do not spread evenly over pp ranks.
    """
    parts = parse_layout(layout) if isinstance(layout, str) else _named(layout)
    size = whole_number(pp, "pp", maximum=MAX_RANKS)
    if len(parts) % size:
        raise refusal("layout-does-not-divide", "pp", stages=len(parts), pp=size)
    return [parts[rank::size] for rank in range(size)]


def stage_layers_of_layout(
    layout: str | Stages, layers: int, pp: int, vpp: int | None = None, mtp: int = 0
) -> StageLayers:
    """The decoder layers of every stage of a layout: ``[pp rank][chunk] -> layers``.

    The layout is a string or a list of stages, each a list of names; mtp is the number of
    multi-token prediction layers. vpp left out is what the layout makes of it.

    >>> stage_layers_of_layout("Ett|tt|tt|ttL", layers=8, pp=2)
    [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]

    Errors: LayoutError where Megatron refuses or would lose layers; ``quote`` is its message.
    """
    parts = parse_layout(layout) if isinstance(layout, str) else _named(layout)
    given = {"layers": layers, "pp": pp, **({} if vpp is None else {"vpp": vpp}), "mtp": mtp}
    sizes, refusals = in_ranges(given, _LIMITS)
    if refusals:
        control = refusals[0].control
        fixes = _fixes(parts, sizes) if control in sizes else []
        raise refusals[0].replace(alternatives=[change for change in fixes if control in change])
    try:
        stages = _checked(parts, **sizes)
    except LayoutError as error:
        raise error.replace(alternatives=_fixes(parts, sizes)) from None
    return numbered([[chunk.count("decoder") for chunk in stage] for stage in stages])


def _checked(
    parts: Stages, layers: int, pp: int, mtp: int, vpp: int | None = None
) -> list[list[list[str]]]:
    """The stages by rank and chunk, or the first rule that they break, in Megatron's order."""
    if vpp is not None and vpp > 1 and pp == 1:
        raise needs_stages(vpp, pp)
    stages = stages_of_layout(parts, pp)
    chunks = len(stages[0])
    if vpp is not None and vpp != chunks:
        raise refusal("layout-has-other-vpp", "vpp", chunks=chunks, pp=pp, vpp=vpp)
    if chunks > 1 and pp == 1:
        raise needs_stages(chunks, pp)
    _require_layers([layer for part in parts for layer in part], stages, layers, mtp)
    return stages


def _require_layers(flat: list[str], stages: list[list[list[str]]], layers: int, mtp: int) -> None:
    """One embedding, first; one loss, last; as many layers as the model has; and where those of
    multi-token prediction may be."""
    first, last = (flat[0], flat[-1]) if flat else ("nothing", "nothing")
    if first != "embedding":
        quote = f"The first layer must be embedding, but got LayerType.{first}"
        quote = quote if flat else "list index out of range"
        raise refusal("layout-first-is-not-embedding", "layout", quote=quote, found=first)
    if last != "loss":
        raise refusal("layout-last-is-not-loss", "layout", found=last)
    count = Counter(flat)
    for layer in ("embedding", "loss"):
        if count[layer] != 1:
            quote = f"{layer.capitalize()} must be specified exactly once"
            raise refusal("layout-repeats", "layout", quote=quote, layer=layer, count=count[layer])
    if count["decoder"] != layers:
        raise refusal("layout-has-other-layers", "layers", count=count["decoder"], layers=layers)
    if count["mtp"] != mtp:
        raise refusal("layout-has-other-mtp", "mtp", count=count["mtp"], mtp=mtp)
    if mtp and "decoder" in flat[flat.index("mtp") :]:
        raise refusal("layout-mtp-too-early", "layout", why=MTP_RULE)
    if any("mtp" in chunk for stage in stages for chunk in stage[:-1]):
        raise refusal("layout-mtp-not-in-last-chunk", "layout", why=MTP_RULE)
    if sum("mtp" in stage[-1] for stage in stages) > 1:
        raise refusal("layout-mtp-in-two-stages", "layout", why=MTP_RULE)
    if "encoder" in flat:
        quote = "Encoder layer is not supported for flexible pipeline layout"
        raise _bad_letter("encoder").replace(quote=quote)


def _fixes(parts: Stages, sizes: dict[str, int]) -> list[dict[str, int]]:
    """The sizes that this layout would do with, one changed at a time."""
    if not {"layers", "pp", "mtp"} <= set(sizes):
        return []  # one of them is no number at all
    flat = [layer for part in parts for layer in part]
    near_pp = sorted(divisors(len(parts)), key=lambda pp: abs(pp - sizes["pp"]))
    changes = [
        {"layers": flat.count("decoder")},
        {"mtp": flat.count("mtp")},
        {"vpp": len(parts) // sizes["pp"]},
        *({"pp": pp} for pp in near_pp),
    ]
    tried = ((change, {**sizes, **change}) for change in changes)
    return [
        change
        for change, changed in tried
        if changed["layers"] and changed.get("vpp", 1) and works(_checked, parts, **changed)
    ][:MOST]


def _named(layout: object) -> list[list[str]]:
    """The stages of a layout given as lists of names, lower-case and without spaces around."""
    if not isinstance(layout, (list, tuple)):
        raise _bad_letter(layout)
    known = {*LETTERS.values(), "encoder"}
    stages: list[list[str]] = []
    for stage in layout:
        if not isinstance(stage, (list, tuple)):
            quote = "pipeline_model_parallel_layout must be a list of lists"
            raise _bad_letter(stage).replace(quote=quote)
        names = [name.strip().lower() if isinstance(name, str) else name for name in stage]
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise _bad_letter(name).replace(quote=f"{name} is not a valid LayerType")
        stages.append(names)
    if sum(map(len, stages)) + len(stages) > MAX_LAYERS:
        raise _too_long(MAX_LAYERS)
    return stages


def _bad_letter(value: object) -> LayoutError:
    is_letter = isinstance(value, str) and len(value) == 1
    quote = f"Invalid layer character: {value}" if is_letter else ""
    return refusal("bad-layout", "layout", quote=quote, value=quoted(value))


def _too_long(limit: int) -> LayoutError:
    return refusal("layout-too-long", "layout", limit=limit)
