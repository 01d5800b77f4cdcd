"""Megatron's two grids over the same ranks: of dense layers and of experts; and their order.

Dense layers live on a grid of tp, cp, dp and pp; experts on a grid of etp (the expert tp), ep, edp
(the expert dp) and pp. dp and edp are what remains of the world in each:

    dp = world / (tp * cp * pp)        edp = world / (etp * ep * pp)

An order joins the names of axes by dashes, fastest first. It may leave out an axis whose size is 1.

Sizes and refusals as in NVIDIA/Megatron-LM, megatron/core/parallel_state.py, RankGenerator and
initialize_model_parallel, and checked against megatron-core 0.16.1; the weight-rematerialization
axis gtp as in main at d98e8a64 (August 2026), where it is experimental.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..alternatives import fitted_sizes, in_ranges, nearest_fits
from ..errors import LayoutError, quoted, refusal
from ..mesh import MAX_RANKS, Axis, Mesh, rank_groups, split_names

ORDER = "tp-cp-ep-dp-pp"
"""Megatron's default order, fastest first; --use-tp-pp-dp-mapping makes it tp-cp-ep-pp-dp."""

APPENDED = ("tp", "pp", "dp", "ep", "cp")
"""Axes that an order may leave out if their size is 1, in the order in which they are appended."""

GTP = "gtp_remat"
"""The axis over which weights are gathered before use: after tp in the dense, after ep in the
expert grid, unless the order names it. There only if a size of it is above 1."""


def grids(
    world: int,
    *,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    order: str = ORDER,
    gtp: int = 1,
    egtp: int = 1,
) -> tuple[Mesh, Mesh]:
    """The dense and the expert mesh of a world, both with all five axes of the order.

    etp left out is tp. In the dense mesh ep is 1, in the expert mesh cp is 1 and tp is etp. gtp and
    egtp above 1 add the axis gtp_remat to both. The order is in any case, as Megatron takes it.

    >>> dense, expert = grids(16, tp=2, cp=2, pp=2, ep=8, etp=1)
    >>> str(dense), str(expert)
    ('tp2-cp2-ep1-dp2-pp2', 'tp1-cp1-ep8-dp1-pp2')

    Errors: LayoutError where Megatron refuses, and for what it accepts as nonsense (repeated or
    unknown axes, sizes below 1); ``quote`` is Megatron's own message where it has one.
    """
    order = order.lower() if isinstance(order, str) else order
    stated = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "gtp": gtp, "egtp": egtp}
    sizes, refusals = in_ranges(stated if etp is None else {**stated, "etp": etp}, {})
    if refusals:
        ones = {error.control or "": 1 for error in refusals}
        raise refusals[0].replace(alternatives=[ones])
    sizes.setdefault("etp", sizes["tp"])
    names = completed(order, sizes)
    dense_names, expert_names = with_gtp(names, sizes)
    shared = ("pp", "gtp") if GTP in dense_names else ("pp",)
    dense = _grid(world, dense_names, sizes, ("tp", "cp", *shared))
    shared = ("pp", "egtp") if GTP in dense_names else ("pp",)
    expert = _grid(world, expert_names, sizes, ("etp", "ep", *shared))
    remaining = max(dense.size("dp"), expert.size("dp"))
    if remaining > 1 and "dp" not in order.split("-"):
        raise left_out("dp", remaining, order)
    if not order.endswith("pp"):  # else stage s is ranks s * world / pp and on, in both grids
        _refuse_clashing_pipelines(names, dense, expert, sizes)
    return dense, expert


def dense_grid(mesh: Mesh) -> Mesh:
    """The dense mesh by the axes that dense layers have: without ep, which is 1 there."""
    return Mesh(tuple(axis for axis in mesh.axes if axis.name != "ep"))


def expert_grid(mesh: Mesh) -> Mesh:
    """The expert mesh by the names of experts: etp and edp for tp and dp, without cp.

    >>> str(expert_grid(grids(16, tp=2, cp=2, pp=2, ep=8, etp=1)[1]))
    'etp1-ep8-edp1-pp2'
    """
    names = {"tp": "etp", "dp": "edp"}
    return Mesh(
        tuple(
            Axis(names[axis.name], axis.size) if axis.name in names else axis
            for axis in mesh.axes
            if axis.name != "cp"
        )
    )


OWN_NAMES = {"etp": "tp", "gtp": GTP, "egtp": GTP}
"""The axis that a size is of, where it has another name."""


def _grid(world: int, names: list[str], sizes: Mapping[str, int], used: tuple[str, ...]) -> Mesh:
    """One grid: the used sizes under the order's names, dp what remains, 1 for the other axis."""
    try:
        fits = fitted_sizes(world, "-".join((*used, "dp")), {name: sizes[name] for name in used})
    except LayoutError as error:
        if error.control == "world":
            if not error.alternatives:  # it is no number
                raise
            # The nearest that both grids fill.
            products = [("tp", "cp", "pp", "gtp"), ("etp", "ep", "pp", "egtp")]
            unit = math.lcm(*(math.prod(sizes[name] for name in grid) for grid in products))
            nearest = unit if world < 1 else MAX_RANKS // unit * unit
            fixes = [{"world": nearest}] if 1 <= nearest <= MAX_RANKS else []
            raise error.replace(alternatives=fixes) from None
        raise _with_quote(error, world, sizes, used) from None
    size_of = {OWN_NAMES.get(name, name): size for name, size in fits.items()}
    return Mesh(tuple(Axis(name, size_of.get(name, 1)) for name in names))


