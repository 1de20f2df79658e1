"""A file of a run that was measured before the first calibration: it has the shares of the roof that the pages show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_runs import H200_ROOFS, run

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.exported import encoded, with_roofs
from kernelviz.cli import main
from kernelviz.core import Roof, Run
from kernelviz.formats import digest, exports
from kernelviz.store import Store, StoreError
from kernelviz.text.report import describe_later_roofs
from tests import sample_runs as samples

LATER = tuple(replace(roof, measured_at="2026-12-24T18:30:00+00:00") for roof in H200_ROOFS)


@pytest.fixture
def bare() -> Run:
    return replace(run(roofs=()), id="bare", created_at="2026-12-24T10:00:00.000+00:00")


@pytest.fixture
def bench(tmp_path: Path, bare: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """One whose device was calibrated after the run."""

    def roofs_of(self: Bench, asked: Run) -> tuple[Roof, ...]:
        return asked.environment.roofs or LATER

    monkeypatch.setattr(Bench, "roofs_of", roofs_of)
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_what_is_derived_has_the_later_roofs_and_the_digest_of_the_stored_run(bench: Bench, bare: Run) -> None:
    compared = with_roofs(bench, bare)
    assert compared.environment.roofs == LATER
    assert digest(compared) != digest(bare)
    derived = {name for name, form in exports().items() if form.encode_with_roofs is not None}
    assert derived == {"html", "md", "csv"}
    for name, form in exports().items():
        data = encoded(bare, form, lambda: bench)
        assert (data == form.encode(bare)) == (name not in derived), name
        if name in derived:
            assert encoded(compared, form, lambda: bench) == form.encode(compared)
    # A table is that of the run with these roofs, to the last byte; a page differs in the digest, and says so.
    assert encoded(bare, exports()["csv"], lambda: bench) == exports()["csv"].encode(compared)
    for name, known in (("md", digest(bare)[:16]), ("html", digest(bare))):
        of_bare, of_compared = (
            encoded(bare, exports()[name], lambda: bench).decode(),
            exports()[name].encode(compared).decode(),
        )
        assert known in of_bare
        assert of_bare == of_compared.replace(digest(compared)[: len(known)], known)
        assert "The roofs were measured after the run, the last on 2026-12-24 18:30 UTC." in of_bare
        assert ("% of the measured roof" in of_bare) == (name == "md")


def test_roofs_of_before_the_run_are_no_news(bench: Bench) -> None:
    for known in (run(), run(roofs=tuple(replace(roof, measured_at="") for roof in H200_ROOFS))):
        assert "measured after the run" not in encoded(known, exports()["md"], lambda: bench).decode()


def test_some_roofs_of_after_the_run_are_said_to_be_some(bench: Bench, bare: Run) -> None:
    early, *late = LATER
    mixed = (replace(early, measured_at="2026-12-23T10:00:00+00:00"), *late)
    (text,) = describe_later_roofs(bare, mixed)
    assert str(text).startswith(
        f"{len(late)} of {len(mixed)} roofs were measured after the run, the last on 2026-12-24 18:30"
    )


def test_a_file_is_written_where_no_store_can_be(bare: Run) -> None:
    def without_store() -> Bench:
        raise StoreError("no folder")

    for name in ("md", "json"):
        assert encoded(bare, exports()[name], without_store) == exports()[name].encode(bare)


def test_the_command_and_the_method_write_the_same(
    bench: Bench, bare: Run, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    bench.history.take_in(exports()["json"].encode(bare))
    report = kv.load("bare")
    for name in ("md", "csv", "json"):
        assert main(["export", "bare", "--to", name]) == 0
        written = capsysbinary.readouterr().out
        saved = report.save(tmp_path / f"run.{name}").read_bytes()
        assert (
            written.rstrip(b"\n") == saved.rstrip(b"\n") == encoded(bare, exports()[name], lambda: bench).rstrip(b"\n")
        )
    assert json.loads(saved)["environment"]["roofs"] == []
