"""Servers on free ports and a Chromium to look at them with."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import one_tab
import pytest
from acting import WIRE, wait_until_done
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright
from servers import ROOT, served

# The same engine without windows and menus draws a page in three quarters of the processor time.
CHROMIUM = os.environ.get("KERNELVIZ_CHROMIUM") or shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # see one_tab.py
]
SHORT_LIVED = (
    "--js-flags=--no-turbofan --no-maglev --min-semi-space-size=64 --max-semi-space-size=64 --initial-heap-size=800"
)
"""No script of a page runs long enough to repay an optimising compiler, and no page lives long enough to need its memory back:
opening a run takes 1.2 s of processor time instead of 1.8 s. Speed is measured without this (measure_pages.py)."""
FOLDER = Path(__file__).parent
Serve = Callable[..., str]
PLUGIN = str(ROOT / "tests" / "planted_wrong.py")
STILL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, *::before, *::after { animation: none !important }");
  document.adoptedStyleSheets = [sheet];
}"""
"""What moves while a page loads is drawn 60 times a second by the processor: 2 to 5 s of its time a page on a busy machine."""
SHIFTS = """() => {
  window.layoutShift = 0;
  window.shifted = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      window.layoutShift += entry.value;
      if (entry.value < 0.01) continue;
      for (const { node, previousRect, currentRect } of entry.sources) {
        const name = node?.className || node?.nodeName || "gone";
        window.shifted.push(`${entry.value.toFixed(3)}: ${name} from ${previousRect.y} to ${currentRect.y}`);
      }
    }
  }).observe({ type: "layout-shift", buffered: true });
}"""
"""Adds up how much the page moves by itself while it loads (the browser's layout shift), and notes what moved, for
`expect_accessible`."""
BLOCKED = "blocked by the content security policy:"
REPORTS = f"""() => {{
  document.addEventListener("securitypolicyviolation", (e) =>
    console.debug("{BLOCKED}", e.effectiveDirective, e.blockedURI, e.sourceFile, e.lineNumber, "on", e.documentURI));
}}"""
"""Reports what the policy of a page blocks, for `nothing_is_blocked`."""
open_tab, page = one_tab.open_tab, one_tab.page


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A browser test that fails is called once more, and what happened first is a warning in the summary.

    On a machine that is busy for seconds, an act may fall between two redraws of a page. What fails twice is a failure.
    """
    if FOLDER not in pyfuncitem.path.parents:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    try:
        pyfuncitem.obj(**given)
    except (AssertionError, Error) as error:
        first = str(error).partition("Aria snapshot")[0][:600]
        warnings.warn(f"{pyfuncitem.name} failed and is called again: {first}", stacklevel=1)
        if "open_tab" in given:
            one_tab.forget(given["open_tab"])
        pyfuncitem.obj(**given)
    return True


@pytest.fixture(scope="session")
def blocked() -> list[str]:
    """What content security policies blocked in the browser since the last test."""
    return []


@pytest.fixture(autouse=True)
def nothing_is_blocked(blocked: list[str]) -> Iterator[None]:
    """Every page and everything that a test does there works under the server's content security policy."""
    blocked.clear()
    yield
    assert blocked == []


@pytest.fixture(scope="session")
def browser(blocked: list[str]) -> Iterator[Browser]:
    if shutil.which(CHROMIUM) is None:
        reason = f"no browser at {CHROMIUM}: install chromium or set KERNELVIZ_CHROMIUM"
        if os.environ.get("KERNELVIZ_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGS, SHORT_LIVED])
        made = found.new_context

        def new_context(**options: Any) -> BrowserContext:
            context = made(**options)
            context.add_init_script(f"({STILL})()")
            context.add_init_script(f"({SHIFTS})()")
            context.add_init_script(f"({WIRE})()")
            context.add_init_script(f"({REPORTS})()")
            context.on("console", lambda m: blocked.append(m.text) if m.text.startswith(BLOCKED) else None)
            return context

        found.new_context = new_context  # type: ignore[method-assign]
        yield found
        found.close()


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """rehearsed(stage) is the address of the product's pages over that rehearsal; each is started once."""
    running: dict[str, str] = {}
    open_ones = []

    def serve(stage: str) -> str:
        if stage not in running:
            script = Path(__file__).with_name("rehearsed_app.py")
            made = served(script, tmp_path_factory.mktemp(stage), REHEARSAL=stage)
            running[stage] = made.__enter__()
            open_ones.append(made)
        return running[stage]

    yield serve
    for made in open_ones:
        made.__exit__(None, None, None)


@pytest.fixture(scope="session")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the product of `real` keeps its runs."""
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="session")
def real(real_home: Path) -> Iterator[str]:
    """The product itself: app.py, a real worker, this machine's CPU. A plug-in adds wrong variants of softmax.

    Nothing here compiles more than a few kernels, for which Inductor's precompiled C++ header costs more than it saves."""
    with served(
        ROOT / "app.py", real_home, KERNELVIZ_PLUGINS=PLUGIN, TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS="0"
    ) as url:
        yield url


@pytest.fixture(scope="session")
def measured(real: str, browser: Browser) -> Iterator[Page]:
    """An open page with a finished run of two sizes that `real` measured."""
    page = one_tab.context_of(browser).new_page()
    page.goto(f"{real}/?op=add&variants=torch_eager&dtype=fp32&n=4096,8192&budget=0.1")
    page.locator(".st-key-run").get_by_role("button", name="Run").click()
    page.wait_for_url("**run=**")
    wait_until_done(page)
    yield page
    page.close()
