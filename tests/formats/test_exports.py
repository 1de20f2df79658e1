"""What a run is written as for others: CSV, Markdown, google-benchmark, nvbench; and whether those tools' own scripts read it.

KERNELVIZ_PEERS names a folder with their repositories (``benchmark/tools``, ``nvbench/python``) and KERNELVIZ_PEERS_PYTHON a
Python with numpy, scipy, tabulate, colorama and jsondiff; without them the scripts' tests are skipped.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import drawn_runs
import earlier_runs
import msgspec
import peers
import pytest
import sample_figures as figures
import sample_runs as samples
from hypothesis import given, settings

from kernelviz.cli.history import FORMATS
from kernelviz.core.result import Failure, Figure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import exports, read
from kernelviz.formats.markdown import code
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.rows import in_plan_order
from kernelviz.text.failures import describe_failure

H200 = earlier_runs.load("h200-rmsnorm")
RUNS = {
    "mixed": samples.mixed(),
    "figures": figures.run(),
    "h200": H200,
    "nothing": samples.run([]),
    "nvbench": read(peers.nvbench())[4],
    "google": read(peers.gbench())[0],
}


def text(name: str, run: Run) -> str:
    return exports()[name].encode(run).decode()


@settings(deadline=None, max_examples=60)
@given(drawn_runs.runs)
def test_every_run_can_be_written_as_everything(run: Run) -> None:
    for name, export in exports().items():
        if name != "html":  # tests/formats/test_offline_page.py
            assert export.encode(run)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_kind_of_run_can_be_written_as_everything(run: Run) -> None:
    for export in exports().values():
        assert export.encode(run)


def test_formats_say_what_they_are() -> None:
    assert set(FORMATS.split(", ")) == set(exports()), "the list in `kernelviz export --help`"
    assert all(export.label for export in exports().values()), "what the list of formats on the pages shows"
    for export in exports().values():
        assert export.suffix.startswith(".")
        assert "/" in export.media_type


def test_csv_has_a_row_a_case_with_units_in_the_names_of_its_columns() -> None:
    lines = list(csv.DictReader(io.StringIO(text("csv", H200))))
    assert len(lines) == len(H200.results) == 40
    for line, result in zip(lines, in_plan_order(H200), strict=True):
        timing = result.outcome
        assert isinstance(timing, Timing)
        assert timing.device_cold_s is not None
        assert (line["variant"], line["m"], line["dtype"]) == (result.variant, str(result.problem.sizes["m"]), "bf16")
        assert float(line["time_s"]) == timing.device_cold_s.estimate
        shown = figure_of(timing, "cold")
        assert shown is not None
        assert float(line["time_low_s"]) == shown.low
        assert line["failure"] == ""
    failed = [line for line in csv.DictReader(io.StringIO(text("csv", RUNS["mixed"]))) if line["failure"] == "compile"]
    assert failed
    assert {line["time_s"] for line in failed} == {""}
    assert {line["failure_message"] for line in failed} == {"ptxas fatal: <b>too much</b> shared memory"}
    others = list(csv.DictReader(io.StringIO(text("csv", RUNS["nvbench"]))))
    assert float(others[0]["other_gpu_time_cold_s"]) == pytest.approx(6.4857e-3, rel=1e-4)


def test_csv_holds_no_formula() -> None:
    bad = Failure(stage="crash", message='=HYPERLINK("http://x")')
    run = samples.run([msgspec.structs.replace(samples.mixed().results[0], variant="@SUM(A1)", outcome=bad)])
    (line,) = csv.DictReader(io.StringIO(text("csv", run)))
    assert (line["variant"], line["failure_message"]) == ("'@SUM(A1)", '\'=HYPERLINK("http://x")')


def test_markdown_has_intervals_verdicts_and_trust() -> None:
    told = text("md", H200)
    rows = [line for line in told.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 40
    assert all(line.count("|") == rows[0].count("|") for line in rows)
    assert "95 % interval" in rows[0]
    assert sum("baseline" in line for line in rows) == 8
    assert re.search(r"▲ \d\.\d+× faster \(\d\.\d+–\d\.\d+\)", told)
    assert "✓ good ·" in told
    assert "kernelviz run rmsnorm --variants" in told
    mixed = text("md", RUNS["mixed"])
    assert "✕ does not compile" in mixed
    assert "`✕ triton_persistent does not compile: ptxas fatal: <b>too much</b> shared memory" in mixed


def test_markdown_shows_texts_as_texts() -> None:
    evil = '`x` | <img src=x onerror="y"> @everyone\n# heading'
    first = msgspec.structs.replace(samples.mixed().results[0], outcome=Failure(stage="crash", message=evil))
    run = msgspec.structs.replace(samples.run([first]), title=evil, note=evil)
    spans = re.compile(r"(`+)(?:(?!\1).|\1`)+?(?<!`)\1(?!`)")
    outside = [spans.sub("", line) for line in text("md", run).splitlines() if not line.startswith("    ")]
    assert not [line for line in outside if "<img" in line or "@everyone" in line or "# heading" in line]
    assert code("") == ""


def gbench(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text("gbench", run))
    return found


def test_google_benchmark_repetitions_are_blocks_and_aggregates_are_theirs() -> None:
    found = gbench(H200)
    name = "rmsnorm/triton_persistent/m:1024/n:131072/bf16"
    result = next(r for r in H200.results if r.variant == "triton_persistent" and r.problem.sizes["m"] == 1024)
    cold = result.outcome.device_cold_s if isinstance(result.outcome, Timing) else None
    assert cold is not None
    assert cold.blocks is not None
    entries = [b for b in found["benchmarks"] if b["run_name"] == name]
    single = [b for b in entries if b["run_type"] == "iteration"]
    assert [b["iterations"] for b in single] == [b.size for b in cold.blocks]
    assert [b["repetition_index"] for b in single] == list(range(len(cold.blocks)))
    means = [b["real_time"] for b in single]
    samples_ns = [s * 1e9 for s in cold.samples or ()]
    assert means[0] == pytest.approx(statistics.fmean(samples_ns[: cold.blocks[0].size]))
    told = {b["aggregate_name"]: b["real_time"] for b in entries if b["run_type"] == "aggregate"}
    assert told["median"] == cold.estimate * 1e9
    assert told["mean"] == pytest.approx(statistics.fmean(means))
    assert told["stddev"] == pytest.approx(statistics.stdev(means))
    assert told["cv"] == pytest.approx(told["stddev"] / told["mean"])


def test_what_has_no_time_is_no_time_of_zero_in_google_benchmark() -> None:
    found = gbench(RUNS["mixed"])
    assert all(b["real_time"] > 0 for b in found["benchmarks"])
    assert len(found["context"]["without_a_time"]) == 12
    assert found["context"]["without_a_time"]["rmsnorm/triton_persistent/m:131072/n:1024/bf16"].startswith("compile: ")


def test_google_benchmark_comes_back_with_every_case() -> None:
    (again,) = read(exports()["gbench"].encode(H200))
    headline = {(r.variant, tuple(r.problem.sizes.items())): r for r in again.results}
    assert len(headline) == len(again.results)
    for result in H200.results:
        key = (f"rmsnorm/{result.variant}/bf16", tuple(result.problem.sizes.items()))
        there = headline[key].outcome
        assert isinstance(there, Timing)
        assert isinstance(result.outcome, Timing)
        assert result.outcome.device_cold_s is not None
        assert there.other_times["real time"].estimate == pytest.approx(result.outcome.device_cold_s.estimate)


def test_nvbench_comes_back_with_every_case_and_reason() -> None:
    (again,) = read(exports()["nvbench"].encode(RUNS["mixed"]))
    assert len(again.results) == 30
    reasons = [str(describe_failure(r.outcome)) for r in again.results if isinstance(r.outcome, Failure)]
    assert len(reasons) == 12
    assert "skipped: compile: ptxas fatal: <b>too much</b> shared memory" in reasons
    for ours, there in zip(in_plan_order(RUNS["mixed"]), again.results, strict=True):
        assert there.variant == f"variant={ours.variant} dtype=bf16"
        if isinstance(ours.outcome, Timing) and isinstance(there.outcome, Timing):
            cold = ours.outcome.device_cold_s
            assert cold is not None
            mean = there.outcome.other_times["GPU time, cold"].estimate
            assert mean == pytest.approx(statistics.fmean(cold.samples or ()))


FOLDER = os.environ.get("KERNELVIZ_PEERS")
needs_peers = pytest.mark.skipif(not FOLDER, reason="KERNELVIZ_PEERS names no folder with the other tools' scripts")


def slower(run: Run, factor: float) -> Run:
    """The run with every device-cold time that many times as long."""

    def one(figure: Figure | None) -> Figure | None:
        if figure is None:
            return None
        times = tuple(s * factor for s in figure.samples or ())
        return msgspec.structs.replace(figure, estimate=figure.estimate * factor, samples=times)

    def changed(outcome: Any) -> Any:
        if not isinstance(outcome, Timing):
            return outcome
        return msgspec.structs.replace(outcome, device_cold_s=one(outcome.device_cold_s))

    results = tuple(msgspec.structs.replace(r, outcome=changed(r.outcome)) for r in run.results)
    return msgspec.structs.replace(run, results=results)


def script(where: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = Path(FOLDER or "") / where
    command = [os.environ.get("KERNELVIZ_PEERS_PYTHON", sys.executable), str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=path.parent, check=False)


def written(run: Run, name: str, target: Path) -> str:
    target.write_bytes(exports()[name].encode(run))
    return str(target)


@needs_peers
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_google_benchmarks_own_compare_reads_it(run: Run, tmp_path: Path) -> None:
    a, b = written(run, "gbench", tmp_path / "a.json"), written(slower(run, 1.1), "gbench", tmp_path / "b.json")
    done = script("benchmark/tools/compare.py", "--no-color", "benchmarks", a, b)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    names = {b["name"] for b in gbench(run)["benchmarks"]}
    printed = {words[0]: words[1] for line in done.stdout.splitlines() if len(words := line.split()) > 1}
    for name in names:
        assert name.split()[0] in printed
    if run is H200:
        change = printed["rmsnorm/triton_persistent/m:1024/n:131072/bf16_median"]
        assert float(change) == pytest.approx(0.1, abs=1e-4)


@needs_peers
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("tool", ["nvbench_compare.py", "nvbench_compare_robust.py"])
def test_nvbenchs_own_compare_reads_it(run: Run, tool: str, tmp_path: Path) -> None:
    a, b = written(run, "nvbench", tmp_path / "a.json"), written(slower(run, 1.1), "nvbench", tmp_path / "b.json")
    done = script(f"nvbench/python/scripts/{tool}", "--no-color", a, b)
    assert "Traceback" not in done.stderr, done.stderr
    timed = sum(isinstance(r.outcome, Timing) and r.outcome.device_cold_s is not None for r in run.results)
    if tool == "nvbench_compare.py":
        assert f"- Total Matches: {timed}" in done.stdout
        assert done.stdout.count("10.00%") >= timed
        assert done.returncode == timed, "it counts what changed by more than the noise"


def test_nan_is_nowhere() -> None:
    bad = Timing(
        device_cold_s=Figure(estimate=1e-6, samples=(1e-6,)), device_warm_s=Figure(estimate=2e-6, low=math.nan)
    )
    run = samples.run([msgspec.structs.replace(samples.mixed().results[0], outcome=bad)])
    for name in ("gbench", "nvbench", "json"):
        assert "NaN" not in text(name, run)
