"""How soon each page is ready, compared with a bare Streamlit page of three charts, and how much it moves while it loads.

    python tests/browser/measure_pages.py --rounds 7

Every round opens each page in a new browser context, in another order, so that a change of the machine's load meets all pages.
It prints the table of docs/speed.md: the median ready time, its ratio to the reference page in the same round, layout shift, what
axe finds, console errors and failed requests. `page_ready.js` says what "ready" means.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

import msgspec  # noqa: E402
import sample_tunings  # noqa: E402
from accessibility import AXE  # noqa: E402
from conftest import ARGS, CHROMIUM  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from servers import ROOT, served  # noqa: E402

from kernelviz.store import Store  # noqa: E402

READY = (HERE / "page_ready.js").read_text()
QUIET_S, MOST_S = 1.1, 40.0
"""A page is quiet after this time without a long task; it is given up after this time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A page: its address, how many charts it has at least, whether it has a table of cells, and whether it shows code."""

    path: str
    charts: int = 0
    table: bool = False
    code: bool = False


MANY_CONFIGURATIONS = "many"
"""The id of a run with 2,000 planted configurations, which is stored before the first visit."""
REFERENCE = "reference: three charts by st.plotly_chart"
PAGES = {
    "Bench, first visit": Wanted("", 3, True),
    "Bench, recorded run": Wanted("?run=h200-softmax", 3, True),
    "Roofline": Wanted("roofline?runs=h200-matmul,h200-rmsnorm", 1, True),
    "Compare": Wanted("compare?a=h200-softmax&b=h200-softmax&variant_a=torch_eager&variant_b=triton_online", 1, True),
    "Gallery": Wanted("gallery"),
    "Code": Wanted("code?run=h200-linear_gelu-code&variant=triton_fused&kind=sass", 0, False, True),
    "Code, a difference of 7,000 lines": Wanted(
        "code?run=h200-linear_gelu-code&variant=cutlass_fused&variant_b=cuda_wgmma_fused&kind=sass", 0, False, True
    ),
    "Claims": Wanted("claims?results=h200", 0, True),
    "Ladder": Wanted("ladder", 1),
    "Autotune": Wanted("autotune"),
    "Autotune, 2,000 configurations": Wanted(f"autotune?run={MANY_CONFIGURATIONS}", 2),
    "Model": Wanted("model", 2, True),
    "Workloads": Wanted("workloads", 1, True),
    "Fusion": Wanted("fusion", 1, True),
    "Libraries": Wanted("libraries", 0, True),
    "History": Wanted("history"),
    "Device": Wanted("device", 1),
    "Method": Wanted("method", 1),
}


@dataclass(frozen=True, slots=True)
class Visit:
    """One opening of a page. Times in seconds from the navigation."""

    ready_s: float
    shift: float
    kilobytes: float
    errors: tuple[str, ...]


def visit(browser: Browser, url: str, wanted: Wanted) -> Visit:
    """Open a page with an empty cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.add_init_script(
            f"{{ const wanted = {json.dumps({'charts': wanted.charts, 'table': wanted.table, 'code': wanted.code})};\n{READY}}}"
        )
        errors = _errors_of(page)
        received = _received_by(page)
        page.goto(url, wait_until="commit")
        noted = _noted(page)
        last = max((end for _, end in noted["tasks"]), default=0.0)
        ready = max(noted["drawn"], noted["hover"], noted["rows"], last)
        return Visit(ready / 1e3, noted["shift"], received["bytes"] / 1e3, tuple(errors))
    finally:
        context.close()


def _noted(page: Page) -> dict[str, Any]:
    deadline = time.monotonic() + MOST_S
    while time.monotonic() < deadline:
        time.sleep(0.25)
        noted, now = page.evaluate("[window.noted, performance.now()]")
        last = max([end for _, end in noted["tasks"]] + [noted["drawn"], noted["hover"], noted["rows"]])
        if noted["hover"] and noted["rows"] and now - last > QUIET_S * 1e3:
            return dict(noted)
    raise TimeoutError(f"{page.url} was not ready after {MOST_S} s: {noted}")


