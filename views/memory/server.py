"""Memory of servers: GPU tiles with weights, overhead and cache, KV heads and experts, requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from descriptions import MEMORY, SAVED, joined
from groups import LayoutError
from groups.alternatives import works
from groups.layout import Layout
from render.draw.server import CACHE, draw_bar, draw_strip, draw_tile
from render.palette import HEAT, HEAT_SHADES
from render.scenes.groups import PANEL_LIMIT
from render.scenes.heat import Heat
from render.scenes.server import HEADS, MOST_REQUESTS, RequestStrip, Segment, ServerPicture, Tile
from render.svg.marks import marks_svg, scene_svg
from request.answers.roles.said import found_of, fullest_text
from request.context import Context
from request.model import model_name
from request.served import ServedModel, printed_line, served_of
from request.state import State
from request.words import saying
from training.models import MODELS
from training.parameters import total_parameters
from training.serving.placed import has_a2a
from training.serving.server import CACHES, GIB, PARTS, SHARES, ServedStage
from training.serving.weights import FORMATS

from ..base import form
from ..base.heat import painted
from ..base.html import fine, fold, heading, table, tag, together
from ..base.problems import problem_html
from ..base.view import Pictures
from ..parts.model import facts_html
from .engine_log import log_html
from .stages import gib

COLOURS = {"weights": "kept0", "experts": "kept2", "working": "step2", "cache": CACHE}
"""The fill of each part of a tile by its name."""

MOST_STAGES = 16
"""The most stages in the legend; of more, the first and the last."""

MOST_ON_SLIDE = 32
"""The most GPUs that a slide draws one by one."""

MOST_TILES = 64
"""The most GPUs drawn one by one; of more, the node of the selected one, and all of them as
cells."""


def server_html(context: Context) -> Markup:
    """One sentence, the inputs, the picture, the engine's output, then the numbers."""
    language, say = context.language, saying(MEMORY, context.language)
    inputs = _inputs(context)
    try:
        served = served_of(context)
        parts: tuple[Markup, ...] = (
            _verdict(context, served),
            inputs,
            _picture(context, served),
            _below(context, served),
        )
    except LayoutError as error:
        parts = (problem_html(error, language, _ways(context, error)), inputs, Markup())
    log = log_html(context)
    return together(heading(say("served_heading")), tag("div", *parts, log, class_="memory served"))


def _inputs(context: Context) -> Markup:
    state, say = context.state, saying(MEMORY, context.language)
    formats, caches = (
        [(say(f"format_{name}"), name) for name in names] for names in (FORMATS, CACHES)
    )
    try:
        memory = served_of(context).memory
        serving = memory.serving
        hints = {
            "served_share": f"{memory.share:g}",
            "served_length": serving.length,
            "served_requests": serving.requests_on(memory.total) or "",
            "served_batched": memory.batched,
        }
    except LayoutError:
        hints = {}
    rare = [form.number(name, state, hint=hints.get(name, ""))
            for name in ("served_requests", "served_batched")]  # fmt: skip
    rare.append(form.text("served_partition", state))
    if context.layout.expert is not None and has_a2a(context.layout):
        ways = [("DeepEP", "deepep")]
        rare.append(form.choice("served_a2a", state, ways, unsaid=say("a2a_none")))
    return form.line(
        form.number("served_length", state, hint=hints.get("served_length", "")),
        form.choice("served_weights", state, formats, unsaid=say("as_published")),
        form.choice("served_cache", state, caches, unsaid=say("format_bf16")),
        form.number("served_share", state, hint=hints.get("served_share", "")),
        fold(say("served_more"), form.fields(*rare), is_open=False),
    )


def _ways(context: Context, error: LayoutError) -> list[dict[str, object]]:
    """Changes that were tried and fit: those of the refusal, then weights of fewer bits, then more
    GPUs in attention's tp."""
    tp, state = context.layout.mesh.size("tp"), context.state
    world = context.layout.world_size
    tried: list[dict[str, object]] = [dict(fix) for fix in error.alternatives]
    if error.code == "no-room-for-cache":
        tried += [{"served_weights": name} for name in ("fp8", "int4")]
        tried += [{"tp": size} for size in (2 * tp, 4 * tp, 8 * tp) if size <= world]
    return [fix for fix in tried if works(_fits, state, fix)][:3]


def _fits(state: State, changes: dict[str, object]) -> None:
    served_of(Context.of(state.changed(changes)))


