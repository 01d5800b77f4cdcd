"""The layout string, which assigns layers to pipeline stages by hand.

    E embedding   t decoder   m multi-token prediction   L loss   | ends a stage

``x*n`` is n times the layer x, ``(...)*n`` n times what is between the parentheses, bars included;
commas are ignored. With pp stages, part k of the string goes to pp rank k % pp as its chunk k //
pp. Eight layers over two ranks with two chunks each:

    E t t | t t | t t | t t L       pp rank 0: Ett, tt
      0       1     0     1         pp rank 1: tt, ttL

Source: NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py, as in
megatron-core 0.16.1 (--pipeline-model-parallel-layout).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from ..alternatives import MOST, divisors, works
from ..errors import LayoutError, quoted, refusal
from .layers import MAX_LAYERS, needs_stages, numbered

LETTERS: dict[str, str] = {"E": "embedding", "L": "loss", "t": "decoder", "m": "mtp"}
"""The layer that each letter means."""

MAX_TEXT = 2_048
"""The longest layout string, in characters."""

_REPEATS = (re.compile(r"\(([^()]+)\)\*([0-9]+)"), re.compile(r"(.)\*([0-9]+)"))
"""Repetitions in the order of their expansion: parentheses, then single letters."""

MTP_RULE = (
    "the layers of multi-token prediction stand together after all decoder layers, in the last "
    "chunk of one rank"
)


def is_layout(layers: object) -> bool:
    """Whether the layers are a layout string instead of a number.

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
    if len(text) > MAX_TEXT:
        raise refusal("layout-too-long", "layout", limit=MAX_TEXT)
    written = text.replace(",", "")
    for pattern in _REPEATS:
        repeats = pattern.findall(written)
        # A number of five digits is too much already, and the longest cannot be read as an int.
        long = any(len(times.lstrip("0")) > 5 for _, times in repeats)
        if long or sum(len(what) * int(times) for what, times in repeats) > MAX_LAYERS:
            raise refusal("layout-too-long", "layout", limit=MAX_LAYERS)
        written = pattern.sub(lambda match: match[1] * int(match[2]), written)
    for letter in written:
        if letter != "|" and letter not in LETTERS:
            quote = f"Invalid layer character: {letter}"
            raise refusal("bad-layout", "layout", quote=quote, value=quoted(letter))
    return [[LETTERS[letter] for letter in stage] for stage in written.split("|")]


def write_layout(counts: Sequence[int], mtp: int = 0) -> str:
    """The layout string of stages with these numbers of decoder layers, and ``mtp`` layers of
    multi-token prediction before the loss.

    >>> write_layout([4, 4, 4, 3]), write_layout([0, 1], mtp=1)
    ('Et*4|(t*4|)*2t*3L', 'E|tmL')
    """
    first, *middle = [_repeated("t", count) for count in counts]
    ends = _repeated("m", mtp) + "L"
    if not middle:
        return f"E{first}{ends}"
    *middle, last = middle
    runs = (_repeated(f"{stage}|", len([*same])) for stage, same in groupby(middle))
    return f"E{first}|{''.join(runs)}{last}{ends}"


def _repeated(what: str, times: int) -> str:
    """A piece of a layout repeated, in its shortest form."""
    if times < 2:
        return what * times
    return f"{what}*{times}" if len(what) == 1 and what != "|" else f"({what})*{times}"


def stage_layers_of_layout(text: str, layers: int, pp: int, vpp: int) -> list[list[int]]:
    """The decoder layers of every stage of a pipeline layout, numbered from 0.

    >>> stage_layers_of_layout("Ett|tt|tt|ttL", layers=8, pp=2, vpp=2)
    [[0, 1], [2, 3], [4, 5], [6, 7]]

    Errors: LayoutError where Megatron refuses or would lose layers; ``quote`` is its message, and
    its alternatives are the sizes that this layout would do with, one changed at a time.
    """
    stages, sizes = parse_layout(text), {"layers": layers, "pp": pp, "vpp": vpp}
    counts = [stage.count("decoder") for stage in stages]
    try:
        _require(stages, **sizes)
    except LayoutError as error:
        changes = [
            {"layers": sum(counts)},
            {"vpp": len(stages) // pp},
            *({"pp": near} for near in sorted(divisors(len(stages)), key=lambda n: abs(n - pp))),
        ]
        tried = (change for change in changes if all(change.values()))
        fixes = [change for change in tried if works(_require, stages, **{**sizes, **change})]
        raise error.replace(alternatives=fixes[:MOST]) from None
    return numbered(counts)


def _require(stages: list[list[str]], layers: int, pp: int, vpp: int) -> None:
    """Refuses the first rule that the stages break, in Megatron's order: the same number for each
    rank, as many chunks as requested, and the layers themselves."""
    chunks, left = divmod(len(stages), pp)
    if left:
        raise refusal("layout-does-not-divide", "pp", stages=len(stages), pp=pp)
    if vpp != chunks:
        raise refusal("layout-has-other-vpp", "vpp", chunks=chunks, pp=pp, vpp=vpp)
    if chunks > 1 and pp == 1:
        raise needs_stages(chunks, pp)
    flat = [layer for stage in stages for layer in stage]
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
        typed = layers if isinstance(layers, int) else quoted(layers)
        raise refusal("layout-has-other-layers", "layers", count=count["decoder"], layers=typed)
    predicting = [at for at, stage in enumerate(stages) if "mtp" in stage]
    if predicting and "decoder" in flat[flat.index("mtp") :]:
        raise refusal("layout-mtp-too-early", "layout", why=MTP_RULE)
    if any(at < len(stages) - pp for at in predicting):
        raise refusal("layout-mtp-not-in-last-chunk", "layout", why=MTP_RULE)
    if len(predicting) > 1:
        raise refusal("layout-mtp-in-two-stages", "layout", why=MTP_RULE)
