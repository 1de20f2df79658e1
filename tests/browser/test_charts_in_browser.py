"""A chart as people use it: selected and let go, by keyboard, in both themes, redrawn in place, and saved as a picture."""

from __future__ import annotations

import hashlib
import html
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from accessibility import show_in
from acting import HAS_PICTURE, at_rest, clipboard_of, show
from one_tab import forget_files
from playwright.sync_api import Locator, Page
from waiting import expect

from kernelviz.formats import shipped_runs
from kernelviz.formats.browser import bundle
from kernelviz.ui.server.assets import routes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]
RUN = "?run=h200-rmsnorm"
SELECTED = "g => g.data.flatMap((t) => (t.selectedpoints || []).map((i) => String(t.customdata[i])))"


def box(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key} .chart-box")


def opened(real: str, page: Page) -> Locator:
    show(page, f"{real}/{RUN}")
    expect(page.locator(".st-key-bars .js-plotly-plot")).to_be_visible()
    at_rest(page)
    return page.locator(".st-key-by_size .js-plotly-plot")


def click(page: Page, chart: Locator, number: int) -> None:
    """Click on a point of the second line."""
    point = chart.locator(".scatterlayer .trace").nth(1).locator("path.point").nth(number)
    at = point.bounding_box()
    assert at
    page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    at_rest(page)


def test_a_selection_stays_until_it_ends_and_a_chart_is_redrawn_in_place(real: str, page: Page) -> None:
    forget_files(page)
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url))
    chart = opened(real, page)
    chart.evaluate("g => { g.sameAsBefore = true }")
    click(page, chart, 2)
    expect(page).to_have_url(re.compile("at="))
    here = page.locator(".st-key-at input").input_value()
    keys = set(chart.evaluate(SELECTED))
    assert len(keys) == 1
    # It stays while the chart shows something else, and while another part of the page changes.
    page.locator(".st-key-show").get_by_role("radio", name="time").click()
    at_rest(page)
    assert set(chart.evaluate(SELECTED)) == keys
    # Another size in the box ends it: the chart never marks a size that the page does not show.
    page.locator(".st-key-at input").click()
    page.get_by_role("option").first.click()
    at_rest(page)
    expect(page.locator(".st-key-at input")).not_to_have_value(here)
    page.wait_for_function(f"g => !({SELECTED})(g).length", arg=chart.element_handle())
    # The same point again selects it again, and once more ends the selection.
    click(page, chart, 2)
    expect(page.locator(".st-key-at input")).to_have_value(here)
    assert set(chart.evaluate(SELECTED)) == keys
    click(page, chart, 2)
    assert chart.evaluate(SELECTED) == []
    # The cells of the winners have an axis of their own, and a text each; the lines then fill the chart as before.
    whole = chart.evaluate("g => g._fullLayout.xaxis.range")
    show = page.locator(".st-key-show")
    show.get_by_role("radio", name="winner").click()
    at_rest(page)
    cell = chart.locator(".barlayer path").first.bounding_box()
    assert cell
    page.mouse.move(cell["x"] + cell["width"] / 2, cell["y"] + cell["height"] / 2)
    expect(chart.locator(".hoverlayer")).to_contain_text("others take longer")
    show.get_by_role("radio", name="time").click()
    at_rest(page)
    assert chart.evaluate("g => g._fullLayout.xaxis.range") == pytest.approx(whole, abs=0.1)
    assert chart.evaluate("g => g.sameAsBefore"), "the chart was mounted anew"
    # One Plotly for the whole page, ours, asked for once.
    assert not [url for url in asked if "PlotlyChart" in url]
    assert len([url for url in asked if "/assets/plotly." in url]) == 1


