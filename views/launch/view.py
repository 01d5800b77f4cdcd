"""The Launch view: a pasted command read, the layout as commands, and a check for the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from markupsafe import Markup

from descriptions import PAGE, SAVED, TARGET_NAMES, counted, note_text
from formats.check.script import check_script
from formats.launch import TARGETS, Item, Parsed, parse
from formats.launch.emit import COMMENTS, emitted
from formats.launch.flags import TRAINING
from formats.launch.rewrite import SIZES, nodes_that_hold, rewrite
from formats.launch.training import USED
from groups import LayoutError
from groups.layout import Layout
from groups.notes import Note
from groups.placement import Placement
from groups.running import is_running
from render.files.tables import CodeChart
from request.answers.launch import cluster_check, launch_command, read_launch
from request.context import Context
from request.fixes import fixes_of
from request.hosts import placement_or_none
from request.named.launch import (
    options_of_page,
    pasted_changes,
    read_pasted,
    training_fields,
    with_pasted,
)
from request.resolve import resolve, sizes_text
from request.state import State, is_empty, require_choice
from request.units import ranges_text
from request.words import control_label, fix_label, saying, sentence, value_text
from training.configs.compact import is_config
from training.recipe import Training

from ..base import form
from ..base.html import button, cell, fold, heading, numbered, row, table, tag, together
from ..base.problems import problem_html, refusal_line
from ..base.view import Pictures, View
from ..parts.job import job_pictures
from .asked import asked_html
from .config import config_html
from .plan import plan_pasted
from .running import running_html

SHOWN_ITEMS = 40
"""The most options of one kind in the report."""


def launch_html(context: Context) -> Markup:
    """The report on the pasted text, then the layout as a command of one framework."""
    layout, state, language = context.layout, context.state, context.language
    return together(
        _pasted(layout, state, language),
        _commands(context),
        _check(context),
    )


def _pasted(layout: Layout, state: State, language: str) -> Markup:
    """The box for the text, a button that opens its layout, and the report."""
    say = saying(PAGE, language)
    question = say("launch_question")
    box = form.fields(form.area("paste", state, rows=4))
    if is_empty(state.paste):
        head = heading(question, tag("p", say("launch_empty")))
        return together(head, form.beside(box, _example(layout, state)))
    if is_config(state.paste):
        return together(heading(question), box, config_html(state))
    try:
        text = read_pasted(state)
    except LayoutError as error:
        return together(heading(question), box, refusal_line(error, language))
    if is_running(text.text):
        return together(heading(question), box, running_html(layout, state, text, language))
    verdict = together(
        plan_pasted(state), _runs(text, state), _verdict(layout, state, text, language)
    )
    return together(
        heading(question),
        form.beside(box, verdict, asked_html(with_pasted(state, text))),
        _rewritten_html(layout, state, text),
        _served(text, language),
        _report(text, language),
    )


def _example(layout: Layout, state: State) -> Markup:
    """The answer to an example command, a server's for a server."""
    example = SERVER_EXAMPLES.get(layout.framework, EXAMPLE)
    changes = {"paste": example}
    shown, language = state.changed(changes), state.language
    text = read_pasted(shown)
    parts = (asked_html(with_pasted(shown, text)), _verdict(layout, shown, text, language))
    return form.example(language, changes, *parts, tag("pre", example))


EXAMPLE = """torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py \\
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --sequence-parallel \\
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \\
  --micro-batch-size 1 --global-batch-size 128"""
"""A command for 32 GPUs with Megatron's options."""

SERVER_EXAMPLES = {
    "vllm": """vllm serve deepseek-ai/DeepSeek-R1 \\
  --tensor-parallel-size 1 --data-parallel-size 8 --enable-expert-parallel""",
    "sglang": """python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 \\
  --tp-size 8 --dp-size 8 --enable-dp-attention --ep-size 8 --mem-fraction-static 0.85""",
    "tensorrt-llm": """trtllm-serve deepseek-ai/DeepSeek-R1 --tp_size 8 --ep_size 8""",
}
"""Commands that start a server on 8 GPUs, by its engine."""


