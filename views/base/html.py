"""HTML elements; everything that is not markup is escaped.

>>> tag("p", "a < b ", tag("b", "c's"), class_="fine", data_set={"tp": 2})
Markup('<p class="fine" data-set="{&#34;tp&#34;:2}">a &lt; b <b>c&#39;s</b></p>')
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from html import escape as escape_text

import orjson
from markupsafe import Markup, escape

from descriptions import LANGUAGES, PAGE, RUN, TRAFFIC, WORDS, Text
from formats.documents.tables import Table
from groups.group_names import main_axis


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. Underscores in an attribute's name become dashes, except a last one; True is an
    attribute without a value, None and False omit it, and other data is JSON."""
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
    """A remark in small print."""
    return tag("p", *children, class_="fine")


def by_pointer(mouse: str, touch: str) -> Markup:
    """A text for mouse users and one for touch screens; the style sheet shows one of them."""
    return together(tag("span", mouse, class_="by-mouse"), tag("span", touch, class_="by-touch"))


def chip(name: str, kind: str = "") -> Markup:
    """The name of a kind of group. ``kind``: the class of its tone, if its parent has none."""
    return tag("span", name, class_=f"chip {kind}".strip())


def chips(names: Iterable[str], folded: Collection[str] = ()) -> Markup:
    """The names of one group, each in its tone. ``folded``: names with that class."""
    tones = ((name, tone_class(name) + " folded" * (name in folded)) for name in names)
    return Markup(" ").join(chip(name, tone) for name, tone in tones)


def tone_class(name: str) -> str:
    """The class of a kind's tone, the same in every picture."""
    return f"t-{main_axis(name) or 'tp'}"


def figure(caption: object, drawn: str) -> Markup:
    """An SVG picture below its caption."""
    return tag("figure", tag("figcaption", caption), Markup(drawn))


def scrolling(kind: str, *children: object) -> Markup:
    """A box that scrolls sideways, also by keyboard."""
    return tag("div", *children, class_=kind, tabindex=0)


def together(*parts: object) -> Markup:
    """Concatenates markup."""
    return _markup("".join(map(_read, parts)))


VERBATIM = frozenset(("code", "mark", "option", "pre", "textarea"))
"""Elements whose text stays as it is, to be copied or as typed."""

UNITS = r" (?<=\d )(?=(?:[kMGTP]?i?B|M|T?FLOP|Gb|[mµ]?s)\b|[个层次组步份台条项列行块段种倍维级秒])"
"""The space between a number and its unit, or a Chinese counter; also in client/shared.js."""

unparted = partial(re.compile(UNITS).sub, "\u00a0")
_is_special = re.compile("[&<>'\"]").search
_is_more = re.compile("[&<>'\" ]").search  # than one word as it stands


def _read(value: object) -> str:
    """`_written`, with no line break between a number and its unit.

    >>> tag("p", "80 GiB, 16 个 GPU") == "<p>80\u00a0GiB, 16\u00a0个 GPU</p>"
    True
    """
    if type(value) is not str:
        return _written(value)
    return unparted(_written(value)) if _is_more(value) else value


def _written(value: object) -> str:
    """A value as HTML; most texts have nothing to escape, which is faster to check than
    `escape`."""
    if type(value) is Markup:
        return value
    if type(value) is str:
        return escape(value) if _is_special(value) else value
    return str(value) if type(value) is int else escape(value)


def _markup(text: str) -> Markup:
    """Marks a text as markup; a third of the time that calling `Markup` takes."""
    return str.__new__(Markup, text)


@cache
def _attribute(name: str) -> str:
    return " " + name.rstrip("_").replace("_", "-")


def attribute_value(value: object) -> str:
    """The text of a value between the quotes of an attribute; data is JSON."""
    return _written(as_json(value) if isinstance(value, (dict, list)) else value)


def as_json(value: object) -> str:
    """A value as JSON, in a fraction of the time of `json`."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half of a surrogate pair, which a program may send, is no UTF-8
        return json.dumps(value)


class TableCell(Markup):
    """A table cell with HTML attributes."""


def cell(*children: object, **attributes: object) -> TableCell:
    return str.__new__(TableCell, tag("td", *children, **attributes))


def row(first: object, *cells: object, **attributes: object) -> Markup:
    """A table row whose first cell is a row header."""
    head = first if isinstance(first, TableCell) else tag("th", first, scope="row")
    rest = (
        content if isinstance(content, TableCell) else _markup(f"<td>{_read(content)}</td>")
        for content in cells
    )
    return tag("tr", head, *rest, **attributes)


class Told(str):
    """The text of a table's cell, which a slide shows, and what the page shows in its place."""

    page: Markup

    def __new__(cls, text: str, page: Markup) -> Told:
        told = super().__new__(cls, text)
        told.page = page
        return told


