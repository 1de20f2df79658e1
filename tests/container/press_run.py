"""Press Run on the Bench page of a server, wait for the result, print the run's id. For check_image.sh."""

from __future__ import annotations

import os
import sys
import time
from urllib.parse import parse_qs, urlparse

from playwright.sync_api import expect, sync_playwright

CHROMIUM = os.environ.get("KERNELVIZ_CHROMIUM", "/usr/bin/chromium")
ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
ARGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
PLAN = "op=add&variants=torch_eager,torch_compile&dtype=fp32&n=4096,8192&budget=0.2&device=cpu"
PATIENCE_MS = 180_000
ASKED_FOR = [["torch eager", 2], ["torch compile", 2]]
DRAWN = "g => (g.data || []).map(t => [t.name, (t.x || []).length])"


def press_run(url: str, picture: str) -> str:
    """The id of a run of two variants at two sizes, measured through the page; `picture` gets a screenshot of it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{url}/?{PLAN}")
        page.locator(".st-key-run").get_by_role("button", name="Run").click()
        page.wait_for_url("**run=**")
        # The address names the run before the page shows it. Until then the page shows a recorded example.
        chart = page.locator(".st-key-by_size .js-plotly-plot")
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while (drawn := chart.evaluate_all(f"all => all.map({DRAWN})")) != [ASKED_FOR] and time.monotonic() < deadline:
            page.wait_for_timeout(200)
        expect(page.locator(".st-key-cancel")).to_have_count(0, timeout=PATIENCE_MS)
        expect(page.locator(".st-key-tiles")).to_be_visible()
        page.screenshot(path=picture)
        browser.close()
    if drawn != [ASKED_FOR]:
        sys.exit(f"not what was asked for is drawn: {drawn}")
    (run,) = parse_qs(urlparse(page.url).query)["run"]
    return run


if __name__ == "__main__":
    print(press_run(*sys.argv[1:3]))  # noqa: T201 - what the script is for
