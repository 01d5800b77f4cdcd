"""The texts in a paste: what stands in fences, behind quote marks, prompts and labels of a log, in
files pasted one after the other, and what a program printed of its own arguments.

A part keeps the places of its characters, whatever was taken off around them. Options that stand
one a line are one command: a line that begins with an option continues the command before it.

>>> [part] = parts_of("So:\\n```bash\\nvllm serve m\\n--tensor-parallel-size 2\\n```\\nDone.")
>>> part.form, part.source.text
('shell', 'vllm serve m --tensor-parallel-size 2\\n')
>>> line = "using world size: 8, data-parallel-size: 2, tensor-model-parallel size: 4 "
>>> [part] = parts_of(f"[default0]:{line}")
>>> part.form, [(key, value.text) for key, value in part.printed]
('printed', [('world-size', '8'), ('tensor-model-parallel-size', '4')])
>>> [part.name for part in parts_of("source a.sh\\n# ===== a.sh =====\\nTP=4")]
['', 'a.sh']

Sources: CommonMark 0.31 section 4.5 (fences) and 5.1 (quotes); NVIDIA/Megatron-LM d98e8a6
megatron/training/arguments.py (_print_args, "using world size"), megatron/training/utils.py;
pytorch/torchtitan b5bcd76 torchtitan/distributed/parallel_dims.py ("Building ... device mesh").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groups.budget import spend

from .files import form_of
from .words import STEP, CommandRun, Source, Word

Printed = Sequence[tuple[str, Word]]
"""Options without their dashes, and the value that a program printed of each."""


class Pasted(NamedTuple):
    """One text of a paste."""

    form: str  # as `form_of` has it, or "printed"
    source: Source
    name: str = ""  # of the file that it is, if a line above says so
    printed: Printed = ()


Span = tuple[int, int]

_FENCE = re.compile(r"[ \t]*(?:[-*+][ \t]+|\d+\.[ \t]+)?(`{3,}|~{3,})[ \t]*([\w+.-]*)[^`\n]*")
_QUOTED = re.compile(r"[ \t]*(?:>[ \t]?)+")
_ARGUMENT = re.compile(r"(?<![\w.-])([a-z][a-z0-9_]*) \.{2,} ?(.*)")
_WORLD = re.compile(r"using world size: ?\d+,.*")
_MESH = re.compile(r"[Bb]uilding \d-D device mesh with (\[[^\]]*\]),? (\[[\d, ]*\])")
_PROMPT = re.compile(r"[ \t]*(?:\([\w.-]+\) )?(?:[\w.-]+@[\w.-]+(?::[^\s$#]*)?)?\$ ")
_OPTION = re.compile(r"[ \t]*((?:[-*] [\"'`]?|`)?)(?=--[A-Za-z])")
_FORMS = {
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("bash", "sh", "shell", "console", "zsh", "shellscript", "slurm"), "shell"),
    **{"json": "json", "toml": "toml", "python": "python", "py": "python"},
}
_PRINTS = (
    *("world-size", "context-parallel-size"),
    *("tensor-model-parallel-size", "pipeline-model-parallel-size"),
)
"""What the line of sizes says that is an option too; the rest follows."""

LONGEST = 400
"""The longest line of a program's sizes, of a file's name, or remark, in characters."""

SIGNS = "=#*-<>~"
"""Signs of a line above a pasted file that has its name."""

_HEAD = re.compile(r"#+[ \t]*([\w./-]+?):?|(?:[\w.@:~ -]{0,80}[$#%][ \t]+)cat[ \t]+([\w./-]+)")
"""A line above a file that the rest of a paste speaks of: its name in a remark, or how it was
shown."""

LEAST = 3
"""Arguments of a list: fewer lines with dots are prose."""

_MESH_KEYS = {
    **{"pp": "pipeline-parallel-degree", "cp": "context-parallel-degree"},
    **{"tp": "tensor-parallel-degree", "ep": "expert-parallel-degree"},
    **{"dp_replicate": "data-parallel-replicate-degree"},
    **dict.fromkeys(("dp_shard", "dp", "fsdp"), "data-parallel-shard-degree"),
}
NEEDS = {
    "group_query_attention": ("num_query_groups",),
    "multi_latent_attention": (
        *("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"),
    ),
    "num_experts": (
        *("moe_ffn_hidden_size", "moe_router_topk", "moe_layer_freq", "moe_token_dispatcher_type"),
        *("moe_shared_expert_intermediate_size", "expert_tensor_parallel_size"),
    ),
}
"""Arguments that Megatron prints with their defaults, and that mean nothing without another."""

NOTHING = ("None", "False", "[]", "", "0", "0.0")


def parts_of(text: str) -> list[Pasted]:
    """The texts in a paste, in their order; one of everything if nothing is around it."""
    spend(len(text) // 8, "characters")
    whole = Source.of(text)
    lines = [match.span() for match in re.finditer(r"[^\n]*\n|[^\n]+$", text)]
    if printed := _printed(whole, lines):
        return [Pasted("printed", whole, printed=printed)]
    blocks = list(_fenced(text, lines)) or list(_quoted(text, lines)) or [("", "", lines)]
    parts = []
    for form, name, block in blocks:
        for own, inside in _files(text, name, block):
            source = _joined(text, inside, form)
            kept = whole if source.text == text else source
            parts.append(Pasted(form or form_of(kept.text), kept, own))
    return parts or [Pasted("shell", whole)]


# -- what is around a text -----------------------------------------------------------------------


def _fenced(text: str, lines: Sequence[Span]) -> Iterator[tuple[str, str, list[Span]]]:
    """The form, the name and the lines of each fence, without the quote marks before them."""
    fence, form, name, above, inside = "", "", "", "", list[Span]()
    for start, end in lines:
        quoted = _QUOTED.match(text, start, end)
        line = text[quoted.end() if quoted else start : end]
        match = _FENCE.match(line)
        if fence and match and match[1].startswith(fence) and not match[2]:
            yield form, name, inside
            fence = ""
        elif fence:
            inside.append((quoted.end() if quoted else start, end))
        elif match:
            fence, form, inside = match[1], _FORMS.get(match[2].lower(), ""), []
            name = _file_name(above, "`*#: \t\r")
        above = line if line.strip() else above
    if fence and inside:
        yield form, name, inside


def _quoted(text: str, lines: Sequence[Span]) -> Iterator[tuple[str, str, list[Span]]]:
    """The lines of a quotation of two lines or more, as one text each."""
    inside: list[Span] = []
    for start, end in [*lines, (len(text), len(text))]:
        match = _QUOTED.match(text, start, end)
        if match:
            inside.append((match.end(), end))
            continue
        if len(inside) > 1:
            yield "", "", inside
        inside = []


def _files(text: str, name: str, lines: Sequence[Span]) -> Iterator[tuple[str, list[Span]]]:
    """The files in a text, each under a line with its name between signs."""
    inside: list[Span] = []
    for start, end in lines:
        line = text[start : min(end, start + LONGEST)].strip()
        named = _file_name(line, SIGNS) if line[:1] in SIGNS and line[-1:] in SIGNS else ""
        if head := None if named else _HEAD.fullmatch(line):
            named = _file_name(head[1] or head[2], "")
            named = named if text.count(named) > 1 else ""
        if named:
            if inside:
                yield name, inside
            name, inside = named, []
        else:
            inside.append((start, end))
    if inside:
        yield name, inside


def _file_name(line: str, signs: str) -> str:
    """The name of a file that stands alone in a line, between signs; empty if none does."""
    name = line.strip().strip(signs + " ")[:LONGEST].rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    is_name = stem and dot and ending.isalnum() and len(ending) < 9 and " " not in stem
    return name if is_name else ""


def _joined(text: str, lines: Sequence[Span], form: str) -> Source:
    """The lines as a text of their own; in a shell's, options one a line are one command."""
    shown = "".join(text[start:end] for start, end in lines)
    if (form or form_of(shown)) != "shell":
        return Source([CommandRun(text[start:end], start, end) for start, end in lines])
    runs: list[CommandRun] = []
    goes_on = joined = False  # the command of the line before may go on in this one, or does
    quote = ""  # that the option of the line before begins with
    for start, end in lines:
        spend(STEP, "words")
        option = _OPTION.match(text, start, end)
        if joined := bool(option and goes_on):
            _strip_end(runs, quote)
            runs.append(CommandRun(" ", start, start + 1))
        elif prompt := None if goes_on else _PROMPT.match(text, start, end):
            start = prompt.end()
        quote = option[1][-1:].strip() if option else ""
        if option and option[1]:  # a bullet or a quote, as in a list of YAML
            start = option.end(1)
        runs.append(CommandRun(text[start:end], start, end))
        if text[start:end].strip():
            goes_on = _may_go_on(text[start:end])
    if joined:
        _strip_end(runs, quote, "\n" * text[: lines[-1][1]].endswith("\n"))
    return Source(runs)


