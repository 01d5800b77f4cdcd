"""The Moves view: which slices of the weights go from this layout to another, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import JOB, MOVES, MOVES_RULES, counted, joined
from groups.presets import PUBLISHED
from render.marks import Scene
from training.moves.cost import seconds_of

from ..base import form
from ..base.context import Context, Pictures, View
from ..base.fixes import or_refused
from ..base.html import (
    fine,
    fold,
    heading,
    player_buttons,
    saying,
    scrolling,
    tag,
    together,
)
from ..base.inputs import FIELDS
from ..base.state import State, is_empty
from ..base.units import bytes_text, seconds_text
from .asked import (
    KEPT,
    PLACES,
    Asked,
    asked_of,
    other_roles,
    received_of,
    usual_name,
    usual_target,
)
from .both import both_html, picture_text
from .cache import RULE_NAMES, cache_answer, cache_needs, handed_over
from .cache_view import cache_html, cache_pictures
from .costs import hot_text, rules_html, times_chart, times_html, totals_html
from .flows import flows_chart, flows_html
from .pictures import job_picture, sides_of, tones_of
from .reel import steps_of, tensor_svg
from .sides import ROLE, cluster_used, size_text
from .tensor import chosen_row, kind_of, tensor_named, tensor_names, tensor_picture
from .told import told_of


def moves_html(context: Context) -> Markup:
    """The answer, both layouts, one tensor or one request's cache, and what it costs."""
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
    said: list[Markup] = []
    answer = cache_html if is_cache else _answer

    def answered(asked: Context) -> Markup:
        asked.state.value("moves_what")  # refuses what is neither
        return answer(asked, said)

    body = or_refused(context, answered)
    head = heading(title_text(context), *said)
    return together(head, inputs, tag("div", body, class_="weight-moves"))


def _place(context: Context) -> Markup | str:
    """Where the other layout stands; roles have their own GPUs."""
    state, language = context.state, context.language
    if (state.moves_other.strip() or usual_name(context)).startswith(ROLE):
        return ""
    places = [(MOVES[name][language], name) for name in PLACES]
    return form.choice("moves_first", state, places, counts="here")


MOST_LETTERS = 40
"""Letters of a text that names the other layout, up to which the list shows it."""


def other_choices(context: Context) -> list[tuple[str, str]]:
    """The other layouts that are offered: roles of the plan, the one that Compare keeps, this one
    as a server has it, published ones; and what was pasted."""
    say, state = saying(MOVES, context.language), context.state
    offered = [(say("role", name=name), f"{ROLE}{name}") for name in other_roles(context)]
    if not is_empty(state.kept):
        offered.append((say("kept"), KEPT))
    if usual := context.once(usual_target)[0]:
        offered.append((say("usual_target", changes=usual), usual))
    offered += [(preset.name, name) for name, preset in PUBLISHED.items()]
    text = state.moves_other
    if text and text not in {value for _, value in offered}:
        offered.append((text if len(text) <= MOST_LETTERS else say("pasted"), text))
    return offered


def _answer(context: Context, said: list[Markup]) -> Markup:
    asked = context.once(asked_of)
    said.append(tag("p", answer_text(asked)))

    def told(ranks: Sequence[set[int]]) -> list[dict[str, str]]:
        return told_of(asked, ranks)

    flows = tag("div", flows_html(asked), totals_html(asked))
    return together(
        both_html(sides_of(asked), needs_text(asked), told),
        tag("div", _tensor(asked), flows, class_="moves-pair"),
        rules_html(asked),
        times_html(asked),
    )


def is_of_cache(state: State) -> bool:
    """Whether one request's cache moves, and not the weights."""
    return state.moves_what.strip().lower() == "kv"


