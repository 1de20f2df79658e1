"""Live mode in a browser, on this machine's processor: from the key that changes a size to the redrawn charts."""

from __future__ import annotations

import os
import statistics

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.xdist_group("browser-1")]

MOST_S = 0.5 if os.environ.get("KERNELVIZ_QUIET_MACHINE") == "1" else 4.0
"""The target is for a machine that does nothing else; beside other tests on two cores a redraw takes longer."""

# Resolves with the milliseconds from now until every chart of the page shows the size.
REDRAWN = """(size) => new Promise((done, failed) => {
  const began = performance.now();
  const shows = (key) => {
    const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
    return chart && chart.data.some((t) => t.customdata && String(t.customdata[0]).includes(`n=${size}`)) &&
      chart.querySelector(".main-svg");
  };
  const look = () => {
    const now = performance.now();
    if (["by_size", "bars"].every(shows)) return done(now - began);
    if (now - began > 20000) return failed(new Error("not redrawn"));
    requestAnimationFrame(look);
  };
  window.addEventListener("keydown", () => requestAnimationFrame(look), {once: true, capture: true});
})"""


def test_a_changed_size_is_measured_and_drawn_at_once(page: Page, real: str) -> None:
    page.goto(f"{real}/?op=add&variants=torch_eager&n=4096&device=cpu")
    size = page.locator(".st-key-size_add_n input")
    expect(size).to_have_value("4096")
    page.locator(".st-key-live_mode label").click()
    expect(page.locator(".st-key-by_size .js-plotly-plot")).to_be_visible(timeout=60_000)
    took: list[float] = []
    # The first change of each size also binds it; what counts is a knob that is turned to and fro.
    for n in (8192, 16384, 8192, 16384, 8192):
        size.fill(str(n))
        waiting = page.evaluate_handle(f"() => ({{until: ({REDRAWN})({n})}})")
        size.press("Enter")
        took.append(waiting.evaluate("async (w) => await w.until") / 1e3)
    print("redrawn after, s:", [round(t, 3) for t in took])  # noqa: T201
    assert statistics.median(took[2:]) <= MOST_S
