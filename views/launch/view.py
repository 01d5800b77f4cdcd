"""The Launch view: a pasted command read, the layout as commands, and a check for the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import Any

from markupsafe import Markup

from descriptions import PAGE, TARGET_NAMES, counted, note_text
from formats.check.script import check_script
from formats.launch import TARGETS, Item, Missing, Parsed, Run, emit, parse
from formats.launch.flags import TRAINING
from formats.launch.serving import served_groups
from groups import LayoutError
from groups.job import Job
from groups.layout import Layout
from groups.mesh import whole_number
from groups.placement import Placement
from groups.stages.holdings import MAX_BATCH
from groups.stages.layout_strings import parse_layout
from training.model import Model
from training.models import MODELS

from ..base import form
from ..base.context import Context
from ..base.html import cell, fold, heading, row, table, tag, together
from ..base.messages import control_label, refusal_line, sentence
from ..base.resolve import MODEL, resolve, sizes_text
from ..base.state import State, as_text, fields_of, is_empty, parse_number
from ..base.training import UNKNOWN
from ..groups.view import framed, ranges_text
from ..hosts.inputs import placement_or_none

SHOWN_ITEMS = 40
"""Flags of one kind that the report lists."""


UNASKED = {
    **{"cp": 1, "ep": 1, "etp": "", "instances": 1, "levels": "", "hybrid": False},
    **{"micro_batches": "", "schedule": ""},
}
"""Sizes and options of a job whose text is silent about them."""


def launch_html(context: Context) -> str:
    """What the pasted text says, then the layout as a command of each framework that can say it."""
    layout, state, language = context.layout, context.state, context.language
    return framed(
        context,
        f"{_pasted(layout, state, language)}"
        f"{_commands(layout, state, language)}"
        f"{_check(layout, placement_or_none(context), language)}",
        "launch",
    )


def _pasted(layout: Layout, state: State, language: str) -> str:
    """The box for the text, the way to the layout that it states, and what was understood."""
    box = form.fields(form.area("paste", state.paste, language, rows=6))
    asks = f'<div class="intro"><h2>{PAGE["launch_question"][language]}</h2>'
    if is_empty(state.paste):
        return f"{asks}<p>{PAGE['launch_empty'][language]}</p></div>{box}"
    asks += f"</div>{box}"
    try:
        text = read_pasted(state)
    except LayoutError as error:
        return f"{asks}{refusal_line(error, language)}"
    verdict = _verdict(layout, state, text, language)
    title = f'<div class="intro"><h3>{PAGE["launch_title"][language]}</h3>'
    return (
        f"{asks}{_runs(text, language)}{verdict}{_served(text, language)}{title}"
        f"{_report(text, language)}"
    )


def _verdict(layout: Layout, state: State, text: Parsed, language: str) -> str:
    """What job the text asks for, and the way to that layout."""
    changes = stated(state, text)
    if not changes:
        return ""
    open_fields = ", ".join(control_label(name, language) for name in text.asks)
    try:
        asked = resolve(with_pasted(state, text))
    except LayoutError as error:
        told = sentence(error, language)
    else:
        words = "launch_shown" if asked.mesh == layout.mesh else "launch_asks"
        told = PAGE["launch_open" if open_fields else words][language].format(
            gpus=counted(asked.world_size, "gpu", language),
            machines=f"{asked.nodes:,} × {asked.gpus_per_node}",
            sizes=sizes_text(asked),
            fields=open_fields,
        )
    button = form.setter(changes, PAGE["use_pasted"][language])
    return (
        f'<div class="verdict" role="status"><p>{escape(told)}</p>'
        f'<p class="fixes">{button}</p></div>'
    )


def _served(text: Parsed, language: str) -> str:
    """The groups of the server that the text starts, in its own order."""
    try:
        groups = served_groups(text)
    except LayoutError as error:
        return refusal_line(error, language)
    if not groups:
        return ""
    heads = [PAGE[name][language] for name in ("served_group", "served_size", "served_ranks")]
    rows = []
    for name, one in groups.items():
        if one.size == 1:
            continue
        first = [one.members(int(rank)) for rank in one.firsts()[:SHOWN_GROUPS]]
        listed = " · ".join(ranges_text([int(rank) for rank in ranks]) for ranks in first)
        rest = " …" if one.num_groups > SHOWN_GROUPS else ""
        rows.append((tag("code", name), f"{one.num_groups} × {one.size}", listed + rest))
    if not rows:
        return ""
    return together(tag("h3", PAGE["served_title"][language]), table(heads, rows))


SHOWN_GROUPS = 8
"""Groups of one kind that are listed."""


def read_pasted(state: State) -> Parsed:
    """What the pasted text says; a run of a text that stood there before counts as none.

    Errors: LayoutError if the text is no text, or too long.
    """
    try:
        return parse(state.paste, as_text(state.run))
    except LayoutError as error:
        if error.control != "run":
            raise
        return parse(state.paste)


def _runs(read: Parsed, language: str) -> str:
    """The runs or roles to choose from, where there are several."""
    if not read.runs:
        return ""
    options = [(_run_label(one), one.name) for one in read.runs]
    unchosen = [] if read.run else [(PAGE["choose_run"][language], "")]
    return form.fields(form.choice("run", read.run, [*unchosen, *options], language))


def _run_label(run: Run) -> str:
    sizes = (f"{name} {run.values[name]}" for name in RUN_SIZES if name in run.values)
    listed = " · ".join(sizes)
    return f"{run.name}: {listed}" if listed else run.name


RUN_SIZES = ("nodes", "tp", "pp", "cp", "ep", "etp")
"""What tells one run from another in the list of them."""


def stated(state: State, text: Parsed) -> dict[str, Any]:
    """What the pasted text changes of the state."""
    pasted = with_pasted(state, text)
    changes = {n: value for n, value in vars(pasted).items() if value != getattr(state, n)}
    return {**changes, **training_stated(text)}


def training_stated(text: Parsed) -> dict[str, str]:
    """The fields of the model and its training that the pasted text states.

    A model is the published one of these layers, widths and heads, else one of the reader's own.

    >>> text = parse("--num-layers 80 --hidden-size 8192 --num-attention-heads 64")
    >>> {name: value for name, value in training_stated(text).items() if value}
    {'model': 'llama3-70b', 'hidden': '8192', 'heads': '64'}
    """
    said: dict[str, Any] = {**text.values, **text.training}
    found: dict[str, Any] = {}
    shape = [said.get(name) for name in ("layers", "hidden", "heads")]
    if all(isinstance(size, int) for size in shape):
        found |= dict.fromkeys(fields_of("model"), "")
        found["model"] = next(
            (n for n, one in MODELS.items() if _shape(one.model) == shape), UNKNOWN
        )
    found |= {name: said[name] for name in SAME if name in said}
    found |= {field: said[name] for name, field in RENAMED.items() if name in said}
    for name in ("sequence_parallel", "tied"):
        if isinstance(said.get(name), bool):
            found[name] = "on" if said[name] else "off"
    if said.get("distributed_optimizer") is True:
        found.setdefault("zero", 1)
    if said.get("recompute") in ("none", "selective", "full"):
        found["recompute"] = said["recompute"]
    found |= _offload(said, found.get("zero"))
    for name, precision in (("bf16", "bf16-fp32"), ("fp16", "fp16-fp16")):
        if said.get(name) is True:
            found["precision"] = precision
    return {name: as_text(value) for name, value in found.items()}


def _offload(said: dict[str, Any], zero: Any) -> dict[str, Any]:
    """What a text says is in host memory: of DeepSpeed, torchtitan, and Megatron's whole state."""
    away = (True, "cpu")
    if said.get("offload_param") in away:
        return {"offload": "parameters", "zero": 3 if zero is None else zero}
    is_whole = str(said.get("offload_fraction", "1.0")) in ("1", "1.0")
    if said.get("offload_optimizer") in away or (said.get("offload") is True and is_whole):
        return {"offload": "optimizer", "zero": 1 if zero is None else zero}
    return {}


