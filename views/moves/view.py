"""The Moves view: which slices of the weights go from this layout to another, and what that
costs."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import JOB, MOVES, MOVES_RULES, counted, joined
from groups.presets import PUBLISHED
from render.marks import Scene
from request.answers.moves.api import moves as moves_endpoint
from request.answers.moves.api import moves_check
from request.answers.moves.cache import RULE_NAMES, kv_transfer, moves_cache
from request.answers.moves.sides import ROLE, cluster_used, size_text
from request.answers.moves.transfer import (
    KEPT,
    PLACES,
    WeightTransfer,
    other_roles,
    usual_name,
    usual_target,
    weight_transfer,
)
from request.context import Context
from request.inputs import FIELDS
from request.named.kept import FROM_HERE
from request.state import State, is_empty
from request.units import bytes_text, seconds_text
from request.words import saying
from training.moves.cost import seconds_of, usual_seconds

from ..base import form
from ..base.html import fine, fold, heading, player_buttons, scrolling, tag, together
from ..base.problems import or_refused
from ..base.view import Pictures, View
from .both import both_html, picture_text
from .cache import cache_answer, cache_needs
from .cache_view import cache_html, cache_pictures
from .costs import rules_html, times_chart, times_html, totals_html
from .flows import flows_chart, flows_html
from .hover import transfer_hover_texts
from .pictures import job_picture, shades_of
from .reel import steps_of, tensor_svg
from .tensor import chosen_row, kind_of, tensor_named, tensor_names, tensor_picture


def moves_html(context: Context) -> Markup:
    """The view: answer, both layouts, one tensor or one request's KV cache, and the costs."""
    language, state, say = context.language, context.state, saying(MOVES, context.language)
    is_cache = is_of_cache(state)
    whats = [(say(f"what_{what}"), what) for what in FIELDS["moves_what"].choices]
    rules = [(MOVES_RULES[rule][language], rule) for rule in MOVES_RULES]
    rule = form.choice("moves_rule", state, rules, counts="nearest")
    if is_cache:
        names = [(name, rule) for rule, name in RULE_NAMES.items()]
        rule = form.choice("moves_kv_rule", state, names, unsaid=say("kv_rule_unsaid"))
    inputs = form.line(
        form.choice("moves_what", state, whats, counts="weights"),
        form.choice("moves_other", state, other_choices(context), counts=usual_name(context)),
        _place(context),
        rule,
        fold(say("paste"), form.area("moves_to", state, sets="moves_other"), kind=""),
    )
    answers: list[Markup] = []
    answer = cache_html if is_cache else _answer

    def answered(tried: Context) -> Markup:
        tried.state.value("moves_what")  # refuses what is neither
        return answer(tried, answers)

    body = or_refused(context, answered)
    head = heading(title_text(context), *answers)
    return together(head, inputs, tag("div", body, class_="weight-moves"))


def _place(context: Context) -> Markup | str:
    """The control for where the other layout runs; "" for roles, which have GPUs of their own."""
    state, language = context.state, context.language
    if (state.moves_other.strip() or usual_name(context)).startswith(ROLE):
        return ""
    places = [(MOVES[name][language], name) for name in PLACES]
    return form.choice("moves_first", state, places, counts="here")


MOST_LETTERS = 40
"""The longest text that the list of layouts shows in full."""


def other_choices(context: Context) -> list[tuple[str, str]]:
    """The other layouts to choose from: roles of the plan, the layout kept by Compare, this one as
    a server would have it, published ones, and the pasted one."""
    say, state = saying(MOVES, context.language), context.state
    offered = [(say("role", name=name), f"{ROLE}{name}") for name in other_roles(context)]
    if not is_empty(state.kept):
        offered.append((say("kept"), KEPT))
    if not (usual_name(context) or offered):
        offered.append((say("same"), ""))
    if usual := context.once(usual_target)[0]:
        sizes = usual.removeprefix(FROM_HERE).replace("=", " ").split(";")
        offered.append((say("usual_target", sizes=say("comma").join(sizes)), usual))
    offered += [(preset.name, name) for name, preset in PUBLISHED.items()]
    text = state.moves_other
    if text and text not in {value for _, value in offered}:
        offered.append((text if len(text) <= MOST_LETTERS else say("pasted"), text))
    return offered


def _answer(context: Context, answers: list[Markup]) -> Markup:
    transfer = context.once(weight_transfer)
    answers.append(tag("p", answer_text(transfer)))

    def hover_texts(ranks: Sequence[set[int]]) -> list[dict[str, str]]:
        return transfer_hover_texts(transfer, ranks)

    flows = tag("div", flows_html(transfer), totals_html(transfer))
    return together(
        both_html(transfer, needs_text(transfer), hover_texts),
        tag("div", _tensor(transfer), flows, class_="moves-pair"),
        rules_html(transfer),
        times_html(transfer),
    )


def is_of_cache(state: State) -> bool:
    """Whether the view shows one request's KV cache instead of the weights."""
    return state.moves_what.strip().lower() == "kv"


def title_text(context: Context) -> str:
    """The view's title, which names the roles if both sides are roles."""
    text = context.state.moves_other.strip() or usual_name(context)
    is_cache = is_of_cache(context.state)
    if text.startswith(ROLE):
        names = {"source": context.cast.shown.name, "target": text.removeprefix(ROLE).strip()}
        word = "title_kv_roles" if is_cache else "title_roles"
        return MOVES[word][context.language].format(**names)
    return MOVES["title_kv" if is_cache else "title"][context.language]


