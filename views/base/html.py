"""HTML as elements: whatever is no markup is text, and is escaped.

>>> tag("p", "a < b ", tag("b", "c's"), class_="fine", data_set={"tp": 2})
Markup('<p class="fine" data-set="{&#34;tp&#34;:2}">a &lt; b <b>c&#39;s</b></p>')
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from html import escape as escape_text

import orjson
from markupsafe import Markup, escape

from descriptions import LANGUAGES, PAGE, RUN, TRAFFIC, WORDS, Text
from render.palette import own_tone


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. Underscores of an attribute are dashes, save one at its end; True is an attribute
    without a value, None and False are none, and what is data is JSON."""
    start = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        if value is True:
            start += _attribute(key)
        elif type(value) is str and not _is_special(value):
            start = f'{start}{_attribute(key)}="{value}"'
        else:
            start = f'{start}{_attribute(key)}="{attribute_value(value)}"'
    if name in ("input", "img", "br", "meta"):
        return _markup(f"<{start}>")
    # Most of a page is made here: to ask for markup first, and `_markup` in place, is quicker.
    reader = _written if name in VERBATIM else _read
    inside = [child if type(child) is Markup else reader(child) for child in children]
    return str.__new__(Markup, f"<{start}>{''.join(inside)}</{name}>")


def button(label: object, **attributes: object) -> Markup:
    return tag("button", label, type="button", **attributes)


def fine(*children: object) -> Markup:
    """What is said beside the matter, in small."""
    return tag("p", *children, class_="fine")


def by_pointer(mouse: str, touch: str) -> Markup:
    """What is said to who has a mouse and to who has a finger, of which one is seen."""
    return together(tag("span", mouse, class_="by-mouse"), tag("span", touch, class_="by-touch"))


def chip(name: str, kind: str = "") -> Markup:
    """The name of a kind of group; ``kind``: the class of its tone, where no parent has it."""
    return tag("span", name, class_=f"chip {kind}".strip())


def chips(names: Iterable[str], folded: Collection[str] = ()) -> Markup:
    """The names of one group, each in its own tone; ``folded``: those of the class."""
    tones = ((name, tone_class(name) + " folded" * (name in folded)) for name in names)
    return Markup(" ").join(chip(name, tone) for name, tone in tones)


def tone_class(name: str) -> str:
    """The class of the tone that a kind of group has wherever it stands alone."""
    return f"t-{own_tone(name) or 'tp'}"


def figure(caption: object, drawn: str) -> Markup:
    """A picture as SVG under what it is called."""
    return tag("figure", tag("figcaption", caption), Markup(drawn))


def scrolling(kind: str, *children: object) -> Markup:
    """A box that is scrolled where what it holds is wider, by the keyboard too."""
    return tag("div", *children, class_=kind, tabindex=0)


def together(*parts: object) -> Markup:
    """Parts one after the other."""
    return _markup("".join(map(_read, parts)))


VERBATIM = frozenset(("code", "mark", "option", "pre", "textarea"))
"""Elements whose text is copied, or was typed."""

UNITS = r" (?<=\d )(?=(?:[kMGTP]?i?B|M|T?FLOP|Gb|[mµ]?s)\b|[个层次组步份台条项列行块段种倍维级秒])"
"""The space from a number to its unit, or a counter of Chinese; gradio/shared.js has the same."""

unparted = partial(re.compile(UNITS).sub, "\u00a0")
_is_special = re.compile("[&<>'\"]").search
_is_more = re.compile("[&<>'\" ]").search  # than one word as it stands


def _read(value: object) -> str:
    """`_written`, where a person reads it: no line ends between a number and its unit.

    >>> tag("p", "80 GiB, 16 个 GPU") == "<p>80\u00a0GiB, 16\u00a0个 GPU</p>"
    True
    """
    if type(value) is not str:
        return _written(value)
    return unparted(_written(value)) if _is_more(value) else value


def _written(value: object) -> str:
    """A value as it stands in HTML; most texts have nothing to escape, and `escape` takes longer
    than to see that."""
    if type(value) is Markup:
        return value
    if type(value) is str:
        return escape(value) if _is_special(value) else value
    return str(value) if type(value) is int else escape(value)


def _markup(text: str) -> Markup:
    """A text that is markup; calling `Markup` takes three times as long."""
    return str.__new__(Markup, text)


@cache
def _attribute(name: str) -> str:
    return " " + name.rstrip("_").replace("_", "-")


def attribute_value(value: object) -> str:
    """What stands between the quotes; what is data is JSON."""
    return _written(as_json(value) if isinstance(value, (dict, list)) else value)