# -- in words --------------------------------------------------------------------------------------


def _verdict(context: Context, served: ServedModel) -> Markup:
    """What fits; where the engine is a role of a plan that does not fit, that instead of a green
    verdict."""
    words = tag("p", verdict_text(served, context.language))
    if context.state.roles and not found_of(context).fits:
        words = together(tag("p", fullest_text(context)), words)
        return tag("div", words, class_="verdict over", role="status")
    return tag("div", words, class_="verdict fits", role="status")


def verdict_text(served: ServedModel, language: str) -> str:
    """How many requests fit, and what is held twice."""
    say, memory = saying(MEMORY, language), served.memory
    sentences = [
        say(
            "served_fits",
            requests=f"{memory.cache.requests:,.1f}",
            length=f"{memory.serving.length:,}",
            tokens=f"{memory.cache.tokens:,}",
            cache=gib(memory.deciding.available),
        )
    ]
    if served.model.is_mla and memory.copies > 1:
        sentences.append(say("served_latent", ranks=memory.copies))
    elif memory.copies > 1:
        heads = served.model.kv_heads
        sentences.append(
            say("served_copies", tp=memory.cut.attention, heads=heads, copies=memory.copies)
        )
    if served.held.answering > 1:
        words = "served_attention_times" if served.model.experts else "served_times"
        count, total = served.held.answering, memory.cache.requests * served.held.answering
        sentences.append(say(words, count=count, total=f"{total:,.0f}"))
    ep, experts = memory.cut.ep, served.model.experts
    if experts and ep > experts:
        sentences.append(say("served_redundant", ep=ep, experts=experts, more=ep - experts))
    if served.servers > 1:
        sentences.append(say("served_servers", count=served.servers, gpus=served.gpus))
    if len(memory.stages) > 1:
        sentences.append(say("served_decides", stage=memory.cache.stage))
    return joined(sentences, language)


# -- the picture -----------------------------------------------------------------------------------


def tiles_of(context: Context, served: ServedModel, ranks: Sequence[int]) -> tuple[Tile, ...]:
    """The tiles of these ranks."""
    bars = {stage.stage: _bar(served, stage) for stage in served.memory.stages}
    return tuple(_tile(context, served, rank, bars) for rank in ranks)


def _bar(served: ServedModel, stage: ServedStage) -> tuple[Segment, ...]:
    memory, held = served.memory, served.held
    experts = stage.parts.get("experts", 0.0)
    shares = {
        "weights": (stage.weights - experts, held.replicas > 1),
        "experts": (experts, False),
        "working": (stage.working, False),
        "cache": (stage.available, held.copies > 1),
    }
    return tuple(
        Segment(COLOURS[name], max(0.0, size) / memory.total, is_copied)
        for name, (size, is_copied) in shares.items()
        if size > 0
    )


def _tile(
    context: Context, served: ServedModel, rank: int, bars: dict[int, tuple[Segment, ...]]
) -> Tile:
    say, held, cut = saying(MEMORY, context.language), served.held, served.memory.cut
    stage, first = int(held.stage[rank]), int(held.head[rank])
    name = say("served_gpu", rank=f"{rank:,}")
    if cut.pp > 1:
        name = say("served_gpu_stage", rank=f"{rank:,}", stage=stage)
    heads: tuple[int, ...] = ()
    note = say("served_latent_note")
    if held.heads and held.heads <= HEADS:
        heads, note = tuple(range(first, first + held.heads)), ""
    elif held.heads:
        note = say("served_heads", first=first, last=first + held.heads - 1)
    if cut.dcp > 1:
        note = say("served_part", part=int(held.part[rank]) + 1, parts=cut.dcp)
    lines = []
    if served.model.experts:
        at, count = int(held.expert[rank]), int(held.experts[rank])
        words = "served_experts" if count > 1 else "served_expert"
        part = "" if cut.etp == 1 else f" · 1/{cut.etp}"
        lines.append(say(words, first=at, last=at + count - 1) + part)
    is_chosen = rank == context.rank
    return Tile(name, bars[stage], heads, held.copies > 1, note, tuple(lines), is_chosen)