def answer_text(transfer: WeightTransfer) -> str:
    """How many bytes cross the network, and how many seconds that takes."""
    say, sums = saying(MOVES, transfer.language), transfer.moves.bytes
    name = size_text(transfer.target.layout)
    lines = [say("to", name=name)]
    if transfer.roles:
        lines = [say("to_role", source=transfer.roles[0], target=transfer.roles[1], name=name)]
    total = bytes_text(sum(sums))
    if not (sums.in_node or sums.between_nodes):
        return joined([*lines, say("stays", total=total)], transfer.language)
    cluster = cluster_used(transfer.source)
    low, high = map(seconds_text, usual_seconds(transfer.moves, cluster))
    times = {"seconds": seconds_text(seconds_of(transfer.moves, cluster)), "low": low, "high": high}
    word = "answer" if sums.between_nodes else "inside"
    if transfer.moves.gathers:
        word, total = "gathered", bytes_text(sums.in_node + sums.between_nodes)
        return joined(
            [*lines, say(word, total=total, **times, far=bytes_text(sums.between_nodes))],
            transfer.language,
        )
    lines.append(say(word, total=total, **times, far=bytes_text(sums.between_nodes)))
    if sums.in_node:
        lines.append(say("near", near=bytes_text(sums.in_node)))
    if sums.same_gpu:
        lines.append(say("own", own=bytes_text(sums.same_gpu)))
    return joined(lines, transfer.language)


def needs_text(transfer: WeightTransfer) -> str:
    """What the selected GPU needs, and where it comes from."""
    say, language = saying(MOVES, transfer.language), transfer.language
    received, nodes = transfer.received, transfer.moves.nodes
    total, own = sum(received.values()), received.get(transfer.rank, 0)
    near = sum(size for rank, size in received.items() if nodes[rank] == nodes[transfer.rank]) - own
    sizes = {"of_own": own, "of_node": near, "of_others": total - own - near}
    senders = len(received.keys() - {transfer.rank})
    if not senders:
        return say("alone", rank=transfer.rank, total=bytes_text(total))
    parts = [say(word, size=bytes_text(size)) for word, size in sizes.items() if size]
    return say(
        "needs",
        rank=transfer.rank,
        total=bytes_text(total),
        parts=say("comma").join(parts),
        senders=counted(senders, "gpu", language),
    )


# -- one tensor ----------------------------------------------------------------------------------


def _tensor(transfer: WeightTransfer) -> Markup:
    """The selected tensor as a matrix, with a player for all tensors."""
    row, language, say = chosen_row(transfer), transfer.language, saying(MOVES, transfer.language)
    if row is None:
        return Markup()
    state, options = (
        transfer.source.state,
        [(kind_of(name), name) for name in tensor_names(transfer)],
    )
    if row.tensor not in dict(map(reversed, options)):  # type: ignore[arg-type]
        options.append((row.tensor, row.tensor))
    steps = steps_of(transfer)[0]
    place = next((at for at, step in enumerate(steps) if step[0] == row.tensor), 0)
    tensor = tensor_named(transfer.moves, row.tensor)
    shape = " × ".join(f"{length:,}" for length in tensor.shape)
    shape_text = say("shape_blocks", shape=shape) if tensor.blocks == 2 else shape
    words = {"step": MOVES["step"][language], "wait": JOB["film_wait"][language]}
    slider = {"min": 0, "max": len(steps) - 1, "value": place, "step": 1}
    number = say("step", number=f"{place + 1:,}", count=f"{len(steps):,}")
    return tag(
        "section",
        tag("h3", say("tensor")),
        form.line(form.choice("moves_tensor", state, options, counts=row.tensor)),
        tag("p", tag("code", row.tensor), " ", tag("span", shape_text), class_="moves-name"),
        scrolling("moves-scroll matrix", Markup(tensor_svg(transfer, row, shades_of(transfer)))),
        tag(
            "div",
            player_buttons("moves_back", "moves_on", language),
            tag("input", type="range", **slider, aria_label=say("tensor")),
            tag("span", number, class_="moves-step"),
            class_="player moves-player",
            data_words=words,
            data_tensor=row.tensor,
        ),
        fine(say("tensor_note", rank=transfer.rank)),
    )


# -- what goes into files ------------------------------------------------------------------------


def moves_pictures(context: Context) -> Pictures:
    """Both layouts, the tensor and the matrix of bytes sent; or the KV cache of one request."""
    if is_of_cache(context.state):
        return cache_pictures(context)
    transfer = context.once(weight_transfer)
    row = chosen_row(transfer)
    pictures: list[tuple[str, Scene]] = [(picture_text(transfer), job_picture(transfer))]
    if row is not None:
        pictures.append((row.tensor, tensor_picture(transfer, row, shades_of(transfer))))
    times = MOVES["times_picture"][context.language], times_chart(transfer)
    return [*pictures, flows_chart(transfer), times]


def moves_slide(context: Context) -> Pictures:
    if is_of_cache(context.state):
        return [("", job_picture(context.once(kv_transfer)))]
    return [("", job_picture(context.once(weight_transfer)))]


def moves_summary(context: Context) -> str:
    if is_of_cache(context.state):
        cache = context.once(kv_transfer)
        return joined([cache_answer(cache), cache_needs(cache)], context.language)
    transfer = context.once(weight_transfer)
    sentences = (answer_text(transfer), needs_text(transfer))  # three lines of a slide
    return joined([*filter(None, sentences)], context.language)


VIEW = View(
    "moves",
    "between",
    moves_html,
    moves_pictures,
    MOVES["title"],
    moves_summary,
    slide=moves_slide,
    place=2,
    endpoints=(moves_endpoint, moves_check, moves_cache),
    commands=("moves",),
)
