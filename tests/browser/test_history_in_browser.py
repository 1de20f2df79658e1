"""The History page in a Chromium over real servers: a run goes from one to another, is deleted and comes back, is resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from acting import address, choose, downloaded, move, wait_until_done
from playwright.sync_api import Page
from servers import ROOT, served
from waiting import expect

from kernelviz.bench.history import History
from kernelviz.formats import shipped_runs
from kernelviz.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-1")]


@pytest.fixture(scope="module")
def elsewhere_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the second installation keeps its runs."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def elsewhere(elsewhere_home: Path) -> Iterator[str]:
    """A second installation, with no run of its own."""
    with served(ROOT / "app.py", elsewhere_home) as url:
        yield url


def import_run(folder: Path, document: dict[str, Any]) -> None:
    """Store a run in the installation that keeps its runs in that folder, as an upload does."""
    History(Store.open(folder / "home")).take_in(json.dumps(document))


@pytest.fixture(scope="module")
def document(real: str, measured: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run measured by the first installation and downloaded from its History page."""
    run_id = address(measured)["run"]
    page = measured.context.new_page()
    page.goto(f"{real}/history?run={run_id}")
    page.locator(f".st-key-download_{run_id}_popover").get_by_role("button").click()
    choose(page, f"download_{run_id}_format", "kernelviz JSON (.json)")
    given = downloaded(page, page.locator(f".st-key-download_{run_id}").get_by_role("button"), ".json")
    target = tmp_path_factory.mktemp("document") / "run.json"
    given.save_as(target)
    assert json.loads(target.read_text())["id"] == run_id
    page.close()
    return target


def cells(page: Page) -> str:
    """Every cell of the table, as a screen reader reads it."""
    frame = page.get_by_test_id("stDataFrame").first
    frame.scroll_into_view_if_needed()  # drawn when it is seen
    grid = frame.locator("table[role=grid]")
    expect(grid).to_have_attribute("aria-rowcount", "3", timeout=60_000)  # the heading and two cases
    return str(grid.evaluate("t => [...t.rows].map(r => [...r.cells].map(c => c.textContent).join('|')).join('\\n')"))


def upload(page: Page, url: str, file: Path) -> None:
    page.goto(f"{url}/history")
    page.locator("[class*=st-key-upload_popover]").get_by_role("button", name="Upload").first.click()
    page.locator("input[type=file]").set_input_files(file)


def test_an_uploaded_document_shows_the_table_that_was_measured(
    elsewhere: str, measured: Page, document: Path, page: Page
) -> None:
    table = cells(measured)
    assert table.count("\ntorch eager|") == 2
    upload(page, elsewhere, document)
    page.get_by_role("link", name="Open it").click()
    expect(page.locator(".st-key-tiles")).to_be_visible()
    assert cells(page) == table


def test_a_damaged_document_is_refused_with_the_field(
    elsewhere: str, document: Path, page: Page, tmp_path: Path
) -> None:
    broken = json.loads(document.read_text())
    broken["results"][0]["outcome"]["device_cold_s"]["estimate"] = "fast"
    target = tmp_path / "broken.json"
    target.write_text(json.dumps(broken))
    upload(page, elsewhere, target)
    refusal = page.get_by_test_id("stAlert")
    expect(refusal).to_contain_text("broken.json could not be imported")
    expect(refusal).to_contain_text("$.results[0].outcome.device_cold_s.estimate")


def test_a_run_is_deleted_and_comes_back(elsewhere: str, elsewhere_home: Path, document: Path, page: Page) -> None:
    import_run(elsewhere_home, json.loads(document.read_text()) | {"id": "to-delete", "title": "to be deleted"})
    page.goto(f"{elsewhere}/history?q=to-delete&run=to-delete")
    page.locator(".st-key-delete_to-delete").get_by_role("button").click()
    page.locator(".st-key-confirm_delete_yes").get_by_role("button").click()
    expect(page.locator(".st-key-undo_bar")).to_contain_text("to be deleted")
    expect(page.locator(".st-key-run_to-delete")).to_have_count(0)
    page.locator(".st-key-undo").get_by_role("button").click()
    expect(page.locator(".st-key-run_to-delete")).to_be_visible()


