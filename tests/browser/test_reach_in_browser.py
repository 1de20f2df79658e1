"""Accessibility of each page: the rules of axe, texts for charts, use by keyboard only and on a phone, and the theme."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import turns
from accessibility import (
    BACKGROUND,
    WIDTHS,
    expect_accessible,
    found_by_axe,
    overhang,
    schemes,
    settled,
    show_in,
    untold,
    without_transitions,
)
from acting import at_rest, downloaded, show
from playwright.sync_api import Page
from waiting import expect

from kernelviz.ui.shared.site import pages_folder

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]
Serve = Callable[..., str]

RUN = "?run=h200-rmsnorm"
TABS = "[data-testid=stTabs]"
# Title, address, and what is there when the page is. The other pages are looked at where their own tests open them.
PAGES = {
    "unknown run": ("Bench", "?run=no-such-run", ".st-key-forget_run"),
    "roofline of nothing": ("Roofline", "roofline", ".st-key-chosen_runs"),
    "compare of nothing": ("Compare", "compare", ".st-key-nothing_chosen"),
    "gallery": ("Gallery", "gallery", ".st-key-card_h200-softmax img"),
    "claims": ("Claims", "claims?results=h200&claim=marlin", ".st-key-one_claim"),
    "ladder": ("Ladder", "ladder", ".st-key-ladder_chart .js-plotly-plot"),
    "fusion": ("Fusion", "fusion", ".st-key-fusion_sweep .js-plotly-plot"),
    "own and library": (
        "Libraries",
        "libraries?of_op=softmax",
        ".st-key-library_table [data-testid=stDataFrame]",
    ),
    "autotune": ("Autotune", "autotune?op=add&variant=triton_tuned", ".st-key-autotune_form"),
    "model": ("Model", "model", ".st-key-model_bars .js-plotly-plot"),
    "workloads": ("Workloads", "workloads", ".st-key-workloads_title"),
    "history": ("History", "history", ".st-key-shipped"),
    "method": ("Method", "method", ".st-key-parts table"),
}


@pytest.mark.parametrize("name", list(PAGES)[turns.seed() % 2 :: 2])
def test_axe_finds_nothing_serious(real: str, page: Page, name: str) -> None:
    """Of every second page, others at the next commit."""
    title, path, ready = PAGES[name]
    page.goto(f"{real}/{path}")
    expect_accessible(page, title, ready)


@pytest.mark.parametrize(
    ("path", "box"),
    [("workloads?workload=nope", "workload"), ("gallery?family=nope", "family"), ("?run=h200-add&show=nope", "show")],
)
def test_an_unknown_value_of_the_address_is_named_below_its_box_until_another_is_chosen(
    real: str, page: Page, path: str, box: str
) -> None:
    """In a column it follows its box, in a row it is on the line below. It stays where the page is redrawn for something else."""
    show(page, f"{real}/{path}")
    message = page.locator(f".st-key-unknown_{box}")
    expect(message).to_contain_text(f"In the address, {box} 'nope' is not among")
    at_rest(page)
    above, below = page.locator(f".st-key-{box}").bounding_box(), message.bounding_box()
    assert above is not None
    assert below is not None
    assert 0 <= below["y"] - above["y"] - above["height"] < 40
    if box == "workload":
        page.locator(".st-key-workload_share button").click()
        at_rest(page)
        expect(message).to_be_visible()
        page.keyboard.press("Escape")
        page.locator(".st-key-view button").last.click()
        expect(message).to_have_count(0)


def test_axe_finds_nothing_serious_on_a_first_visit_and_would_find_a_fault_of_ours(real: str, page: Page) -> None:
    page.goto(real)
    expect_accessible(page, "Bench", ".st-key-bars .js-plotly-plot")
    expect(page.locator(".st-key-first_visit")).to_contain_text("recorded on an NVIDIA H200")
    page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMainBlockContainer]');"
        " m.insertAdjacentHTML('afterbegin', '<img src=\"x\"><p style=\"color: #aaa; background: #fff\">pale</p>') }"
    )
    assert {words.partition(" ")[0] for words in found_by_axe(page)} == {"image-alt", "color-contrast"}


def test_every_page_is_looked_at_by_axe() -> None:
    """By a call that names the page's title, which the page then must have."""
    calls = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    titles = {*re.findall(r'expect_accessible\(page, "(\w+)"', calls), *(title for title, _, _ in PAGES.values())}
    assert titles == {file.stem.capitalize().replace("_", " ") for file in pages_folder().glob("*.py")}


