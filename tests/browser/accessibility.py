"""What a page is asked for everybody's sake: the rules of axe, alternative text of charts, and nothing wider than the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
from acting import at_rest
from playwright.sync_api import Page
from waiting import expect

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
BACKGROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 19)"}
MOST_SHIFT = 0.1
"""Of the measure that browsers call cumulative layout shift: what counts as good on the web. On an idle machine every page stays
below 0.05 (measure_pages.py); beside other tests its parts arrive later."""
WIDTHS = {1440: 900, 390: 844}
AXE_RUN = """([within, only]) => axe.run(within, {
  resultTypes: ["violations"],
  rules: Object.fromEntries(axe._audit.rules.filter((rule) => !["serious", "critical"].includes(rule.impact))
    .map((rule) => [rule.id, { enabled: false }])),
  ...only,
})"""
"""Runs axe without the rules whose violations are moderate or minor, because those are not looked at: 1.2 s of processor time on
Bench instead of 1.9 s."""


def settled(page: Page, ready: str) -> None:
    """Wait until the page's script has ended and no element of an earlier run of it is left."""
    expect(page.locator(ready).first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    expect(page.locator("[data-stale=true], [data-testid=stSkeleton]")).to_have_count(0)


def show_in(page: Page, scheme: str, ready: str) -> None:
    """Draw an open page in this scheme, as it follows its machine at dusk."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUND[scheme])
    settled(page, ready)


def without_transitions(page: Page) -> None:
    """A colour on its way from one scheme to the other has any contrast."""
    page.add_style_tag(content="*, *::before, *::after { transition: none !important; animation: none !important; }")


def schemes(page: Page, ready: str) -> Iterator[str]:
    """Light, then dark."""
    without_transitions(page)
    for scheme in BACKGROUND:
        show_in(page, scheme, ready)
        yield scheme


def found_by_axe(page: Page, scheme: str = "light", within: str = "html") -> list[str]:
    """What axe calls serious or critical: rule, place, and the beginning of the element. In the dark only of colours, since
    nothing else is another. `within`: the part of the page that is looked at.

    What is found while the page is drawn anew, when old elements are pale, is asked again of the page at rest."""
    found = _violations(page, scheme, within)
    if found:
        at_rest(page)
        found = _violations(page, scheme, within)
    return found


def _violations(page: Page, scheme: str, within: str) -> list[str]:
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(f"{AXE}; null")
    only = {"runOnly": ["color-contrast", "link-in-text-block"]} if scheme == "dark" else {}
    answer = page.evaluate(AXE_RUN, [within, only])
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
    return page.locator(".chart-box").evaluate_all(
        "all => all.filter(c => !c.getAttribute('aria-label')).map(c => c.closest('[class*=st-key-]')?.className)"
    )


def expect_accessible(page: Page, title: str, ready: str) -> None:
    """Nothing serious is wrong with the open page: on a desktop in the dark, and at a phone's width in the light, so each width
    and each scheme once. It stays at the phone's width. `title`: which page it is; `ready`: what is there when it is.

    The page has just been opened, and has hardly moved while it was loaded."""
    expect(page).to_have_title(f"{title} · kernelviz")
    settled(page, ready)
    assert page.evaluate("window.layoutShift") <= MOST_SHIFT, page.evaluate("window.shifted")
    without_transitions(page)
    for width, scheme in ((1440, "dark"), (390, "light")):
        page.set_viewport_size({"width": width, "height": WIDTHS[width]})
        show_in(page, scheme, ready)
        assert not (found := found_by_axe(page, scheme)), (width, scheme, found)
        assert overhang(page) == 0, (width, scheme)
        assert not (without := untold(page)), (width, scheme, without)
