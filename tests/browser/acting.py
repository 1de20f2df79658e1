"""Acts of a person at a page, each when the page is at rest: a click on what is redrawn meanwhile hits what was there before."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Download, Locator, Page, TimeoutError
from waiting import expect

WIRE = """() => {
  // When a person last acted, and when the page last asked and heard the server, in milliseconds.
  const wire = (window.wire = { acted: 0, asked: 0, heard: 0 });
  for (const act of ["pointerup", "click", "keydown", "input", "change", "popstate"])
    window.addEventListener(act, () => { wire.acted = performance.now() }, { capture: true, passive: true });
  const listened = new WeakSet();
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (message) {
    if (!listened.has(this)) {
      listened.add(this);
      this.addEventListener("message", () => { wire.heard = performance.now() });
    }
    wire.asked = performance.now();
    return send.call(this, message);
  };
}"""
"""A script for each page. Without it, `at_rest` cannot see that the server has not answered an act yet."""
_AT_REST = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  if (app?.dataset.testScriptState !== "notRunning") return false;
  if (document.querySelector("[data-stale=true], [data-testid=stSkeleton]")) return false;
  const wire = window.wire;
  if (!wire) return true;
  const quiet_ms = 100; // An act is sent, and an answer drawn, within a few frames.
  return wire.heard >= wire.asked && performance.now() - Math.max(wire.acted, wire.heard) > quiet_ms;
}"""


def at_rest(page: Page) -> None:
    """Wait until the server has answered each act, the page's script has ended, and no element of an earlier run is left."""
    page.wait_for_function(_AT_REST, polling=50)  # in ms; by default the browser would draw a frame for each look


def move(page: Page, url: str) -> None:
    """Show another address of the same server in the open page, as the Back button does: without a load, which costs three times
    as much."""
    page.evaluate("(url) => { history.pushState({}, '', url); dispatchEvent(new PopStateEvent('popstate')) }", url)
    at_rest(page)


def show(page: Page, url: str) -> None:
    """Show an address of the product: in the open page if it is one of the same server, otherwise by a load."""
    if urlsplit(page.url)[:2] == urlsplit(url)[:2] and page.get_by_test_id("stApp").count():
        move(page, url)
    else:
        page.goto(url)


def address(page: Page) -> dict[str, str]:
    """The parameters of the page's address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def wait_until_done(page: Page, timeout_s: float = 120) -> None:
    """Wait until the run of the address has ended: its Cancel button is there as long as it goes on. Until the address names
    the run, the page shows the recorded one of the first visit."""
    page.wait_for_url("**run=**", timeout=timeout_s * 1000)
    expect(page.locator(".st-key-first_visit")).to_have_count(0, timeout=timeout_s * 1000)
    expect(page.locator(".st-key-tiles")).to_be_visible(timeout=timeout_s * 1000)
    expect(page.locator(".st-key-cancel")).to_have_count(0, timeout=timeout_s * 1000)


def choose(page: Page, key: str, option: str) -> None:
    """Take an option of the select box with that key."""
    at_rest(page)
    box = page.locator(f".st-key-{key}")
    for _ in range(3):  # a list that opens while the page moves closes again
        box.get_by_role("combobox").click()
        chosen = page.get_by_role("option", name=option, exact=True)
        try:
            chosen.click(timeout=5_000)
            break
        except TimeoutError:
            at_rest(page)
    at_rest(page)
    expect(box.get_by_role("combobox")).to_have_value(option)


def downloaded(page: Page, button: Locator, suffix: str) -> Download:
    """What one click of the button gives, which is a file of this kind."""
    with page.expect_download(timeout=60_000) as found:
        button.click()
    assert found.value.suggested_filename.endswith(suffix)
    return found.value


HAS_PICTURE = "() => navigator.clipboard.read().then((all) => all.some((item) => item.types.includes('image/png')))"
"""Whether the clipboard has a picture, for a page of `clipboard_of`."""


def clipboard_of(page: Page) -> Page:
    """A tab that may read the clipboard, which the pages of the server may not. The context of the page must permit it."""
    tab = page.context.new_page()
    tab.route("http://localhost/", lambda route: route.fulfill(body="", content_type="text/html"))
    tab.goto("http://localhost/")
    return tab