def test_an_interrupted_run_is_resumed(real: str, real_home: Path, document: Path, page: Page) -> None:
    half = json.loads(document.read_text()) | {"id": "half", "title": "half", "status": "interrupted"}
    half["results"] = half["results"][:1]
    import_run(real_home, half)
    page.goto(f"{real}/history?q=half&run=half")
    expect(page.locator(".st-key-run_half")).to_contain_text("1 of 2 cases")
    page.locator(".st-key-resume_half").get_by_role("button").click()
    wait_until_done(page)
    assert cells(page).count("\ntorch eager|") == 2
    move(page, f"{real}/history?q=half")
    expect(page.locator(".st-key-run_half")).to_contain_text("finished")


def test_a_recorded_run_is_on_the_first_page_and_in_the_gallery_with_no_device_and_is_shared(
    elsewhere: str, page: Page
) -> None:
    page.goto(elsewhere)
    expect(page.locator(".st-key-first_visit")).to_contain_text("recorded on an NVIDIA H200")
    expect(page.locator(".st-key-tiles")).to_be_visible()
    page.get_by_role("link", name="All recorded runs").click()
    images = page.locator("[class*=st-key-card_] img")
    expect(images.first).to_be_visible()
    linked = page.locator("[class*=st-key-card_] a, [class*=st-key-listed_] a")
    expect(linked).to_have_count(len(shipped_runs.names()))
    assert all(width > 0 for width in images.evaluate_all("all => all.map(i => i.naturalWidth)"))
    # As in a new tab: the address of the link, which has to be whole, because a browser resolves "?run=…" against this page.
    link = page.locator(".st-key-card_h200-softmax").get_by_role("link").first
    link.hover()
    expect(link).to_have_attribute("href", f"{elsewhere}/?run=h200-softmax")
    # Another run of the op opens within the loaded page, and the browser comes back to the gallery.
    page.evaluate("() => { window.loadedOnce = true }")
    page.get_by_role("link", name="softmax, NVIDIA H100 80GB HBM3: H100 80GB HBM3", exact=True).click()
    page.wait_for_url("**/?*run=h100-80gb-hbm3-softmax**")
    expect(page.locator(".st-key-strip")).to_contain_text("NVIDIA H100")
    page.go_back()
    expect(images.first).to_be_visible()
    assert page.evaluate("window.loadedOnce")
    page.goto(link.evaluate("link => link.href"))
    page.wait_for_url("**/?*run=h200-softmax**")
    expect(page.locator(".st-key-first_visit")).to_have_count(0)
    expect(page.locator(".st-key-tiles")).to_be_visible()
    expect(page.locator(".st-key-strip")).to_contain_text("NVIDIA H200")
    expect(page.locator(".st-key-by_size .js-plotly-plot")).to_be_visible()
    # A loopback address opens here only.
    page.locator(".st-key-share_popover").get_by_role("button").first.click()
    expect(page.get_by_text("works on this machine only")).to_be_visible()
    expect(page.get_by_test_id("stCode")).to_contain_text(f"{elsewhere}/?run=h200-softmax")


def test_a_phone_has_no_horizontal_scroll(elsewhere: str, elsewhere_home: Path, document: Path, page: Page) -> None:
    import_run(elsewhere_home, json.loads(document.read_text()) | {"id": "on-a-phone"})
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{elsewhere}/history")
    expect(page.locator(".st-key-run_on-a-phone")).to_be_visible()
    expect(page.locator(".st-key-shipped")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_address_without_a_page_is_said_plainly(real: str, page: Page) -> None:
    page.goto(f"{real}/nosuchpage")
    expect(page.get_by_text("kernelviz has no page nosuchpage.")).to_be_visible()
    expect(page).to_have_title("No such page · kernelviz")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".st-key-known_pages").get_by_role("link")).to_have_count(len([*(ROOT / "pages").glob("*.py")]))
    page.goto(f"{real}/bensh")
    expect(page.get_by_text("kernelviz has no page bensh. Did you mean Bench?")).to_be_visible()
    page.locator(".st-key-known_pages").get_by_role("link", name="Bench").click()
    expect(page.locator(".st-key-run")).to_be_visible()
    expect(page).to_have_title("Bench · kernelviz")
    page.goto(f"{real}/bench?op=softmax")  # typed by hand: Bench is at the root
    expect(page.locator(".st-key-run")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("alert").filter(has_text="Exception")).to_have_count(0)