def _errors_of(page: Page) -> list[str]:
    errors: list[str] = []
    page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.on("response", lambda r: errors.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    return errors


def _received_by(page: Page) -> dict[str, float]:
    received = {"bytes": 0.0}
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")

    def finished(event: dict[str, Any]) -> None:
        received["bytes"] += event["encodedDataLength"]

    session.on("Network.loadingFinished", finished)
    return received


def found_by_axe(browser: Browser, url: str, wanted: Wanted) -> int:
    """How many elements break a rule that axe calls serious or critical, in light and dark, at 1440 and 390 pixels."""
    found = 0
    for width, height, scheme in ((1440, 900, "light"), (1440, 900, "dark"), (390, 844, "light"), (390, 844, "dark")):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector(
            ".js-plotly-plot .points" if wanted.charts else "[data-testid=stMain] p", state="attached"
        )
        page.wait_for_selector("[data-testid=stSkeleton], [data-stale=true]", state="detached")
        page.wait_for_timeout(1500)
        page.evaluate(f"{AXE}; null")
        answer = page.evaluate("axe.run('html', {resultTypes: ['violations']})")
        found += sum(len(rule["nodes"]) for rule in answer["violations"] if rule["impact"] in ("serious", "critical"))
        context.close()
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--axe", action="store_true", help="also look at each page by axe")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        app_folder, reference_folder = Path(folder, "app"), Path(folder, "reference")
        app_folder.mkdir()
        reference_folder.mkdir()
        store = Store.open(app_folder / "home")
        store.runs.create(msgspec.structs.replace(sample_tunings.many(), id=MANY_CONFIGURATIONS))
        store.close()
        with (
            served(ROOT / "app.py", app_folder) as app,
            served(HERE / "reference_page.py", reference_folder, health="_stcore/health") as reference,
        ):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
            pages = {name: (f"{app}/{wanted.path}", wanted) for name, wanted in PAGES.items()}
            pages[REFERENCE] = (reference, Wanted("", 3))
            visits: dict[str, list[Visit]] = {name: [] for name in pages}
            loads = [os.getloadavg()[0]]
            for number in range(asked.rounds + 1):
                for name in random.sample(list(pages), len(pages)):
                    seen = visit(browser, *pages[name])
                    if number:  # the first round warms the servers
                        visits[name].append(seen)
                loads.append(os.getloadavg()[0])
            axe = {name: found_by_axe(browser, *page) for name, page in pages.items()} if asked.axe else {}
            browser.close()
    _report(table(visits, axe))
    _report(
        f"\n{asked.rounds} rounds, {os.cpu_count()} cores, load average {min(loads):.1f}–{max(loads):.1f}, "
        "browser and servers included"
    )
    for name, seen in visits.items():
        for error in sorted({error for one in seen for error in one.errors}):
            _report(f"{name}: {error}")


def _report(line: str) -> None:
    print(line)  # noqa: T201


def table(visits: dict[str, list[Visit]], axe: dict[str, int]) -> str:
    """The results as a Markdown table. The ratio is the median over rounds of the ratio in each round."""
    reference = [v.ready_s for v in visits[REFERENCE]]
    lines = [
        "| page | ready, s | least, s | ratio to the reference | layout shift | received, kB | errors | axe |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, seen in visits.items():
        ready = [v.ready_s for v in seen]
        ratio = statistics.median(a / b for a, b in zip(ready, reference, strict=True))
        shift = max(v.shift for v in seen)
        errors = len({error for v in seen for error in v.errors})
        size = statistics.median(v.kilobytes for v in seen)
        lines.append(
            f"| {name} | {statistics.median(ready):.2f} | {min(ready):.2f} | {ratio:.2f} | {shift:.3f} | {size:.0f} | {errors} "
            f"| {axe.get(name, '–')} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
