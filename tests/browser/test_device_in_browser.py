"""The Device page as people meet it: a chart that grows by itself, a phone's width, and a real calibration of this CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from accessibility import expect_accessible
from acting import show
from playwright.sync_api import Page
from servers import served
from waiting import expect

# Streamlit draws a chart anew when its figure changes: for a moment the old one is there too, marked stale.
CHART = ".st-key-reports[data-stale=false] .js-plotly-plot"
LAST = f"document.querySelector('{CHART}')?.data?.[0].y.at(-1)"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The pages over an H200 that plays a load."""
    with served(Path(__file__).with_name("device_app.py"), tmp_path_factory.mktemp("played")) as url:
        yield url


def test_everybody_reads_it(played: str, open_tab: Page) -> None:
    page = open_tab
    page.goto(f"{played}/device")
    expect_accessible(page, "Device", ".st-key-reports .js-plotly-plot")


def test_it_is_drawn_grows_by_itself_and_nothing_is_wider_than_the_page(played: str, open_tab: Page) -> None:
    """On a phone, then in the same window as wide as a desktop's."""
    page = open_tab
    page.set_viewport_size({"width": 390, "height": 900})
    show(page, f"{played}/device")
    chart = page.locator(CHART)
    expect(chart).to_be_visible()
    for words in ("SMs busy", "PCIe to the device", "power, W", "temperature, °C"):
        expect(chart).to_contain_text(words)
    page.wait_for_function(f"() => {LAST} !== undefined")
    page.evaluate(f"window.seen = {LAST}")
    page.wait_for_function(f"() => {LAST} !== undefined && {LAST} !== window.seen")
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        tiles = page.locator(".st-key-tiles [data-testid=stMetric]")
        expect(tiles).to_have_count(6)
        assert all(box["x"] + box["width"] <= width for tile in tiles.all() if (box := tile.bounding_box()))


def test_a_threshold_and_a_window_are_in_the_address(played: str, open_tab: Page) -> None:
    page = open_tab
    show(page, f"{played}/device?grows=3")
    expect(page.get_by_role("spinbutton", name="Alert: memory growth above, GiB")).to_have_value("3")
    page.locator(".st-key-window").get_by_role("radio", name="15 min").click()
    expect(page).to_have_url(re.compile("window=15"))
    expect(page.get_by_text("Each point is the mean of 3 s.")).to_be_visible()


def test_this_cpu_is_calibrated_from_the_page(real: str, page: Page) -> None:
    page.goto(f"{real}/device")
    start = page.locator(".st-key-calibrate_device").get_by_role("button", name="Calibrate")
    start.click()
    expect(page.locator(".st-key-calibration_going")).to_be_visible()
    expect(start).to_be_disabled()
    expect(page).to_have_url(re.compile("calibration=calibration-"))
    page.locator(".st-key-cancel_device_calibration").get_by_role("button").click()
    expect(page.get_by_text("The calibration was cancelled").first).to_be_visible(timeout=60_000)
    expect(start).to_be_enabled()
    expect(page.locator(CHART)).to_contain_text("mean load")
