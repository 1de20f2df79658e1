"""Accessibility of each page: the rules of axe, alternative text of charts, and use by keyboard only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from acting import downloaded
from playwright.sync_api import Browser, Page, expect
from servers import served

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser")]
Serve = Callable[..., str]

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
BACKGROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 19)"}
WIDTHS = {1440: 900, 390: 844}
RUN = "?run=h200-rmsnorm"
TABS = "[data-testid=stTabs]"
# Page by page: whose server, the address, and what is there when the page is.
PAGES = {
    "first visit": ("real", "", ".st-key-first_visit"),
    "unknown run": ("real", "?run=no-such-run", ".st-key-forget_run"),
    "roofline": ("real", "roofline?runs=h200-matmul,h200-rmsnorm", ".st-key-rooflines .js-plotly-plot"),
    "roofline of nothing": ("real", "roofline", "[data-testid=stMain] p"),
    "compare": (
        "real",
        "compare?a=h200-softmax&b=h200-softmax&variant_a=torch_eager&variant_b=triton_online",
        ".st-key-pairs",
    ),
    "compare of nothing": ("real", "compare", ".st-key-nothing_chosen"),
    "device": ("played", "device", ".st-key-reports .js-plotly-plot"),
    "history": ("real", "history", ".st-key-shipped"),
    "method": ("real", "method", ".st-key-parts table"),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The pages over an H200 that plays a load."""
    with served(Path(__file__).with_name("device_app.py"), tmp_path_factory.mktemp("played")) as url:
        yield url


@contextmanager
def looking(browser: Browser, width: int) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": width, "height": WIDTHS[width]})
    try:
        page = context.new_page()
        page.set_default_timeout(30_000)
        yield page
    finally:
        context.close()


def settled(page: Page, ready: str) -> None:
    """Wait until the page's script has ended and no element of an earlier run of it is left."""
    expect(page.locator(ready).first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    expect(page.locator("[data-stale=true], [data-testid=stSkeleton]")).to_have_count(0)


def schemes(page: Page, ready: str, width: int = 1440) -> Iterator[str]:
    """Light, then dark: an open page follows its machine, as it does at dusk. On a phone light: its colours are the same."""
    # A colour on its way from one scheme to the other has any contrast.
    page.add_style_tag(content="*, *::before, *::after { transition: none !important; animation: none !important; }")
    for scheme, background in BACKGROUND.items():
        if width < 1440 and scheme == "dark":
            return
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        expect(page.get_by_test_id("stApp")).to_have_css("background-color", background)
        settled(page, ready)
        yield scheme


def found_by_axe(page: Page, scheme: str = "light", within: str = "html") -> list[str]:
    """What axe calls serious or critical: rule, place, and the beginning of the element. In the dark only of colours, since
    nothing else is another. `within`: the part of the page that is looked at."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(f"{AXE}; null")
    only = {"runOnly": ["color-contrast", "link-in-text-block"]} if scheme == "dark" else {}
    asked = "([within, only]) => axe.run(within, {resultTypes: ['violations'], ...only})"
    answer = page.evaluate(asked, [within, only])
    if within == "html":  # of a part that is not there it says so by itself
        assert len(answer["passes"]) > (0 if only else 10), "axe looked at nothing"
    return [
        f"{rule['id']} at {node['target']}: {node['html'][:120]}"
        for rule in answer["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def overhang(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    wide: int = page.evaluate(
        "() => Math.max(...[document.documentElement, document.querySelector('[data-testid=stMain]')]"
        ".map(e => e.scrollWidth - e.clientWidth))"
    )
    return wide


def untold(page: Page) -> list[str]:
    """The keys of charts without alternative text."""
    return page.locator("[data-testid=stPlotlyChart]").evaluate_all(
        "all => all.filter(c => !(c.closest('[aria-label]') || c.querySelector('[aria-label]:not(button)')))"
        ".map(c => c.closest('[class*=st-key-]')?.className)"
    )


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(real: str, played: str, browser: Browser, name: str) -> None:
    """On a desktop, then in the same window at a phone's width. The tests of each page open it at that width."""
    server, path, ready = PAGES[name]
    with looking(browser, max(WIDTHS)) as page:
        page.goto(f"{real if server == 'real' else played}/{path}")
        expect(page).to_have_title(re.compile(r"^(Bench|Roofline|Compare|Device|History|Method) · kernelviz$"))
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            for scheme in schemes(page, ready, width):
                assert found_by_axe(page, scheme) == [], (width, scheme)
                assert overhang(page) == 0, (width, scheme)
                assert untold(page) == [], (width, scheme)


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_serious_in_a_run_and_its_tabs(real: str, browser: Browser, width: int) -> None:
    with looking(browser, width) as page:
        page.goto(f"{real}/{RUN}")
        settled(page, ".st-key-bars .js-plotly-plot")
        tabs = page.get_by_role("tab")
        expect(tabs.first).to_be_visible()
        wrong = {}
        for number in range(tabs.count()):
            tab = tabs.nth(number)
            tab.click()
            expect(tab).to_have_attribute("aria-selected", "true")
            for scheme in schemes(page, "[role=tabpanel]:not([inert])", width):
                words = f"{tab.inner_text()}, {scheme}"
                # What is around the tabs is the same for each of them.
                wrong[words] = [*found_by_axe(page, scheme, within=TABS if number else "html"), *untold(page)]
                if overhang(page):
                    wrong[words].append("wider than the window")
        page.locator(".st-key-share_popover button").first.click()
        downloaded(page, page.get_by_role("button", name="Save", exact=True), ".html")
        expect(page.locator(".st-key-save_selection_again")).to_be_visible()
        for scheme in schemes(page, "[data-testid=stPopoverBody]", width):
            wrong[f"share, {scheme}"] = found_by_axe(page, scheme)
        assert {words: found for words, found in wrong.items() if found} == {}


def test_axe_finds_nothing_serious_while_a_run_goes(rehearsed: Serve, browser: Browser) -> None:
    with looking(browser, 1440) as page:
        page.goto(f"{rehearsed('slow')}/?op=rmsnorm&m=64&n=64")
        page.locator(".st-key-run").get_by_role("button", name="Run").click()
        expect(page.locator(".st-key-going li.compiling")).to_be_visible()
        for scheme in schemes(page, ".st-key-by_size[data-stale=false] .js-plotly-plot"):
            assert found_by_axe(page, scheme) == [], scheme
        page.locator(".st-key-cancel").get_by_role("button", name="Cancel").click()
        expect(page.locator(".st-key-going")).to_have_count(0)


def test_axe_would_find_a_fault_of_ours(real: str, page: Page) -> None:
    page.goto(real)
    settled(page, ".st-key-first_visit")
    page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMainBlockContainer]');"
        " m.insertAdjacentHTML('afterbegin', '<img src=\"x\"><p style=\"color: #aaa; background: #fff\">pale</p>') }"
    )
    assert {words.partition(" ")[0] for words in found_by_axe(page)} == {"image-alt", "color-contrast"}


