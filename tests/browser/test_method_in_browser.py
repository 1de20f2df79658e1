"""The Method page as people meet it: the timing diagram really drawn, a selftest followed, and a phone's width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from acting import at_rest, show
from playwright.sync_api import Page
from servers import served
from waiting import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]


@pytest.fixture(scope="module")
def selftested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The pages over a bench that plays a selftest."""
    with served(Path(__file__).with_name("method_app.py"), tmp_path_factory.mktemp("selftested")) as url:
        yield url


def test_the_diagram_is_drawn_and_nothing_is_wider_than_the_page(selftested: str, open_tab: Page) -> None:
    """On a phone, then in the same window as wide as a desktop's."""
    page = open_tab
    page.set_viewport_size({"width": 390, "height": 900})
    show(page, f"{selftested}/method")
    chart = page.locator(".st-key-timeline .js-plotly-plot")
    expect(chart).to_be_visible()
    names = chart.evaluate("g => g.data.map(t => t.name)")
    assert names == ["fill output", "flush L2", "call", "end marker"]
    expect(chart).to_contain_text("counted: 4.08 µs")
    expect(page.get_by_text("pins its data in the L2")).to_be_attached()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        at_rest(page)
        least = chart.evaluate(
            "g => Math.min(...[...g.querySelectorAll('.trace.bars path')].map(p => p.getBoundingClientRect().width))"
        )
        assert least >= 1.5, "a bar that nobody sees"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        tables = page.locator(".st-key-checks table, .st-key-parts table")
        expect(tables).to_have_count(2)
        assert all(box["width"] <= width for table in tables.all() if (box := table.bounding_box()))


def test_a_selftest_is_started_and_followed_to_its_end(selftested: str, open_tab: Page) -> None:
    page = open_tab
    show(page, f"{selftested}/method")
    start = page.locator(".st-key-run_selftest").get_by_role("button", name="Run the selftest")
    start.click()
    expect(page.locator(".st-key-selftest_going")).to_be_visible()
    expect(start).to_be_disabled()
    expect(page).to_have_url(re.compile("selftest=selftest-new"))
    expect(page.locator(".st-key-selftest_going")).to_have_count(0)
    expect(start).to_be_enabled()
    at_rest(page)  # while the page is redrawn, the answer stands there twice
    expect(page.get_by_text("1 failed")).to_be_visible()


def test_the_switch_and_the_figures_on_the_first_page(selftested: str, open_tab: Page) -> None:
    page = open_tab
    show(page, f"{selftested}/?run=figures")
    page.locator(".st-key-l2").get_by_role("radio", name="warm L2").click()
    expect(page).to_have_url(re.compile("l2=warm"))
    page.get_by_text("Measurement quality, part by part").click()
    expect(page.get_by_text("L2 warm").last).to_be_visible()
    page.get_by_role("tab", name="Figures").click()
    expect(page.get_by_role("region", name="All times of each case")).to_be_visible()
    page.get_by_role("tab", name="Table").click()
    page.get_by_role("link", name="How these numbers are measured").click()
    expect(page.get_by_text("Method: how each number is measured")).to_be_visible()