@pytest.mark.parametrize("run", ["h200-add", "h200-matmul", "h200-fusion-transpose_matmul"])
def test_the_legend_of_the_winner_map_is_whole_on_a_phone(real: str, open_tab: Page, run: str) -> None:
    page = open_tab
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, f"{real}/?run={run}&show=winner")
    chart = page.locator(".st-key-by_size[data-stale=false] .js-plotly-plot")
    chart.locator(".legendtext", has_text="winner changes" if run != "h200-matmul" else "unclear").wait_for()
    frame = chart.bounding_box()
    assert frame
    needed_px, given_px = chart.evaluate("g => [g._fullLayout.legend._height, g._fullLayout.legend._effHeight]")
    assert needed_px == given_px, "it does not scroll"
    for name in chart.locator(".legendtext").all():
        entry = name.bounding_box()
        assert entry
        assert frame["x"] <= entry["x"]
        assert entry["x"] + entry["width"] <= frame["x"] + frame["width"]
        assert entry["y"] + entry["height"] <= frame["y"] + frame["height"]
    title = chart.locator(".xtitle").bounding_box()
    legend = chart.locator(".legend").bounding_box()
    assert title
    assert legend
    assert title["y"] + title["height"] <= legend["y"]


def test_points_are_reached_and_selected_by_keyboard(real: str, open_tab: Page) -> None:
    page = open_tab
    chart = opened(real, page)
    box(page, "by_size").focus()
    spoken = box(page, "by_size").get_by_role("status")
    expect(spoken).to_contain_text("Arrow keys")
    for key, words in (
        ("ArrowRight", "composite eager 311.5 GB/s · 7 %, n (row length) 1,024"),
        ("ArrowRight", "n (row length) 4,096"),
        ("ArrowDown", "n (row length) 4,096"),
        ("ArrowLeft", "n (row length) 1,024"),
    ):
        page.keyboard.press(key)
        expect(spoken).to_contain_text(words)
        expect(chart.locator(".hoverlayer .hovertext").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("at="))
    at_rest(page)
    assert len(set(chart.evaluate(SELECTED))) == 1
    page.keyboard.press("Escape")
    at_rest(page)
    assert chart.evaluate(SELECTED) == []


def test_a_theme_is_followed_and_every_chart_is_saved_as_a_picture(real: str, open_tab: Page, tmp_path: Path) -> None:
    page = open_tab
    chart = opened(real, page)
    for scheme, ink in (("dark", "rgb(205, 212, 208)"), ("light", "rgb(67, 74, 71)")):
        show_in(page, scheme, ".st-key-by_size .js-plotly-plot")
        expect(chart.locator(".xtitle")).to_have_css("fill", ink)
    for key in ("by_size", "roofline", "bars"):
        for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
            box(page, key).hover()
            with page.expect_download() as saving:
                use(page, key, "Save", kind)
            assert saving.value.suggested_filename.startswith("kernelviz-")
            assert saving.value.suggested_filename.endswith(f".{kind.lower()}")
            saving.value.save_as(tmp_path / f"{key}.{kind}")
            assert (tmp_path / f"{key}.{kind}").read_bytes().startswith(begins)
        picture = (tmp_path / f"{key}.SVG").read_text()
        assert "NVIDIA H200 · measured on 2026-" in picture, key
        # The link is one word: it is cut into lines that are no longer than the picture is wide (6 px a character or more).
        lines = [html.unescape(line) for line in re.findall(r"<text x=\"12\"[^>]*>([^<]*)</text>", picture)]
        assert page.url in "".join(lines), key
        assert max(map(len, lines)) < 960 / 5.5, key
        size = (tmp_path / f"{key}.PNG").read_bytes()[16:24]
        assert int.from_bytes(size[:4], "big") == 1920
        assert int.from_bytes(size[4:], "big") > 600
    # At full screen the chart fills the screen, and afterwards it is as before.
    before = chart.bounding_box()
    box(page, "by_size").hover()
    box(page, "by_size").get_by_role("button", name="Full screen").click()
    height = "document.querySelector('.st-key-by_size .main-svg').height.baseVal.value"
    page.wait_for_function(f"() => document.fullscreenElement && {height} > 700")
    page.keyboard.press("Escape")
    page.evaluate("document.fullscreenElement && document.exitFullscreen()")
    page.wait_for_function("() => !document.fullscreenElement")
    expect(chart.locator(".main-svg").first).to_have_attribute("height", str(int(before["height"])))  # type: ignore[index]


def use(page: Page, key: str, menu: str, item: str) -> None:
    """Use an item of one of the chart's menus."""
    box(page, key).hover()
    box(page, key).get_by_role("button", name=f"{menu} this chart").click()
    box(page, key).get_by_role("menuitem", name=item).click()


