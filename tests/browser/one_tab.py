"""One tab in which the tests of a process open their pages by turns, one process of the browser for each server, and one cache.

Opening a run costs 4 s of processor time in a browser that has never been anywhere, and less than half of that in one that has
compiled the scripts of Streamlit and Plotly. Two things keep them compiled from test to test:

- The process that draws the pages stays. The browser would take a new one for each test, because our pages and about:blank have
  different values of Cross-Origin-Opener-Policy. With ``--process-per-site`` it takes the one that has a page of the server
  open, so one page of each server stays open in another tab.
- The cache of files stays. What it may answer without asking the server is named by the digest of its content. A test of what
  the server sends calls `forget_files`.

A load of a page still costs twice as much as to show another address in the open page. A test that asks nothing about loading,
and nothing of a person who has never been there, takes `open_tab` instead of `page` and shows its address by `acting.show`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page

WIDE = {"width": 1440, "height": 900}


@pytest.fixture
def open_tab(browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    """The tab in a desktop's window, with the page that the test before left open if that test had taken `open_tab`, too. A
    failed test leaves a picture in its tmp_path, and the next test gets another tab."""
    tab = tab_of(browser)
    as_on_a_desktop(tab)
    failed_before = request.session.testsfailed
    yield tab
    if request.session.testsfailed > failed_before:
        tab.screenshot(path=tmp_path / "failed.png")
        forget(tab)
        tab.close()
        tab_of.cache_clear()


@pytest.fixture
def page(open_tab: Page, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The tab, with nothing of the test before it."""
    forget(open_tab)
    failed_before = request.session.testsfailed
    yield open_tab
    if request.session.testsfailed == failed_before:
        forget(open_tab)


@cache
def context_of(browser: Browser) -> BrowserContext:
    """The context of the tab. What else opens a page in it has a process that has compiled the scripts."""
    return browser.new_context(viewport=WIDE)  # type: ignore[arg-type]


@cache
def tab_of(browser: Browser) -> Page:
    """The tab of this browser, as the test before left it."""
    tab = context_of(browser).new_page()
    tab.set_default_timeout(30_000)
    return tab


def as_on_a_desktop(tab: Page) -> None:
    tab.emulate_media(color_scheme="light")
    tab.set_viewport_size(WIDE)  # type: ignore[arg-type]


def forget(tab: Page) -> None:
    """Make the tab that of a person who has never been anywhere: no page, storage or cookies, and a desktop's window."""
    if tab.url == "about:blank":
        return as_on_a_desktop(tab)
    address = urlsplit(tab.url)
    origin = f"{address.scheme}://{address.netloc}"
    if address.scheme == "http":
        keep_process(tab.context, origin)
    tab.goto("about:blank")
    tab.context.clear_cookies()
    as_on_a_desktop(tab)
    devtools = tab.context.new_cdp_session(tab)
    devtools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    devtools.detach()


def keep_process(context: BrowserContext, origin: str) -> None:
    """Leave a page of the server open in a tab of its own: the smallest that the server has, which runs no script."""
    smallest = f"{origin}/api/health"
    if any(page.url == smallest for page in context.pages):
        return
    tab = context.new_page()
    try:
        tab.goto(smallest)
    except Error:  # the test ended its server
        tab.close()


def forget_files(tab: Page) -> None:
    """Empty the browser's cache of files."""
    devtools = tab.context.new_cdp_session(tab)
    devtools.send("Network.clearBrowserCache")
    devtools.detach()
