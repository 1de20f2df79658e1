"""A search knows small and capital letters of every script, not of ASCII alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_runs as samples

from kernelviz.store import Store


@pytest.mark.parametrize("word", ["größe", "GRÖSSE", "äöü", "ÄÖÜ", "ελληνικά", "длина", "add"])
def test_a_title_is_found(word: str, tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.runs.create(samples.run([], id="r1", title="ADD: Größe ÄÖÜ Ελληνικά ДЛИНА"))
    store.runs.create(samples.run([], id="r2", title="another"))
    found = [row.id for row in store.runs.rows(10, search=word)]
    counted = store.runs.count(search=word)
    none = store.runs.count(search="100%")
    store.close()
    assert found == ["r1"]
    assert (counted, none) == (1, 0)
