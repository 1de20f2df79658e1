"""Five jobs of a newcomer. Each starts at the landing page and uses only what is visible: buttons, links, fields and texts.

A click is counted for each press of the mouse, not for typing. `pytest -s` prints clicks and seconds, which docs/speed.md lists.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import peers
import pytest
from acting import HAS_PICTURE, at_rest, clipboard_of
from playwright.sync_api import Locator, Page
from servers import ROOT, served
from waiting import expect

from kernelviz.formats import shipped_runs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-1")]

QUIET = os.environ.get("KERNELVIZ_QUIET_MACHINE") == "1"
"""Limits of time are for a machine that does nothing else."""
SIZES = len(shipped_runs.load("h200-rmsnorm").plan.problems)
"""Of the run on the landing page."""


class Newcomer:
    """A person at the landing page, who reads, clicks and types."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.clicks = page, 0
        page.goto(url)
        expect(page.locator(".st-key-bars .js-plotly-plot")).to_be_visible()
        at_rest(page)
        self.began_s = time.monotonic()

    def click(self, target: Locator) -> None:
        """Click on something that is there to be seen."""
        at_rest(self.page)
        expect(target).to_be_visible()
        target.click()
        self.clicks += 1

    def go(self, name: str) -> None:
        """Click on a page in the navigation."""
        self.click(self.page.get_by_role("link", name=name, exact=True).first)

    def type(self, label: str, text: str) -> None:
        """Click on a field and type into it."""
        field = self.page.get_by_label(label, exact=True)
        self.click(field)
        field.fill(text)

    def done(self, job: str, clicks: int, seconds: float) -> None:
        """The job has ended: at most so many clicks, and on a quiet machine so many seconds."""
        took_s = time.monotonic() - self.began_s
        print(f"{job}: {self.clicks} clicks, {took_s:.1f} s")  # noqa: T201
        assert self.clicks <= clicks
        if QUIET:
            assert took_s <= seconds


@pytest.fixture
def newcomer(real: str, page: Page) -> Newcomer:
    return Newcomer(page, real)


def test_which_variant_is_fastest_for_my_size_and_how_far_from_the_limit(newcomer: Newcomer) -> None:
    """The size is typed, Tab leads to the next field. torch.compile, which takes seconds to build, is switched off."""
    page = newcomer.page
    newcomer.click(page.locator(".st-key-variants").get_by_role("button", name="torch compile"))
    at_rest(page)
    newcomer.type("m (rows)", "64")
    page.keyboard.press("Tab")
    at_rest(page)
    page.get_by_label("n (row length)", exact=True).fill("4096")
    page.keyboard.press("Tab")
    newcomer.click(page.locator(".st-key-run").get_by_role("button", name="Run"))
    tiles = page.locator(".st-key-tiles")
    page.wait_for_url("**run=**")
    expect(page.locator(".st-key-first_visit")).to_have_count(0)
    expect(page.locator(".st-key-cancel")).to_have_count(0, timeout=60_000)
    fastest = tiles.get_by_test_id("stMetric").filter(has_text=re.compile("^Fastest"))
    expect(fastest).to_contain_text(re.compile("(torch|composite) eager"))
    share = tiles.get_by_test_id("stMetric").filter(has_text="Share of the measured roof")
    expect(share).to_contain_text(re.compile(r"\d %|its roof was not measured, or cannot be used"))
    expect(page.get_by_text("Time and share of the roof at m = 64, n = 4,096")).to_be_visible()
    newcomer.done("1 fastest variant for my size", 3, 15)


def test_where_the_winner_of_a_recorded_run_changes_and_its_picture(newcomer: Newcomer) -> None:
    page = newcomer.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    try:
        newcomer.click(page.get_by_role("link", name="All recorded runs"))
        newcomer.click(page.get_by_role("link", name="softmax · NVIDIA H200").first)
        newcomer.click(page.locator(".st-key-show").get_by_role("radio", name="winner"))
        expect(
            page.locator("[data-testid=stMarkdownContainer] li", has_text=re.compile(" up to .*, then "))
        ).to_be_visible()
        chart = page.locator(".st-key-by_size .chart-box")
        chart.hover()  # shows its menus
        newcomer.click(chart.get_by_role("button", name="Copy this chart"))
        newcomer.click(chart.get_by_role("menuitem", name="Image"))
        clipboard = clipboard_of(page)
        clipboard.wait_for_function(HAS_PICTURE)
        clipboard.close()
    finally:
        page.context.clear_permissions()
    newcomer.done("2 where the winner changes, and its picture", 5, 15)


