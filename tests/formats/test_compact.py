"""The compact form of recorded runs: everything that is shown of a run stays the same, and a damaged file is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_figures as figures
import sample_runs as samples
from msgspec.structs import replace
from rehearsed_bench import RehearsedBench

from kernelviz.bench import recording
from kernelviz.core import DocumentError, Run, Timing
from kernelviz.formats import compact, document, shipped_runs
from kernelviz.metrics.insight import insight
from kernelviz.metrics.quality import quality
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.metrics.winner import winners
from kernelviz.text import describe_quality, format_time, format_verdict


def shown(run: Run) -> list[tuple[object, ...]]:
    """Times with intervals, verdicts, quality and winners of a run, as text."""
    listed: list[tuple[object, ...]] = []
    for headline in ("cold", "warm"):
        table = rows(run, run.environment.roofs, headline)
        for row in table:
            graded = quality(row.result, headline, run.method.clock)
            times = tuple(
                str(format_time(f)) for f in (row.result.timing.figures.values() if row.result.timing else ())
            )
            said = (
                str(format_time(row.figure)) if row.figure else None,
                str(format_verdict(row.verdict)) if row.verdict else None,
                f"{row.speed_up:.4g}" if row.speed_up else None,
                f"{row.efficiency:.4g}" if row.efficiency else None,
                graded and (graded.level, str(describe_quality(graded))),
            )
            listed.append((row.result.case.key, *times, *said))
        listed += [(w.problem.key, w.names) for w in winners(table, headline)]
    table = rows(run, run.environment.roofs)
    total = summary(table)
    assert total is None or total.fastest
    return [*listed, (insight(table) is None,)]


@pytest.mark.parametrize("name", ["h200-softmax", "h200-matmul", "h200-rmsnorm"])
def test_what_is_shown_of_a_recorded_run_stays_the_same(name: str) -> None:
    run = shipped_runs.load(name)
    data = compact.encode(run)
    back = compact.decode(data)
    assert shown(back) == shown(run)
    assert len(data) < 1650 * len(run.results)
    assert compact.encode(back) == data, "the second time loses nothing"
    for before, after in zip(run.results, back.results, strict=True):
        assert isinstance(before.outcome, Timing)
        for field, figure in before.outcome.figures.items():
            other = getattr(after.outcome, field)
            assert (other.estimate, other.low, other.high) == (figure.estimate, figure.low, figure.high)
            assert other.samples == pytest.approx(figure.samples, abs=0.6e-12)
            assert [b.round for b in other.blocks] == [b.round for b in figure.blocks or ()]


@pytest.mark.parametrize("run", [samples.mixed(), figures.run(), samples.run([])], ids=["mixed", "figures", "empty"])
def test_any_run_can_be_compact(run: Run) -> None:
    back = compact.decode(compact.encode(run))
    assert [r.case for r in back.results] == [r.case for r in run.results]
    assert replace(back, results=()) == replace(document.decode(document.encode(run)), results=())
    assert shown(back) == shown(run)


def test_a_damaged_file_is_refused() -> None:
    data = compact.encode(samples.run())
    for wrong in (b"", b"KVZ1", data[: len(data) // 2], b"gzip" + data[4:], data[:-3]):
        with pytest.raises(DocumentError):
            compact.decode(wrong)


def test_a_recording_is_written_once_with_its_indices(tmp_path: Path) -> None:
    bench = RehearsedBench((replace(samples.CPU, name="Intel(R) Xeon(R)"), samples.H200))
    assert recording.name_of(bench, "add", "cpu") == "intel-r-xeon-r-add"
    assert recording.missing(bench, ["add", "copy"], "cuda:0", tmp_path) == ("add", "copy")
    recording.write(figures.run(), recording.name_of(bench, "add", "cuda:0"), tmp_path)
    assert recording.missing(bench, ["add", "copy"], "cuda:0", tmp_path) == ("copy",)
    (tmp_path / "h200-add.kvz").unlink()
    plan = recording.plan_of(bench, "add", "cuda:0")
    assert {v.name for v in bench.ops()["add"].variants if not v.only_when_named} == {*plan.variants}
    assert recording.write(figures.run(), "h200-own", tmp_path) == (tmp_path / "h200-own.kvz").stat().st_size
    recording.write_indices(tmp_path)
    assert shipped_runs.names_in(tmp_path) == ("h200-own",)
    assert shipped_runs.load_from(tmp_path, "h200-own").id == "h200-own"
    assert b'"h200-own"' in (tmp_path / "index.json").read_bytes()
    assert b'"h200-own"' in (tmp_path / "gallery.json").read_bytes()
