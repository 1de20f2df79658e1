"""A whole store as one file: everything comes back elsewhere, twice changes nothing, and what is damaged keeps nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import sample_inspections
import sample_runs as samples
import sample_tunings as tunings

from kernelviz.bench import backup
from kernelviz.bench.history import History
from kernelviz.core.errors import BadField, DocumentError, KernelvizError
from kernelviz.core.run import Run
from kernelviz.core.selftest import Check, Selftest
from kernelviz.formats import encode, read
from kernelviz.store import Store

Made = tuple[Store, History]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Made]]:
    stores: list[Store] = []

    def one(name: str) -> Made:
        stores.append(Store.open(tmp_path / name))
        return stores[-1], History(stores[-1])

    yield one
    for store in stores:
        store.close()


def run(number: int, **changes: object) -> Run:
    made = samples.run(id=f"r{number}", title=f"number {number}", shares={"torch_eager": 0.5})
    return msgspec.structs.replace(made, created_at=f"2026-11-{number:02d}T10:00:00+00:00", **changes)


SELFTEST = Selftest(
    id="s1",
    created_at="2026-11-21T10:00:00+00:00",
    environment=samples.run().environment,
    checks=(Check(name="a", question="?", passed=True),),
)


def filled(made: Made) -> None:
    store, history = made
    store.runs.create(run(1, note="a <b>note</b>"), owner="somebody")
    store.runs.create(samples.mixed())
    store.runs.create(run(2))
    history.delete("r2")
    for roof in samples.H200_ROOFS:
        store.roofs.put(samples.H200.uuid, roof)
    store.selftests.put(SELFTEST)
    store.inspections.put(sample_inspections.wrong_tile())
    store.tunings.put(tunings.tuning())


def contents(made: Made) -> object:
    store = made[0]
    rows = [*store.runs.rows(99), *store.runs.rows(99, deleted=True)]
    return (
        [(r.id, r.title, r.note, r.owner, r.status, r.deleted_at, encode(store.runs.load(r.id))) for r in rows],
        store.roofs.every(),
        list(store.selftests.every()),
        list(store.inspections.every()),
        store.tunings.find(),
    )


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_everything_comes_back_and_twice_changes_nothing(
    make: Callable[[str], Made], tmp_path: Path, name: str
) -> None:
    there, here = make("there"), make("here")
    filled(there)
    written = there[1].back_up(tmp_path / name)
    assert written.counts == "3 runs, 4 roofs, 1 selftest, 1 inspection, 1 tuning, 0 workloads"
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert backup.recognised(tmp_path / name)
    for _ in range(2):
        restored = here[1].take_in_backup(tmp_path / name)
        assert (restored.counts, set(restored.ids)) == (written.counts, {"r1", "r2", "mixed"})
        assert contents(here) == contents(there)
    assert [r.id for r in here[1].deleted()] == ["r2"]


def test_a_run_of_other_facts_under_the_same_id_stays_beside(make: Callable[[str], Made], tmp_path: Path) -> None:
    there, here = make("there"), make("here")
    filled(there)
    here[0].runs.create(run(1, results=()))
    there[1].back_up(tmp_path / "b")
    ids = here[1].take_in_backup(tmp_path / "b").ids
    assert "r1" not in ids
    assert here[1].load("r1").results == ()
    assert here[1].count() == 3


def test_the_readme_of_a_backup_is_the_file_itself(make: Callable[[str], Made], tmp_path: Path) -> None:
    there = make("there")
    filled(there)
    there[1].back_up(tmp_path / "b")
    lines = [json.loads(line) for line in (tmp_path / "b").read_text().splitlines()]
    assert lines[0]["schema"] == "kernelviz-backup/3"
    assert [line["kind"] for line in lines[1:]] == ["run"] * 3 + ["roof"] * 4 + [
        "selftest",
        "inspection",
        "tuning",
        "end",
    ]
    assert read(json.dumps(lines[1]["run"]))[0].id in ("r1", "mixed", "r2")
    with pytest.raises(DocumentError, match="a backup of a whole store"):
        there[1].take_in_all((tmp_path / "b").read_bytes())


def test_a_backup_of_an_earlier_version_is_read(make: Callable[[str], Made], tmp_path: Path) -> None:
    there, here = make("there"), make("here")
    filled(there)
    there[1].back_up(tmp_path / "b")
    lines = (tmp_path / "b").read_bytes().splitlines(keepends=True)
    older = [lines[0].replace(b"backup/3", b"backup/1"), *(x for x in lines[1:-1] if b'"kind":"tuning"' not in x)]
    end = json.dumps({"kind": "end", "lines": len(older) - 1, "sha256": hashlib.sha256(b"".join(older)).hexdigest()})
    (tmp_path / "b").write_bytes(b"".join(older) + end.encode() + b"\n")
    assert (
        here[1].take_in_backup(tmp_path / "b").counts
        == "3 runs, 4 roofs, 1 selftest, 1 inspection, 0 tunings, 0 workloads"
    )


def test_a_tuning_that_is_newer_here_stays(make: Callable[[str], Made], tmp_path: Path) -> None:
    there, here = make("there"), make("here")
    there[0].tunings.put(tunings.tuning(block=64, created_at="2026-11-20T10:00:00+00:00"))
    there[1].back_up(tmp_path / "b")
    newer = tunings.tuning(block=512, created_at="2026-11-21T10:00:00+00:00")
    here[0].tunings.put(newer)
    here[1].take_in_backup(tmp_path / "b")
    assert here[0].tunings.find() == (newer,)


def test_a_damaged_backup_keeps_nothing(make: Callable[[str], Made], tmp_path: Path) -> None:
    there, here = make("there"), make("here")
    filled(there)
    there[1].back_up(tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    lines = whole.splitlines(keepends=True)
    packed = gzip.compress(whole)
    damaged = {
        b"".join(lines[:-1]): "cut off",
        whole[: len(whole) // 2]: "line",
        packed[: len(packed) // 2]: "cannot be unpacked",
        b"".join((lines[0], lines[2], *lines[3:])): "changed since it was written",
        whole.replace(b"number 1", b"number 7"): "changed since it was written",
        whole + b"{}\n": "changed since it was written",
        whole.replace(b"kernelviz-backup/3", b"kernelviz-backup/4"): "update kernelviz",
        whole.replace(b'"kind":"roof"', b'"kind":"rof"', 1): "line 5: .*rof",
        whole.replace(b'"variant":"torch_eager"', b'"variant":"torch_eagle"', 1): r"line \d: \$.results\[\d\].variant",
    }
    for data, words in damaged.items():
        (tmp_path / "d").write_bytes(data)
        with pytest.raises(DocumentError, match=words):
            here[1].take_in_backup(tmp_path / "d")
        assert (here[1].count(), here[0].roofs.every()) == (0, ())
    for cut in range(0, len(whole), 9973):
        (tmp_path / "d").write_bytes(whole[:cut])
        with pytest.raises(KernelvizError):
            here[1].take_in_backup(tmp_path / "d")
    assert here[1].count() == 0


def test_a_place_that_cannot_be_written_is_named(make: Callable[[str], Made], tmp_path: Path) -> None:
    with pytest.raises(BadField, match="cannot be written"):
        make("there")[1].back_up(tmp_path / "no" / "where")
    with pytest.raises(BadField, match="cannot be read"):
        backup.recognised(tmp_path / "nothing")


def test_it_holds_one_run_at_a_time(make: Callable[[str], Made], tmp_path: Path) -> None:
    there, here = make("there"), make("here")
    big = samples.run(id="big")
    for number in range(20):
        there[0].runs.create(msgspec.structs.replace(big, id=f"big{number}", title=str(number)))
    one = len(encode(big))
    for work in (lambda: there[1].back_up(tmp_path / "b.gz"), lambda: here[1].take_in_backup(tmp_path / "b.gz")):
        tracemalloc.start()
        work()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 15 * one, f"{peak / one:.1f} runs of 20 in memory at once"
