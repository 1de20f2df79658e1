"""A run that is longer than any document that is read is in a backup like every other, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_runs as samples

from kernelviz.bench import backup
from kernelviz.bench.history import History
from kernelviz.core.errors import DocumentError
from kernelviz.formats import document, encode
from kernelviz.store import Store

MOST_BYTES = 1000


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_a_run_above_the_limit_of_documents_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # Runs as long as the real limit take seconds to write.
    monkeypatch.setitem(document.decode.__kwdefaults__, "most_bytes", MOST_BYTES)
    monkeypatch.setattr(backup, "MAX_BYTES", MOST_BYTES, raising=False)
    there, here = Store.open(tmp_path / "there"), Store.open(tmp_path / "here")
    run = samples.run(id="big")
    try:
        there.runs.create(run)
        with pytest.raises(DocumentError, match="are not read"):
            document.decode(encode(run))
        History(there).back_up(tmp_path / name)
        assert [r.id for r in backup.runs(tmp_path / name)] == ["big"]
        assert History(here).take_in_backup(tmp_path / name).ids == ("big",)
        assert encode(here.runs.load("big")) == encode(there.runs.load("big"))
    finally:
        there.close()
        here.close()


def test_a_document_is_read_up_to_a_limit_or_without() -> None:
    data = encode(samples.run())
    assert document.decode(data, most_bytes=len(data)) == document.decode(data, most_bytes=None)
    with pytest.raises(DocumentError, match="are not read"):
        document.decode(data, most_bytes=len(data) - 1)