STATES = ((1440, "dark"), (1440, "light"), (390, "light"))
"""How a run is looked at."""
WIDE_AND_NARROW = (STATES[0], STATES[-1])
"""How the tabs behind the first one are looked at: each width and each scheme once. Each tab begins where the tab before it
ended, because a change draws the whole page anew."""


def test_axe_finds_nothing_serious_in_a_run_and_its_tabs(real: str, open_tab: Page) -> None:
    page = open_tab
    page.goto(f"{real}/{RUN}")
    settled(page, ".st-key-bars .js-plotly-plot")
    without_transitions(page)
    tabs = page.get_by_role("tab")
    expect(tabs.first).to_be_visible()
    wrong = {}
    # At each commit the first tab and every fourth one of the others.
    for place, number in enumerate([0, *range(1 + turns.seed() % 4, tabs.count(), 4)]):
        tab = tabs.nth(number)
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        for state in (WIDE_AND_NARROW if number else STATES)[:: -1 if place % 2 else 1]:
            width, scheme = state
            page.set_viewport_size({"width": width, "height": WIDTHS[width]})
            show_in(page, scheme, "[role=tabpanel]:not([inert])")
            if width == 390:
                expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
            elif number == 0:
                expect(page.get_by_test_id("stSidebar")).to_be_in_viewport()
            words = f"{tab.inner_text()}, {width}, {scheme}"
            # What is around the tabs is the same for each of them.
            wrong[words] = [*found_by_axe(page, scheme, within=TABS if number else "html"), *untold(page)]
            if overhang(page):
                wrong[words].append("wider than the window")
    page.locator(".st-key-share_popover button").first.click()
    downloaded(page, page.get_by_role("button", name="Save", exact=True), ".html")
    expect(page.locator(".st-key-save_selection_again")).to_be_visible()
    for width, scheme in sorted(WIDE_AND_NARROW, key=lambda other: other != state):
        if (width, scheme) != state:  # opened anew, because an open box keeps the height that it had at the other width
            page.keyboard.press("Escape")
            expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
            page.set_viewport_size({"width": width, "height": WIDTHS[width]})
            page.locator(".st-key-share_popover button").first.click()
            expect(page.locator(".st-key-save_selection_again")).to_be_visible()
        show_in(page, scheme, "[data-testid=stPopoverBody]")
        wrong[f"share, {width}, {scheme}"] = found_by_axe(page, scheme)
    page.keyboard.press("Escape")
    assert {words: found for words, found in wrong.items() if found} == {}


def test_where_the_keyboard_is_can_be_seen(real: str, open_tab: Page) -> None:
    """What has the focus has a ring, or its box a border in the page's own colour: form, links of the head, tools of a table."""
    page = open_tab
    show(page, f"{real}/{RUN}")
    for scheme in schemes(page, ".st-key-bars .js-plotly-plot"):
        page.get_by_test_id("stApp").evaluate("() => document.activeElement.blur()")
        for key in ("op", "variants", "run", "share_popover", "show", "tables"):
            stops(page, key)
            assert page.evaluate(RINGED), (key, scheme)
        page.get_by_role("link", name="Roofline").focus()
        page.keyboard.press("Tab")
        assert page.evaluate(RINGED), (page.evaluate(FOCUSED), scheme)


LOADED_ONCE = "() => { const before = window.loadedOnce; window.loadedOnce = true; return before === true; }"


