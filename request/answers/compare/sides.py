"""The two layouts of a comparison: their names, and their costs.

The first is the one that a link names, the second the one on screen. Both do the same work: model,
batch and cluster are those on screen, of servers the longest request too. How it is done
(micro-batches, schedule, ZeRO, recomputation; a server's formats and its part of a GPU) is each
one's own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from descriptions import MACHINE, PAGE
from groups import LayoutError
from groups.audit import moved_ranks
from groups.frameworks import OWN
from groups.inputs import inputs_of
from groups.kept import kept
from groups.layout import Job, Layout
from groups.presets import PUBLISHED
from training.estimate import Estimate, Use
from training.recipe import LORA
from training.search import Order, order_of
from training.search.verdict import Verdict, outcome_of, verdict

from ...context import Context, of_server
from ...inputs import CHOSEN, FIELDS, fields_of
from ...model import model_name, typed_layout
from ...named.kept import OWN_WAYS, SERVES, SHOWN, kept_context
from ...published import is_still
from ...served import ServedModel, served_of
from ...trained import Trained, fields_of_preset
from ...units import bytes_text, gib, seconds_text
from ...words import control_label, saying, tried, value_text, within_sentence
from ..estimate.words import KINDS, about, use_of
from ..traffic import rows_of

AXES = ("tp", "cp", "pp", "dp")

MOST_NAMED = 2
"""The most settings in the name of a layout with the same sizes as the other."""


# -- what they say -------------------------------------------------------------------------------

COUNTS: dict[str, Callable[[Trained], object]] = {
    "layers": lambda trained: trained.model.layers,
    "experts": lambda trained: trained.model.experts,
    "vpp": lambda trained: trained.split.vpp,
    "schedule": lambda trained: trained.training.schedule,
    "global_batch": lambda trained: trained.batch.global_batch,
    "micro_batch": lambda trained: trained.batch.micro_batch,
    "micro_batches": lambda trained: trained.batch.micro_batches,
}
"""The defaults that apply where fields of a model, its batch and its schedule are empty."""

Setting = tuple[str, str, str]
"""A field, and its values on both sides as the page writes them."""


def settings_that_differ(before: Context, after: Context, language: str) -> list[Setting]:
    """Fields that differ, of the job and of its training or serving if both do the same; 1 and 1.0
    are equal. Of a server and a training job those that both have."""
    different = []
    jobs = [side.layout.explicit_job for side in (before, after)]
    does, other = (side.layout.made_by.does for side in (before, after))
    own = {"train": fields_of("job"), "serve": inputs_of(Job)}
    names = (*own[does], *OWN_WAYS[does]) if does == other else (*inputs_of(Job),)
    for name in names:
        if name == "etp" and jobs[0].etp == jobs[1].etp:
            continue
        values = [setting(name, side, language) for side in (before, after)]
        if values.count("–") == 1:
            values = [setting(name, side, language, in_words=True) for side in (before, after)]
        if values[0] != values[1] and not (does != other and "–" in values):
            different.append((name, *values))
    return different  # type: ignore[return-value]


def setting(name: str, side: Context, language: str, in_words: bool = False) -> str:
    """A field as a cell of a table; in_words: the default that applies where it is empty."""
    text = getattr(side.state, name)
    if name == "order":  # that counts, whoever says it
        text = side.layout.explicit_job.order
    if in_words and not text:
        if name in (*CHOSEN, *LORA):
            text = FIELDS[name].row.counts
        elif name in COUNTS:
            with suppress(LayoutError):
                text = str(COUNTS[name](side.trained))
        elif name == "dp" and side.layout.is_server:
            text = str(side.layout.mesh.size("dp"))
        elif name in SERVES:
            with suppress(LayoutError):
                text = str(SERVES[name](served_of(side)))
    return value_text(name, text, language) if text else "–"


def names_of_sides(before: Context, after: Context) -> tuple[str, str]:
    """The names of the layouts: their sizes, or their published names; for equal names, also the
    settings that differ.

    >>> from request.state import State
    >>> one, other = State(nodes=4), State(nodes=4, tp=8, pp=1)
    >>> names_of_sides(Context.of(one), Context.of(other))
    ('tp 2 pp 2 dp 8', 'tp 8 dp 4')
    >>> names_of_sides(Context.of(one), Context.of(replace(one, zero="3")))
    ('tp 2 pp 2 dp 8, ZeRO 1', 'tp 2 pp 2 dp 8, ZeRO 3')
    """
    language = after.language
    names = [_published(side, after) or _sizes(side.layout) for side in (before, after)]
    if names[0] != names[1]:
        return names[0], names[1]
    rows = settings_that_differ(before, after, language)
    settings = [name for name, *_ in rows if name not in SHOWN]
    if "framework" in settings:  # which says the order too
        settings = [name for name in settings if name != "order"]
    first, second = (
        "".join(f", {_called(name, side, language)}" for name in settings[:MOST_NAMED])
        for side in (before, after)
    )
    return names[0] + first, names[1] + second


def _published(side: Context, after: Context) -> str:
    """The name of a published layout; none if another model is trained on it."""
    preset = side.state.preset
    is_its = is_still(preset, side.state) and (
        side is after or fields_of_preset(preset).get("model", "") == after.state.model
    )
    return PUBLISHED[preset].name if is_its else ""


def _sizes(layout: Layout) -> str:
    sizes = {name: layout.mesh.size(name) for name in AXES if name in layout.mesh.names}
    experts = layout.kind("ep")
    if experts is not None and (layout.has_experts or layout.made_by.has_grids):
        sizes["ep"] = experts.size
    return " ".join(f"{name} {size}" for name, size in sizes.items() if size > 1) or "dp 1"


def _called(name: str, side: Context, language: str) -> str:
    """A setting in a few words."""
    value = setting(name, side, language, in_words=True)
    if name == "zero":
        return f"ZeRO {side.state.zero or FIELDS['zero'].row.counts}"
    if name == "framework" and side.layout.framework == OWN:
        return setting("order", side, language)
    if name in ("framework", "order", "schedule"):
        return value
    return f"{within_sentence(control_label(name, language))} {within_sentence(value)}"


# -- what they cost ------------------------------------------------------------------------------

PARTS = ("cost_compute", "cost_bubble", "cost_exposed", "cost_rest")
"""Rows of the parts of a step."""

USED = ("cost_mfu", "cost_tokens")
"""Rows of how well the GPUs are used, which follows from the step; more is better."""

COSTS = ("cost_memory", "cost_step", *PARTS, "cost_across", *USED)
"""The rows of the table, as names in PAGE; the most decisive first."""

Cost = dict[str, tuple[float, str]]
"""The costs of a layout: by COSTS a number, where less is better but of USED, and its text."""


@dataclass(frozen=True)
class Side:
    """One of two layouts: its name, and its costs unless they are refused.

    context: as it was asked for. worked: doing the work that both do. across: bytes that leave
    NVLink domains in a step. served: what a server holds, which has no step. problem: why nothing
    comes of it, beside a server.
    """

    context: Context
    worked: Context
    name: str
    estimate: Estimate | None = None
    across: float = 0.0
    served: ServedModel | None = None
    problem: LayoutError | None = None

    @property
    def layout(self) -> Layout:
        return self.context.layout

    @property
    def is_refused(self) -> bool:
        """Whether nothing comes of it: the model or the GPUs do not allow it."""
        return self.estimate is None and self.served is None

    def cost(self, language: str = "en") -> Cost | None:
        return None if self.estimate is None else _cost(self.estimate, self.across, language)


@dataclass(frozen=True)
class Compared:
    """Two layouts and their comparison.

    trained: what both train; None where that is refused on screen, and beside a server. problems:
    why one has no costs.
    """

    first: Side
    second: Side
    trained: Trained | None
    problems: list[LayoutError]

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.first, self.second

    def doing(self, what: str) -> list[Side]:
        """Those that "serve", or "train"."""
        return [side for side in self.sides if side.layout.made_by.does == what]

    @property
    def serves(self) -> bool:
        """Whether one of them is a server, so that their steps cannot be compared."""
        return bool(self.doing("serve"))

    @property
    def has_step(self) -> bool:
        """Whether one of them is trained."""
        return bool(self.doing("train"))

    @property
    def is_same(self) -> bool:
        """Whether both are the same layout with the same training."""
        rows = settings_that_differ(self.first.context, self.second.context, "en")
        return all(name in SHOWN for name, *_ in rows)

    @property
    def verdict(self) -> Verdict:
        """Beside a server the one that alone is not refused is better, and else neither."""
        if self.serves:
            able = [at for at, side in enumerate(self.sides) if not side.is_refused]
            better = able[0] if len(able) == 1 else None
            return Verdict(better, "nothing" if len(able) == 2 else "refused", 0.0)
        first, second = (
            None if side.estimate is None else outcome_of(side.estimate, side.across)
            for side in self.sides
        )
        return verdict(first, second)

    @property
    def order(self) -> Order | None:
        """How sure it is that the first is quicker; None where one has no step."""
        first, second = (side.estimate for side in self.sides)
        return None if first is None or second is None else order_of(first, second)


def comparison_of(context: Context) -> Compared:
    """The kept layout and the one on screen. Errors: as of `kept_context`."""
    return compared_with(context, kept_context(context))


def compared_with(context: Context, kept: Context) -> Compared:
    """Another layout and the one on screen."""
    before, problems = kept, list[LayoutError]()
    names = names_of_sides(kept, context)
    plain = Compared(Side(kept, kept, names[0]), Side(context, context, names[1]), None, [])
    if plain.serves:
        first, second = map(_alone, plain.sides)
        problems = [side.problem for side in (first, second) if side.problem]
        return Compared(first, second, None, problems)
    trained = tried(problems, lambda: context.trained)
    if trained is not None:  # steps can be compared only where they do the same work
        same: dict[str, object] = {"global_batch": str(trained.batch.global_batch)}
        if not typed_layout(before.state):  # which is for as many stages as it says
            is_dealt = bool(typed_layout(context.state))
            same["layers"] = str(trained.chosen.model.layers) if is_dealt else context.state.layers
        same |= {"experts": context.state.experts, "micro_batches": ""}
        before = Context(before.layout, replace(before.state, **same))

    def kept_outcome() -> tuple[Estimate, float]:
        own = before.trained
        return _outcome(before.layout, replace(own, chosen=trained.chosen) if trained else own)

    then = tried(problems, kept_outcome) or (None, 0.0)
    now = (trained and tried(problems, lambda: _outcome(context.layout, trained))) or (None, 0.0)
    first, second = Side(kept, before, names[0], *then), Side(context, context, names[1], *now)
    return Compared(first, second, trained, problems)


def _alone(plain: Side) -> Side:
    """A side beside a server: what it holds as one itself, or what its step costs."""
    try:
        return _found(plain)
    except LayoutError as error:
        return replace(plain, problem=error)


def _holding(plain: Side) -> Side:
    return replace(plain, served=served_of(plain.context))


@of_server(_holding)
def _found(plain: Side) -> Side:
    estimate, across = _outcome(plain.layout, plain.context.trained)
    return replace(plain, estimate=estimate, across=across)


def cost_of(layout: Layout, trained: Trained) -> Cost:
    """The costs of a layout: seconds, bytes across NVLink domains in a step, bytes of a GPU.

    Errors: LayoutError for what the model, the batch or the schedule does not allow.
    """
    return _cost(*_outcome(layout, trained))


def _outcome(layout: Layout, trained: Trained) -> tuple[Estimate, float]:
    across = sum(row.across for row in rows_of(layout, trained))
    return trained.estimate(layout), across


def _cost(estimate: Estimate, across: float, language: str = "en") -> Cost:
    parts, needed = estimate.parts, estimate.fit.needed
    seconds = (
        parts["compute"],
        parts["bubble"],
        sum(parts[kind] for kind in KINDS),
        parts["optimizer"] + parts["offload"] + parts["host"],
    )
    return {
        "cost_memory": (needed, gib(needed)),
        "cost_step": (estimate.seconds, about(estimate, language)),
        **{name: (number, seconds_text(number)) for name, number in zip(PARTS, seconds)},
        "cost_across": (across, bytes_text(across)),
        **_used(use_of(estimate), language),
    }


def _used(use: Use, language: str) -> Cost:
    say, each = saying(MACHINE, language), use.tokens_per_second / use.request.gpus
    facts = {"mfu": f"{use.mfu():.1%}", "tflops": f"{use.per_gpu() / 1e12:,.0f}"}
    tokens = say("cell_tokens", tokens=f"{use.tokens_per_second:,.0f}", each=f"{each:,.0f}")
    return {
        "cost_mfu": (use.mfu(), say("cell_mfu", **facts)),
        "cost_tokens": (use.tokens_per_second, tokens),
    }


def what_text(now: Trained, language: str) -> str:
    """What both train."""
    return PAGE["cost_of"][language].format(
        model=model_name(now.chosen, language),
        cluster=now.cluster.name,
        batch=f"{now.batch.global_batch:,}",
    )


@kept
def moved_by_kind(before: Layout, after: Layout) -> dict[str, int | None]:
    """The kinds whose groups differ, each with the number of ranks that have other members; None if
    one layout has no such groups, or other GPUs.

    >>> from groups.layout import Job
    >>> one, other = (Job(nodes=4, tp=2, pp=pp).layout() for pp in (2, 4))
    >>> moved = moved_by_kind(one, other)
    >>> "tp" in moved, moved["dp"], moved["pp"]
    (False, 32, 32)
    """
    moved: dict[str, int | None] = {}
    is_alike = before.gpus_per_node == after.gpus_per_node
    for name in dict.fromkeys((*before.every, *after.every)):
        kept, now = before.every.get(name), after.every.get(name)
        if max(side.size for side in (kept, now) if side is not None) == 1:
            continue
        count = None
        if kept is not None and now is not None and before.world_size == after.world_size:
            count = int(moved_ranks(kept, now).sum())
        if count != 0 or not is_alike:
            moved[name] = count
    return moved
