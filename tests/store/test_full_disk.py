"""A store on a full disk or in a read-only folder can be read and says why nothing is stored; it stores when there is room."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import full_disk
import pytest
import sample_runs as samples

from kernelviz.core import Run
from kernelviz.store import NotStored, Store

RUNS = 3


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("full")
    return {**full_disk.answers(everything, folder), "folder": str(folder)}


def everything(folder: Path) -> dict[str, Any]:
    answers = {}
    for function in (
        opened, killed_then_opened, filled_and_freed, read_while_another_writes, read_only_with_a_log, new_on_a_full_disk,
    ):  # fmt: skip
        home = Path(folder, function.__name__)
        with closing(Store.open(home)) as store:
            store.runs.create(*(run(f"r{i}") for i in range(RUNS)))
        answers[function.__name__] = function(home)
        full_disk.free()
    return answers


def run(run_id: str) -> Run:
    return samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32", id=run_id)


def _opened(folder: Path) -> dict[str, Any]:
    with closing(Store.open(folder)) as store, closing(Store.open(folder)) as second:
        said = store.unwritable
        try:
            store.runs.set_title_or_note("r0", title="other")
            refused = ""
        except NotStored as error:
            refused = str(error)
        return {
            "runs": [row.id for row in store.runs.rows(9)],
            "cases": [len(store.runs.load(row.id).results) for row in second.runs.rows(9)],
            "kind": said and said.kind,
            "refused": refused,
        }


def opened(folder: Path) -> dict[str, Any]:
    full_disk.fill()
    return _opened(folder)


def _write_and_die(folder: Path) -> None:
    """A process stores a run and ends at once: the run is in the log only, and the index of the log is missing."""
    pid = os.fork()
    if not pid:
        store = Store.open(folder)
        store.runs.create(run("in_the_log"))
        os._exit(0)
    os.waitpid(pid, 0)
    (folder / "kernelviz.db-shm").unlink()


def killed_then_opened(folder: Path) -> dict[str, Any]:
    """Opened while its log holds transactions that are not in the database's file yet."""
    _write_and_die(folder)
    full_disk.fill()
    return _opened(folder)


def filled_and_freed(folder: Path) -> list[object]:
    full_disk.fill()
    with closing(Store.open(folder)) as store:
        seen: list[object] = [store.unwritable is not None]
        full_disk.free()
        store.runs.set_title_or_note("r0", title="stored again")
        seen += [store.unwritable is None, store.runs.row("r0").title]
        full_disk.fill()
        try:
            store.runs.create(run("lost"))
        except NotStored:
            seen += [store.unwritable is not None, [row.id for row in store.runs.rows(9)]]
        full_disk.free()
        store.runs.set_title_or_note("r1", title="and again")
        return [*seen, store.unwritable is None]


def read_while_another_writes(folder: Path) -> list[object]:
    """A store that was opened on a full disk sees what another process stores when there is room again."""
    full_disk.fill()
    with closing(Store.open(folder)) as store:
        seen: list[object] = [len(store.runs.rows(9))]
        pid = os.fork()
        if not pid:
            full_disk.free()
            other = Store.open(folder)
            other.runs.create(run("of_another"))
            os._exit(0)
        os.waitpid(pid, 0)
        return [*seen, len(store.runs.rows(9))]


def read_only_with_a_log(folder: Path) -> dict[str, Any]:
    """Opened in a folder in which this user may not write, after a process that wrote was killed. root may write anywhere."""
    _write_and_die(folder)
    with tempfile.TemporaryDirectory() as name:
        there = Path(name, "runs")
        shutil.copytree(folder, there)
        for path in (*there.iterdir(), there, there.parent):
            path.chmod(0o555 if path.is_dir() else 0o444)
        user = os.geteuid()
        if user == 0:
            os.setresuid(65534, 65534, 0)
        try:
            answer = _opened(there) | {"left": [path.name for path in there.iterdir() if "db" in path.name]}
            return answer | {"copies": _copies_of_killed_processes(there)}
        finally:
            os.setresuid(user, user, user)
            there.parent.chmod(0o755)
            there.chmod(0o755)


def _copies_of_killed_processes(folder: Path) -> list[int]:
    """The number of temporary copies of two processes that read the database, and at a start after each of them was killed."""
    counts, children = list[int](), list[int]()
    with tempfile.TemporaryDirectory() as temporary:
        before, tempfile.tempdir = tempfile.tempdir, temporary
        try:
            for _ in range(2):
                read, write = os.pipe()
                if not (pid := os.fork()):
                    store = Store.open(folder)
                    os.write(write, b"opened")
                    signal.pause()
                children.append(pid)
                os.close(write)
                os.read(read, 6)
            counts.append(len([*Path(temporary).iterdir()]))
            for pid in children:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                with closing(Store.open(folder)) as store:
                    store.runs.count()
                del store
                gc.collect()  # This process's own copy goes with its last connection.
                counts.append(len([*Path(temporary).iterdir()]))
        finally:
            tempfile.tempdir = before
    return counts


def new_on_a_full_disk(folder: Path) -> str:
    full_disk.fill()
    try:
        Store.open(folder / "new")
    except NotStored as error:
        return str(error)
    return ""


def test_a_full_disk_costs_no_run_and_says_why_nothing_is_stored(answers: dict[str, Any]) -> None:
    answer = answers["opened"]
    assert sorted(answer["runs"]) == ["r0", "r1", "r2"]
    assert answer["cases"] == [len(run("r").results)] * RUNS
    assert answer["kind"] == "store_refuses"
    assert "nothing can be stored in" in answer["refused"]
    assert "kernelviz.db" in answer["refused"]


def test_what_a_killed_process_had_stored_is_read_from_a_full_disk(answers: dict[str, Any]) -> None:
    answer = answers["killed_then_opened"]
    assert sorted(answer["runs"]) == ["in_the_log", "r0", "r1", "r2"]
    assert answer["kind"] == "store_refuses"
    with closing(Store.open(Path(answers["folder"], "killed_then_opened"))) as store:
        assert store.unwritable is None
        assert len(store.runs.rows(9)) == RUNS + 1


def test_a_store_stores_again_when_there_is_room(answers: dict[str, Any]) -> None:
    assert answers["filled_and_freed"] == [True, True, "stored again", True, ["r2", "r1", "r0"], True]


def test_a_store_of_a_full_disk_sees_what_others_store_later(answers: dict[str, Any]) -> None:
    assert answers["read_while_another_writes"] == [RUNS, RUNS + 1]


def test_what_a_killed_process_had_stored_is_read_in_a_read_only_folder(answers: dict[str, Any]) -> None:
    answer = answers["read_only_with_a_log"]
    assert sorted(answer["runs"]) == ["in_the_log", "r0", "r1", "r2"]
    assert answer["cases"] == [len(run("r").results)] * (RUNS + 1)
    assert answer["kind"] == "store_read_only"
    assert "nothing can be stored in" in answer["refused"]
    assert sorted(answer["left"]) == ["kernelviz.db", "kernelviz.db-wal"]
    assert answer["copies"] == [2, 1, 0], (
        "a copy is used while its process lives, and removed at the next start after that"
    )


def test_a_new_store_cannot_be_made_on_a_full_disk(answers: dict[str, Any]) -> None:
    assert "nothing can be stored in" in answers["new_on_a_full_disk"]
