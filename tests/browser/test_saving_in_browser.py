"""Saved and sent: a page for the disk, a link in a fresh browser, a run of another machine beside one made here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import one_tab
import pytest
import sample_runs as samples
from accessibility import AXE, AXE_RUN, BACKGROUND
from acting import at_rest, choose, downloaded, move
from playwright.sync_api import Browser, Page, Request
from waiting import expect

from kernelviz.formats import decode, digest, encode, shipped_runs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]
Serve = Callable[..., str]
SAVED = shipped_runs.load("h200-rmsnorm")
CASES, SIZES = len(SAVED.plan.cases()), len(SAVED.plan.problems)

DRAWN = """() => ["by_size", "roofline", "bars"].map((key) => {
  const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  return JSON.stringify(chart.data.map((t) => [t.name, t.x, t.y, t.hovertext, t.marker?.color]));
})"""
"""What the Bench's three charts really draw."""


def settled(page: Page) -> None:
    at_rest(page)
    for key in ("by_size", "bars"):
        expect(page.locator(f".st-key-{key} .js-plotly-plot")).to_have_count(1)
    # Charts out of sight are drawn when the browser has nothing else to do.
    page.evaluate("() => new Promise((done) => requestIdleCallback(() => requestIdleCallback(done), {timeout: 2000}))")
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    expect(page.locator("[data-stale=true], [data-testid=stSkeleton]")).to_have_count(0)


@pytest.fixture(scope="module")
def offline(real: str, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the Share button of a run with one hidden variant gives."""
    page = one_tab.tab_of(browser)
    page.goto(f"{real}/?run=h200-rmsnorm&hide=composite_eager&l2=warm")
    settled(page)
    page.locator(".st-key-share_popover button").first.click()
    expect(page.get_by_text(f"{CASES - SIZES} of {CASES} cases")).to_be_visible()
    at_rest(page)
    # Saved with the box still open: what was typed last is in the file.
    page.get_by_label("Title", exact=True).fill("sent to <b>you</b>")
    given = downloaded(page, page.get_by_role("button", name="Save", exact=True), ".html")
    expect(page.locator(".st-key-save_selection_again")).to_contain_text(given.suggested_filename)
    target = tmp_path_factory.mktemp("saved") / given.suggested_filename
    given.save_as(target)
    one_tab.forget(page)
    return target


@pytest.fixture(scope="module")
def without_network(browser: Browser) -> Iterator[Page]:
    """A tab without a network, in which the saved pages are opened by turns: see one_tab for what that saves."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    yield context.new_page()
    context.close()


def test_the_saved_page_opens_from_a_disk_without_a_network(offline: Path, without_network: Page) -> None:
    assert offline.name.startswith("kernelviz-h200-rmsnorm-")
    assert offline.suffix == ".html"
    page = without_network
    asked: list[str] = []
    trouble: list[str] = []
    page.on("request", lambda r: asked.append(_address(r)))
    page.on("console", lambda m: trouble.append(m.text))
    page.on("pageerror", lambda e: trouble.append(str(e)))
    page.goto(offline.as_uri())
    expect(page.locator("#by_size .main-svg").first).to_be_visible()
    expect(page.get_by_text("sent to <b>you</b>", exact=True)).to_be_visible()
    # Words on hover, of the point nearest to the mouse.
    points = page.locator("#by_size .scatterlayer .trace").first.locator("path.point")
    expect(points).to_have_count(SIZES)
    box = points.nth(2).bounding_box()
    assert box is not None
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*at)
    hover = page.locator("#by_size .hoverlayer")
    expect(hover).to_contain_text("torch eager")
    expect(hover).to_contain_text("measured roof: 4351 GB/s")
    assert "composite eager" not in page.locator("body").inner_text()
    # A click on a point chooses its size, the boxes choose what is drawn.
    page.mouse.click(*at)
    expect(page.locator("#size")).to_have_value("2")
    expect(page.locator("[data-size]").first).to_have_text("m = 8,192, n = 16,384")
    page.locator("#l2").select_option("warm")
    expect(page.locator("#cases-warm")).to_be_visible()
    expect(page.locator("#cases-cold")).to_be_hidden()
    page.locator("#show").select_option("winner")
    expect(page.locator("#by_size")).to_have_attribute("aria-label", re.compile("Fastest correct variant by size"))
    by_time = page.locator("#cases-warm").get_by_role("button", name="warm time")
    number = 1 + by_time.evaluate("button => button.closest('th').cellIndex")
    times = page.locator(f"#cases-warm td:nth-child({number})")
    by_time.click()
    once = [float(t) for t in times.all_inner_texts() if t != "–"]
    assert once == sorted(once)
    assert len(once) == CASES - SIZES - 1, "one case has no time"
    page.locator("#cases-warm").get_by_role("button", name="warm time").click()
    assert [float(t) for t in times.all_inner_texts() if t != "–"] == once[::-1]
    assert asked == [offline.as_uri()], "it asked for something"
    assert trouble == []


