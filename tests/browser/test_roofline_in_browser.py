"""The Roofline page as people meet it: hover, a click that isolates, pictures that can be kept, and a phone's width."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from accessibility import expect_accessible
from acting import at_rest, show
from playwright.sync_api import Locator, Page
from waiting import expect

from kernelviz.formats import shipped_runs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]
RUNS = "runs=h200-matmul,h200-rmsnorm"
CHART = ".st-key-rooflines[data-stale=false] .js-plotly-plot"


def opened(real: str, page: Page, query: str = RUNS) -> Locator:
    show(page, f"{real}/roofline?{query}")
    # While a choice redraws the chart the old one stands beside it for a moment, marked stale.
    chart = page.locator(CHART)
    expect(chart.locator(".points path").first).to_be_visible()
    at_rest(page)
    return chart


def point(page: Page, chart: Locator, variant: str) -> None:
    """Move the mouse onto the first point of a variant, which is its largest problem."""
    names = chart.evaluate("g => g.data.map(t => t.name)")
    box = chart.locator(".scatterlayer .trace .points").nth(names.index(variant)).locator("path").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_no_two_names_of_the_legend_touch_and_everybody_reads_the_page(real: str, page: Page) -> None:
    chart = opened(real, page)
    legend_is_read(page, chart, 1440)
    expect_accessible(page, "Roofline", CHART)
    legend_is_read(page, chart, 390)


def test_hover_says_share_and_limiter_and_a_click_isolates(real: str, open_tab: Page) -> None:
    page = open_tab
    chart = opened(real, page)
    point(page, chart, "matmul: cuda naive")
    hover = chart.locator(".hoverlayer")
    (roof,) = (
        r for r in shipped_runs.load("h200-matmul").environment.roofs if (r.name, r.precision) == ("matmul", "bf16")
    )
    assert roof.rate_flop_per_s
    expect(hover).to_contain_text(f"of the roof (matmul bf16, {roof.rate_flop_per_s / 1e12:.0f} TFLOP/s")
    expect(hover).to_contain_text("unclear:")
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"case=h200-matmul.*cuda_naive"))
    one = page.locator(".st-key-one_case")
    expect(one).to_contain_text("matmul: cuda naive")
    expect(one).to_contain_text("theoretical occupancy 100 %")
    page.reload()
    expect(one).to_contain_text("matmul: cuda naive")
    one.get_by_role("button", name="Show all cases").click()
    expect(one).to_have_count(0)
    expect(page).not_to_have_url(re.compile("case="))


def test_the_chart_is_zoomed_and_saved_as_a_picture(real: str, open_tab: Page, tmp_path: Path) -> None:
    page = open_tab
    chart = opened(real, page)
    whole = chart.evaluate("g => g._fullLayout.xaxis.range.map(Number)")
    tools = page.locator(".st-key-rooflines .chart-tools")
    chart.hover()
    tools.get_by_role("button", name="Zoom in").click()
    low, high = chart.evaluate("g => g._fullLayout.xaxis.range.map(Number)")
    assert high - low == pytest.approx((whole[1] - whole[0]) * 0.6)
    tools.get_by_role("button", name="Show everything").click()
    assert chart.evaluate("g => g._fullLayout.xaxis.range.map(Number)") == pytest.approx(whole)
    with page.expect_download() as saving:
        tools.get_by_role("button", name="Save this chart").click()
        tools.get_by_role("menuitem", name="SVG").click()
    assert saving.value.suggested_filename.startswith("kernelviz-roofline-matmul")
    saving.value.save_as(tmp_path / "SVG")
    said = re.search(r"DRAM (?:\d\.\d\d TB/s to )?(\d\.\d\d) TB/s", (tmp_path / "SVG").read_text())
    assert said
    roofs = [r for run in ("h200-matmul", "h200-rmsnorm") for r in shipped_runs.load(run).environment.roofs]
    measured = [r.bandwidth_bytes_per_s for r in roofs if r.level == "dram" and r.bandwidth_bytes_per_s]
    assert float(said[1]) in {round(value / 1e12, 2) for value in measured}


def legend_is_read(page: Page, chart: Locator, width: int) -> None:
    """No two names touch, none leaves the chart, and nothing is wider than the page."""
    boxes = chart.evaluate(
        "g => [...g.querySelectorAll('.legendtext, .legend2text, .xtick text, .ytick text, .xtitle, .ytitle')].map(t => {"
        " const r = t.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom, t.textContent] })"
        ".filter(b => b[2] > b[0])"
    )
    assert len(boxes) > 15
    frame = chart.bounding_box()
    assert frame
    for left, top, right, bottom, name in boxes:
        assert left >= frame["x"] - 1, name
        assert right <= frame["x"] + frame["width"] + 1, name
        assert bottom <= frame["y"] + frame["height"] + 1, name
        # A pixel of play: the boxes of two lines of one name touch.
        touching = [b[4] for b in boxes if b[4] != name and b[0] < right - 1 and left < b[2] - 1
                    and b[1] < bottom - 1 and top < b[3] - 1]  # fmt: skip
        assert not touching, (name, touching)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_runs_are_chosen_by_keyboard(real: str, open_tab: Page) -> None:
    page = open_tab
    opened(real, page, "runs=h200-add")
    box = page.locator(".st-key-chosen_runs input")
    box.focus()
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("h200-softmax"))
    page.keyboard.press("Escape")  # an open list hides the rest of the page from the next test


def test_the_controls_show_their_values_when_a_run_is_shown_again(real: str, open_tab: Page) -> None:
    page = open_tab
    opened(real, page)
    level = page.locator(".st-key-level")
    level.get_by_role("radio").nth(1).click()
    at_rest(page)
    page.locator(".st-key-chosen_runs").hover()
    page.locator(".st-key-chosen_runs").get_by_role("button", name="Clear").first.click()
    expect(level).to_have_count(0)
    page.locator(".st-key-example button").click()  # the newest run, which may be any that a test has stored
    expect(level).to_be_visible()
    at_rest(page)
    assert level.get_by_role("radio", checked=True).count() == 1
    assert page.locator(".st-key-roofs").get_by_role("radio", checked=True).inner_text() == "measured roofs"
