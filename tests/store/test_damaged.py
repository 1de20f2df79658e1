"""A damaged database: one bad row costs that row and is named; what is no database of ours stays as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import sample_inspections as inspections
import sample_runs as samples

from kernelviz import bench as use_cases
from kernelviz.bench import Bench, backup
from kernelviz.cli import main
from kernelviz.core import Failure, Run
from kernelviz.core.reasons import StoredResultDamaged
from kernelviz.store import DamagedRow, Store, StoreError

DAMAGE = {
    "result": "UPDATE results SET body = {rot} WHERE rowid = (SELECT MIN(rowid) FROM results WHERE run_id = 'r1')",
    "header": "UPDATE runs SET header = {rot} WHERE id = 'r1'",
    "roof": "UPDATE roofs SET body = {rot} WHERE id = 1",
    "inspection": "UPDATE inspections SET body = {rot}",
    "problem of a time": "UPDATE times SET problem = {rot} WHERE rowid = (SELECT MIN(rowid) FROM times WHERE run_id = 'r1')",
}
ROT = {
    "bytes in the middle": "CAST(substr({body}, 1, 20) || X'00FF13AA00FF13AA' || substr({body}, 29) AS BLOB)",
    "cut off": "substr({body}, 1, 40)",
    "another value": "CAST('[1, 2' AS BLOB)",
    "empty": "X''",
}


RUNS = 4


def run(number: int) -> Run:
    return samples.run(op="add", sizes=[{"n": 1024}, {"n": 2048}], dtype="fp32", id=f"r{number}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store of a few runs, with roofs and an inspection."""
    store = Store.open(tmp_path / "home")
    store.runs.create(*map(run, range(RUNS)))
    for roof in samples.H200_ROOFS[:2]:
        store.roofs.put(samples.H200.uuid, roof)
    store.inspections.put(inspections.right())
    store.close()
    return tmp_path / "home"


@pytest.fixture
def spoil(folder: Path) -> Callable[[str, str], Store]:
    def spoiled(kind: str, how: str) -> Store:
        column = {"header": "header", "problem of a time": "problem"}.get(kind, "body")
        connection = sqlite3.connect(folder / "kernelviz.db")
        changed = connection.execute(DAMAGE[kind].format(rot=ROT[how].format(body=column))).rowcount
        assert changed == 1
        connection.commit()
        connection.close()
        return Store.open(folder)

    return spoiled


@pytest.mark.parametrize(
    ("kind", "how"),
    [*(("result", how) for how in ROT), *((kind, "bytes in the middle") for kind in DAMAGE if kind != "result")],
)
def test_a_damaged_row_costs_that_row_and_the_backup_names_it(
    spoil: Callable[[str, str], Store], kind: str, how: str, tmp_path: Path
) -> None:
    store = spoil(kind, how)
    with closing(Bench(store, (samples.CPU,))) as bench:
        # Every other run opens as it was, and lists and trends work.
        for number in {*range(RUNS)} - {1}:
            assert bench.load(f"r{number}") == run(number)
        assert len(bench.runs(50)) == RUNS
        assert store.trends.times(samples.H200.uuid)
        assert len(store.trends.kernel_times(samples.H200.uuid, 30)) == (RUNS - 1 if kind == "header" else RUNS)
        if kind == "result":
            first, *others = bench.load("r1").results
            assert isinstance(first.outcome, Failure)
            assert first.outcome.reasons == (StoredResultDamaged(),)
            assert (first.case, *others) == (run(1).results[0].case, *run(1).results[1:])
        elif kind == "header":
            with pytest.raises(DamagedRow, match="run r1 cannot be read"):
                bench.load("r1")
        written = bench.history.back_up(tmp_path / "all.gz")
    assert written.damaged, "nothing is named"
    runs = RUNS - 1 if kind == "header" else RUNS
    assert written.lines[backup.RunLine] == runs
    assert written.lines[backup.RoofLine] == (1 if kind == "roof" else 2)
    assert written.lines.get(backup.InspectionLine, 0) == (0 if kind == "inspection" else 1)
    with closing(Bench(Store.open(tmp_path / "other"), (samples.CPU,))) as other:
        assert len(other.history.take_in_backup(tmp_path / "all.gz").ids) == runs


def test_two_rotten_rows_of_a_thousand_runs_cost_these_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32", shares={"torch_eager": 0.5})
    # Without the samples of a time, so that a thousand runs take a second.
    (result,) = (msgspec.structs.replace(one, outcome=Failure(stage="crash")) for one in sample.results)
    store = Store.open(tmp_path)
    store.runs.create(*(msgspec.structs.replace(sample, id=f"r{number}", results=(result,)) for number in range(1000)))
    store.close()
    with closing(sqlite3.connect(tmp_path / "kernelviz.db")) as connection, connection:
        connection.execute("UPDATE runs SET header = substr(header, 1, 40) WHERE id = 'r1'")
        connection.execute("UPDATE results SET body = substr(body, 1, 40) WHERE run_id = 'r2'")
    with closing(Bench(Store.open(tmp_path), (samples.CPU,))) as bench:
        monkeypatch.setattr(use_cases, "current", lambda: bench)
        assert main(["export", "--all", "--out", str(tmp_path / "all")]) == 0
        assert len(bench.runs(2000)) == 1000
    said = capsys.readouterr().err.splitlines()[1:]
    assert [line.partition(" cannot be read")[0] for line in said] == [
        "not in it: run r1",
        f"not in it: the result of {result.case.key} in run r2",
    ]
    written = {run.id: run.results for run in backup.runs(tmp_path / "all")}
    assert written.keys() == {f"r{number}" for number in range(1000)} - {"r1"}
    assert {run_id for run_id, results in written.items() if results != (result,)} == {"r2"}


def test_a_version_that_is_no_number_is_said(folder: Path) -> None:
    connection = sqlite3.connect(folder / "kernelviz.db")
    connection.execute("UPDATE meta SET value = 'banana' WHERE key = 'version'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="'banana', which is no number"):
        Store.open(folder)


def test_the_tables_of_a_newer_kernelviz_are_not_those_of_another_program(folder: Path) -> None:
    connection = sqlite3.connect(folder / "kernelviz.db")
    connection.execute("CREATE TABLE of_later (id TEXT)")
    connection.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="written by a newer kernelviz"):
        Store.open(folder)


@pytest.mark.parametrize("also_meta", [False, True])
def test_the_database_of_another_program_stays_as_it_is(tmp_path: Path, also_meta: bool) -> None:
    path = tmp_path / "kernelviz.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    if also_meta:
        connection.execute("CREATE TABLE meta (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=r"database of another program \(its tables: bookmarks.*nothing in it was changed"
    ):
        Store.open(tmp_path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["kernelviz.db"]
