"""People who have the page open: a test's end is not the end of their browser.

A new context costs four seconds of a core, most of it for scripts of Gradio that it has not seen
before, and to load the page anew in it more than one. So a page goes back to its start in place, as
a link to the start does; where that does not bring back all that was there when it was opened, the
next test gets it loaded anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from browser import AT_REST, PATIENCE, WATCHED, WATCHES, Page, Watch, expect, settle

from request.inputs import FIELDS

Kind = tuple[str, bool]
"""What a context cannot change: its language, whether it is touched."""

NOW = """() => {
  const fields = document.querySelectorAll('#page :is(input, select, textarea)');
  const plain = document.querySelector('#page').cloneNode(true);
  const whole = document.createElement('div');
  whole.append(plain);
  const each = (selector, then) => whole.querySelectorAll(selector).forEach(then);
  each('[tabindex]', (one) => one.removeAttribute('tabindex'));
  each('[class=""]', (one) => one.removeAttribute('class'));
  each('.costs', (one) => { one.replaceChildren(); one.removeAttribute('aria-busy'); });
  each('.film-track', (one) => one.replaceChildren());
  each('#numbers', (one) => {
    one.replaceWith(one.querySelector('[aria-pressed=true]')?.dataset.lens ?? '');
  });
  const said = (node) => {  // marks in the order of their names: one set last stands last
    if (node.nodeType !== Node.ELEMENT_NODE) return node.textContent;
    if (node.nodeName === 'svg') return node.outerHTML;
    const marks = [...node.attributes].map(({name, value}) => `${name}="${value}"`).sort();
    return `<${[node.nodeName, ...marks].join(' ')}>${[...node.childNodes].map(said).join('')}</>`;
  };
  const all = JSON.stringify([
    location.search, document.title, document.body.className, said(plain),
    [...fields].map((one) => [one.id, one.value, one.checked]),
    Object.keys(window).sort(), Object.keys(navigator.clipboard ?? {}),
  ]);
  return crypto.subtle.digest('SHA-1', new TextEncoder().encode(all))
    .then((digest) => new Uint8Array(digest).join());
}"""
"""All of a page that a test can change, as a short text.

But what is the same to whoever looks, in whatever order it was set, and what is asked for a while
after the picture stands, whether it was told before or not: the four numbers, what the chosen GPU
costs and the strip of a step.
"""

BACK = f"""async ([unlinked, open, patience]) => {{
  const say = (name, detail) => document.dispatchEvent(new CustomEvent(name, {{ detail }}));
  document.activeElement?.blur();
  say('set', Object.fromEntries(unlinked.map((name) => [name, ''])));
  say('open', {{ query: '' }});
  say('lens', '');
  await ({AT_REST})(patience);
  document.querySelectorAll('details').forEach((fold, at) => {{ fold.open = open[at]; }});
  if (document.querySelector('#page.changing')) document.querySelector('#foot button').click();
  scrollTo(0, 0);
  return ({NOW})();
}}"""
"""To the start, in place; what no link holds is emptied, and folds are as they were. Gives NOW."""

FOLDS = "() => [...document.querySelectorAll('details')].map((fold) => fold.open)"


@dataclass
class Visitor:
    """A page in a context of its own, and how it was when it was opened."""

    kind: Kind
    page: Page
    dark: bool = False
    start: str = ""
    folds: tuple[bool, ...] = ()


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
        """The page at its start, for one more user.

        started: as one that has come to rest; else it is loaded, and only just there.
        """
        kind = (locale, touch)
        fitting = [one for one in self.waiting if one.kind == kind]
        visitor = min(fitting, key=lambda one: one.dark != dark) if fitting else self._new(kind)
        self.waiting = [one for one in self.waiting if one is not visitor]
        self.here.append(visitor)
        page = visitor.page
        if page.viewport_size != (size := {"width": width, "height": height}):
            page.set_viewport_size(size)
        page.mouse.move(0, 0)
        if started and visitor.start and visitor.dark == dark and self._is_back(visitor):
            return page
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.goto(self.server)
        # The page's own script has run once a GPU is marked.
        page.wait_for_selector("svg.panel .c.me", state="attached")
        visitor.dark, visitor.start = dark, ""
        if started:
            settle(page)
            visitor.start, visitor.folds = page.evaluate(NOW), tuple(page.evaluate(FOLDS))
        return page

    def _is_back(self, visitor: Visitor) -> bool:
        """Go back to the start in place; whether all is as it was."""
        unlinked = [name for name, row in FIELDS.items() if not row.link]
        now = visitor.page.evaluate(BACK, [unlinked, visitor.folds, PATIENCE])
        return now == visitor.start

    def _new(self, kind: Kind) -> Visitor:
        locale, touch = kind
        # Still, or a test would look at a picture on its way; those of motion ask for it.
        context = self.browser.new_context(
            locale=locale, has_touch=touch, accept_downloads=True, reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE)
        context.add_init_script(f"({WATCHED})()")
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
                visitor.page.emulate_media(reduced_motion="reduce")
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