def test_the_theme_is_switched_in_place_and_remembered_on_every_page(real: str, open_tab: Page) -> None:
    page = open_tab
    show(page, f"{real}/{RUN}")
    with_tools(page, ".st-key-bars .js-plotly-plot")
    page.evaluate(LOADED_ONCE)
    ink = ".st-key-by_size .js-plotly-plot .xtick text"
    light_ink = page.locator(ink).first.evaluate("e => getComputedStyle(e).fill")
    themes = page.get_by_role("group", name="Theme")
    expect(themes.get_by_role("radio", name="Theme of the system")).to_be_checked()
    themes.get_by_role("radio", name="Dark theme").check(force=True)
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUND["dark"])
    expect(page.locator(ink).first).not_to_have_css("fill", light_ink)
    assert page.evaluate(LOADED_ONCE), "the page was loaded anew"
    expect(page.get_by_test_id("stMainMenuPopover")).to_have_count(0)
    page.goto(f"{real}/method")
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUND["dark"])
    expect(themes.get_by_role("radio", name="Dark theme")).to_be_checked()
    at_rest(page)
    page.keyboard.press("t")
    expect(themes.get_by_role("radio", name="Theme of the system")).to_be_checked()
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUND["light"])
    page.emulate_media(color_scheme="dark")
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUND["dark"])


def test_axe_finds_nothing_serious_while_a_run_goes(rehearsed: Serve, page: Page) -> None:
    page.goto(f"{rehearsed('slow')}/?op=rmsnorm&m=64&n=64")
    page.locator(".st-key-run").get_by_role("button", name="Run").click()
    expect(page.locator(".st-key-going li.compiling")).to_be_visible()
    for scheme in schemes(page, ".st-key-by_size[data-stale=false] .js-plotly-plot"):
        assert found_by_axe(page, scheme) == [], scheme
    page.locator(".st-key-cancel").get_by_role("button", name="Cancel").click()
    expect(page.locator(".st-key-going")).to_have_count(0)


FOCUSED = """() => {
  let e = document.activeElement;
  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  const key = e.closest('[class*=st-key-]')?.className.match(/st-key-(\\S+)/)?.[1] ?? '';
  const box = e.getBoundingClientRect();
  return {key, tag: e.tagName, words: (e.getAttribute('aria-label') || e.textContent).trim(),
          seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight};
}"""


def with_tools(page: Page, ready: str) -> None:
    """Wait until the page is drawn and the script of its tools has come, which follows later."""
    settled(page, ready)
    expect(page.locator(".st-key-page_tools input[type=radio]")).to_have_count(3)


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
    page.goto(f"{rehearsed('slow')}/?op=rmsnorm&variants=composite_eager,torch_eager&m=64&n=64")  # neither is compiled
    with_tools(page, ".st-key-first_visit")
    form = stops(page, "run")
    keys = list(dict.fromkeys(s["key"] for s in form if s["key"]))
    assert keys == ["tools", "op", "variants", "excluded", "own_variant", "direction", "dtype", "data", "sizes_from",
                    "size_rmsnorm_m", "size_rmsnorm_n", "method_expander", "run"]  # fmt: skip
    assert form[0]["words"] == "Skip to main content"
    links = [file.stem.capitalize() for file in pages_folder().glob("*.py")]
    assert sorted(re.sub("^[a-z_]+", "", s["words"]) for s in form[1 : 1 + len(links)]) == sorted(links)
    assert all(s["seen"] for s in form), form
    page.keyboard.press("Enter")
    page.wait_for_url("**run=**")
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


