"""The trust line is told in every document and stored in none; selftests that ship with the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz.core.result import Failure
from kernelviz.formats import decode, digest, encode, shipped_runs
from kernelviz.text.quality import describe_quality_of


@pytest.mark.parametrize("run", [figures.run(), samples.mixed(), samples.run([])], ids=["figures", "mixed", "empty"])
def test_each_time_has_its_line_and_nothing_else_changes(run) -> None:  # type: ignore[no-untyped-def]
    written = encode(run)
    assert decode(written) == run
    assert encode(decode(written)) == written
    for told, result in zip(json.loads(written)["results"], run.results, strict=True):
        lines = {h: str(describe_quality_of(result, h, run.method.clock)) for h in ("cold", "warm")}
        assert told["trust"] == {h: line for h, line in lines.items() if line != "not timed"}
        assert bool(told["trust"]) is not (isinstance(result.outcome, Failure) and result.outcome.timing is None)


def test_what_a_document_says_of_trust_is_no_fact() -> None:
    """An edit of the line changes nothing that is read, and no digest."""
    document = json.loads(encode(figures.run()))
    for result in document["results"]:
        result["trust"] = {"cold": "✓ good, believe me"}
    edited = decode(json.dumps(document))
    assert edited == figures.run()
    assert digest(edited) == digest(figures.run())
    assert "believe me" not in encode(edited).decode()
    for result in document["results"]:
        result["trust"] = 7
    assert decode(json.dumps(document)) == figures.run()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(shipped_runs, "_FOLDER", tmp_path)
    shipped_runs.read_again()
    shipped_runs.selftests.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    shipped_runs.read_again()
    shipped_runs.selftests.cache_clear()


def test_a_shipped_selftest_is_found_and_is_no_run(folder: Path) -> None:
    assert shipped_runs.selftests() == ()
    shipped_runs.selftests.cache_clear()
    (folder / "selftest-h200.json.gz").write_bytes(shipped_runs.packed_selftest(figures.selftest()))
    (folder / "h200-add.json.gz").write_bytes(shipped_runs.packed(samples.run(id="h200-add")))
    assert shipped_runs.selftests() == (figures.selftest(),)
    assert shipped_runs.names() == ("h200-add",)


def test_without_the_folder_there_is_none(folder: Path) -> None:
    folder.rmdir()
    assert (shipped_runs.names(), shipped_runs.selftests()) == ((), ())


def test_those_that_ship_can_be_read_and_none_failed() -> None:
    for made in shipped_runs.selftests():
        assert made.timeline is not None
        assert not made.failed