def _verdict(layout: Layout, state: State, text: Parsed, language: str) -> Markup:
    """The job of the text, and a button that opens its layout."""
    say, changes = saying(PAGE, language), pasted_changes(state, text)
    if not (text.values or text.training):
        return Markup()
    open_fields = PAGE["and_list"][language].join(
        control_label(name, language) for name in text.asks
    )
    buttons = [form.setter(changes, say("use_pasted"))] if changes else []
    wanted = with_pasted(state, text)
    try:
        pasted = resolve(wanted)
    except LayoutError as error:
        asks, buttons = sentence(error, language), [] if text.defaulted else buttons
    else:
        is_shown = (pasted.mesh, pasted.expert) == (layout.mesh, layout.expert)
        words = "launch_shown" if is_shown else "launch_asks"
        asks = say(
            "launch_open" if open_fields else words,
            gpus=counted(pasted.world_size, "gpu", language),
            machines=f"{pasted.nodes:,} × {pasted.gpus_per_node}",
            sizes=sizes_text(pasted),
            fields=open_fields,
        )
    if text.defaulted and not text.asks:
        note = next(note for note in text.missing if note.code == "nodes-default")
        asks = say("launch_nodes", nodes=state.nodes, asks=asks, **note.facts)
        buttons += [
            form.setter({**changes, "nodes": nodes}, fix_label({"nodes": nodes}, language))
            for nodes in _nodes(text, state)
        ]
    use = tag("p", *buttons, class_="fixes") if buttons else ""
    return tag("div", tag("p", asks), use, class_="verdict", role="status")


def _nodes(text: Parsed, state: State) -> list[int]:
    """Numbers of nodes to choose from: the text's default, if it is valid, and the fewest that
    are."""
    job = text.job()
    found = nodes_that_hold(job)
    with suppress(LayoutError):
        job.layout()
        found = [job.nodes, *found]
    return [nodes for nodes in dict.fromkeys(found) if str(nodes) != state.nodes]


def _rewritten_html(layout: Layout, state: State, text: Parsed) -> Markup:
    """The text with the sizes on screen and its changed lines marked, and the other options that
    make it the plan on screen; empty if no size differs."""
    language = state.language
    known = {**text.assumed, **text.values}
    known.setdefault("etp", known.get("tp", 1))  # as everybody takes what is not said
    sizes = {name: getattr(layout.job, name) for name in SIZES}
    other = {name: n for name, n in sizes.items() if n is not None and n != known.get(name, 1)}
    if text.asks or not known or not other or len(text.text) > LONGEST_BACK:
        return Markup()
    back, say = rewrite(text, other), saying(PAGE, language)
    left = ", ".join(f"{control_label(name, language)} {n}" for name, n in back.left.items())
    added, taken_out = _other_options(layout, state, back.text, text)
    lines = (
        tag("ins", line) if number in back.lines else line
        for number, line in enumerate(back.text.split("\n"), 1)
    )
    marked = Markup("\n").join(lines)
    counts = {"count": counted(len(back.lines), "line", language)}
    counts["more"] = counted(len(added), "option", language)
    title = say("back_title_more" if added else "back_title", **counts)
    words = (
        tag("p", say("back_left", fields=left)) if left and not added else "",
        together(tag("p", say("back_add")), form.copyable("\n".join(added), language))
        if added
        else "",
        tag("p", say("back_out", options=", ".join(taken_out))) if taken_out else "",
        form.copyable(marked, language) if back.lines else "",
    )
    if {*other} <= {*text.defaulted}:  # what was asked for
        return tag("section", tag("h3", title), *words, class_="given-back")
    return fold(title, *words, kind="own given-back")


def _other_options(
    layout: Layout, state: State, rewritten: str, text: Parsed
) -> tuple[list[str], list[str]]:
    """The options of the plan on screen that a rewritten text lacks, and those of its own that the
    plan has not, as its framework calls them; none where no command is written for it."""
    target = text.framework.name if text.framework else ""
    if target not in TARGETS:
        return [], []
    try:
        after = parse(rewritten, text.run)
        opened = Context.of(state.changed(pasted_changes(state, after)))
        lines = [
            [line.removesuffix("\\").strip() for line in command.splitlines()]
            for command in (
                emitted(layout, options_of_page(layout, state), target),
                emitted(opened.layout, options_of_page(opened.layout, opened.state), target),
            )
        ]
    except LayoutError:  # is said where it is shown
        return [], []
    page, own = ([line for line in some if line.startswith("--")] for some in lines)
    added = [line for line in page if line not in own]
    named = {line.partition(" ")[0] for line in page}
    return added, [line for line in own if line not in page and line.partition(" ")[0] not in named]


LONGEST_BACK = 60_000
"""The longest text that is rewritten, in characters: it is read anew for each size that changes."""


def _served(text: Parsed, language: str) -> Markup:
    """The groups of the server that the text starts, in the server's order."""
    try:
        groups = text.served_groups()
    except LayoutError as error:
        return refusal_line(error, language)
    rows = []
    for name, grouping in groups.items():
        if grouping.size > 1:
            first = grouping.leading(SHOWN_GROUPS)
            listed = [ranges_text(sorted(map(int, ranks))) for ranks in first]
            rest = " …" if grouping.num_groups > SHOWN_GROUPS else ""
            size = f"{grouping.num_groups} × {grouping.size}"
            rows.append((tag("code", name), size, " · ".join(listed) + rest))
    if not rows:
        return Markup()
    heads = (PAGE[f"served_{name}"][language] for name in ("group", "size", "ranks"))
    return together(tag("h3", PAGE["served_title"][language]), table(heads, rows))