def table(heads: Iterable[object], rows: Iterable[Sequence[object]], kind: str = "") -> Markup:
    """A table that only the page shows: a row is a sequence of cells, or made by `row`."""
    return table_html(Table("", list(heads), list(rows)), kind)


def table_html(shown: Table, kind: str = "") -> Markup:
    """A table under its column heads; it scrolls if wide. Cells are texts, markup or `Told`."""
    head = tag("tr", *(tag("th", head, scope="col") for head in shown.columns))
    body = (one if isinstance(one, Markup) else row(*map(_on_page, one)) for one in shown.rows)
    markup = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", markup, class_=f"scroll {kind}".strip(), tabindex=0)


def _on_page(content: object) -> object:
    return content.page if isinstance(content, Told) else content


def heads_of(words: Mapping[str, Text], names: str, language: str) -> list[str]:
    """The heads of a table, by their names in a catalogue."""
    return [words[f"column_{name}"][language] for name in names.split()]


def outside(url: str, title: object) -> Markup:
    return tag("a", title, href=url, target="_blank", rel="noopener noreferrer")


def numbered(title: str, count: int, language: str) -> str:
    """A title with the number of items below it."""
    return PAGE["numbered"][language].format(title=title, count=f"{count:,}")


def rest_text(count: int, language: str) -> str:
    """The number of items that a list leaves out, as text; empty if none."""
    return RUN["more_rows"][language].format(count=f"{count:,}") if count > 0 else ""


def fold(title: object, *body: object, kind: str = "own", is_open: bool = False) -> Markup:
    """A title that opens and closes its content."""
    return tag("details", tag("summary", title), *body, class_=kind or None, open=is_open)


def steps_list(title: object, items: Sequence[object]) -> Markup | str:
    """The next things to do, one below the other; nothing without any."""
    return fold(title, tag("ol", *items, class_="next-steps"), is_open=True) if items else ""


def dotted(*parts: object) -> Markup:
    """Parts separated by dots, with no line break beside a dot."""
    dot = tag("span", "· ", class_="dot")
    spans = (tag("span", dot if at else "", part) for at, part in enumerate(parts))
    return tag("span", Markup(" ").join(spans), class_="dotted")


def heading(title: object, *body: object) -> Markup:
    """A heading with the question of a view or of a part of it, and the answer."""
    return tag("div", tag("h2", title), *body, class_="intro")


# -- words ---------------------------------------------------------------------------------------


def unbroken(text: str) -> Markup:
    """A text with no line break inside an order or a similar name of three or more parts.

    >>> unbroken("as (tp-pp-dp): read-only")
    Markup('as <span class="unbroken">(tp-pp-dp):</span> read-only')
    """
    names = re.compile(r"[\w(-]*\w-\w+-[\w-]+[):;.,]*", re.ASCII)
    return Markup(names.sub(lambda name: tag("span", name[0], class_="unbroken"), _read(text)))


def intro(title: str, text: str, language: str) -> Markup:
    """The question of a view and how it answers: a heading and a paragraph."""
    return heading(title, tag("p", explained(text, language)))


def explained(text: str, language: str, known: set[str] | None = None) -> Markup:
    """A text as HTML with a tip on the first occurrence of each glossary term; ``known``, the terms
    explained before, is extended."""
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
    """One spelling of a term, with its tip."""
    return button(Markup(word), class_="word", data_tip=WORDS[key].tip[language])


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """A pattern of all terms; one group per term would take ten times as long."""
    assert language in LANGUAGES
    words = "|".join(word.written[language] for word in WORDS.values())
    return re.compile(rf"(?P<word>{words})(?P<end>[^\w\s<&(]*)")


@cache
def _key(word: str, language: str) -> str:
    """The glossary term that a spelling belongs to."""
    return next(k for k, term in WORDS.items() if re.fullmatch(term.written[language], word))


def player_buttons(back: str, on: str, language: str) -> Markup:
    """The buttons of a player that runs in the browser alone; ``back`` and ``on`` are the names in
    PAGE of the labels for one step."""
    play, stop = PAGE["play"][language], PAGE["stop"][language]
    steps = [("back", "←", PAGE[back][language]), ("on", "→", PAGE[on][language])]
    before, after = (
        button(sign, data_play=name, aria_label=label, title=label) for name, sign, label in steps
    )
    return together(before, button(play, data_play="play", data_start=play, data_stop=stop), after)


def share_bar(share: float) -> Markup:
    """A bar filled to a share."""
    return tag("span", class_="share", style=f"--share:{100 * share:.1f}%")


def left_out_html(parts: Iterable[Text], language: str, **facts: str) -> Markup:
    """A list of the effects that a view's numbers leave out."""
    items = (tag("li", part[language].format(**facts)) for part in parts)
    return tag("div", tag("h3", TRAFFIC["left_out"][language]), tag("ul", *items))