SAME = (
    "hidden",
    "ffn",
    "heads",
    "kv_heads",
    "head_dim",
    "vocabulary",
    "top_k",
    "expert_ffn",
    "zero",
)
"""What launch files and the page call alike."""

RENAMED = {
    **{"seq": "sequence", "mtp": "mtp_layers"},
    **{"first": "first_layers", "last": "last_layers"},
}
"""What the page calls otherwise."""

USED = (
    *(*SAME, "sequence_parallel", "tied", "distributed_optimizer", "recompute", "bf16", "fp16"),
    *("offload", "offload_optimizer", "offload_param"),
)
"""What of a text's training counts in the views; the rest is shown as read and not used."""


def _shape(model: Model) -> list[int]:
    return [model.layers, model.hidden, model.heads]


def with_pasted(state: State, read: Parsed) -> State:
    """With every value that a pasted text says of the job.

    What it does not state of the job is as where nobody asks for it: its groups are the text's own.
    """
    start = State()
    stale = {"vpp": "", "account": False, "experts": ""} if "layers" in read.values else {}
    silent = {name: value for name, value in UNASKED.items() if name not in read.asks}
    values = {**silent, **stale, **read.assumed, **read.values}
    return replace(
        state,
        **{
            name: _as_control(value, getattr(start, name))
            for name, value in values.items()
            if name in fields_of("job")
        },
    )


