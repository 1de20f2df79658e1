"""The Bench page as people meet it: a Chromium, a Streamlit server, and either the real bench on the CPU or a rehearsed one."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import one_tab
import pytest
import sample_runs as samples
from accessibility import schemes
from acting import address, at_rest, show, wait_until_done
from playwright.sync_api import Browser, Page
from servers import served
from waiting import expect

from kernelviz.ops import catalogue

# One worker runs them all: the servers that they share are then started once.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-1")]
Serve = Callable[..., str]
Phone = tuple[Page, list[str]]
Desktop = tuple[Page, list[str], list[str]]


def traces(page: Page, key: str) -> list[dict[str, Any]]:
    """Name and number of points of each trace that Plotly really drew in the chart of that key."""
    chart = page.locator(f".st-key-{key} .js-plotly-plot")
    expect(chart).to_have_count(
        1
    )  # while a run goes on, the chart that is being replaced stands a moment beside the new one
    expect(chart).to_be_visible()
    found: list[dict[str, Any]] = chart.evaluate("g => g.data.map(t => ({name: t.name, points: (t.x || []).length}))")
    return found


def lines(page: Page, key: str, names: list[str]) -> None:
    """Wait until the chart of that key has these lines: while a run goes on, it follows what the page says elsewhere."""
    page.wait_for_function(
        """([key, names]) => {
          const charts = document.querySelectorAll(`.st-key-${key} .js-plotly-plot`);
          return charts.length === 1 && JSON.stringify((charts[0].data || []).map(t => t.name)) === JSON.stringify(names);
        }""",
        arg=[key, names],
    )


def test_first_visit_one_click_a_finished_result_on_this_machines_cpu(real: str, page: Page) -> None:
    """The product end to end: app.py, store, queue, a worker process with torch, and the charts of what it measured."""
    # One size of few values and a tenth of a second a case: what is shown is that all parts work together.
    page.goto(f"{real}/?m=64&n=64&budget=0.1")
    page.locator(".st-key-first_run").get_by_role("button", name="Measure this here").click()
    wait_until_done(page)
    op = catalogue()["rmsnorm"]
    for _ in range(12):  # the answer ends with the run, or after ten seconds
        with urllib.request.urlopen(f"{real}/api/runs/{address(page)['run']}/events") as answer:
            # Comments (": still here") may follow the last event.
            events = [line for line in answer.read().decode().splitlines() if line.startswith("data: ")]
        ended = json.loads(events[-1].removeprefix("data: "))
        if ended.get("status", "running") != "running":
            break
    assert (ended["status"], ended["failed"]) == ("finished", 0)
    drawn = traces(page, "by_size")
    here = [v.name for v in op.variants if v.name in op.first and "cuda" not in v.needs]
    assert [t["name"] for t in drawn] == [name.replace("_", " ") for name in here]
    assert {t["points"] for t in drawn} == {1}
    assert [t["name"] for t in traces(page, "bars") if t["name"]] == [t["name"] for t in drawn]
    assert len(traces(page, "roofline")) == 3
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(re.compile("eager|compile"))


def test_a_run_opens_in_another_browser_from_its_address(real: str, measured: Page, page: Page) -> None:
    value = measured.get_by_test_id("stMetricValue").first.inner_text()
    page.goto(f"{real}/?run={address(measured)['run']}")
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(value)
    assert [t["name"] for t in traces(page, "by_size")] == ["torch eager"]


def test_a_link_opens_its_plan_and_its_address_becomes_whole_with_defaults(rehearsed: Serve, open_tab: Page) -> None:
    page = open_tab
    page.goto(f"{rehearsed('gpu')}/?op=add&variants=torch_eager,cuda_vec16&n=2^20")
    expect(page.get_by_label("n (elements)", exact=True)).to_have_value("2^20")
    page.wait_for_url("**baseline=**")
    assert address(page) == {
        "op": "add",
        "variants": "torch_eager,cuda_vec16",
        "dtype": catalogue()["add"].dtypes[0],
        "n": "2^20",
        "budget": "1",
        "clock": "burst",
        "energy": "no",
        "data": "normal",
        "baseline": "torch_eager",
        "device": "cuda:0",
    }
    chosen = ".st-key-variants button[aria-pressed=true], .st-key-variants [aria-checked=true]"
    expect(page.locator(chosen)).to_have_count(2)


def test_a_long_title_can_be_read_whole_and_moves_nothing(rehearsed: Serve, open_tab: Page) -> None:
    """On a wide page it has two lines, which are no higher than a button, and its whole text as a tooltip."""
    page = open_tab
    show(page, f"{rehearsed('gpu')}/?run=hostile")
    facts = page.locator(".st-key-run_facts")
    expect(page.locator(".st-key-tiles")).to_be_visible()
    at_rest(page)
    text, button = (
        facts.locator("p").bounding_box(),
        page.locator(".st-key-heading").get_by_role("button", name="Share").bounding_box(),
    )
    assert text
    assert button
    assert text["height"] <= button["height"]
    assert page.locator(".st-key-heading").evaluate("e => e.getBoundingClientRect().height") == button["height"]
    facts.get_by_role("button", name="Help").hover()
    tooltip = page.get_by_test_id("stTooltipContent")
    expect(tooltip).to_contain_text("<img src=x onerror=alert(1)> **bold** :red[red] [link](javascript:alert(1)) $x$")
    expect(tooltip).to_contain_text("baseline torch eager")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(facts.get_by_role("button", name="Help")).to_be_hidden()
    fits = "e => e.scrollHeight <= e.clientHeight && e.scrollWidth <= e.clientWidth"
    assert facts.locator("p").evaluate(fits), "a narrow page shows the whole text"


def test_a_wrong_op_in_a_link_is_named_with_the_nearest(rehearsed: Serve, open_tab: Page) -> None:
    page = open_tab
    show(page, f"{rehearsed('gpu')}/?op=rmsnrom&dtype=fp16")
    warning = page.get_by_test_id("stAlert")
    expect(warning).to_contain_text("no op 'rmsnrom'")
    expect(warning).to_contain_text("Using rmsnorm instead")
    page.wait_for_url("**op=rmsnorm**")
    assert address(page)["dtype"] == "fp16"


@pytest.fixture(scope="module")
def desktop(rehearsed: Serve, browser: Browser) -> Iterator[Desktop]:
    """A desktop that shows a stored run, the addresses of other servers that it asked, and the errors of its console."""
    page = one_tab.context_of(browser).new_page()
    page.set_default_timeout(30_000)
    elsewhere: list[str] = []
    errors: list[str] = []
    url = rehearsed("gpu")
    page.on("request", lambda r: elsewhere.append(r.url) if not r.url.startswith((url, "data:", "blob:")) else None)
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.goto(f"{url}/?run=sample")
    yield page, elsewhere, errors
    page.close()


def test_a_stored_run_is_drawn_from_this_server_alone_and_a_click_on_a_point_chooses_its_size(
    desktop: Desktop,
) -> None:
    page, elsewhere, errors = desktop
    drawn = traces(page, "by_size")
    assert [t["name"] for t in drawn] == [v.replace("_", " ") for v in samples.LADDER] + ["measured roof 4400 GB/s"]
    assert {t["points"] for t in drawn} == {6}
    assert len(traces(page, "roofline")) == 1 + 1 + 5  # data sheet, measured roofs, variants
    traces(page, "bars")
    points = page.locator(".st-key-by_size .scatterlayer .trace").nth(1).locator("path.point")
    expect(points).to_have_count(6)
    points.nth(1).click(force=True)
    page.wait_for_url("**at=65536x2048**")
    expect(page.get_by_text("Time and share of the roof at m = 65,536, n = 2,048")).to_be_visible()
    assert elsewhere == []
    assert errors == []


def test_eager_results_stand_while_the_compiler_runs_and_a_server_with_a_follower_stops_when_told(
    page: Page, tmp_path: Path
) -> None:
    """Compiling is a state with its time running, shown by events without a rerun of the page. All lives below a base path.

    An open event stream must not keep the process alive: `served` fails when it does not end in time."""
    script = Path(__file__).with_name("rehearsed_app.py")
    with served(script, tmp_path, base="lab/kv", REHEARSAL="slow") as url:
        with urllib.request.urlopen(f"{url}/api/health") as answer:
            assert json.load(answer)["status"] == "ok"
        page.goto(f"{url}/?op=rmsnorm&m=64&n=64,128")
        run = page.locator(".st-key-run").get_by_role("button", name="Run")
        run.click()
        state = page.locator(".st-key-going li.compiling")
        expect(state).to_contain_text(re.compile(r"compiling .*torch_compile · \d+\.\d s"))
        lines(page, "by_size", ["composite eager", "torch eager"])
        before = state.inner_text()
        expect(state).not_to_have_text(before)
        page.locator(".st-key-cancel").get_by_role("button", name="Cancel").click()
        wait_until_done(page, 20)
        expect(page.locator(".st-key-heading")).to_contain_text("cancelled")
        assert [t["name"] for t in traces(page, "by_size")][:2] == ["composite eager", "torch eager"]
        # A second run is followed when the server is told to stop.
        run.click()
        expect(state).to_be_visible()


def test_the_page_redraws_by_events_alone(rehearsed: Serve, page: Page) -> None:
    """The run is followed by a stream, not by asking; when Streamlit mounts the component anew, the old stream is closed."""
    opened: list[str] = []
    ended: list[str] = []
    page.on("request", lambda r: opened.append(r.url) if "/events" in r.url else None)
    for way in ("requestfinished", "requestfailed"):
        page.on(way, lambda r: ended.append(r.url) if "/events" in r.url else None)  # type: ignore[call-overload]
    variants = "composite_eager,torch_eager,triton_two_passes"
    page.goto(f"{rehearsed('gpu')}/?op=rmsnorm&variants={variants}&m=64&n=64,128,256")
    page.locator(".st-key-run").get_by_role("button", name="Run").click()
    wait_until_done(page, 60)
    assert 1 <= len(opened) <= 3, opened
    page.wait_for_timeout(100)
    assert sorted(ended) == sorted(opened), "a stream was left open"
    drawn = {t["name"]: t["points"] for t in traces(page, "by_size")}
    assert drawn == {"composite eager": 3, "torch eager": 3, "✕ failed": 3, "measured roof 4400 GB/s": 3}
    page.get_by_role("tab", name="Failures (3)").click()
    expect(page.get_by_text("the worker died: signal 11 <b>SIGSEGV</b>").first).to_be_visible()


def test_a_connection_that_is_used_again_answers_at_once(real: str) -> None:
    """A page is its first 60 small files over six connections: 40 ms for each would be the half second one waits for."""
    where = urlparse(real)
    took_s = []
    with contextlib.closing(http.client.HTTPConnection(where.hostname or "", where.port)) as connection:
        for _ in range(12):
            began_s = time.perf_counter()
            connection.request("GET", "/favicon.png")
            with connection.getresponse() as answer:
                assert answer.status == 200
                answer.read()
            took_s.append(time.perf_counter() - began_s)
    # The least of them, since other tests run beside: a delayed acknowledgement holds up every one but the first.
    assert min(took_s[1:]) < 0.03, took_s


CONTRAST = """(found, background) => {
  const light = (words) => {
    const [r, g, b] = words.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(found);
  const behind = getComputedStyle(background ? found : document.querySelector("[data-testid=stApp]")).backgroundColor;
  const pair = [light(found instanceof SVGElement ? style.fill : style.color), light(behind)].sort((a, b) => b - a);
  return (pair[0] + 0.05) / (pair[1] + 0.05);
}"""
"""Contrast as WCAG 2.2 defines it, of an element's text against its own background or the page's."""


def test_words_of_charts_and_buttons_can_be_read(desktop: Desktop) -> None:
    page, _, _ = desktop
    traces(page, "bars")
    for _ in schemes(page, ".st-key-bars[data-stale=false] .js-plotly-plot"):
        traces(page, "bars")
        for words in (".xtick text", ".ytick text", ".xtitle", ".annotation-text", ".legendtext"):
            found = page.locator(f".js-plotly-plot {words}").first
            assert found.evaluate(CONTRAST, False) >= 4.5, words
        assert page.locator(".st-key-run button").evaluate(CONTRAST, True) >= 4.5


@pytest.fixture(scope="module")
def phone(rehearsed: Serve, browser: Browser) -> Iterator[Phone]:
    """A phone that shows a run whose names are long and contain markup, and the texts of the dialogs that opened."""
    page = one_tab.context_of(browser).new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    page.set_default_timeout(30_000)
    said: list[str] = []
    page.on("dialog", lambda d: (said.append(d.message), d.dismiss()))
    page.goto(f"{rehearsed('gpu')}/?run=hostile")
    yield page, said
    page.close()


def test_a_phone_has_no_horizontal_scroll_tiles_two_by_two_and_a_closed_sidebar(phone: Phone) -> None:
    page, _ = phone
    expect(page.locator(".st-key-bars .js-plotly-plot")).to_be_visible(timeout=30_000)
    widths = page.evaluate(
        "() => [document.documentElement, document.querySelector('[data-testid=stMain]')]"
        ".map(e => e.scrollWidth - e.clientWidth)"
    )
    assert widths == [0, 0]
    # Awaited, since the layout settles only after the tiles are there.
    page.wait_for_function(
        """() => {
          const tops = [...document.querySelectorAll("[data-testid=stMetric]")].map(e => e.getBoundingClientRect().top);
          const near = (a, b) => Math.abs(a - b) < 2;
          const pairs = near(tops[0], tops[1]) && near(tops[2], tops[3]);
          return tops.length === 5 && pairs && tops[2] > tops[0] + 40 && tops[4] > tops[2] + 40;
        }""",
        timeout=10_000,
    )
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()


def test_the_answers_on_a_phone_are_whole(phone: Phone) -> None:
    page, _ = phone
    values = page.get_by_test_id("stMetricValue").locator("p")
    expect(values).to_have_count(5)
    lines = "all => all.map(p => [p.textContent, getComputedStyle(p).whiteSpace, p.getBoundingClientRect().right])"
    for words, wrapped, right in values.evaluate_all(lines):
        assert wrapped == "normal", words
        assert right <= 390, words


def test_text_of_a_document_is_text_everywhere(phone: Phone) -> None:
    """A run file can name its variants as it likes; nothing of it becomes markup, a link or a script."""
    page, said = phone
    traces(page, "bars")
    expect(page.get_by_test_id("stMetricValue").first).to_contain_text(
        "<img src=x onerror=alert(1)> **bold** :red[red]"
    )
    for name in ("Failures", "Kernels", "Variants"):
        page.get_by_role("tab", name=name).click()
        at_rest(page)
    assert page.locator("img[src='x'], a[href^='javascript'], .katex").count() == 0
    page.locator(".st-key-by_size .scatterlayer .trace").nth(1).locator("path.point").first.hover(force=True)
    expect(page.locator(".st-key-by_size .hoverlayer")).to_contain_text("onerror=alert(1)")
    assert page.locator(".hoverlayer a, .legend a, .annotation a, svg image[href='x']").count() == 0
    assert said == []
