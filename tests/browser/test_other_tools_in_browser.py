"""A file of another tool is uploaded and drawn, and its text is shown as plain text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import peers
import pytest
from acting import move
from playwright.sync_api import Page
from waiting import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.xdist_group("browser-2")]
EVIL = '<img src=x onerror="window.evil=1"> <script>window.evil=2</script> :red[x] $y$ [z](javascript:alert(1))'


def upload(page: Page, url: str, file: Path) -> None:
    page.goto(f"{url}/history")
    page.locator("[class*=st-key-upload_popover]").get_by_role("button", name="Upload").first.click()
    page.locator("input[type=file]").set_input_files(file)


def test_an_nvbench_file_is_drawn(real: str, page: Page, tmp_path: Path) -> None:
    target = tmp_path / "theirs.txt.json"
    target.write_bytes(peers.nvbench())
    upload(page, real, target)
    expect(page.get_by_text("theirs.txt.json was imported as 10 runs.")).to_be_visible()
    page.get_by_role("link", name="nvbench: copy_sweep_grid_shape on Quadro GV100").first.click()
    chart = page.locator(".st-key-other_times .js-plotly-plot")
    expect(chart).to_be_visible()
    expect(page.locator(".st-key-other_times g.trace.scatter")).to_have_count(3)
    points: list[int] = chart.evaluate("c => c._fullData.map(t => t.x.length)")
    assert points == [3, 3, 3]
    expect(page.get_by_text("These times were measured by another tool")).to_be_visible()
    page.get_by_role("radio", name="GPU time, batch").click()
    expect(page.locator("p", has_text="GPU time, batch: nvbench: mean of 81 calls back to back")).to_be_visible()


def evil(node: Any) -> Any:
    """The document with that text in every field that holds one, but for those that say what kind of thing something is."""
    kinds = {"tag", "type", "time_unit", "run_type", "value", "hint"}
    if isinstance(node, dict):
        return {
            k: v if k in kinds and not (k == "value" and node.get("type") == "string") else evil(v)
            for k, v in node.items()
        }
    return [evil(v) for v in node] if isinstance(node, list) else EVIL if isinstance(node, str) else node


@pytest.mark.parametrize("tool", ["nvbench", "gbench"])
def test_html_in_every_text_is_shown_as_text(real: str, page: Page, tmp_path: Path, tool: str) -> None:
    document = json.loads(peers.nvbench() if tool == "nvbench" else peers.gbench())
    if tool == "nvbench":
        document["benchmarks"] = [document["benchmarks"][0]]
    else:
        document["benchmarks"] = document["benchmarks"][:1]
    target = tmp_path / "evil.json"
    target.write_text(json.dumps(evil(document)))
    # A value of a summary is looked up by the name of its field, so that must stay.
    target.write_text(target.read_text().replace('"data": [{"name": ' + json.dumps(EVIL), '"data": [{"name": "value"'))
    upload(page, real, target)
    expect(page.get_by_text("evil.json was imported")).to_be_visible()
    page.locator("[class*=st-key-uploaded_] a").first.click()
    expect(page.locator(".st-key-other_times .js-plotly-plot")).to_be_visible()
    page.wait_for_timeout(500)
    # Of a run of Google Benchmark, History shows only the names of the tool and of the file, so no text of the document.
    on_history = "<img src=x" if tool == "nvbench" else "google-benchmark (evil.json)"
    for where, text in (("", "<img src=x"), (f"{real}/history", on_history)):
        if where:
            move(page, where)
        expect(page.get_by_text(text).first).to_be_visible()
        assert page.evaluate("window.evil") is None
        assert page.locator("img[src=x], a[href^=javascript]").count() == 0