def _as_control(value: Any, start: Any) -> Any:
    """A value as its control holds it."""
    if isinstance(start, bool):
        return value is True
    if isinstance(value, (list, tuple)):
        return "x".join(map(str, value))
    return "" if value is None else str(value) if isinstance(start, str) else value


# -- what was pasted -----------------------------------------------------------------------------


def _report(read: Parsed, language: str) -> str:
    asked = [one for one in read.missing if one.code in ASKED]
    assumed = [one for one in read.missing if one.code not in ASKED]
    return (
        f"<p>{escape(_summary(read, language))}</p></div>{_problems(read, language)}"
        f"{_items('launch_asked', _missing(asked, language), language, is_open=True)}"
        f"{_items('launch_understood', _understood(read, language), language, is_open=True)}"
        f"{_items('launch_unresolved', _notes(read.unresolved, language), language, is_open=True)}"
        f"{_items('launch_missing', _missing(assumed, language), language)}"
        f"{_items('launch_ignored', _notes(read.ignored, language), language)}"
    )


ASKED = ("asked", "several-runs", "unknown-framework")
"""What the reader has to say himself; all else that is missing is assumed."""


def _missing(notes: Sequence[Missing], language: str) -> list[tuple[str, str]]:
    return [("", _said(one, language)) for one in notes]


def _summary(read: Parsed, language: str) -> str:
    return PAGE["launch_summary"][language].format(
        framework=TARGET_NAMES[read.framework.name][language] if read.framework else "–",
        understood=len(read.understood),
        ignored=len(read.ignored),
        unresolved=len(read.unresolved),
        problems=len(read.problems),
    )


def _understood(read: Parsed, language: str) -> list[tuple[str, str]]:
    return [
        (item.name, f"{item.value} → {counts_as(item.sets, language)}") for item in read.understood
    ]


def counts_as(name: str, language: str) -> str:
    """The control that a value sets; or that it is read, and counts nowhere here."""
    if name in TRAINING and name not in USED:
        return PAGE["launch_unused"][language]
    own = "offload" if name.startswith("offload") else name
    return control_label(RENAMED.get(own, own), language)


def _notes(items: Sequence[Item], language: str) -> list[tuple[str, str]]:
    return [(item.name, _said(item, language)) for item in items]


