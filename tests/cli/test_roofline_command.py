"""`kernelviz roofline` and `kernelviz.roofline`: the same use case as the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import planted_limits as plant
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core.errors import UnknownRun
from kernelviz.formats import shipped_runs
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_the_table_says_share_distance_limiter_and_why(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", plant.MATMUL, "--variant", "torch_eager"]) == 0
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if "4,096" in line)
    for words in (
        "171.2 µs ± ",
        "100.5 %",
        "0.995 ×",
        "compute-limited",
        "803 TFLOP/s: 101 % of the measured matmul bf16",
    ):
        assert words in row
    assert "h200-matmul" not in printed, "one run needs no column"


def test_json_and_the_frame_hold_the_same(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ("h100-80gb-hbm3-add", "h100-80gb-hbm3-scale")
    assert main(["roofline", *runs, "--level", "l2", "--roofs", "datasheet", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    frame = kv.roofline(*runs, level="l2", roofs="datasheet")
    assert len(rows) == len(frame) == sum(len(shipped_runs.load(name).results) for name in runs)
    assert [r["limiter"] for r in rows] == list(frame["limiter"])
    assert {r["limiter"] for r in rows} == {"launch", "latency", "L2", "bandwidth", "unclear"}
    assert all(r["evidence"] or r["missing"] for r in rows)


def test_the_ceilings_of_arithmetic_are_in_the_table_and_in_the_records(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["roofline", plant.MATMUL, "--variant", "torch_eager"]) == 0
    printed = capsys.readouterr().out
    assert "Of issue rate" in printed
    assert "SM clock" in printed
    frame = kv.roofline(plant.MATMUL)
    best = frame[(frame["variant"] == "torch_eager") & (frame["m"] == 8192)].iloc[0]
    assert best["rate_flop_per_s"] / best["issue_rate_fraction"] == pytest.approx(132 * 4096 * best["mean_clock_hz"])
    assert best["data_sheet_fraction"] == pytest.approx(best["rate_flop_per_s"] / 989.4e12)
    roofs = shipped_runs.load(plant.MATMUL).environment.roofs
    (loop_flop_per_s,) = (r.rate_flop_per_s for r in roofs if (r.name, r.precision) == ("mma", "bf16"))
    assert best["tensor_loop_fraction"] == pytest.approx(best["rate_flop_per_s"] / loop_flop_per_s)
    assert kv.roofline(plant.ADD)["issue_rate_fraction"].isna().all()


def test_without_a_run_the_newest_is_placed(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(kv.roofline()["run"]) == {plant.ADD, plant.MATMUL, plant.RMSNORM}
    bench.history.add(samples.run(id="own", roofs=()))
    assert main(["roofline"]) == 0
    printed = capsys.readouterr()
    assert "rmsnorm bf16" in printed.out
    assert "NVIDIA H200: roofs are not measured (`kernelviz device --calibrate`)" in printed.err


def test_what_is_wrong_is_named(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", plant.ADD, "--level", "l3"]) == 2
    assert "no level of memory 'l3'" in capsys.readouterr().err
    assert main(["roofline", "never"]) == 2
    assert "no run 'never' here" in capsys.readouterr().err
    with pytest.raises(UnknownRun):
        kv.roofline("never")
    bench.history.add(samples.run([], id="empty"))
    assert main(["roofline", "empty"]) == 0
    assert "no correct time to place" in capsys.readouterr().err
