"""Fifty processes that are killed while they write: the database stays whole, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import full_disk
import msgspec
import sample_runs as samples

from kernelviz.store import Store

KILLS = 50
MOST_WRITES = 2
SAMPLE = samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32")


def killed_writers(folder: Path) -> dict[str, Any]:
    Store.open(folder).close()
    chosen = random.Random(0)
    acknowledged: list[str] = []
    verdicts: set[str] = set()
    for number in range(KILLS):
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            _write(folder, number, write)
        os.close(write)
        with os.fdopen(read) as answers:
            acknowledged += [answers.readline().strip() for _ in range(chosen.randint(1, MOST_WRITES))]
            os.kill(pid, signal.SIGKILL)  # somewhere in the next write
            acknowledged += answers.read().split()
        os.waitpid(pid, 0)
        if number % 10 == 9:  # not after each, so that others begin with what the killed one left
            with closing(sqlite3.connect(folder / "kernelviz.db")) as connection:
                verdicts |= {str(row[0]) for row in connection.execute("PRAGMA integrity_check")}
    with closing(Store.open(folder)) as store:
        lost = [run_id for run_id in acknowledged if len(store.runs.load(run_id).results) != len(SAMPLE.results)]
        return {
            "acknowledged": len(acknowledged),
            "verdicts": sorted(verdicts),
            "lost": lost,
            "damaged": store.damaged,
            "half": [row.id for row in store.runs.rows(10**6) if row.done not in (0, len(SAMPLE.results))],
        }


def _write(folder: Path, number: int, acknowledge: int) -> None:
    """Store runs without end. The id of each goes into the pipe when it is stored."""
    store = Store.open(folder)
    for i in count():
        run_id = f"w{number}-{i}"
        store.runs.create(msgspec.structs.replace(SAMPLE, id=run_id, results=()))
        store.results.put(run_id, list(enumerate(SAMPLE.results)))
        os.write(acknowledge, f"{run_id}\n".encode())


def test_fifty_killed_writers_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    answer = full_disk.answers(killed_writers, tmp_path)
    assert answer["verdicts"] == ["ok"]
    assert answer["acknowledged"] >= KILLS
    # The results of a run are one transaction: all of them are stored, or none.
    assert (answer["lost"], answer["damaged"], answer["half"]) == ([], [], [])
