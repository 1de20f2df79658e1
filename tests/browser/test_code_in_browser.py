"""The page Code in a browser: thousands of lines, search, linked lines by mouse and keyboard, both widths and both schemes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from accessibility import WIDTHS, expect_accessible, found_by_axe, overhang, show_in, without_transitions
from acting import downloaded, move
from playwright.sync_api import Page
from waiting import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]
RUN = "run=h200-linear_gelu-code&problem=linear_gelu+bf16+m%3D4096+n%3D4096+k%3D4096"
DIFF = f"code?{RUN}&variant=cutlass_fused&variant_b=cuda_wgmma_fused&kind=ptx"
ONE = f"code?{RUN}&variant=triton_fused&kind=all"
MOST_LINES = 400
"""In the document at once, of 12,000: only what is in sight is drawn."""
LEFT_MS = 250
"""A step of scrolling takes at most so long on a busy machine; it takes 16 ms on an idle one."""
SCROLLED = """async (box) => {
  const scroller = box.querySelector('.code-merge');
  const steps = [];
  for (let i = 1; i <= 20; i++) {
    const began = performance.now();
    scroller.scrollTop = (scroller.scrollHeight - scroller.clientHeight) * i / 20;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    steps.push(performance.now() - began);
  }
  return { end: scroller.scrollHeight, slow: steps.sort((a, b) => a - b)[10], lines: box.querySelectorAll('.cm-line').length };
}"""


def test_thousands_of_lines_are_linked_searched_and_compared(real: str, page: Page, tmp_path: Path) -> None:
    page.goto(f"{real}/{ONE}")
    expect_accessible(page, "Code", ".code-box .code-pane:not([hidden]) .cm-line")
    box = page.locator(".code-box")
    tabs = box.get_by_role("tab")
    expect(tabs).to_have_count(3)  # a phone shows one text at a time
    source, ptx, sass = (box.locator(".code-pane").nth(number) for number in range(3))
    expect(sass).to_be_visible()
    tabs.nth(2).press("ArrowLeft")
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    expect(ptx).to_be_visible()
    expect(sass).not_to_be_visible()

    # A source line, and its PTX and SASS.
    page.set_viewport_size({"width": 1440, "height": WIDTHS[1440]})
    expect(source).to_be_visible()
    source.locator(".cm-scroller").evaluate("e => { e.scrollTop = e.scrollHeight }")
    dot = source.locator(".cm-line", has_text="tl.dot(")
    dot.hover()
    status = box.get_by_role("status")
    expect(status).to_contain_text(re.compile(r"triton_linear\.py line 53: \d+ lines? of PTX, \d+ lines? of SASS"))
    dot.click()  # a click shows the lines in the other texts, which are thousands of lines away
    expect(ptx.locator(".code-linked", has_text="wgmma.mma_async").first).to_be_in_viewport()
    expect(sass.locator(".code-linked", has_text="HGMMA").first).to_be_in_viewport()
    expect(sass.locator(".code-marks", has_text="TC").first).to_be_attached()
    # The name of a file is above each function.
    expect(source.locator(".cm-line", has_text=re.compile(r"^# triton_\w+\.py$")).first).to_be_attached()
    # A match far to the right is shown, and after the search the beginnings of the lines are.
    source.get_by_role("button", name="Find in Source").click()
    page.keyboard.type("Q is explained")
    page.keyboard.press("Enter")
    expect(source.locator(".cm-searchMatch-selected")).to_be_in_viewport()
    scrolled = "e => e.scrollLeft"
    assert source.locator(".cm-scroller").evaluate(scrolled) > 0
    page.keyboard.press("Escape")
    assert source.locator(".cm-scroller").evaluate(scrolled) == 0
    # The other way round, by the keyboard alone: from a marked instruction to its source line.
    source.locator(".cm-scroller").evaluate("e => { e.scrollTop = 0 }")
    sass.get_by_role("button", name="Go to the next marked instruction in SASS").focus()
    page.keyboard.press("Enter")
    expect(sass.locator(".cm-content")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(status).to_contain_text(re.compile(r"\w+\.py line \d+"))
    first = status.inner_text()
    page.keyboard.press("PageDown")
    expect(status).not_to_have_text(first)
    expect(source.locator(".code-linked")).to_have_count(1)
    page.keyboard.press("Control+f")
    expect(sass.get_by_role("textbox", name="Find in this text")).to_be_focused()
    page.keyboard.type("HGMMA")
    page.keyboard.press("Enter")
    expect(sass.locator(".cm-searchMatch-selected")).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(sass.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Tab")  # leaves the text
    expect(sass.locator(".cm-content")).not_to_be_focused()

    # Two kernels of 12,000 lines.
    move(page, f"{real}/{DIFF}")
    expect(box.locator(".cm-mergeView .cm-editor")).to_have_count(2)
    expect(status).to_contain_text("lines are equal")
    seen = box.evaluate(SCROLLED)
    assert seen["end"] > 10_000
    assert seen["lines"] < MOST_LINES
    assert seen["slow"] < LEFT_MS
    # Each changed line has a sign.
    expect(box.locator(".cm-merge-b .code-signs .cm-gutterElement", has_text="+").first).to_be_attached()
    box.get_by_label("Show equal lines").check()
    expect(box.get_by_label("Show equal lines")).to_be_focused()  # drawn anew with them
    expect(box.locator(".cm-mergeView .cm-editor")).to_have_count(2)
    box.get_by_role("button", name="Find in B").click()
    page.keyboard.type("wgmma.mma_async")
    page.keyboard.press("Enter")
    expect(box.locator(".cm-merge-b .cm-searchMatch-selected")).to_be_in_viewport()
    without_transitions(page)
    for width, scheme in ((1440, "dark"), (390, "light")):
        page.set_viewport_size({"width": width, "height": WIDTHS[width]})
        show_in(page, scheme, ".code-box .cm-line")
        box.evaluate(
            "b => b.scrollIntoView()"
        )  # axe cannot measure a contrast in a box of which a part is out of sight
        assert found_by_axe(page, scheme) == [], (width, scheme)
        assert overhang(page) == 0, (width, scheme)
    # A phone has both texts in one column.
    expect(box.locator(".cm-editor")).to_have_count(1)
    expect(box.locator(".code-removed, .code-added").first).to_be_attached()

    # The page as a file: the same, without a server.
    page.set_viewport_size({"width": 1440, "height": WIDTHS[1440]})
    page.locator(".st-key-code_download_popover button").first.click()
    saved = downloaded(page, page.get_by_role("button", name="Save", exact=True), ".html")
    saved.save_as(tmp_path / "code.html")
    page.goto((tmp_path / "code.html").as_uri())
    expect(page.locator(".cm-mergeView .cm-editor")).to_have_count(2)
    page.get_by_label("Text").select_option("Main loop, as it is")
    expect(page.locator(".cm-merge-a .cm-line", has_text="/*").first).to_be_visible()
    expect(page.locator("#without")).to_be_hidden()
