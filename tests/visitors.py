"""People who have the page open: a test's end is not the end of their browser.

A new context costs three seconds of CPU, most of it for scripts of Gradio that it has not seen
before; one that is there already opens the page anew in half of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from browser import PATIENCE, WATCHES, Page, Watch, expect, settle

Kind = tuple[str, bool, bool]
"""What a context cannot change: its language, its colours, whether it is touched."""


@dataclass(frozen=True)
class Visitor:
    kind: Kind
    page: Page


class Visitors:
    """Pages that are open in contexts of their own, and those that wait for the next test."""

    def __init__(self, server: str, browser: Any) -> None:
        self.server = server
        self.browser = browser
        self.here: list[Visitor] = []
        self.waiting: list[Visitor] = []

    def open(
        self,
        width: int = 1400,
        height: int = 1000,
        locale: str = "en-US",
        dark: bool = False,
        touch: bool = False,
        started: bool = True,
    ) -> Page:
        """The page, opened by one more user; `started`: not before it has come to rest."""
        kind = (locale, dark, touch)
        visitor = next((one for one in self.waiting if one.kind == kind), None)
        if visitor is None:
            visitor = self._new(kind)
        else:
            self.waiting.remove(visitor)
        self.here.append(visitor)
        page = visitor.page
        page.set_viewport_size({"width": width, "height": height})
        page.goto(self.server)
        # The page's own script has run once a cell can be reached by keyboard.
        page.wait_for_selector('svg.panel .c[tabindex="0"]', state="attached")
        if started:
            settle(page)
        return page

    def _new(self, kind: Kind) -> Visitor:
        locale, dark, touch = kind
        context = self.browser.new_context(
            locale=locale,
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            accept_downloads=True,
        )
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page = context.new_page()
        WATCHES[page] = Watch()
        WATCHES[page].listen(page)
        return Visitor(kind, page)

    def done(self, well: bool) -> list[str]:
        """A test is over: what went wrong in its pages. They stay if all was well."""
        problems = [problem for one in self.here for problem in WATCHES[one.page].problems]
        for visitor in self.here:
            if problems or not well:
                self._close(visitor)
            else:
                visitor.page.unroute_all()
                visitor.page.context.clear_permissions()
                visitor.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
                WATCHES[visitor.page].forget()
                self.waiting.append(visitor)
        self.here = []
        return problems

    def _close(self, visitor: Visitor) -> None:
        visitor.page.context.close()
        del WATCHES[visitor.page]

    def leave(self) -> None:
        for visitor in [*self.here, *self.waiting]:
            self._close(visitor)
