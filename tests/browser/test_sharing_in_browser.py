"""One device and several people: a sweep that grows as it goes and can be left, and two browsers that take turns."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from acting import address, at_rest
from playwright.sync_api import Browser, Page
from waiting import expect

from kernelviz.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-1")]

SIZES, LAST = 97, 8192
SWEEP = f"op=rmsnorm&variants=composite_eager,torch_eager&dtype=fp32&m=512&n=2048..{LAST}:64&budget=0.4"
"""It takes minutes, so it is left in the middle however slowly a page is drawn. Each size takes more than a second, so that a
waiting user can read the progress."""
POINTS = """() => {
  const chart = document.querySelector(".st-key-by_size .js-plotly-plot");
  return chart && chart.data ? Math.max(...chart.data.map((t) => (t.x || []).length)) : 0;
}"""
"""How many sizes the longest line of the first chart has."""


def done(page: Page) -> int:
    """The number of finished cases, from the text beside the progress bar."""
    said = re.match(r"(\d+) of", page.locator(".st-key-going .count").inner_text())
    return int(said[1]) if said else 0


def ended(url: str, run_id: str) -> dict[str, Any]:
    """The last event of a run that has ended, as every browser receives it."""
    with urllib.request.urlopen(f"{url}/api/runs/{run_id}/events") as answer:
        last: dict[str, Any] = json.loads(answer.read().decode().split("data: ")[-1])
    assert last["kind"] == "ended"
    return last


def names(page: Page) -> set[str]:
    """The lines that Plotly really drew in the first chart, without the roof that a calibration by another test adds."""
    chart = page.locator(".st-key-by_size[data-stale=false] .js-plotly-plot")
    expect(chart).to_have_count(1)
    found: list[str] = chart.evaluate("g => g.data.map(t => t.name)")
    return {name for name in found if not name.startswith("measured roof")}


def test_a_sweep_grows_gives_way_to_another_browser_and_is_cancelled_in_the_middle(
    real: str, real_home: Path, page: Page, browser: Browser
) -> None:
    """A single point asked for in the middle of another's sweep waits for the problem in hand, not for the sweep."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    second = context.new_page()
    second.goto(f"{real}/?op=add&variants=torch_eager&dtype=fp32&n=4096&budget=0.5")
    run = second.locator(".st-key-run").get_by_role("button", name="Run")
    expect(run).to_be_enabled()
    page.goto(f"{real}/?{SWEEP}")
    page.locator(".st-key-run").get_by_role("button", name="Run").click()
    page.wait_for_url("**run=**")
    expect(page.locator(".st-key-going")).to_be_visible()
    at_rest(page)
    # The line of the sweep grows.
    seen = [0]
    while len(seen) < 3:
        page.wait_for_function(f"() => ({POINTS})() > {seen[-1]}", timeout=60_000)
        seen.append(page.evaluate(POINTS))
    assert seen == sorted(set(seen)), seen
    assert seen[-1] < SIZES, "the line came at once: nothing grew"
    # The point of the other browser is answered; the rest of the sweep takes minutes.
    run.click()
    expect(second.locator(".st-key-tiles")).to_contain_text(
        re.compile("fastest at 1 size|tied with|unclear against"), timeout=30_000
    )
    # The sweep goes on behind it.
    before = done(page)
    expect(page.locator(".st-key-going .count")).not_to_have_text(re.compile(f"^{before} of"), timeout=60_000)
    page.locator(".st-key-cancel").get_by_role("button", name="Cancel").click()
    expect(page.locator(".st-key-going")).to_have_count(0, timeout=20_000)
    expect(page.locator(".st-key-heading")).to_contain_text("cancelled")
    swept = ended(real, address(page)["run"])
    assert swept["status"] == "cancelled"
    assert (swept["total"], swept["failed"]) == (2 * SIZES, 0)
    assert before < swept["done"] < swept["total"], "what was given up is not done"
    # The figures of the point that can wait come now that nothing else is there.
    expect(second.locator(".st-key-going")).to_have_count(0, timeout=60_000)
    last = ended(real, address(second)["run"])
    assert (last["status"], last["done"], last["failed"]) == ("finished", 1, 0)
    # Between question and answer the problem in hand ended, and at most one that was taken while the run was being written.
    store = Store.open(real_home / "home")
    sweep, point = store.runs.load(address(page)["run"]), store.runs.load(address(second)["run"])
    (answer,) = point.results
    meanwhile = {
        r.problem.key for r in sweep.results if point.created_at < (r.measured_at or "") < (answer.measured_at or "")
    }
    assert len(meanwhile) <= 2, meanwhile
    assert names(page) == {"composite eager", "torch eager", "not measured"}
    assert names(second) == {"torch eager"}
    expect(page.locator(".st-key-heading")).to_contain_text("rmsnorm")
    expect(second.locator(".st-key-heading")).to_contain_text("add")
    assert second.evaluate(POINTS) == 1
    assert address(page)["run"] != address(second)["run"]
    context.close()
    page.get_by_role("tab", name=f"Failures ({swept['total'] - swept['done']})").click()
    expect(page.get_by_text(re.compile("torch eager · cancelled · ")).first).to_be_visible()
    # The device is free again: another question is answered on the same page.
    page.locator(".st-key-sizes_from").get_by_role("radio", name="values").click()
    box = page.get_by_label("n (row length)", exact=True)
    expect(box).to_have_value(str(LAST))  # the sweep's last size, before it is changed
    box.fill("512")
    box.press("Enter")
    expect(page).to_have_url(re.compile("[?&]n=512&"))
    page.locator(".st-key-run").get_by_role("button", name="Run").click()
    expect(page.locator(".st-key-heading")).not_to_contain_text("cancelled")
    expect(page.locator(".st-key-tiles")).to_contain_text(
        re.compile("fastest at 1 size|tied with|unclear against"), timeout=30_000
    )
