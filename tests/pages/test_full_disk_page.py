"""The pages where nothing can be stored: they say so and why, and they still show every run."""

from __future__ import annotations

import pytest
import sample_runs as samples
from open_page import open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench
from kernelviz.core.notices import Notice
from kernelviz.store import NotStored, Store

FULL = Notice("store_full", {"database": "runs.db", "error": "database or disk is full"}, "disk", "error")
SAID = "nothing can be stored in runs.db, because its disk is full"


@pytest.fixture
def full_bench(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench.history.add(samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32", id="r1", title="my run"))

    def refuse(*arguments: object, **options: object) -> None:
        raise NotStored(FULL)

    monkeypatch.setattr(Store, "unwritable", FULL)
    monkeypatch.setattr(bench, "run", refuse)
    return bench


def errors(test: AppTest) -> str:
    return "\n".join(str(error.value) for error in test.error)


@pytest.mark.usefixtures("full_bench")
def test_history_says_it_and_lists_the_runs() -> None:
    test = open_page({}, "history")
    assert SAID in errors(test).lower().replace("\\", "")
    assert "1 run, newest first" in [caption.value for caption in test.caption]


@pytest.mark.usefixtures("full_bench")
def test_a_run_that_cannot_be_stored_is_not_started_and_the_page_stays() -> None:
    test = open_page({"run": "r1"})
    tiles = [str(e.value) for e in test.markdown]
    test.button(key="run").click().run()
    assert not test.exception
    assert f"The run was not started: {SAID}" in errors(test).replace("\\", "")
    assert len(test.markdown) >= len(tiles), "the run is no longer shown"
    test.run()
    assert "The run was not started" not in errors(test), "it was started again"
