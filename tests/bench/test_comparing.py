"""The use case behind the page Compare, `kernelviz compare` and `kernelviz.compare`: over a real store and files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import compared_runs as runs
import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench import Bench, comparison
from kernelviz.bench.comparison import compare, compare_stored, counterpart, newest_two, opened, record
from kernelviz.bench.roofline import offered
from kernelviz.core.errors import BadField, DocumentError, UnknownName, UnknownRun
from kernelviz.formats import encode
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    yield made
    made.close()


def test_stored_runs_and_their_files_compare_alike(bench: Bench, tmp_path: Path) -> None:
    a, b = runs.before(), runs.after({"triton_persistent": 1.05}, wrong="triton_persistent")
    for run in (a, b):
        bench.history.add(run)
        (tmp_path / f"{run.id}.json").write_bytes(encode(run))
    stored = compare_stored(bench, "before", "after")
    filed = compare(*(opened(bench, str(tmp_path / f"{name}.json")) for name in ("before", "after")))
    assert record(stored) == record(filed)
    assert stored.counts["slower"] == 5
    assert compare_stored(bench, "before", "after", l2="warm").headline == "warm"


def test_what_is_kept_at_hand_follows_the_runs(bench: Bench) -> None:
    bench.history.add(runs.before())
    bench.history.add(runs.after({"triton_persistent": 1.05}))
    first = compare_stored(bench, "before", "after")
    assert compare_stored(bench, "before", "after") is first
    bench.history.rename("after", "another name")
    assert compare_stored(bench, "before", "after").b.title == "another name"
    bench.history.delete("after")
    with pytest.raises(UnknownRun):
        compare_stored(bench, "before", "after")


def test_what_cannot_be_opened_is_named(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(DocumentError):
        opened(bench, str(tmp_path / "bad.json"))
    with pytest.raises(BadField, match="there is no such file"):
        opened(bench, str(tmp_path / "none.json"))
    with pytest.raises(UnknownRun):
        opened(bench, "never")
    with pytest.raises(UnknownName, match="did you mean 'warm'"):
        compare(runs.before(), runs.after(), l2="warn")


def test_a_run_is_held_against_the_one_of_its_op_before_it(bench: Bench) -> None:
    for number, day in enumerate(("20", "21", "23")):
        run = msgspec.structs.replace(runs.before(), id=f"r{number}", created_at=f"2026-11-{day}T11:00:00+00:00")
        bench.history.add(run)
    other = samples.run(id="add", op="add", sizes=[{"n": 8}], dtype="fp32", shares={"torch_eager": 1.0})
    bench.history.add(msgspec.structs.replace(other, created_at="2026-11-22T11:00:00+00:00"))
    known = list(offered(bench).values())
    assert counterpart(bench, "r2", known) == "r1"
    assert counterpart(bench, "r1", known) == "r0"
    assert counterpart(bench, "r0", known) == "r2", "nothing was before it"
    assert counterpart(bench, "add", known) == "h200-add"
    assert newest_two(known) == ("r1", "r2")
    assert newest_two([r for r in known if r.shipped]) is None
    assert comparison.variants(bench, "r0") == tuple(runs.VARIANTS)


def test_records_are_plain_values_in_base_units_worst_first() -> None:
    found = compare(runs.before(), runs.after({"triton_persistent": 1.05}, wrong="triton_persistent"))
    told = record(found)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    first, second = told["cases"][:2]
    assert (first["verdict"], first["ratio"], first["broken"], first["time_b_s"]) == (
        "not comparable",
        None,
        True,
        None,
    )
    assert second["ratio"] == pytest.approx(second["time_b_s"] / second["time_a_s"], rel=0.002)
    assert second["ratio_low"] < second["ratio"] < second["ratio_high"]
    assert told["summary"]["slower"] == 5
    assert told["summary"]["broken"] == 1
    assert told["summary"]["noise_cases"] == 12
    assert told["differences"] == []
    assert (told["a"]["run"], told["b"]["run"], told["l2"]) == ("before", "after", "cold")
