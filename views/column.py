"""The column: the boxes of the job, in the components that app.py wires.

All of them, and everything else on the page, show one state (client/state.js), so that a link, a
preset or a step back sets them without asking the server.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from markupsafe import Markup

from descriptions import (
    CONTROLS,
    DP_KINDS,
    ENGRAM,
    LANGUAGES,
    MEMORY,
    PAGE,
    ROLES,
    SERVER,
    SHELL,
    TYPES,
    untranslated,
)
from formats.roles.presets import PLANS
from groups import MAX_RANKS, LayoutError
from groups.frameworks import FRAMEWORKS, OWN, framework_or_first
from groups.layout import SERVED, Layout
from groups.megatron.grids import GTP
from groups.megatron.parallel_state import FAMILIES
from groups.mesh import Mesh
from groups.presets import PRESETS, PUBLISHED, SERVERS
from request.inputs import CHOSEN, FIELDS, UNKNOWN
from request.link import with_name
from request.resolve import (
    has_two_dp_kinds,
    resolve,
    sizes_or_none,
)
from request.state import State
from request.words import saying, sentence, value_text
from training.models import MODELS
from training.pipeline import SCHEDULES
from training.recompute import MODULES, WORDS
from training.recompute import OWN as OWN_MODULES
from training.sharding.words import ENGINES

from .base import form
from .base.html import button, tag, together
from .machine import doubts_html, machine_inputs
from .roles.bar import roles_inputs
from .served import hidden_fields, names_of_sizes, remains_of_server

FAMILY_OF = {
    "llama": ("llama",),
    "deepseek": ("deepseek",),
    "qwen": ("qwen",),
    "mixtral": ("mixtral",),
    "megatron": ("megatron2021", "korthikanti", "mtnlg", "nemotron", "playground"),
}
"""Parts of names by which published layouts belong to a family; the rest are of no family."""

MORE = (
    *(name for name, row in FAMILIES.items() if row.kind and "gtp" not in name),
    *("embd", "pos-embd", "intra-dp-cp", "intra-edp", "inter-edp", "intra-dist-opt"),
    *("hcp-l0", "hcp-l1", "hcp-l2", "hybrid-dp-cp-2", "hybrid-dp-cp-4", "hybrid-dp-cp-8"),
)
"""Names in the list of groups; any other name of the layout may be typed."""


REMAINS = {"dp": ("derived", ("tp", "pp", "cp")), "edp": ("derived_experts", ("etp", "ep", "pp"))}
"""Sizes that remain of the world: their formula, and the sizes that divide it."""

# -- what stays until the language changes -------------------------------------------------------


@cache
def column_html(language: str) -> dict[str, Markup]:
    """The boxes of each component, by its region, with the values of the initial state; the page's
    script fills in those of its own."""
    start = State(lang=language)

    def fold(name: str, *inputs: Markup) -> Markup:
        title = tag("summary", SHELL[f"fold_{name}"][language])
        body = tag("div", *inputs, class_="inside")
        return tag("details", title, body, class_="fold", id=f"fold-{name}")

    frameworks = [(convention.name, name) for name, convention in FRAMEWORKS.items()]
    order, instances, hpz, levels, etp = (
        form.text(name, start) for name in ("order", "instances", "hpz", "levels", "etp")
    )
    types = ((row.title[language], key) for key, row in TYPES.items())
    shown = form.choice("group_type", start, types)
    dp_kind = form.choice(
        "dp_kind", start, ((title[language], key) for key, title in DP_KINDS.items())
    )
    groups = (
        form.text("more", start, list="all-groups"),
        tag("datalist", *(tag("option", value=name) for name in MORE), id="all-groups"),
    )
    frameworks.append((PAGE["own_order"][language], OWN))
    numbering = (form.choice("framework", start, frameworks), order, instances, hpz, levels)
    whole = form.check("expert_parallel", start)
    tables = form.choice("engram", start, ((text[language], n) for n, text in ENGRAM.items()))
    weights = (*(form.text(n, start) for n in ("gtp", "egtp")), form.check("gathers", start))
    folds = (
        fold("groups", *groups),
        fold("experts", _size("ep", language), etp, _size("moe_dp", language), whole, tables),
        fold("order", *numbering, form.check("hybrid", start), *weights),
        fold("model", *_model(start)),
        fold("machine", *machine_inputs(start)),
        fold("roles", *roles_inputs(start)),
    )
    every = tag("details", tag("summary", SHELL["fold_job"][language]), *folds, class_="fold every")
    return {
        "preset": together(_partly(language), _presets(language)),
        **{size_region(n): _size(n, language) for n in (*SIZES, *SIZES_OF_SERVERS)},
        "group_type": shown,
        "folds": together(dp_kind, every),
    }


SIZES = ("nodes", "gpus_per_node", "tp", "pp", "cp")
SIZES_OF_SERVERS = ("dp", "dcp")
"""The sizes in sight, those of a training job too, and those of servers alone."""


def size_region(name: str) -> str:
    """The region of a size's slider and box."""
    return f"size-{name}"