def title_text(context: Context) -> str:
    """What is asked, of roles by their names."""
    text = context.state.moves_other.strip() or usual_name(context)
    is_cache = is_of_cache(context.state)
    if text.startswith(ROLE):
        names = {"source": context.cast.shown.name, "target": text.removeprefix(ROLE).strip()}
        word = "title_kv_roles" if is_cache else "title_roles"
        return MOVES[word][context.language].format(**names)
    return MOVES["title_kv" if is_cache else "title"][context.language]


def answer_text(asked: Asked) -> str:
    """How much crosses the network, and how long that takes."""
    say, sums = saying(MOVES, asked.language), asked.moves.bytes
    name = size_text(asked.target.layout)
    lines = [say("to", name=name)]
    if asked.roles:
        lines = [say("to_role", source=asked.roles[0], target=asked.roles[1], name=name)]
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


# -- one tensor ----------------------------------------------------------------------------------


def _tensor(asked: Asked) -> Markup:
    """The chosen tensor as its matrix, and what plays through all of them."""
    row, language, say = chosen_row(asked), asked.language, saying(MOVES, asked.language)
    if row is None:
        return Markup()
    state, options = asked.source.state, [(kind_of(name), name) for name in tensor_names(asked)]
    if row.tensor not in dict(map(reversed, options)):  # type: ignore[arg-type]
        options.append((row.tensor, row.tensor))
    steps = steps_of(asked)[0]
    place = next((at for at, step in enumerate(steps) if step[0] == row.tensor), 0)
    tensor = tensor_named(asked.moves, row.tensor)
    shape = " × ".join(f"{length:,}" for length in tensor.shape)
    told = say("shape_blocks", shape=shape) if tensor.blocks == 2 else shape
    words = {"step": MOVES["step"][language], "wait": JOB["film_wait"][language]}
    slider = {"min": 0, "max": len(steps) - 1, "value": place, "step": 1}
    number = say("step", number=f"{place + 1:,}", count=f"{len(steps):,}")
    return tag(
        "section",
        tag("h3", say("tensor")),
        form.line(form.choice("moves_tensor", state, options, counts=row.tensor)),
        tag("p", tag("code", row.tensor), " ", tag("span", told), class_="moves-name"),
        scrolling("moves-scroll matrix", Markup(tensor_svg(asked, row, tones_of(asked)))),
        tag(
            "div",
            player_buttons("moves_back", "moves_on", language),
            tag("input", type="range", **slider, aria_label=say("tensor")),
            tag("span", number, class_="moves-step"),
            class_="player moves-player",
            data_words=words,
            data_tensor=row.tensor,
        ),
        fine(say("tensor_note", rank=asked.rank)),
    )


# -- what goes into files ------------------------------------------------------------------------


def moves_pictures(context: Context) -> Pictures:
    """Both layouts, the tensor, and who sends how much to whom; or the cache of a request."""
    if is_of_cache(context.state):
        return cache_pictures(context)
    asked = context.once(asked_of)
    row, both = chosen_row(asked), sides_of(asked)
    pictures: list[tuple[str, Scene]] = [(picture_text(both), job_picture(both))]
    if row is not None:
        pictures.append((row.tensor, tensor_picture(asked, row, tones_of(asked))))
    times = MOVES["times_picture"][context.language], times_chart(asked)
    return [*pictures, flows_chart(asked), times]


def moves_slide(context: Context) -> Pictures:
    if is_of_cache(context.state):
        return [("", job_picture(context.once(handed_over).sides))]
    return [("", job_picture(sides_of(context.once(asked_of))))]


def moves_summary(context: Context) -> str:
    if is_of_cache(context.state):
        cache = context.once(handed_over)
        return joined([cache_answer(cache), cache_needs(cache)], context.language)
    asked = context.once(asked_of)
    said = (answer_text(asked), needs_text(asked), hot_text(asked))
    return joined([*filter(None, said)], context.language)


VIEW = View(
    "moves",
    "step",
    moves_html,
    moves_pictures,
    MOVES["title"],
    moves_summary,
    slide=moves_slide,
)
