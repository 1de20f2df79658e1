"""`kernelviz import` and `kernelviz export` over a real store: other tools' files, every format, backups."""

from __future__ import annotations

import json
from pathlib import Path

import peers
import pytest

from kernelviz.bench import Bench
from kernelviz.cli import main


def test_other_tools_files_are_imported_shown_and_exported(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "nv.txt").write_bytes(peers.nvbench())
    (tmp_path / "gb.txt").write_bytes(peers.gbench())
    assert main(["import", str(tmp_path / "nv.txt"), str(tmp_path / "gb.txt")]) == 0
    ids = capsys.readouterr().out.split()
    assert len(ids) == 11
    assert main(["runs", "show", ids[4]]) == 0
    printed = capsys.readouterr()
    assert "These times were measured by another tool" in printed.out
    assert next(line.split() for line in printed.out.splitlines() if line.lstrip().startswith("64 ")) == [
        "64", "64", "copy_sweep_grid_shape", "6.486", "ms", "6.480", "ms", "6.491", "ms",
    ]  # fmt: skip
    for suffix in ("parquet", "csv", "md", "html", "gbench.json", "nvbench.json", "json"):
        assert main(["export", ids[4], "-o", str(tmp_path / f"out.{suffix}")]) == 0
    assert (tmp_path / "out.parquet").read_bytes()[:4] == b"PAR1"
    assert (tmp_path / "out.csv").read_text().count("\n") == 10
    assert json.loads((tmp_path / "out.nvbench.json").read_text())["meta"]["version"]["json"]["string"] == "1.0.0"
    capsys.readouterr()
    assert main(["import", str(tmp_path / "out.parquet"), str(tmp_path / "out.json")]) == 0
    assert capsys.readouterr().out.split() == [ids[4], ids[4]], "the same facts are the same run"
    for arguments in (["runs", "show", "--samples", ids[4]], ["roofline", ids[4]], ["compare", ids[4], ids[5]]):
        assert main(arguments) in (0, 1, 2, 3)
        assert "Traceback" not in capsys.readouterr().err


def test_a_backup_of_everything_is_restored_by_import(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "nv.json").write_bytes(peers.nvbench())
    assert main(["import", str(tmp_path / "nv.json")]) == 0
    assert main(["export", "--all", "-o", str(tmp_path / "all.jsonl.gz")]) == 0
    assert (
        "10 runs, 0 roofs, 0 selftests, 0 inspections, 0 tunings, 0 workloads; `kernelviz import` restores it"
        in capsys.readouterr().err
    )
    for run in bench.history.find():
        bench.history.delete(run.id)
    assert main(["import", str(tmp_path / "all.jsonl.gz")]) == 0
    assert len(capsys.readouterr().out.split()) == bench.history.count() == 10
    (tmp_path / "cut.gz").write_bytes((tmp_path / "all.jsonl.gz").read_bytes()[:-100])
    assert main(["import", str(tmp_path / "cut.gz")]) == 2
    assert "cannot be unpacked" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export"], "name a run"),
        (["export", "--all"], "name a file"),
        (["export", "h200-add", "--all", "-o", "x"], "it writes everything"),
        (["export", "h200-add", "--to", "parqet"], "did you mean 'parquet'?"),
        (["export", "no-such-run"], "no run 'no-such-run' here"),
    ],
)
def test_what_cannot_be_exported_is_said(
    bench: Bench, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(arguments) == 2 or said.startswith("no run")
    assert said in capsys.readouterr().err