def _with_quote(
    error: LayoutError, world: int, sizes: Mapping[str, int], used: tuple[str, ...]
) -> LayoutError:
    """A refusal of one grid with Megatron's words, and fixes that leave the other grid alone."""
    product = math.prod(sizes[name] for name in used)
    if "etp" not in used:
        return error.replace(quote=f"world_size ({world}) is not divisible by {quoted(product)}")
    message = (
        f"world_size ({world}) is not divisible by expert_tensor_model_pipeline_parallel size "
        f"({quoted(product)})"
    )
    # pp divides the world already, so only etp and ep change.
    shared = math.prod(sizes[name] for name in used if name not in ("etp", "ep"))
    near = {name: min(sizes[name], world) for name in ("ep", "etp")}
    larger = [name for name in near if sizes[name] > world]
    fits = world % shared == 0
    fixes = nearest_fits(world // shared, near, change=larger) if fits else error.alternatives
    return error.replace(
        why=error.why.replace("dp is", "edp is"),
        alternatives=fixes,
        control=next(iter(fixes[0]), "ep"),
        facts={**error.facts, "left": "EDP"},
        quote=message,
    )


def _refuse_clashing_pipelines(
    names: list[str], dense: Mesh, expert: Mesh, sizes: Mapping[str, int]
) -> None:
    """With pp not last, both grids must put the same ranks into each pipeline."""
    if dense.size("pp") == 1:
        return
    pp_last = {"order": "-".join([*(name for name in names if name != "pp"), "pp"])}
    if dense.size("dp") != expert.size("dp"):
        near = {"ep": sizes["ep"], "etp": sizes["etp"]}
        fixes = (pp_last, *nearest_fits(sizes["tp"] * sizes["cp"], near, exactly=True))
        facts = {"dp": dense.size("dp"), "edp": expert.size("dp")}
        raise refusal("dp-and-edp-differ", "order", *fixes, **facts)
    if not np.array_equal(rank_groups(dense, "pp"), rank_groups(expert, "pp")):
        raise refusal("pipelines-differ", "order", pp_last, dense=str(dense), expert=str(expert))


# -- the order -----------------------------------------------------------------------------------


def completed(order: str, sizes: Mapping[str, int]) -> list[str]:
    """All axes: those of the order, then the left-out ones, which must have size 1."""
    try:
        names = split_names(order, "order")
    except LayoutError as error:
        larger = [name for name in APPENDED if sizes.get(name, 1) > 1]
        spoken = order.lower() if isinstance(order, str) else GTP
        strange = [name for name in spoken.split("-") if name not in (*APPENDED, GTP)]
        quote = ""
        if order and strange and len(strange[0]) <= 40:
            quote = f"KeyError: '{strange[0]}'"
        elif larger and not order:
            quote = _not_specified(larger[0], sizes[larger[0]], "")
        raise error.replace(alternatives=[{"order": mended(order)}], quote=quote) from None
    for name in names:
        if name not in (*APPENDED, GTP):
            axes, short = ", ".join(APPENDED), len(name) <= 40
            shown = name if short else quoted(name)
            sentence = f"{shown} is not an axis of Megatron's: an order joins {axes}"
            texts = {"sentence": sentence, "quote": f"KeyError: '{name}'" * short}
            facts = {"value": quoted(name), "mesh": "-".join(APPENDED)}
            raise refusal("unknown-axis", "order", {"order": mended(order)}, **texts, **facts)
    for name in APPENDED:
        size = max(sizes["tp"], sizes["etp"]) if name == "tp" else sizes.get(name, 1)
        if name not in names and size > 1:
            raise left_out(name, size, order)
    return names + [name for name in APPENDED if name not in names]


def left_out(name: str, size: int, order: str) -> LayoutError:
    """An axis of more than one coordinate that the order does not name."""
    quote, fix = _not_specified(name, size, order), {"order": mended(order)}
    return refusal("axis-not-in-order", "order", fix, quote=quote, axis=name, order=quoted(order))


def _not_specified(name: str, size: int, order: str) -> str:
    return (
        f"The size of ({name}) is ({quoted(size)}), but you haven'tspecified the order ({order})."
    )


def mended(order: object) -> str:
    """The nearest order that names every axis once: what it says, then what it leaves out.

    pp goes last, where both grids always agree on the pipelines.

    >>> mended("dp-tp"), mended("TP tp-xx-pp-ep"), mended(3)
    ('dp-tp-cp-ep-pp', 'tp-ep-cp-dp-pp', 'tp-cp-ep-dp-pp')
    """
    text = order.lower() if isinstance(order, str) else ""
    words = "".join(c if c.isalpha() else " " for c in text[:200]).split()
    names = [name for name in dict.fromkeys(words) if name in APPENDED]
    names += [name for name in ORDER.split("-") if name not in names]
    return "-".join([*(name for name in names if name != "pp"), "pp"])


def with_gtp(names: list[str], sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The orders of the dense and the expert grid, with the axis gtp_remat if it is used."""
    if sizes["gtp"] == sizes["egtp"] == 1:
        unused = [name for name in names if name != GTP]
        return unused, unused
    if GTP in names:
        return names, names

    def after(axis: str) -> list[str]:
        at = names.index(axis) + 1
        return [*names[:at], GTP, *names[at:]]

    return after("tp"), after("ep")