def test_a_chart_is_copied_as_data_and_as_markdown(real: str, open_tab: Page) -> None:
    """The points with their intervals and units for a spreadsheet, and a table with title, device, date and link."""
    page = open_tab
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    try:
        opened(real, page)
        clipboard = clipboard_of(page)
        read = "() => navigator.clipboard.readText()"
        use(page, "by_size", "Copy", "Data")
        expect(box(page, "by_size").get_by_role("button", name="Copy this chart")).to_have_text("Copied ✓")
        heading, *rows = [line.split("\t") for line in clipboard.evaluate(read).split("\n")]
        y = "bandwidth (cold L2), GB/s"
        assert heading == ["series", "n (row length)", y, f"{y}, from", f"{y}, to"]
        first = next(row for row in rows if row[0] == "composite eager")
        assert first[1] == "1024"
        assert float(first[3]) < float(first[2]) < float(first[4])
        variants = len(shipped_runs.load("h200-rmsnorm").plan.variants)
        assert len({row[0] for row in rows}) == variants + 2, "also the roof, and a case that was not measured"
        assert ["liger: not measured", "131072", "", "", ""] in rows
        use(page, "bars", "Copy", "Markdown")
        clipboard.wait_for_function(f"{read}.then((text) => text.startsWith('**'))")
        lines = clipboard.evaluate(read).split("\n")
        assert "NVIDIA H200 · measured on 2026-" in lines[1]
        assert lines[2].startswith(f"<{real}/?")
        assert "run=h200-rmsnorm" in lines[2]
        assert re.match(r"\| series \| time, .s \| time, .s, from \| time, .s, to \|", lines[4])
        assert lines[5] == "| --- | --: | --: | --: |"
        assert len(lines) == 6 + variants + 1
        use(page, "roofline", "Copy", "Image")
        clipboard.wait_for_function(HAS_PICTURE)
        clipboard.close()
    finally:
        page.context.clear_permissions()


def test_the_menus_are_used_by_keyboard_and_close(real: str, open_tab: Page) -> None:
    page = open_tab
    opened(real, page)
    chart = box(page, "by_size")
    button, items = chart.get_by_role("button", name="Copy this chart"), chart.get_by_role("menuitem")
    button.focus()
    expect(items).to_have_count(0)
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(items.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(items.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(items.last).to_be_focused()
    page.keyboard.press("Escape")
    expect(items).to_have_count(0)
    expect(button).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(chart.get_by_role("button", name="Save this chart")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(items.first).to_have_text("PNG")
    page.mouse.click(5, 5)
    expect(items).to_have_count(0)


def test_the_bundle_is_sent_as_the_browser_accepts_it_and_is_kept_for_good(real: str, page: Page) -> None:
    forget_files(page)
    with page.expect_response(re.compile(r"/assets/plotly\.")) as waiting:
        opened(real, page)
    answer = waiting.value
    assert answer.headers["content-encoding"] == "br"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert hashlib.sha256(answer.body()).hexdigest() == bundle.digest(), "the brotli file is of another build"
    with urllib.request.urlopen(answer.url) as plain:
        assert plain.headers["content-encoding"] is None
        assert plain.read() == bundle.script()
    assert any("assets" in r.path for r in routes())


def test_no_style_rule_makes_the_browser_style_the_whole_page_for_each_new_element(real: str, page: Page) -> None:
    """Each page of 1,700 elements is styled a few times while it loads: 6,000 in all, and 100,000 with `:has` after `*`."""
    browser = page.context.browser
    assert browser is not None
    session = browser.new_browser_cdp_session()
    events: list[dict[str, Any]] = []
    ended: list[bool] = []
    session.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    session.on("Tracing.tracingComplete", lambda _: ended.append(True))
    categories = {"includedCategories": ["devtools.timeline"], "excludedCategories": ["*"]}
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": categories})
    page.goto(f"{real}/?run=h200-softmax")
    expect(page.locator(".js-plotly-plot:has(.points path)")).to_have_count(3)
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(20)
    session.detach()
    styled = [event["args"].get("elementCount", 0) for event in events if event["name"] == "UpdateLayoutTree"]
    assert len(styled) > 10, "the browser no longer says how many elements it styles"
    assert sum(styled) < 25_000
