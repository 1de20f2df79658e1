"""Stored runs: found, named, deleted and brought back, taken in once, and those that ship with the package."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench.history import RESTORABLE_DAYS, TITLE_CHARACTERS, History
from kernelviz.core.errors import BadField, DocumentError, UnknownRun
from kernelviz.core.run import Run
from kernelviz.formats import decode, encode, shipped_runs
from kernelviz.store import Store, StoreError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(tmp_path)
    yield made
    made.close()


@pytest.fixture
def history(store: Store) -> History:
    return History(store)


def run(number: int, **changes: object) -> Run:
    made = samples.run(id=f"r{number}", title=f"number {number}", shares={"torch_eager": 0.5})
    return msgspec.structs.replace(made, created_at=f"2026-11-{number:02d}T10:00:00+00:00", **changes)


def test_runs_are_found_by_words_of_title_note_op_device_and_status(store: Store, history: History) -> None:
    for number in range(1, 6):
        store.runs.create(run(number))
    history.annotate("r2", "after the 100 % change")
    assert [r.id for r in history.find()] == ["r5", "r4", "r3", "r2", "r1"]
    assert [r.id for r in history.find("NUMBER 3")] == ["r3"]
    assert [r.id for r in history.find("rmsnorm h200 100 %")] == ["r2"]
    assert history.find("1_0") == ()  # no wildcard of SQL
    assert [r.id for r in history.find(limit=2, offset=2)] == ["r3", "r2"]
    assert (history.count(), history.count("finished"), history.count("nothing")) == (5, 5, 0)


def test_title_and_note_are_changed_and_limited(store: Store, history: History) -> None:
    store.runs.create(run(1))
    history.rename("r1", "  two\nlines ")
    history.annotate("r1", "  first\nsecond  ")
    found = history.summary("r1")
    assert (found.title, found.note) == ("two lines", "first\nsecond")
    with pytest.raises(BadField, match="title"):
        history.rename("r1", "x" * (TITLE_CHARACTERS + 1))
    assert history.summary("r1").title == "two lines"
    with pytest.raises(UnknownRun):
        history.rename("r2", "x")


def test_a_deleted_run_is_gone_until_it_is_restored(store: Store, history: History) -> None:
    store.runs.create(run(1))
    before = history.load("r1")
    history.delete("r1")
    assert history.find() == ()
    assert [r.id for r in history.deleted()] == ["r1"]
    with pytest.raises(UnknownRun):
        history.load("r1")
    history.restore("r1")
    assert history.load("r1") == before
    assert history.deleted() == ()


def test_a_run_that_is_measured_cannot_be_deleted(store: Store, history: History) -> None:
    store.runs.create(run(1, status="running"))
    with pytest.raises(StoreError, match="cancel it"):
        history.delete("r1")
    assert history.count() == 1


def test_what_was_deleted_long_ago_is_removed_with_its_results(store: Store, history: History) -> None:
    for number in (1, 2):
        store.runs.create(run(number))
    store.runs.set_deleted("r1", (datetime.now(UTC) - timedelta(days=RESTORABLE_DAYS + 1)).isoformat())
    history.delete("r2")
    assert history.purge() == ["r1"]
    assert [r.id for r in history.deleted()] == ["r2"]
    assert store.results.after("r1", 0) == []


def test_a_document_is_taken_in_once_and_comes_back_when_it_was_deleted(history: History) -> None:
    data = encode(run(1))
    assert [history.take_in(data), history.take_in(data)] == ["r1", "r1"]
    assert history.document("r1") == data
    history.delete("r1")
    assert history.take_in(data) == "r1"
    assert history.count() == 1


def test_other_facts_under_a_taken_id_get_an_id_of_their_own(history: History) -> None:
    history.take_in(encode(run(1)))
    other = encode(run(1, results=()))
    new = history.take_in(other)
    assert new.startswith("r1-")
    assert history.take_in(other) == new
    assert (len(history.load("r1").results), len(history.load(new).results)) == (6, 0)


@pytest.mark.parametrize("name", ["", "../../x", "a b", "<script>", "x" * 200, "ü"])
def test_an_id_that_no_address_can_hold_is_replaced(history: History, name: str) -> None:
    run_id = history.take_in(encode(run(1, id=name)))
    assert re.fullmatch(r"[A-Za-z0-9._-]{8,80}", run_id)
    assert history.load(run_id).title == "number 1"


def test_files_that_a_document_names_are_never_imported(history: History) -> None:
    made = run(1)
    foreign = msgspec.structs.replace(made, plan=msgspec.structs.replace(made.plan, plugins=("/tmp/evil.py",)))
    assert history.load(history.take_in(encode(foreign))).plan.plugins == ()
    assert history.count() == 1
    assert history.take_in(encode(foreign)) == "r1"


def test_a_refused_document_names_the_field_and_keeps_nothing(history: History) -> None:
    document = json.loads(encode(run(1)))
    document["results"][2]["outcome"]["device_cold_s"]["samples"][1] = -1.0
    with pytest.raises(DocumentError) as refused:
        history.take_in(json.dumps(document))
    assert refused.value.path == "$.results[2].outcome.device_cold_s.samples[1]"
    with pytest.raises(DocumentError, match="newer kernelviz"):
        history.take_in(json.dumps({**document, "schema": "kernelviz/3"}))
    assert history.count() == 0


def test_shipped_runs_are_opened_and_never_changed(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r9.json.gz").write_bytes(shipped_runs.packed(run(9)))
    assert gzip.decompress((tmp_path / "r9.json.gz").read_bytes()) == encode(run(9))
    monkeypatch.setattr(shipped_runs, "_FOLDER", tmp_path)
    shipped_runs.read_again()
    try:
        assert [(r.id, r.shipped) for r in history.shipped()] == [("r9", True)]
        assert history.load("r9") == run(9)
        for change in (lambda: history.rename("r9", "x"), lambda: history.delete("r9")):
            with pytest.raises(BadField, match="came with the package"):
                change()
        assert history.take_in(encode(run(9))) == "r9"
        assert history.count() == 0
    finally:
        monkeypatch.undo()
        shipped_runs.read_again()


WITHOUT_ROOFS = {"h200-linear_gelu-code"}
"""Recorded on a machine whose roofs had not been calibrated."""


def test_what_ships_with_the_package_can_be_read() -> None:
    """Also as a document from elsewhere is, which is checked in full."""
    for name in shipped_runs.names():
        found = shipped_runs.load(name)
        assert found.id == name
        assert decode(encode(found)) == found
        assert found.status == "finished"
        assert found.environment.roofs or name in WITHOUT_ROOFS
        assert shipped_runs.lines()[name] == shipped_runs.line_of(found)
    assert (shipped_runs._FOLDER / "index.json").read_bytes() == shipped_runs.packed_index(
        map(shipped_runs.load, shipped_runs.names_in(shipped_runs.folder()))
    )