def as_json(value: object) -> str:
    """As JSON: `json` takes many times as long for small values and for long texts."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half of a surrogate pair, which a program may send, is no UTF-8
        return json.dumps(value)


class TableCell(Markup):
    """A cell of a table that is made already, with marks of its own."""


def cell(*children: object, **attributes: object) -> TableCell:
    return str.__new__(TableCell, tag("td", *children, **attributes))


def row(first: object, *cells: object, **attributes: object) -> Markup:
    """A row of a table, its first cell the head of it."""
    head = first if isinstance(first, TableCell) else tag("th", first, scope="row")
    rest = (
        content if isinstance(content, TableCell) else _markup(f"<td>{_read(content)}</td>")
        for content in cells
    )
    return tag("tr", head, *rest, **attributes)


def table(heads: Iterable[object], rows: Iterable[Sequence[object]], kind: str = "") -> Markup:
    """Rows under their heads; a row is its cells, or made by `row`. A wide one scrolls."""
    head = tag("tr", *(tag("th", head, scope="col") for head in heads))
    body = (row_ if isinstance(row_, Markup) else row(*row_) for row_ in rows)
    markup = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", markup, class_=f"scroll {kind}".strip(), tabindex=0)


def heads_of(words: Mapping[str, Text], names: str, language: str) -> list[str]:
    """The heads of a table, by their names in a catalogue."""
    return [words[f"column_{name}"][language] for name in names.split()]


def outside(url: str, title: object) -> Markup:
    return tag("a", title, href=url, target="_blank", rel="noopener noreferrer")


def numbered(title: str, count: int, language: str) -> str:
    """A title with how many there are of what it stands over."""
    return PAGE["numbered"][language].format(title=title, count=f"{count:,}")


def rest_text(count: int, language: str) -> str:
    """That a list leaves so many out; empty where it leaves out none."""
    return RUN["more_rows"][language].format(count=f"{count:,}") if count > 0 else ""


def fold(title: object, *body: object, kind: str = "own", is_open: bool = False) -> Markup:
    """What stands under a title that opens it."""
    return tag("details", tag("summary", title), *body, class_=kind or None, open=is_open)


def dotted(*parts: object) -> Markup:
    """Parts with dots between them, none of which begins or ends a line."""
    dot = tag("span", "· ", class_="dot")
    spans = (tag("span", dot if at else "", part) for at, part in enumerate(parts))
    return tag("span", Markup(" ").join(spans), class_="dotted")


def heading(title: object, *body: object) -> Markup:
    """What a view, or a part of one, asks, and what is said to that."""
    return tag("div", tag("h2", title), *body, class_="intro")


# -- words ---------------------------------------------------------------------------------------


def saying(words: Mapping[str, Text], language: str) -> Callable[..., str]:
    """The texts of a catalogue in one language, by name, with their facts."""

    def say(name: str, /, **facts: object) -> str:
        text = words[name][language]
        return text.format(**facts) if facts else text

    return say


def unbroken(text: str) -> Markup:
    """A text in which no line ends within an order, or another name of three parts or more.

    >>> unbroken("as (tp-pp-dp): read-only")
    Markup('as <span class="unbroken">(tp-pp-dp):</span> read-only')
    """
    names = re.compile(r"[\w(-]*\w-\w+-[\w-]+[):;.,]*", re.ASCII)
    return Markup(names.sub(lambda name: tag("span", name[0], class_="unbroken"), _read(text)))


def intro(title: str, text: str, language: str) -> Markup:
    """What a view asks and how it answers: a heading and a paragraph."""
    return heading(title, tag("p", explained(text, language)))


def explained(text: str, language: str, known: set[str] | None = None) -> Markup:
    """A text as HTML, each of its words explained once; ``known``, those that were explained
    before, is added to."""
    known = set() if known is None else known

    def marked(match: re.Match[str]) -> str:
        key = _key(match["word"], language)
        if key in known:
            return match[0]
        known.add(key)
        word = _explained(match["word"], key, language)
        return tag("bdi", word, Markup(match["end"]), class_="word-end") if match["end"] else word

    return Markup(_pattern(language).sub(marked, unparted(escape_text(text, quote=False))))


@cache
def _explained(word: str, key: str, language: str) -> Markup:
    """One of the few ways to write a word, with its tip."""
    return button(Markup(word), class_="word", data_tip=WORDS[key].tip[language])


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """Any of the words; a group for each would take ten times as long."""
    assert language in LANGUAGES
    words = "|".join(word.written[language] for word in WORDS.values())
    return re.compile(rf"(?P<word>{words})(?P<end>[^\w\s<&(]*)")


@cache
def _key(word: str, language: str) -> str:
    """Which word it is, of the few ways that there are to write one."""
    return next(k for k, term in WORDS.items() if re.fullmatch(term.written[language], word))


def player_buttons(back: str, on: str, language: str) -> Markup:
    """The buttons of what moves step by step in the browser alone, which a view's script does;
    ``back`` and ``on`` are the words of PAGE for one step."""
    play, stop = PAGE["play"][language], PAGE["stop"][language]
    steps = [("back", "←", PAGE[back][language]), ("on", "→", PAGE[on][language])]
    before, after = (
        button(sign, data_play=name, aria_label=label, title=label) for name, sign, label in steps
    )
    return together(before, button(play, data_play="play", data_start=play, data_stop=stop), after)


def share_bar(share: float) -> Markup:
    """A bar of which so much is full."""
    return tag("span", class_="share", style=f"--share:{100 * share:.1f}%")


def left_out_html(parts: Iterable[Text], language: str, **facts: str) -> Markup:
    """What a view's numbers do not hold, as a list."""
    items = (tag("li", part[language].format(**facts)) for part in parts)
    return tag("div", tag("h3", TRAFFIC["left_out"][language]), tag("ul", *items))