def test_two_variants_are_compared(newcomer: Newcomer) -> None:
    """From the run on the landing page; then another variant on one side."""
    page = newcomer.page
    newcomer.click(page.get_by_role("link", name="Compare two variants"))
    expect(page.get_by_text(re.compile(rf"\d+ of {SIZES} faster")).first).to_be_visible()
    newcomer.click(page.get_by_role("combobox", name="Variant of B"))
    newcomer.click(page.get_by_role("option", name="composite eager", exact=True))
    at_rest(page)
    expect(page.get_by_text(re.compile(rf"[1-{SIZES}] of {SIZES} slower")).first).to_be_visible()
    expect(page.locator(".st-key-one_pair")).to_contain_text(re.compile(r"B is (slower|faster)"))
    newcomer.done("3 compare two variants", 3, 10)


def test_files_of_another_tool_are_compared(newcomer: Newcomer, tmp_path: Path) -> None:
    """Before and after a change, by google-benchmark."""
    page = newcomer.page
    before = json.loads(peers.gbench())
    after = json.loads(peers.gbench())
    for case in after["benchmarks"]:
        for name in ("real_time", "cpu_time"):
            case[name] = case.get(name, 1) * 1.5
    newcomer.go("Compare")
    for name, document in (("before.json", before), ("after.json", after)):
        (tmp_path / name).write_text(json.dumps(document))
        newcomer.click(page.get_by_role("button", name="Open a file"))
        with page.expect_file_chooser() as chooser:
            newcomer.click(page.get_by_test_id("stPopoverBody").get_by_role("button", name=re.compile("Upload|Browse")))
        chooser.value.set_files(tmp_path / name)
        expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
        at_rest(page)
    expect(page.get_by_text(re.compile("1.500× slower")).first).to_be_visible()
    newcomer.done("4 compare files of another tool", 5, 15)


def test_my_own_kernel_is_measured(newcomer: Newcomer, tmp_path: Path) -> None:
    """The page shows a file for the op and the command. The newcomer saves the file with a call, and starts the pages again."""
    page = newcomer.page
    newcomer.click(page.get_by_role("button", name="Add your own kernel"))
    code = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")
    expect(code).to_have_count(2)
    example, command = code.all()
    expect(example).to_contain_text("def my_kernel(x_MN, w_N):")
    file = tmp_path / "mykernel.py"
    file.write_text(
        example.inner_text().replace("from my_package import my_function", "from torch.nn.functional import rms_norm")
        .replace("my_function(x_MN, w_N)", "rms_norm(x_MN, tuple(w_N.shape), w_N, 1e-5)")
    )  # fmt: skip
    setting = re.match(r"(\w+)=mykernel\.py streamlit run app\.py", command.inner_text().strip())
    assert setting is not None
    clicks, took_s = newcomer.clicks, time.monotonic() - newcomer.began_s
    with served(ROOT / "app.py", tmp_path, **{setting[1]: str(file)}) as url:
        newcomer = Newcomer(page, url)
        newcomer.clicks, newcomer.began_s = clicks, newcomer.began_s - took_s
        newcomer.click(page.locator(".st-key-variants").get_by_role("button", name="torch compile"))
        newcomer.click(page.locator(".st-key-variants").get_by_role("button", name="my kernel"))
        newcomer.type("n (row length)", "1024")
        page.keyboard.press("Tab")
        newcomer.click(page.locator(".st-key-run").get_by_role("button", name="Run"))
        page.wait_for_url("**run=**")
        expect(page.locator(".st-key-first_visit")).to_have_count(0)
        own = page.locator("[data-testid=stMarkdownContainer] li", has_text="my kernel").first
        expect(own).to_contain_text(re.compile("faster|slower|same|unclear"), timeout=60_000)
        newcomer.done("5 my own kernel", 5, 20)
        page.goto("about:blank")