SHOWN_GROUPS = 8
"""The most groups of one kind in a list."""


def _runs(read: Parsed, state: State) -> Markup:
    """The runs or roles to choose from, if there are several."""
    if not read.runs:
        return Markup()
    options, unsaid = [], "" if read.run else PAGE["choose_run"][state.language]
    for run in read.runs:
        sizes = " · ".join(f"{name} {run.values[name]}" for name in RUN_SIZES if name in run.values)
        options.append((f"{run.name}: {sizes}" if sizes else run.name, run.name))
    return form.fields(form.choice("run", replace(state, run=read.run), options, unsaid=unsaid))


RUN_SIZES = ("nodes", "tp", "pp", "cp", "ep", "etp")
"""The sizes by which the list of runs distinguishes them."""


# -- what was pasted -----------------------------------------------------------------------------


def _report(read: Parsed, language: str) -> Markup:
    """The options that were read and those that were not; questions first."""
    say = saying(PAGE, language)
    summary = say(
        "launch_summary",
        framework=TARGET_NAMES[read.framework.name][language] if read.framework else "–",
        understood=len(read.understood),
        ignored=len(read.ignored),
        unresolved=len(read.unresolved),
        problems=len(read.problems),
    )
    sets = training_fields(read)
    lists = {
        "asked": [
            ("", _note_text(note, language)) for note in read.missing if note.code in NEEDS_ANSWER
        ],
        "understood": [(note.name, _setting(note, sets, language)) for note in read.understood],
        "unresolved": [(note.name, _note_text(note, language)) for note in read.unresolved],
        "missing": [
            ("", _note_text(note, language))
            for note in read.missing
            if note.code not in NEEDS_ANSWER
        ],
        "ignored": [(note.name, _note_text(note, language)) for note in read.ignored],
    }
    return together(
        tag("div", tag("h3", say("launch_title")), tag("p", summary), class_="intro"),
        _problems(read, language),
        *(_items(name, items, language) for name, items in lists.items() if items),
    )


NEEDS_ANSWER = ("asked", "nodes-default", "several-runs", "unknown-framework")
"""Notes that the user must answer; all other missing values have defaults."""


def _setting(note: Item, sets: Mapping[str, str], language: str) -> str:
    """An option's text, unless it is a switch, and the control that it sets; to what, where the
    control does not say the same: rope is no learned positions.

    >>> item = Item("", "--position-embedding-type", "rope", 0, 0, 1, 1, "positions")
    >>> _setting(item, {"learned_positions": "off"}, "en")
    'rope → Learned positions: Off'
    """
    setting, control = counts_as(note.sets, language), USED.get(note.sets, note.sets)
    value = sets.get(control, "")
    if value and not (value.isdigit() or value == note.value):
        colon = PAGE["colon"][language]
        setting += f"{colon}{value_text(control, value, language)}"
    return f"{note.value} → {setting}" if note.value else setting


def counts_as(name: str, language: str) -> str:
    """The label of the control that a value sets; or a remark that it has no effect here."""
    if name == "gpus":
        return PAGE["launch_gpus"][language]
    if name in TRAINING and name not in USED:
        return PAGE["launch_unused"][language]
    return control_label(USED.get(name, name), language)


def _problems(read: Parsed, language: str) -> Markup:
    """Each invalid value, with its place in the text."""
    if not read.problems:
        return Markup()
    items = []
    for note in read.problems[:SHOWN_ITEMS]:
        place = PAGE["launch_place"][language].format(line=note.line, column=note.column)
        line = _marked(read.text, note.start, note.end)
        items.append(tag("li", _note_text(note, language), " ", tag("small", place), line))
    return tag("div", tag("ul", *items, class_="warnings problems"), role="alert")


def _marked(text: str, start: int, end: int) -> Markup:
    """The lines around a place, with the place marked."""
    first = max(text.rfind("\n", 0, start) + 1, start - 80)
    last = text.find("\n", end)
    last = min(len(text) if last < 0 else last, end + 80)
    return tag("pre", text[first:start], tag("mark", text[start:end]), text[end:last])


def _note_text(note: Item | Note, language: str) -> str:
    """A reader's note in the language of the page."""
    return note_text(
        note,
        language,
        label=lambda name: counts_as(name, language),
        refusal=lambda error: sentence(error, language),
    )