def _address(request: Request) -> str:
    return request.url


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_everybody_reads_the_saved_page(offline: Path, without_network: Page, width: int, scheme: Any) -> None:
    page = without_network
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(offline.as_uri())
    expect(page.locator("#by_size .main-svg").first).to_be_visible()
    expect(page.locator("body")).to_have_css("background-color", BACKGROUND[scheme])
    page.evaluate(f"{AXE}; null")
    answer = page.evaluate(AXE_RUN, ["html", {}])
    assert len(answer["passes"]) > 10, "axe looked at nothing"
    assert [r["id"] for r in answer["violations"] if r["impact"] in ("serious", "critical")] == []
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    untold = page.locator(".chart:visible").evaluate_all(
        "all => all.filter((c) => !c.getAttribute('aria-label')).length"
    )
    assert untold == 0
    # Words of a chart are in the page's ink, so that they are read on its background.
    ink = page.evaluate("() => getComputedStyle(document.body).color")
    expect(page.locator("#by_size .xtick text").first).to_have_css("fill", ink)


def test_a_browser_that_cannot_unpack_still_shows_the_tables(offline: Path, browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(offline.as_uri())
    expect(page.locator("#without")).to_contain_text("DecompressionStream")
    assert page.locator("#cases-cold tbody tr").count() == CASES - SIZES
    expect(page.locator("#cases-cold")).to_be_visible()
    page.context.close()


def test_a_link_shows_the_same_picture_in_a_fresh_browser(real: str, page: Page) -> None:
    page.goto(f"{real}/?run=h200-matmul")
    settled(page)
    page.locator(".st-key-show").get_by_role("radio", name="time").click()
    settled(page)
    page.locator(".st-key-l2").get_by_role("radio", name=re.compile("warm")).click()
    settled(page)
    expect(page.locator(".st-key-at input")).to_have_count(1)
    page.locator(".st-key-at input").click()
    page.get_by_role("option").nth(1).click()
    settled(page)
    page.locator(".st-key-shown_popover button").first.click()
    page.locator(".st-key-shown").get_by_role("button", name=re.compile("cuda naive")).click()
    expect(page).to_have_url(re.compile("hide=cuda_naive(&|$)"))
    settled(page)
    page.keyboard.press("Escape")
    expect(page.locator(".st-key-shown")).to_have_count(0)
    settled(page)
    # The page is redrawn for the tab and for the box at once, or one after the other; the link names the tab in both cases.
    page.get_by_role("tab", name="Kernels").click()
    page.locator(".st-key-share_popover button").first.click()
    expect(page.get_by_test_id("stCode")).to_contain_text("tab=kernels")
    link = page.get_by_test_id("stCode").inner_text().strip()
    drawn = page.evaluate(DRAWN)
    one_tab.forget(page)
    page.goto(link)
    settled(page)
    expect(page.get_by_role("region", name="Kernels that a call of each case launches")).to_be_visible()
    assert page.evaluate(DRAWN) == drawn
    expect(page.get_by_role("tab", name="Kernels")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".st-key-shown_popover")).to_contain_text("21 of 22 variants")
    expect(page.locator(".st-key-l2").get_by_role("radio", name=re.compile("warm"))).to_be_checked()
    assert "cuda naive" not in drawn[0]


