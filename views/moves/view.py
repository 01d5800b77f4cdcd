"""The Moves view: which slices of the weights go from this layout to another, and what it costs."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import MOVES, MOVES_RULES, counted, joined
from groups import LayoutError
from render.draw.moves import draw_moves, draw_tensor
from render.marks import Scene
from render.scenes.charts import MatrixChart
from render.svg.marks import scene_svg
from render.svg.matrix import matrix_svg
from training.moves import Shards, kv_moves
from training.moves.cost import balance, busiest, least_seconds, seconds_of
from training.moves.published import measured_updates

from ..base import form
from ..base.context import Context, Pictures, View
from ..base.fixes import or_refused
from ..base.html import fine, fold, heading, saying, scrolling, table, tag, together
from ..base.units import bytes_text, seconds_text
from ..traffic.matrix import scale_of
from .asked import PLACES, Asked, asked_of, received_of, usual_target
from .pictures import chosen_tensor, flows_picture, job_picture, tensor_names, tensor_picture
from .sides import cluster_used, moves_between, size_text

HOT = 2.0
"""Times the mean that a sender sends where it is named."""


def moves_html(context: Context) -> Markup:
    """The answer, both layouts, one tensor, and who sends how much to whom."""
    language, state = context.language, context.state
    rules = [(MOVES_RULES[rule][language], rule) for rule in MOVES_RULES]
    places = [(MOVES[name][language], name) for name in PLACES]
    inputs = form.line(
        form.text("moves_to", state, sets="kept", hint=context.once(usual_target)[0]),
        form.choice("moves_first", state, places, counts="here"),
        form.choice("moves_rule", state, rules, counts="nearest"),
    )
    said: list[Markup] = []
    body = or_refused(context, lambda asked: _answer(asked, said))
    head = heading(MOVES["title"][language], *said)
    return together(head, inputs, tag("div", body, class_="weight-moves"))


def _answer(context: Context, said: list[Markup]) -> Markup:
    asked, language = context.once(asked_of), context.language
    said.append(tag("p", answer_text(asked)))
    picture = job_picture(asked)
    drawn = scene_svg("moves-job", picture, draw_moves(picture, "page"), _picture_text(asked))
    return together(
        tag("figure", scrolling("moves-scroll", Markup(drawn)), tag("p", needs_text(asked))),
        tag("div", _tensor(asked), _matrix(asked), class_="both"),
        _rules(asked),
        _published(asked),
        _cache(asked, language),
    )


def answer_text(asked: Asked) -> str:
    """How much crosses the network, and how long that takes."""
    say, sums = saying(MOVES, asked.language), asked.moves.bytes
    lines = [say("to", name=size_text(asked.target.layout))]
    total = bytes_text(sum(sums))
    if not (sums.in_node or sums.between_nodes):
        return joined([*lines, say("stays", total=total)], asked.language)
    seconds = seconds_text(seconds_of(asked.moves, cluster_used(asked.source)))
    word = "answer" if sums.between_nodes else "inside"
    lines.append(say(word, total=total, seconds=seconds, far=bytes_text(sums.between_nodes)))
    if sums.in_node:
        lines.append(say("near", near=bytes_text(sums.in_node)))
    if sums.same_gpu:
        lines.append(say("own", own=bytes_text(sums.same_gpu)))
    return joined(lines, asked.language)


def needs_text(asked: Asked) -> str:
    """What the chosen GPU needs, and where that is."""
    say, language = saying(MOVES, asked.language), asked.language
    received, nodes = received_of(asked), asked.moves.nodes
    total, own = sum(received.values()), received.get(asked.rank, 0)
    near = sum(size for rank, size in received.items() if nodes[rank] == nodes[asked.rank]) - own
    told = {"of_own": own, "of_node": near, "of_others": total - own - near}
    senders = len(received.keys() - {asked.rank})
    if not senders:
        return say("alone", rank=asked.rank, total=bytes_text(total))
    parts = [say(word, size=bytes_text(size)) for word, size in told.items() if size]
    return say(
        "needs",
        rank=asked.rank,
        total=bytes_text(total),
        parts=say("comma").join(parts),
        senders=counted(senders, "gpu", language),
    )


def _picture_text(asked: Asked) -> str:
    return MOVES["picture"][asked.language].format(rank=asked.rank)


def _tensor(asked: Asked) -> Markup:
    names, language = tensor_names(asked), asked.language
    if not names or asked.moves.is_fsdp:
        return Markup()
    name, state = chosen_tensor(asked, names), asked.source.state
    picture = tensor_picture(asked, name)
    at = names.index(name)
    steps = (
        form.setter({"moves_tensor": names[(at + step) % len(names)]}, MOVES[word][language])
        for step, word in ((-1, "back"), (1, "on"))
    )
    options = [(one, one) for one in names]
    note = MOVES["tensor_note"][language].format(rank=asked.rank)
    drawn = scene_svg("moves-tensor", picture, draw_tensor(picture, "page"), f"{name}: {note}")
    return tag(
        "section",
        tag("h3", MOVES["tensor"][language]),
        form.line(form.choice("moves_tensor", state, options, counts=name), *steps),
        scrolling("moves-scroll", Markup(drawn)),
        fine(note),
    )


# -- sums ----------------------------------------------------------------------------------------


def _matrix(asked: Asked) -> Markup:
    picture, per = flows_picture(asked)
    say = saying(MOVES, asked.language)
    each = say("node_each") if per == 1 else say("nodes_each", count=per)
    sizes = {"low": bytes_text(picture.low), "high": bytes_text(picture.high)}
    body = say("matrix_body", each=each, **sizes)
    title = say("matrix")
    drawn = Markup(matrix_svg(picture, f"{title}. {body}"))
    return tag("section", tag("h3", title), tag("div", drawn, class_="moves-matrix"), fine(body))


def _rules(asked: Asked) -> Markup:
    """What every rule costs, a row each; the one that counts is marked, a hot sender named."""
    language, cluster = asked.language, cluster_used(asked.source)
    say, rows = saying(MOVES, language), []
    first = asked.moves.target.first_rank
    for rule in MOVES_RULES:
        is_chosen = rule == asked.moves.rule
        moves = asked.moves
        if not is_chosen:
            moves = moves_between(asked.source, asked.target, rule, first)
        sender = busiest(moves, sender=True)
        label = MOVES_RULES[rule][language]
        rows.append(
            (
                tag("b", label) if is_chosen else form.setter({"moves_rule": rule}, label),
                *map(bytes_text, moves.bytes),
                say("sender", rank=sender.rank, size=bytes_text(sender.bytes)),
                seconds_text(seconds_of(moves, cluster)),
            )
        )
    heads = ("rule", "same_gpu", "in_node", "between_nodes", "busiest", "time")
    times = balance(asked.moves)
    hot = ""
    if times >= HOT:
        rank = busiest(asked.moves, sender=True).rank
        hot = tag("p", say("hot", rank=rank, times=f"{times:.1f}"))
    return together(table([say(head) for head in heads], rows, "moves-rules"), hot)


def _published(asked: Asked) -> Markup:
    say = saying(MOVES, asked.language)
    least = seconds_text(least_seconds(asked.moves, cluster_used(asked.source)))
    rows = [
        (one.model, f"{one.setup}, {one.way}", f"{one.seconds:g}", one.source)
        for one in measured_updates()
    ]
    heads = (say(f"column_{name}") for name in ("model", "setup", "seconds", "source"))
    return together(
        fine(say("least", seconds=least)),
        fold(say("published"), table(heads, rows, "moves-published")),
    )


def _cache(asked: Asked, language: str) -> Markup:
    """Who hands over which heads of which layers of a request's KV cache to the chosen GPU."""
    model, say = asked.moves.model, saying(MOVES, language)
    first = asked.moves.target.first_rank
    sides = []
    for side, start in ((asked.source, 0), (asked.target, first)):
        sizes = {name: side.layout.mesh.size(name) for name in ("tp", "pp")}
        copies = side.layout.world_size // (sizes["tp"] * sizes["pp"])
        sides.append(Shards(**sizes, copies=copies, first_rank=start))
    try:
        heads = 1 if model.is_mla else model.kv_heads
        found = kv_moves(model.layers, heads, sides[0], sides[1], mla=model.is_mla)
    except LayoutError as error:
        return fold(say("kv_title"), fine(str(error)))
    rows = [
        (
            f"{row.source:,}",
            f"{row.first_layer} – {row.after_layer - 1}",
            f"{row.first_head} – {row.after_head - 1}",
        )
        for row in found
        if row.target == asked.rank
    ]
    heads_of = [say(name) for name in ("kv_from", "kv_layers", "kv_heads")]
    body = fine(say("kv_body", rank=asked.rank))
    return fold(say("kv_title"), body, table(heads_of, rows, "moves-kv"))


# -- what goes into files ------------------------------------------------------------------------


def moves_pictures(context: Context) -> Pictures:
    """Both layouts, the tensor, and who sends how much to whom."""
    asked = context.once(asked_of)
    names = tensor_names(asked)
    pictures: list[tuple[str, Scene]] = [(_picture_text(asked), job_picture(asked))]
    if names and not asked.moves.is_fsdp:
        name = chosen_tensor(asked, names)
        pictures.append((name, tensor_picture(asked, name)))
    picture, per = flows_picture(asked)
    say = saying(MOVES, context.language)
    each = say("node_each") if per == 1 else say("nodes_each", count=per)
    return [*pictures, (say("matrix"), MatrixChart(picture, each, scale_of(picture)))]


def moves_slide(context: Context) -> Pictures:
    return [("", job_picture(context.once(asked_of)))]


def moves_summary(context: Context) -> str:
    asked = context.once(asked_of)
    return joined([answer_text(asked), needs_text(asked)], context.language)


VIEW = View(
    "moves",
    "step",
    moves_html,
    moves_pictures,
    MOVES["title"],
    moves_summary,
    slide=moves_slide,
)
