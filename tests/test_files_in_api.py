"""Files from Python: every format is written by its ending, several runs of another tool are read, a store is backed up."""

from __future__ import annotations

from pathlib import Path

import peers
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz.api import Report
from kernelviz.bench import backup
from kernelviz.cli import main
from kernelviz.core.errors import BadField, DocumentError, UnknownName
from kernelviz.core.run import Run
from kernelviz.store import Store


@pytest.mark.parametrize("name", ["run.json", "run.parquet", "run", "run.other"])
def test_what_is_saved_is_loaded(tmp_path: Path, name: str) -> None:
    saved = Report.of(samples.mixed()).save(tmp_path / name)
    assert kv.load(saved) == Report.of(samples.mixed())
    assert (saved.read_bytes()[:4] == b"PAR1") == name.endswith(".parquet")


def test_the_format_is_that_of_the_ending_or_the_one_that_is_named(tmp_path: Path) -> None:
    report = Report.of(samples.mixed())
    assert report.save(tmp_path / "a.md").read_text().startswith("`rmsnorm")
    assert report.save(tmp_path / "a.nvbench.json").read_text().startswith('{\n  "meta"')
    assert report.save(tmp_path / "a.txt", to="csv").read_text().startswith("run,device,op,m,n,")
    with pytest.raises(UnknownName, match="did you mean 'parquet'"):
        report.save(tmp_path / "a", to="parkuet")


def test_a_file_of_another_tool_is_several_runs(tmp_path: Path) -> None:
    (tmp_path / "nv").write_bytes(peers.nvbench())
    reports = kv.load_all(tmp_path / "nv")
    assert len(reports) == 10
    assert isinstance(reports[0], Run)
    frame = reports[4].to_frame()
    assert frame["other_gpu_time_cold_s"].iloc[0] == pytest.approx(6.4857e-3, rel=1e-4)
    assert frame["time_s"].isna().all()
    with pytest.raises(DocumentError, match="it holds 10 runs"):
        kv.load(tmp_path / "nv")
    with pytest.raises(BadField, match="cannot be read"):
        kv.load_all(tmp_path / "nothing")


BACKUP = Path(__file__).parent.parent / "docs" / "h200-ladders.jsonl.gz"


def test_the_backup_that_a_command_opens_is_opened_in_python_too(tmp_path: Path) -> None:
    reports = kv.load_all(BACKUP)
    assert {report.environment.device.name for report in reports} == {"NVIDIA H200"}
    problems = {p.key for report in reports for p in report.plan.problems}
    assert {row.problem.key for row in kv.library_comparison(str(BACKUP))} == problems
    with pytest.raises(DocumentError, match=f"it holds {len(reports)} runs"):
        kv.load(BACKUP)
    (tmp_path / "cut.jsonl.gz").write_bytes(BACKUP.read_bytes()[:100_000])
    with pytest.raises(DocumentError, match="cannot be unpacked"):
        kv.load_all(tmp_path / "cut.jsonl.gz")


def test_a_backup_of_one_run_is_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(f"sqlite:///{tmp_path}/other.db")
    run = samples.mixed()
    store.runs.create(run)
    for name in ("one.jsonl", "one.jsonl.gz"):
        backup.write(store, tmp_path / name)
        assert kv.load(tmp_path / name).id == run.id
        assert main(["export", str(tmp_path / name), "--to", "md"]) == 0
        assert "rmsnorm" in capsys.readouterr().out