def test_a_run_from_elsewhere_is_opened_checked_measured_here_and_shown_beside(
    real: str, page: Page, tmp_path: Path
) -> None:
    """Upload a colleague's document, see that it is unchanged, run its plan here, see both, save one."""
    sizes = [{"n": 2**e} for e in (10, 12)]
    far = samples.run(
        id="far", title="a colleague's", op="add", sizes=sizes, dtype="fp32", shares={"torch_eager": 0.5}, device=samples.CPU,
        roofs=(),
    )  # fmt: skip
    far = msgspec.structs.replace(far, method=msgspec.structs.replace(far.method, budget_s=0.05))
    whole, changed = tmp_path / "far.json", tmp_path / "changed.json"
    whole.write_bytes(encode(far))
    edited = json.loads(encode(msgspec.structs.replace(far, id="edited")))
    edited["results"][0]["outcome"]["device_cold_s"]["estimate"] /= 2
    changed.write_text(json.dumps(edited))
    for file, said in ((whole, "was imported, unchanged since it was saved."), (changed, "changed since it was saved")):
        page.goto(f"{real}/history")
        at_rest(page)
        page.get_by_role("button", name="Upload").click()
        page.locator("input[type=file]").set_input_files(file)
        expect(page.get_by_text(said)).to_be_visible()
    move(page, f"{real}/?run=far")
    settled(page)
    page.get_by_role("button", name="Measure the same here").click()
    expect(page.locator(".st-key-overlay")).to_contain_text(samples.CPU.name, timeout=60_000)
    expect(page.locator(".st-key-going")).to_have_count(0, timeout=60_000)
    settled(page)
    expect(page).to_have_url(re.compile("with=far"))
    names = page.locator(".st-key-by_size .js-plotly-plot").evaluate("g => g.data.map((t) => t.name)")
    assert len([n for n in names if n.startswith("torch eager · ")]) == 2
    expect(page.get_by_role("region", name=f"Every case of {samples.CPU.name}")).to_be_visible()
    page.locator(".st-key-share_popover button").first.click()
    choose(page, "save_format", "kernelviz JSON (.json)")
    given = downloaded(page, page.get_by_role("button", name="Save", exact=True), ".json")
    saved = decode(Path(given.path()).read_bytes())
    assert saved.plan.problems == far.plan.problems
    assert digest(saved) == json.loads(Path(given.path()).read_text())["digest"]


def test_every_chart_of_a_run_with_all_its_figures_is_drawn_offline(without_network: Page, tmp_path: Path) -> None:
    from kernelviz.formats import exports

    target = tmp_path / "matmul.html"
    target.write_bytes(exports()["html"].encode(shipped_runs.load("h200-matmul")))
    page = without_network
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(target.as_uri())
    for chart in ("by_size", "roofline", "bars", "all", "spread", "order"):
        expect(page.locator(f"#{chart} .main-svg").first).to_be_visible()
        drawn = page.locator(f"#{chart} .js-plotly-plot")
        assert drawn.evaluate("g => g.data.some((t) => (t.x || []).length > 0)")
    # A picture is made without anything that the page's policy forbids.
    page.locator("#bars").hover()
    for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        page.locator("#bars").get_by_role("button", name="Save this chart").click()
        given = downloaded(page, page.locator("#bars").get_by_role("menuitem", name=kind), f".{kind.lower()}")
        assert Path(given.path()).read_bytes().startswith(begins)
    # The points are copied without a network, too.
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.locator("#bars").get_by_role("button", name="Copy this chart").click()
    page.locator("#bars").get_by_role("menuitem", name="Data").click()
    page.wait_for_function("() => window.copied?.startsWith('series\\t')")