def nodes_of(layout: Layout, rank: int, most: int = MOST_TILES) -> list[tuple[int, range]]:
    """The nodes that are drawn, each with its ranks: all of them, or only that of the selected rank
    if the layout has more than ``most`` ranks."""
    each = layout.gpus_per_node
    node = rank // each
    every = range(-(-layout.world_size // each))
    shown = every if layout.world_size <= most else [node]
    return [(one, range(one * each, min((one + 1) * each, layout.world_size))) for one in shown]


def _picture(context: Context, served: ServedModel) -> Markup:
    """Nodes of tiles, each a link to its GPU, then the requests and the engine's own line."""
    say, layout = saying(MEMORY, context.language), context.layout
    nodes = (
        tag(
            "div",
            tag("h4", say("served_node", node=f"{node:,}")),
            tag("div", *_buttons(tiles_of(context, served, ranks), ranks), class_="served-tiles"),
            class_="served-node",
        )
        for node, ranks in nodes_of(layout, context.rank)
    )
    keys = (
        tag("li", say(f"served_key_{name}"), style=f"--part:var(--{COLOURS[name]})")
        for name in COLOURS
        if name != "experts" or served.model.experts
    )
    legend = tag("ul", *keys, tag("li", say("served_key_same"), class_="hatch"),
                 class_="memory-legend")  # fmt: skip
    is_large = layout.world_size > MOST_TILES
    has_map = is_large and len(served.memory.stages) > 1  # else all cells are alike
    return together(
        _steps(context) if is_large else "",
        tag("div", *nodes, class_="served-nodes"),
        legend,
        _requests(served, context.language),
        tag("h3", say("served_cells")) if has_map else "",
        painted(_cells(context, served), say("served_cells")) if has_map else "",
    )


def _buttons(tiles: Sequence[Tile], ranks: Sequence[int]) -> Iterator[Markup]:
    bars = {tile.bar: marks_svg(draw_bar(tile.bar, "page")) for tile in tiles}
    for tile, rank in zip(tiles, ranks):
        label = ", ".join((tile.name, *filter(None, (tile.note,)), *tile.lines))
        size = f'width="{tile.width:g}" height="{tile.height:g}"'
        box = f'viewBox="0 0 {tile.width:g} {tile.height:g}"'
        marks = marks_svg(draw_tile(tile, "page", with_bar=False))
        yield tag(
            "button",
            Markup(f'<svg {size} {box} aria-hidden="true">{marks}{bars[tile.bar]}</svg>'),
            type="button",
            class_="served-tile",
            aria_label=label,
            aria_pressed="true" if tile.is_chosen else "false",
            data_set={"rank": str(rank)},
        )


def _cells(context: Context, served: ServedModel) -> Heat:
    """All GPUs of a large layout as cells, coloured by stage, with the GiB of the cache on them."""
    say, stages, world = saying(MEMORY, context.language), served.memory.stages, served.held.stage
    steps = (HEAT - 1) / max(len(stages) - 1, 1)
    shades = tuple(HEAT_SHADES[round(place * steps)] for place in range(len(stages)))
    amounts = [f"{stage.available / GIB:.0f}" for stage in stages]
    legend = tuple(
        (shade, say("served_stage_cell", stage=stage.stage, cache=gib(stage.available)))
        for shade, stage in zip(shades, stages)
    )
    few = legend if len(legend) <= MOST_STAGES else (legend[0], legend[-1])
    texts = [amounts[stage] for stage in world] if len(world) <= PANEL_LIMIT else amounts
    each = context.layout.gpus_per_node
    return Heat(world, texts, each, few, shades, (context.rank,))


def _steps(context: Context) -> Markup:
    """The node that is drawn, and buttons for its neighbours."""
    say, layout = saying(MEMORY, context.language), context.layout
    each = layout.gpus_per_node
    node, nodes = context.rank // each, -(-layout.world_size // each)
    beside = (
        form.setter({"rank": other * each}, say("served_node", node=f"{other:,}"))
        for other in (node - 1, node + 1)
        if 0 <= other < nodes
    )
    text = say("served_one_node", node=f"{node:,}", nodes=f"{nodes:,}")
    return tag("p", text, " ", *beside, class_="fine fixes")


def strip_of(served: ServedModel, language: str) -> RequestStrip:
    cache, say = served.memory.cache, saying(MEMORY, language)
    words = "strip_band" if cache.requests > MOST_REQUESTS else "strip"
    numbers = {"requests": f"{cache.requests:,.2f}", "length": f"{served.serving.length:,}"}
    return RequestStrip(cache.requests, say(f"served_{words}", **numbers))


def _requests(served: ServedModel, language: str) -> Markup:
    say, strip, line = saying(MEMORY, language), strip_of(served, language), printed_line(served)
    prints = say("served_prints", engine=ENGINE_NAMES[served.serving.engine])
    bare = RequestStrip(strip.requests, "")
    drawn = scene_svg("requests", bare, draw_strip(bare, "page"), strip.label)
    return together(
        tag("h3", say("served_requests_title")),
        Markup(drawn),
        fine(strip.label),
        tag("h3", prints) if line else "",
        tag("pre", line, class_="served-line", tabindex=0) if line else "",
    )


ENGINE_NAMES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TensorRT-LLM",
    "megatron": "Megatron",
}


# -- the numbers -----------------------------------------------------------------------------------


def _below(context: Context, served: ServedModel) -> Markup:
    """A table of the parts on a GPU of each stage, and the defaults that apply."""
    language, say, memory = context.language, saying(MEMORY, context.language), served.memory
    stages = memory.stages if len(memory.stages) <= 8 else memory.stages[:4] + memory.stages[-4:]
    names = [name for name in PARTS if any(name in stage.parts for stage in stages)]
    rows: list[tuple[object, ...]] = [
        (say(f"served_part_{name}"), *(gib(stage.parts.get(name, 0.0)) for stage in stages))
        for name in names
    ]
    rows.append((say("served_part_cache"), *(gib(stage.available) for stage in stages)))
    rows.append((say("served_part_free"), *(gib(max(0.0, stage.free)) for stage in stages)))
    rows.append((tag("b", say("kinds_sum")), *(tag("b", gib(memory.total)) for _ in stages)))
    heads = [say("served_column")]
    heads += [say("served_stage", stage=one.stage, layers=len(one.layers)) for one in stages]
    name, published = model_name(served.chosen, language), MODELS.get(served.chosen.preset)
    facts = facts_html(served.chosen, language)
    line = say("parameters_line", name=name, total=f"{total_parameters(served.model) / 1e9:,.2f}")
    model = tag("p", tag("b", line), " ", tag("small", published.source if published else ""),
                class_="memory-model")  # fmt: skip
    token = say("served_token", bytes=f"{memory.deciding.token:,.0f}", how=_token_formula(served))
    return together(
        tag("h3", say("served_table")),
        table(heads, rows, "memory-zero"),
        model,
        facts,
        fine(token),
        fine(say("served_left_out", share=SHARES[memory.serving.engine][0])),
    )


def _token_formula(served: ServedModel) -> str:
    """The formula of the bytes of a token on a rank of the stage with the least cache."""
    memory, model = served.memory, served.model
    layers = len(memory.deciding.layers)
    size = CACHES[memory.serving.cache]
    if model.runs:
        places = Counter(model.numbers[layer] for layer in memory.deciding.layers)
        size, tp = CACHES[memory.serving.cache], memory.cut.attention
        kept = {
            place: sum(mixer.rank_token_bytes(tp, size) for mixer in model.kinds[place].mixers)
            for place in places
        }
        return (
            " + ".join(f"{n} × {kept[at]:,.0f} B" for at, n in places.items() if kept[at]) or "0 B"
        )
    if model.is_mla:
        return f"{memory.layers[0].key} × {layers} × {size} B"
    return f"2 × {layers} × {memory.heads} × {model.head_dim} × {size} B"


# -- files -----------------------------------------------------------------------------------------


def server_slide(context: Context) -> Pictures:
    """The picture, if few enough GPUs are readable on a slide."""
    return server_pictures(context, MOST_ON_SLIDE)


def server_pictures(context: Context, most: int = MOST_TILES) -> Pictures:
    """The picture, for files."""
    served, language = served_of(context), context.language
    say = saying(MEMORY, language)
    nodes = tuple(
        (say("served_node", node=f"{node:,}"), tiles_of(context, served, ranks))
        for node, ranks in nodes_of(context.layout, context.rank, most)
    )
    legend: tuple[tuple[str, str], ...] = tuple(
        (COLOURS[name], say(f"served_key_{name}"))
        for name in COLOURS
        if name != "experts" or served.model.experts
    )
    if served.held.copies > 1 or served.held.replicas > 1:
        legend += (("", say("served_key_same")),)
    picture = ServerPicture(nodes, strip_of(served, language), legend, printed_line(served))
    title = SAVED["served"][language].format(name=model_name(served.chosen, language))
    return [(title, picture)]


def server_summary(context: Context) -> str:
    return verdict_text(served_of(context), context.language)