MENU = 14
"""Characters of a published layout's name in the closed menu, before its number of GPUs."""


def _partly(language: str) -> str:
    """How much of the page is translated into a language; empty if all is."""
    lacking, total = untranslated(language)
    facts = {"name": LANGUAGES[language], "count": total - len(lacking), "total": total}
    coverage = SHELL["partly"][language].format(**facts)
    return tag("div", tag("p", coverage), class_="source") if lacking else ""


def _model(start: State) -> list[Markup]:
    """The inputs of the model, its batch and training, which every view of a step uses."""
    say, language = saying(MEMORY, start.language), start.language

    def number(*names: str) -> list[Markup]:
        return [form.number(name, start) for name in names]

    def training(name: str) -> Markup:
        """A list of choices that marks the default."""
        row = FIELDS[name].row
        options = [(value_text(name, value, language), value) for value in row.choices]
        unsaid = say("by_default", name=value_text(name, row.counts, language))
        if name != "recompute":
            return form.choice(name, start, options, unsaid=unsaid)
        return together(form.choice(name, start, options, unsaid=unsaid, others=True), modules())

    def modules() -> Markup:
        """A box for any set of modules, beside the choices that are a single word."""
        names = (*MODULES, *OWN_MODULES)
        named = (tag("option", say(f"module_{name}"), value=name) for name in names)
        marks = {"hint": say("recompute_hint"), "list": "all-modules"}
        marks |= {"sets": "recompute", "besides": " ".join(WORDS)}
        box = form.text("recompute_modules", start, **marks)
        return together(box, tag("datalist", *named, id="all-modules"))

    models = [(published.name, name) for name, published in MODELS.items()]
    models.append((say("own_model"), UNKNOWN))
    schedules = [(rule.title, name) for name, rule in SCHEDULES.items()]
    engines = [(value_text("engine", name, language), name) for name in ENGINES]
    return [
        form.choice("model", start, models, unsaid=say("by_sizes")),
        form.text("layers", start),
        *number("hidden", "heads", "kv_heads", "ffn", "vocabulary", "sequence"),
        *number("experts", "top_k", "micro_batch", "global_batch", "micro_batches", "vpp"),
        form.choice("schedule", start, schedules, unsaid=say("by_vpp")),
        *number("group_size"),
        form.choice("engine", start, engines, unsaid=say("by_framework")),
        *(training(name) for name in CHOSEN if name not in ("cluster", "frozen")),
        *number("lora_rank"),
        form.text("lora_targets", start, hint=FIELDS["lora_targets"].row.counts),
        training("frozen"),
        form.check("account", start),
    ]


def menu_label(preset: str, language: str) -> str:
    """The name of a published layout and its number of GPUs; of a plan, its name."""
    if preset in PLANS:
        return PLANS[preset].name
    chosen = PUBLISHED[preset]
    facts = {"name": chosen.name, "gpus": f"{chosen.world_size:,}"}
    return SHELL["menu"][language].format(**facts)


def _presets(language: str) -> Markup:
    families: dict[str, list[Markup]] = {family: [] for family in (*FAMILY_OF, "other")}
    for name in PRESETS:
        marked = (family for family, marks in FAMILY_OF.items() if any(m in name for m in marks))
        families[next(marked, "other")].append(
            tag("option", menu_label(name, language), value=name)
        )
    offered = [tag("option", SHELL["own_layout"][language], value="")]
    for family, options in families.items():
        offered.append(tag("optgroup", *options, label=SHELL[f"family_{family}"][language]))
    served = (tag("option", menu_label(name, language), value=name) for name in SERVERS)
    offered.append(tag("optgroup", *served, label=SERVER["family_servers"][language]))
    plans = (tag("option", menu_label(name, language), value=name) for name in PLANS)
    offered.append(tag("optgroup", *plans, label=ROLES["family_plans"][language]))
    label, box = CONTROLS["preset"].label[language], "field-preset"
    return tag(
        "div",
        tag("label", label, for_=box, class_="unseen"),
        tag("select", *offered, id=box, data_field="preset"),
        class_="field preset",
    )


def _size(name: str, language: str) -> Markup:
    """A slider with stops at sizes that are valid, and a box for any number."""
    label, box = SHELL[f"size_{name}"][language], f"field-{name}"
    typed = {"type": "text", "inputmode": "numeric", "autocomplete": "off", "spellcheck": "false"}
    typed |= {"id": box, "data_field": name, "aria_describedby": f"{box}-help"}
    slider = SHELL["slider"][language].format(label=label)
    track = tag("input", type="range", min=0, step=1, aria_label=slider)
    parts = (
        tag("div", tag("label", label, for_=box), tag("input", **typed), class_="head"),
        tag("div", track, tag("span", class_="ticks", aria_hidden="true"), class_="track"),
        tag("p", CONTROLS[name].help[language], class_="help", id=f"{box}-help"),
    )
    return tag("div", *parts, class_="size", data_size=name, hidden=name in SERVED or None)


# -- what every answer brings anew ---------------------------------------------------------------


