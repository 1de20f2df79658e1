"""The Compare page as people meet it: from a run in History, hover and click, a link in a fresh browser, a file, a phone."""

from __future__ import annotations

import re
from pathlib import Path

import compared_runs as runs
import msgspec
import one_tab
import pytest
from accessibility import expect_accessible, found_by_axe, schemes
from acting import at_rest
from playwright.sync_api import Locator, Page
from waiting import expect

from kernelviz.formats import encode

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]
VARIANTS = "a=h200-softmax&b=h200-softmax&variant_a=torch_eager&variant_b=triton_online"


def bars(page: Page) -> Locator:
    chart = page.locator(".st-key-ratios[data-stale=false] .js-plotly-plot")
    expect(chart.locator(".bars path").first).to_be_visible()
    return chart


def settled(page: Page) -> None:
    at_rest(page)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    expect(page.locator("[data-stale=true], [data-testid=stSkeleton]")).to_have_count(0)


def drawn(page: Page) -> tuple[list[str], str]:
    """The text of the page: its tiles and the rows of its bars."""
    settled(page)
    rows = bars(page).locator(".ytick text").all_inner_texts()
    return rows, page.locator(".st-key-tiles").inner_text()


def test_hover_says_the_verdict_and_a_click_shows_the_samples_of_both(real: str, page: Page) -> None:
    page.goto(f"{real}/compare?{VARIANTS}")
    chart = bars(page)
    settled(page)
    box = chart.locator(".trace.bars").last.locator(".point path").last.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    hover = chart.locator(".hoverlayer")
    expect(hover).to_contain_text("softmax bf16")
    expect(hover).to_contain_text("noise floor")
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile("case=softmax"))
    settled(page)
    expect(page.locator(".st-key-shares .legend")).to_contain_text("A: torch eager")
    expect(page.locator(".st-key-shares .legend")).to_contain_text("B: triton online")
    said, case = drawn(page), page.locator(".st-key-one_pair").inner_text()
    # The link opens the same picture in a browser that has never been here.
    link = page.url
    one_tab.forget(page)
    page.goto(link)
    assert drawn(page) == said
    expect(page.locator(".st-key-one_pair")).to_have_text(re.compile(re.escape(case.split("\n")[0])))


def test_from_history_a_run_is_held_against_the_one_before_it(real: str, page: Page, tmp_path: Path) -> None:
    """Two files, another driver, one case broken: verdicts, what differs in red, and nothing that axe calls serious."""
    page.goto(f"{real}/compare")
    changed = runs.after({"triton_persistent": 1.05}, wrong="triton_persistent", device={"driver": "600"})
    for number, made in enumerate((runs.before(), changed)):
        # Long before what other tests measure on this server.
        run = msgspec.structs.replace(made, created_at=f"2020-01-0{number + 1}T00:00:00+00:00")
        (tmp_path / f"{number}.json").write_bytes(encode(run))
        # A file that was taken in puts a fresh place for the next one in its place, a redraw after the address has changed.
        place = page.locator(f".st-key-compare_upload_popover_{number}").get_by_role("button", name="Open a file")
        expect(place).to_be_visible()
        settled(page)
        place.click()
        page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(tmp_path / f"{number}.json")
        expect(page).to_have_url(re.compile(f"{'ab'[number]}={run.id}"))
        settled(page)
    expect(page.locator(".st-key-tiles")).to_contain_text("5 of 17 slower")
    for _ in range(2):  # also when the page was open before in the same session
        page.get_by_role("link", name="History").click()
        manage = page.locator(".st-key-run_after").get_by_role("button", name=re.compile("Manage|Close"))
        if "Manage" in manage.inner_text():
            manage.click()
        page.locator(".st-key-run_after").get_by_role("link", name="Compare with…").click()
        expect(page).to_have_url(re.compile(r"compare\?.*a=before"))
        expect(page.locator(".st-key-tiles")).to_contain_text("5 of 17 slower")
        settled(page)
    expect(page.locator(".st-key-differs")).to_have_text("≠ driver: 580.159 in A, 600 in B")
    for scheme in schemes(page, ".st-key-pairs"):
        assert found_by_axe(page, scheme) == [], scheme


def test_everybody_reads_the_page_and_its_words_on_a_phone(real: str, page: Page) -> None:
    page.goto(f"{real}/compare?{VARIANTS}")
    expect_accessible(page, "Compare", ".st-key-pairs")
    chart = bars(page)  # at a phone's width
    settled(page)
    frame = chart.bounding_box()
    assert frame
    boxes = chart.evaluate(
        "g => [...g.querySelectorAll('.ytick text, .xtick text, .xtitle, .legendtext')].map(t => {"
        " const r = t.getBoundingClientRect(); return [r.left, r.right, t.textContent] })"
    )
    assert len(boxes) > 12
    for left, right, words in boxes:
        assert left >= frame["x"] - 1, words
        assert right <= frame["x"] + frame["width"] + 1, words
    for key in ("a", "b"):
        box = page.locator(f".st-key-{key}").bounding_box()
        assert box
        assert box["width"] > 300, "names of runs need the line"