def _items(name: str, items: Sequence[tuple[str, str]], language: str) -> Markup:
    rows = (row(cell(tag("code", flag)), value) for flag, value in items[:SHOWN_ITEMS])
    content = tag("div", tag("table", tag("tbody", *rows)), class_="scroll")
    title = numbered(PAGE[f"launch_{name}"][language], len(items), language)
    return fold(title, content, is_open=name in ("asked", "understood", "unresolved"))


# -- the layout as a command ---------------------------------------------------------------------


def _commands(context: Context) -> Markup:
    """Buttons for the frameworks, and the command of the selected one; frameworks that cannot
    express the layout come last, with the reason."""
    layout, language = context.layout, context.language
    head = heading(PAGE["emit_title"][language], tag("p", PAGE["emit_body"][language]))
    try:
        options = options_of_page(layout, context.state)
        target = context.state.target
        chosen = None if is_empty(target) else require_choice("target", target, TARGETS)
    except LayoutError as error:
        return together(head, problem_html(error, language, fixes_of(error, context)))
    written = {name: _written_or_why(layout, options, name, language) for name in TARGETS}
    names = sorted(written, key=lambda name: isinstance(written[name], LayoutError))
    chosen = chosen or _usual(layout, written)
    found = written[chosen]
    if isinstance(found, LayoutError):
        body = tag("p", sentence(found, language), class_="note")
    else:
        body = form.copyable(found, language)
    title = tag("h3", TARGET_NAMES[chosen][language])
    return together(
        head,
        _picker(names, written, chosen, language),
        tag("section", title, body, class_="command"),
    )


def _picker(
    names: Iterable[str], written: Mapping[str, str | LayoutError], chosen: str, language: str
) -> Markup:
    """A button for each framework; faint, with the reason as its tip, if it cannot express the
    layout."""
    buttons = []
    for name in names:
        why = PAGE["emit_cannot"][language] if isinstance(written[name], LayoutError) else None
        marks = {"data_set": {"target": name}, "data_tip": why, "class_": "silent" if why else None}
        marks |= {"aria_pressed": str(name == chosen).lower(), "id": f"target-{name}"}
        buttons.append(button(TARGET_NAMES[name][language], **marks))
    label = {"role": "group", "aria_label": control_label("target", language)}
    return tag("div", *buttons, class_="targets", **label)


def _usual(layout: Layout, written: Mapping[str, str | LayoutError]) -> str:
    """The framework on screen, or the first that can express the layout; the first of all if none
    can."""
    able = [name for name, text in written.items() if isinstance(text, str)]
    return layout.framework if layout.framework in able else (able or [*written])[0]


def _written_or_why(
    layout: Layout, options: dict[str, object], framework: str, language: str
) -> str | LayoutError:
    """One framework's command, or why it cannot express this layout."""
    try:
        return _written(layout, options, framework, language)
    except LayoutError as error:
        return error


def _written(layout: Layout, model: dict[str, object], framework: str, language: str) -> str:
    """The command with comments in the language of the page."""
    comments = {name: PAGE[f"emit_{name}"][language] for name in COMMENTS}
    return emitted(layout, model, framework, comments)


# -- the check -----------------------------------------------------------------------------------


def _check(context: Context) -> Markup:
    """The check script for the machines that the Hosts view names, and the job's training."""
    language = context.language
    text = check_text(context.layout, placement_or_none(context), training_or_none(context))
    return together(
        heading(PAGE["check_title"][language], tag("p", PAGE["check_body"][language])),
        fold(PAGE["check_show"][language], form.copyable(text, language)),
    )


def training_or_none(context: Context) -> Training | None:
    """The job's training; None where its model or batch is refused, and of a server."""
    with suppress(LayoutError):
        return context.trained.training
    return None


def check_text(
    layout: Layout, placement: Placement | None = None, training: Training | None = None
) -> str:
    job = f"{layout.nodes} x {layout.gpus_per_node} GPUs"
    return check_script(layout, job_text=job, placement=placement, training=training)


def launch_pictures(context: Context) -> Pictures:
    """The selected command and the job."""
    layout, language, target = context.layout, context.language, context.state.target
    options = options_of_page(layout, context.state)
    names = [*TARGETS] if is_empty(target) else [require_choice("target", target, TARGETS)]
    written = {name: _written_or_why(layout, options, name, language) for name in names}
    chosen = _usual(layout, written)
    found = written[chosen]
    if isinstance(found, LayoutError):
        raise found
    (_, job), *_ = job_pictures(context)
    code = CodeChart(found, SAVED["more_lines"][language])
    return [(TARGET_NAMES[chosen][language], code), ("", job)]


VIEW = View(
    "launch",
    "",
    launch_html,
    launch_pictures,
    PAGE["emit_title"],
    files=(),
    pins_locally=True,
    of_gpu=False,
    place=1,
    endpoints=(launch_command, cluster_check, read_launch),
    commands=("emit", "serve", "running"),
)
