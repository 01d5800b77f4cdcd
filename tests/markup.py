"""Pages and pictures as a test asks them: by CSS selectors, and each is parsed once."""

from __future__ import annotations

import json
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

Markup = str | LexborNode


@lru_cache(maxsize=8)
def _parsed(page: str) -> LexborNode:
    return LexborHTMLParser(page).root


def select(markup: Markup, selector: str) -> list[LexborNode]:
    """The elements that match, in the order of the page."""
    return (_parsed(markup) if isinstance(markup, str) else markup).css(selector)


def only(markup: Markup, selector: str) -> LexborNode:
    """The only element that matches."""
    elements = select(markup, selector)
    assert len(elements) == 1, (selector, len(elements))
    return elements[0]


def written(markup: Markup) -> str:
    """The text as it stands there, every space kept."""
    return (_parsed(markup) if isinstance(markup, str) else markup).text()


def text_of(markup: Markup) -> str:
    """The text as it is read: words of two elements are apart, spaces are one."""
    node = _parsed(markup) if isinstance(markup, str) else markup
    return " ".join(node.text(separator=" ").split())


def values(markup: Markup, name: str, of: str = "") -> list[Any]:
    """What the elements (``of`` a selector) that have an attribute of JSON say in it."""
    return [json.loads(node.attributes[name]) for node in select(markup, f"{of}[{name}]")]


def cells(markup: Markup, name: str) -> list[list[LexborNode]]:
    """The cells of the rows below the heads of the table of a class; none if it is not there."""
    bodies = select(markup, f".{name} tbody")
    assert len(bodies) <= 1, name
    return [select(row, "td, th") for body in bodies for row in select(body, "tr")]


def table(markup: Markup, name: str) -> list[list[str]]:
    """The texts of those cells."""
    return [[text_of(cell) for cell in row] for row in cells(markup, name)]


def known_of(svg: LexborNode) -> dict[str, Any]:
    """What a picture tells the page's script."""
    (known,) = values(svg, "data-known")
    return known


def panels(page: Markup) -> dict[str, np.ndarray]:
    """The group of each rank in every panel, read back from the page; -1 for a rank in none."""
    drawn = select(page, "svg.panel")
    groups = {svg.attributes["data-kind"]: np.array(known_of(svg)["groups"]) for svg in drawn}
    assert len(groups) == len(drawn)
    return groups


class _Tags(HTMLParser):
    """The tags that are open; a parser of pages mends what is not closed in order."""

    VOID = frozenset({"br", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def assert_whole(page: str) -> None:
    """Every tag that opens closes, and in order."""
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