def derived_html(layout: Layout | None, state: State, language: str) -> Markup:
    """The sizes that remain, and the stops of the sliders that are folded away."""
    if not framework_or_first(state.framework).has_grids:
        rows = [*remains_of_server(layout, state, language)]
    else:
        rows = [_remaining("dp", None if layout is None else layout.mesh, language)]
    if layout is not None and layout.made_by.has_grids and layout.expert and layout.has_experts:
        rows.append(_remaining("edp", layout.expert, language))
    world = world_of(state) if layout is None else layout.world_size
    others = {name: at for name, at in slider_stops(state, world).items() if name not in SIZES}
    return tag(
        "div",
        *rows,
        doubts_html(state, language),
        class_="derived",
        data_world=world or "",
        data_stops=others,
        data_choose_dp=has_two_dp_kinds(state.group_type),
        data_own_order=state.framework == OWN,
        data_names=names_of_sizes(str(state.framework), language),
        data_hides=" ".join(hidden_fields(str(state.framework))),
    )


def _remaining(name: str, mesh: Mesh | None, language: str) -> Markup:
    """The formula of a size that remains: "Data (DP)   16 / (2·2·1) = 4".

    Without a mesh the row stays, so that nothing moves under the hand.
    """
    words, axes = REMAINS[name]
    how, size, formula = "", "–", ""
    if mesh is not None:
        sizes = {axis: f"{mesh.size(axis):,}" for axis in axes}
        world, size = f"{mesh.world_size:,}", f"{mesh.size(name):,}"
        gtp = [f"{mesh.size(GTP):,}"] if mesh.size(GTP) > 1 else []
        how = f"{world} / ({'·'.join([*sizes.values(), *gtp])}) = "
        more = "".join(f" × {'gtp' if name == 'dp' else 'egtp'} {size}" for size in gtp)
        formula = PAGE[words][language].format(world=world, more=more, **sizes)
    label, result = SHELL[f"size_{name}"][language], tag("span", how, tag("strong", size))
    return tag("p", tag("b", label), result, class_="remains", title=formula)


def notice_html(text: str, language: str, *ways: Markup) -> Markup:
    """A message that a reader can close, with buttons that mend its cause."""
    close = button(PAGE["close"][language], data_close=True)
    tries = tag("span", PAGE["try"][language])
    fixes = tag("p", tries, *ways, class_="fixes") if ways else ""
    return tag("div", tag("p", text), fixes, close, class_="refusal", role="alert")


def unknown_html(error: LayoutError, link: str, language: str) -> Markup:
    """An unknown name in a link, with the nearest known ones as buttons: a published layout opens
    with the rest of the link, anything else changes the current state."""
    ways, leads = list[Markup](), dict[str, object]()
    for name, value in (pair for fix in error.alternatives for pair in fix.items()):
        label, leads = value_text(name, value, language), {"data_set": {name: value}}
        if name == "preset":
            label, query = menu_label(str(value), language), with_name(link, name, str(value))
            leads = {"data_query": query, "data_with": {}}
        ways.append(button(label, class_="fix", data_close=True, **leads))
    return notice_html(sentence(error, language), language, *ways)


def stops_in_sight(layout: Layout | None, state: State) -> dict[str, list[int]]:
    """The stops of the sliders in sight; none where no size works."""
    found = slider_stops(state, world_of(state) if layout is None else layout.world_size)
    return {name: found.get(name, []) for name in SIZES}


def slider_stops(state: State, world: int | None) -> dict[str, list[int]]:
    """For each size its divisors that are valid with the other sizes.

    >>> slider_stops(State(), 16)["tp"], slider_stops(State(), 16)["nodes"][:4]
    ([1, 2, 4, 8], [1, 2, 3, 4])
    """
    known = sizes_or_none(state) or sizes_or_none(state, "etp")  # one that is none, as if empty
    if world is None or known is None:
        return {}
    framework = framework_or_first(state.framework)
    return framework.stops(known, world) | _machine_stops(known, framework.unit(known))


def _machine_stops(sizes: Mapping[str, int], unit: int) -> dict[str, list[int]]:
    stops = {}
    for name, other in (("nodes", "gpus_per_node"), ("gpus_per_node", "nodes")):
        step = unit // math.gcd(unit, sizes[other])
        most = MAX_RANKS // sizes[other] if name == "nodes" else 72
        stops[name] = [step * n for n in _doublings(most // step)]
    return stops


def _doublings(most: int) -> list[int]:
    """All numbers up to 8, then four per doubling."""
    stops = list(range(1, min(8, most) + 1))
    step = 2
    while stops and stops[-1] < most:
        stops += [stops[-1] + step * i for i in range(1, 5)]
        step *= 2
    return [stop for stop in stops if stop <= most]


def world_of(state: State) -> int | None:
    """The world size of the machines, whatever the other sizes are; None if they are invalid."""
    try:
        alone = State(nodes=state.nodes, gpus_per_node=state.gpus_per_node, tp=1, pp=1)
        return resolve(alone).world_size
    except LayoutError:
        return None