FOCUSED = """() => {
  let e = document.activeElement;
  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  const key = e.closest('[class*=st-key-]')?.className.match(/st-key-(\\S+)/)?.[1] ?? '';
  const box = e.getBoundingClientRect();
  return {key, tag: e.tagName, words: (e.getAttribute('aria-label') || e.textContent).trim(),
          seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight};
}"""


def stops(page: Page, until: str, most: int = 60) -> list[dict[str, Any]]:
    """The elements that Tab reaches from here, up to the first one whose key is `until`."""
    found: list[dict[str, Any]] = []
    while len(found) < most and (not found or found[-1]["key"] != until):
        page.keyboard.press("Tab")
        found.append(page.evaluate(FOCUSED))
    assert found[-1]["key"] == until, found
    return found


def test_by_keyboard_from_the_top_to_run_and_on_through_the_tabs(rehearsed: Serve, page: Page) -> None:
    """In the order in which one reads, no stop unseen, and each thing done by Enter, Space and arrows."""
    page.goto(f"{rehearsed('faults')}/?op=rmsnorm&m=64&n=64")
    settled(page, ".st-key-first_visit")
    form = stops(page, "run")
    keys = list(dict.fromkeys(s["key"] for s in form if s["key"]))
    assert keys == ["op", "variants", "direction", "dtype", "data", "sizes_from", "size_rmsnorm_m", "size_rmsnorm_n",
                    "method_expander", "run"]  # fmt: skip
    assert form[0]["words"] == "Skip to main content"
    assert all(s["seen"] for s in form), form
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-tiles")).to_be_visible()
    expect(page.locator(".st-key-going")).to_have_count(0, timeout=60_000)
    settled(page, ".st-key-bars .js-plotly-plot")
    page.reload()
    settled(page, ".st-key-bars .js-plotly-plot")
    through = stops(page, "tables")
    order = [s["key"] for s in through]
    assert order.index("l2") < order.index("show") < order.index("at") < order.index("tables")
    assert all(s["seen"] for s in through), through
    expect(page.get_by_role("tab", name="Table")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Figures")).to_have_attribute("aria-selected", "true")


def test_where_the_keyboard_is_can_be_seen(real: str, browser: Browser) -> None:
    """What has the focus has a ring, or its box a border in the page's own colour: form, links of the head, tools of a table."""
    with looking(browser, 1440) as page:
        page.goto(f"{real}/{RUN}")
        for scheme in schemes(page, ".st-key-bars .js-plotly-plot"):
            page.get_by_test_id("stApp").evaluate("() => document.activeElement.blur()")
            for key in ("op", "variants", "run", "share_popover", "show", "tables"):
                stops(page, key)
                assert page.evaluate(RINGED), (key, scheme)
            page.get_by_role("link", name="Roofline").focus()
            page.keyboard.press("Tab")
            assert page.evaluate(RINGED), (page.evaluate(FOCUSED), scheme)


RINGED = """() => {
  const shows = (e) => {
    const s = getComputedStyle(e);
    return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none';
  };
  const bordered = (e) => e.tagName === 'INPUT' && [...document.querySelectorAll('*:focus-within')].some((p) => {
    const s = getComputedStyle(p);
    return p.offsetHeight < 60 && s.borderTopWidth !== '0px' &&
      s.borderTopColor === getComputedStyle(document.querySelector('[data-testid=stBaseButton-primary]')).backgroundColor;
  });
  return shows(document.activeElement) || bordered(document.activeElement);
}"""
"""A ring around what has the focus, or around a box its border in the page's own colour."""
