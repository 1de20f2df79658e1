"""The tab of the browser tests: a page that is opened after another test's is drawn by the process that drew that one."""

from __future__ import annotations

import pytest
from one_tab import forget
from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]


def drawing_processes(browser: Browser) -> set[int]:
    """The processes of this browser that draw pages, when none of them is about to end."""
    session = browser.new_browser_cdp_session()
    processes: list[set[int]] = [set(), {0}]
    while processes[-1] != processes[-2]:
        processes.append(
            {p["id"] for p in session.send("SystemInfo.getProcessInfo")["processInfo"] if p["type"] == "renderer"}
        )
        browser.contexts[0].pages[0].wait_for_timeout(500)
    session.detach()
    return processes[-1]


def test_the_process_that_draws_pages_stays(real: str, browser: Browser, page: Page) -> None:
    page.goto(f"{real}/api/health?first")  # a page that has the headers of every page, and costs nothing
    before = drawing_processes(browser)
    forget(page)
    page.goto(f"{real}/api/health?second")
    assert before <= drawing_processes(browser)