def _strip_end(runs: list[CommandRun], quote: str, end: str = "") -> None:
    """Takes a line's end off, with a comma, a remark or the quote before it."""
    while len(runs) > 1 and not runs[-1].text.strip():
        runs.pop()
    last = runs.pop()
    kept = _without_remark(last.text).rstrip()
    if kept.lstrip()[:2] == "--":
        remark = kept.rfind(" (", -LONGEST) if kept[-1] == ")" else -1
        kept = (kept[:remark] if remark >= 0 else kept).rstrip().removesuffix(",")
    kept = kept.removesuffix(quote)
    runs.append(CommandRun(kept, last.start, last.start + len(kept)))
    if end:
        runs.append(CommandRun(end, last.end - 1, last.end))


def _may_go_on(line: str) -> bool:
    """Whether the command of a line may go on in the next: no comment, none that is closed."""
    plain = _without_remark(line).strip()
    return bool(plain) and not (plain[0] == "#" or "<<" in plain or plain[-1] in "\\;&|({")


def _without_remark(line: str) -> str:
    """A line without the remark of a shell at its end."""
    at = line.rfind(" #", -LONGEST)
    before = line[: max(at, 0)]
    is_remark = at >= 0 and before.strip() and not (before.count('"') % 2 or before.count("'") % 2)
    return before if is_remark else line


