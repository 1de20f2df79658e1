"""The script that follows a tuning on a GPU machine (tests/gpu/follow_tuning.py), here with a planted variant on the processor:
through the real server and page, cancelled and resumed; and its events, played again as a browser would see them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from follow_tuning import follow, write
from open_page import open_page
from replayed_tuning import ReplayedTuning, events
from servers import ROOT, served

import kernelviz.bench
from kernelviz.core.events import RunEnded
from kernelviz.metrics.configurations import configuration_space

pytestmark = [pytest.mark.xdist_group("device"), pytest.mark.timeout(300)]
PLUGIN = str(Path(__file__).parents[1] / "planted_tuning.py")
QUERY = {
    "op": "add", "variant": "many", "size_n": "64", "configurations": "all", "budget": "0.001", "on": "cpu",
}  # fmt: skip


def test_a_tuning_is_followed_cancelled_and_resumed_through_the_page_and_can_be_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(ROOT / "app.py", tmp_path, KERNELVIZ_PLUGINS=PLUGIN, CUDA_VISIBLE_DEVICES="") as url:
        found = follow(url, QUERY, cancel_at=0.3, limit_s=240)
    summary = write(found, tmp_path / "home", tmp_path / "out")
    assert found.statuses == ["cancelled", "finished"]
    assert 12 <= summary["done_at_cancel"] < 40, "cancelled after the first group"
    assert (summary["status"], summary["planned"]) == ("finished", 40)
    assert summary["states"]["failed"] == 5, "an exception of a configuration never ends the tuning"
    assert sum(summary["states"].values()) == 40
    assert found.failed == 5
    assert [e["kind"] for e in events(tmp_path / "out")][-1] == "ended"

    bench = ReplayedTuning(tmp_path / "out", speed=1000.0)
    assert any(isinstance(event, RunEnded) for _, event in bench.follow(bench.run_id, timeout_s=60))
    time.sleep(0.05)
    played = bench.load(bench.run_id)
    assert configuration_space(played).best == configuration_space(bench._recorded).best
    assert len(played.results) == 40
    monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
    page = open_page({"run": bench.run_id}, "autotune")
    assert not page.error, [error.value for error in page.error]
    assert any("40 of 40 planned configurations have a result" in caption.value for caption in page.caption)