def _problems(read: Parsed, language: str) -> str:
    """Each bad value where it stands in the text."""
    if not read.problems:
        return ""
    items = "".join(
        f"<li>{escape(_said(problem, language))} "
        f"<small>{escape(_place(problem, language))}</small>"
        f"<pre>{_marked(read.text, problem.start, problem.end)}</pre></li>"
        for problem in read.problems[:SHOWN_ITEMS]
    )
    return f'<div role="alert"><ul class="warnings problems">{items}</ul></div>'


def _place(problem: Item, language: str) -> str:
    return PAGE["launch_place"][language].format(line=problem.line, column=problem.column)


def _marked(text: str, start: int, end: int) -> str:
    """The line round a place, with the place marked."""
    first = max(text.rfind("\n", 0, start) + 1, start - 80)
    last = text.find("\n", end)
    last = min(len(text) if last < 0 else last, end + 80)
    return (
        f"{escape(text[first:start])}<mark>{escape(text[start:end])}</mark>{escape(text[end:last])}"
    )


def _said(note: Item | Missing, language: str) -> str:
    """A note of the reader in the language of the page."""
    return note_text(
        note,
        language,
        label=lambda name: control_label(name, language),
        refusal=lambda error: sentence(error, language),
    )


def _items(
    title: str, items: Sequence[tuple[str, str]], language: str, *, is_open: bool = False
) -> str:
    if not items:
        return ""
    rows = (row(cell(tag("code", name)), value) for name, value in items[:SHOWN_ITEMS])
    shown = tag("div", tag("table", tag("tbody", *rows)), class_="scroll")
    return fold(f"{PAGE[title][language]} ({len(items)})", shown, is_open=is_open)


# -- the layout as a command ---------------------------------------------------------------------


def _commands(layout: Layout, state: State, language: str) -> str:
    try:
        job, model = layout.job, _model(state)
        blocks = "".join(_command(job, model, name, language) for name in TARGETS)
    except LayoutError as error:
        blocks = refusal_line(error, language)
    said = tag("p", PAGE["emit_body"][language])
    return f"{heading(PAGE['emit_title'][language], said)}{blocks}"


def _model(state: State) -> dict[str, Any]:
    """The numbers of the model that are given; layers may be a pipeline layout."""
    given = {name: parse_number(getattr(state, name)) for name in MODEL}
    model = {name: value for name, value in given.items() if not is_empty(value)}
    for name, value in model.items():
        if name == "layers" and isinstance(value, str) and "t" in value:
            parse_layout(value)
        else:
            whole_number(value, name, maximum=MAX_BATCH)
    return {**model, "account": True} if state.account is True else model


def _command(job: Job, model: dict[str, Any], framework: str, language: str) -> Markup:
    """One framework's command to copy, or why it cannot say this layout."""
    try:
        body = form.copyable(emit(job, model, framework), language)
    except LayoutError as error:
        body = tag("p", sentence(error, language))
    title = tag("h3", TARGET_NAMES[framework][language])
    return tag("section", title, body, class_="command")


# -- the check -----------------------------------------------------------------------------------


def _check(layout: Layout, placement: Placement | None, language: str) -> str:
    """The script, for the machines that the Hosts view names."""
    text = _plain_check(layout) if placement is None else check_text(layout, placement)
    return together(
        heading(PAGE["check_title"][language], tag("p", PAGE["check_body"][language])),
        fold(PAGE["check_show"][language], form.copyable(text, language)),
    )


@lru_cache(maxsize=16)
def _plain_check(layout: Layout) -> str:
    return check_text(layout)


def check_text(layout: Layout, placement: Placement | None = None) -> str:
    """The script that checks this layout's groups on the real machines."""
    job = f"{layout.nodes} x {layout.gpus_per_node} GPUs"
    return check_script(layout, job_text=job, placement=placement)
