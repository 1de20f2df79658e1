"""The tab Inspect in a browser, with the real bench on this machine's CPU and a plug-in that forgets its last tile."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page
from waiting import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-1")]

ASKED = "?op=softmax&variants=torch_eager,forgets_the_last_tile&dtype=bf16&m=200&n=1000&budget=0.05&device=cpu"


def test_a_forgotten_tile_is_seen_where_it_is_and_the_link_reopens_it(real: str, page: Page) -> None:
    page.goto(f"{real}/{ASKED}")
    page.get_by_role("button", name="Run", exact=True).first.click()
    told = page.get_by_role("listitem").filter(has_text="elements were never written")
    expect(told.first).to_be_visible(timeout=90_000)
    expect(page.locator(".st-key-going")).to_have_count(0, timeout=30_000)
    page.get_by_role("tab", name="Inspect").click()
    expect(page.get_by_text("This case was not inspected yet.")).to_be_visible()
    page.get_by_role("button", name="Inspect", exact=True).click()
    told = page.locator(".st-key-inspect_facts")
    place = "they lie within m 183 to 199 (the last 17 of 200), n 900 to 999 (the last 100 of 1000)"
    expect(told.get_by_text(place).first).to_be_visible(timeout=60_000)
    chart = page.locator(".st-key-map_y_MN .js-plotly-plot")
    expect(chart).to_have_count(1)
    signs = chart.evaluate("g => g.data.filter(t => t.mode === 'markers').map(t => t.name || t.x.length)")
    assert signs == [7, "wrong elements in the block", 28, "never written elements in the block"]
    expect(page.get_by_role("button", name="Inspect again")).to_be_visible()
    told.get_by_role("radio", name="x_MN").click()
    page.wait_for_url("**values=x_MN**")
    page.reload()
    page.get_by_role("tab", name="Inspect").click()
    expect(page.locator(".st-key-inspect_facts").get_by_text(place).first).to_be_visible(timeout=30_000)
    expect(page.locator(".st-key-inspect_facts").get_by_role("radio", name="x_MN")).to_be_checked()