def test_shortcuts_are_listed_and_do_what_the_list_says_but_never_while_one_types(real: str, page: Page) -> None:
    page.goto(f"{real}/?op=add&variants=torch_eager&n=4096&device=cpu")
    with_tools(page, ".st-key-bars .js-plotly-plot")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(shortcuts).to_contain_text("Run what the form says")
    assert found_by_axe(page, within=".st-key-page_tools") == []
    page.keyboard.press("Escape")
    expect(shortcuts).to_have_count(0)
    page.keyboard.press("?")
    expect(shortcuts).to_be_visible()
    page.keyboard.press("h")  # the list is open: nothing else hears the keys
    page.keyboard.press("?")
    expect(shortcuts).to_have_count(0)
    page.keyboard.press("3")
    page.wait_for_url("**show=time**")
    at_rest(page)
    page.keyboard.press("l")
    expect(page.locator(".st-key-live_mode input")).to_be_checked()
    at_rest(page)
    page.keyboard.press("l")
    expect(page.locator(".st-key-live_mode input")).not_to_be_checked()
    at_rest(page)
    page.keyboard.press("/")
    expect(page.locator(".st-key-op input")).to_be_focused()
    page.locator(".st-key-op input").evaluate("e => e.blur()")
    page.keyboard.press("s")
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    at_rest(page)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    at_rest(page)
    page.keyboard.press("h")
    expect(page).to_have_title("History · kernelviz")
    with_tools(page, ".st-key-q")
    page.keyboard.press("/")
    search = page.locator(".st-key-q input")
    expect(search).to_be_focused()
    page.keyboard.type("gelu?")
    expect(search).to_have_value("gelu?")
    expect(shortcuts).to_have_count(0)
    expect(page).to_have_title("History · kernelviz")
    search.evaluate("e => e.blur()")
    at_rest(page)
    page.keyboard.press("?")
    shortcuts.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("b")  # off, which the browser remembers
    page.reload()
    with_tools(page, ".st-key-q")
    page.keyboard.press("b")
    expect(page).to_have_title("History · kernelviz")
    page.keyboard.press("?")
    expect(shortcuts.get_by_role("checkbox")).not_to_be_checked()


COVERED = """() => {
  const box = (s) => document.querySelector(s).getBoundingClientRect();
  const bar = box('.st-key-phone_nav'), tools = box('.st-key-page_tools'), main = box('[data-testid=stMainBlockContainer]');
  const links = [...document.querySelectorAll('.st-key-phone_nav a')].map((a) => a.getBoundingClientRect());
  const texts = [...document.querySelectorAll('.st-key-phone_nav p')];
  return {bar: bar.bottom <= innerHeight && bar.top > tools.bottom, inside: main.left >= 0 && main.right <= innerWidth,
          apart: links.every((l, i) => !i || l.left >= links[i - 1].right - 1), large: links.every((l) => l.height >= 24),
          whole: texts.every((p) => p.scrollWidth <= p.clientWidth + 1), tools: tools.right <= innerWidth};
}"""
"""Where the bar, the tools and the page of a phone are."""


def test_on_a_phone_every_page_is_one_tap_away_and_the_form_opens_and_closes(real: str, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": WIDTHS[390]})
    page.goto(f"{real}/?op=add&variants=torch_eager&n=4096&device=cpu&budget=0.1")
    with_tools(page, ".st-key-heading")
    tiles = page.locator(".st-key-tiles [data-testid=stMetric]")
    first, second = tiles.nth(0).bounding_box(), tiles.nth(1).bounding_box()
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]
    page.get_by_test_id("stExpandSidebarButton").click()
    run = page.locator(".st-key-run").get_by_role("button", name="Run")
    expect(run).to_be_in_viewport()
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    expect(run).not_to_be_in_viewport()
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(run).to_be_in_viewport()
    run.click()
    page.wait_for_url("**run=**")
    expect(run).not_to_be_in_viewport()  # the results are in sight
    bar = page.get_by_role("navigation", name="Pages")
    names = [file.stem.capitalize() for file in pages_folder().glob("*.py")]
    expect(bar.get_by_role("link")).to_have_count(len(names))
    for name in [*sorted(n for n in names if n != "Bench"), "Bench"]:
        bar.get_by_role("link", name=name).click()
        expect(page).to_have_title(f"{name} · kernelviz")
        at_rest(page)
        found = page.evaluate(COVERED)
        assert all(found.values()), (name, found)
        assert overhang(page) == 0, name
        expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible(visible=name == "Bench")