# -- what a program printed ----------------------------------------------------------------------


def _printed(source: Source, lines: Sequence[Span]) -> Printed:
    """The arguments that a program printed as it started; empty where it printed none."""
    text, found = source.text, dict[str, Word]()
    if " .." not in text and "using world size" not in text and "evice mesh with" not in text:
        return ()
    counted: dict[str, Word] = {}
    for start, end in lines:
        spend(STEP, "words")
        end = min(end, start + 4 * LONGEST)
        line = text[start:end].rstrip("\n\r ")
        if match := _ARGUMENT.search(text, start, start + len(line)):
            found.setdefault(match[1], source.word(*match.span(2)))
        elif match := _WORLD.search(text, start, start + len(line)):
            at = match.start()
            for pair in match[0].split(","):
                name, _, size = pair.rpartition(":")
                name = "-".join(name.removeprefix("using ").replace("-", " ").split())
                if name in _PRINTS and size.strip().isdigit():
                    low = at + len(pair) - len(size.lstrip())
                    counted.setdefault(name, source.word(low, low + len(size.strip())))
                at += len(pair) + 1
        elif match := _MESH.search(text, start, end):
            names, sizes = re.findall(r"\w+", match[1]), [*re.finditer(r"\d+", match[2])]
            for axis, count in zip(names, sizes):
                low = match.start(2) + count.start()
                key = f"parallelism.{_MESH_KEYS.get(axis, axis)}"
                counted.setdefault(key, source.word(low, low + len(count[0])))
    found = found if len(found) >= LEAST else {}
    return [*{**_with_meaning(found), **counted}.items()]


def _with_meaning(found: dict[str, Word]) -> dict[str, Word]:
    """The arguments that say something, by their options' names: neither None, nor defaults of
    what is off."""
    off = [name for name in NEEDS if name in found and found[name].text in NOTHING]
    left_out = {name for switch in off for name in NEEDS[switch]}
    left_out |= {name for name, word in found.items() if word.text in ("None", "", "[]")}
    return {name.replace("_", "-"): word for name, word in found.items() if name not in left_out}
