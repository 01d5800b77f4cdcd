"""What the browser tests that are about links share: opening them, and waiting for the address."""

from __future__ import annotations

from browser import Page, TooLong, expect, settle, wait_until

from request.link import to_query
from request.state import State


def visit(page: Page, query: str) -> None:
    """Open the page anew at an address, as somebody does who was sent it."""
    page.goto(page.url.split("?")[0] + query)
    page.wait_for_selector("#picture .picture")
    settle(page)


def follow_link(page: Page, query: str) -> None:
    """Open an address in place, as a link within the page does: faster than to load it all anew."""
    page.evaluate(
        "query => document.dispatchEvent(new CustomEvent('open', {detail: {query}}))", query
    )
    settle(page)


def follow(page: Page, state: State) -> None:
    """Open a state in place, and wait until it is there."""
    follow_link(page, to_query(state))
    expect_address(page, state)
    expect(page.locator(f".picture[data-view={state.view}][lang={state.language}]")).to_be_visible()


def reload(page: Page) -> None:
    page.reload()
    page.wait_for_selector("#picture .picture")
    settle(page)


def expect_address(page: Page, state: State) -> str:
    """Wait until the address says exactly this state; gives its query."""
    query = to_query(state)
    query = f"?{query}" if query else ""
    try:
        wait_until(page, "query => location.search === query", query)
    except TooLong:
        assert page.evaluate("location.search") == query
        raise
    return query


def next_step(page: Page) -> None:
    """What is changed next is so much later that it is a step of its own for the back button."""
    settle(page)
    page.evaluate("pass(1001)")
