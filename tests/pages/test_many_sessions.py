"""What sessions share: the figures and tables of a run are made once, and never shown for another state of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import sample_runs as samples
from open_page import charts, open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench
from kernelviz.formats.browser import figure_json
from kernelviz.store import Store
from kernelviz.ui.shared import table


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a figure was encoded, and a table made."""
    counts: Counter[str] = Counter()
    drawable, frame = figure_json.drawable, table.frame

    def counted_drawable(figure: go.Figure) -> dict[str, Any]:
        counts["figures"] += 1
        return drawable(figure)

    def counted_frame(columns: Sequence[Any], rows: Sequence[Any]) -> Any:
        counts["tables"] += 1
        return frame(columns, rows)

    monkeypatch.setattr(figure_json, "drawable", counted_drawable)
    monkeypatch.setattr(table, "frame", counted_frame)
    return counts


def _tables(test: AppTest) -> list[list[list[object]]]:
    return [table.value.to_numpy().tolist() for table in test.dataframe]


def test_a_second_session_and_a_redraw_compute_no_figure_and_no_table(bench: Bench, computed: Counter[str]) -> None:
    run_id = bench.history.add(samples.run())
    first = open_page({"run": run_id})
    assert computed == {"figures": 3, "tables": 1}
    first.run()
    second = open_page({"run": run_id})
    assert computed == {"figures": 3, "tables": 1}
    assert charts(second) == charts(first)
    assert _tables(second) == _tables(first)


@pytest.mark.parametrize("option", [{"l2": "warm"}, {"show": "time"}, {"at": "131072x1024"}, {"hide": "torch_compile"}])
def test_each_option_has_its_own_figures(bench: Bench, option: dict[str, str]) -> None:
    run_id = bench.history.add(samples.run())
    plain = charts(open_page({"run": run_id}))
    other = charts(open_page({"run": run_id, **option}))
    assert [c.figure for c in other] != [c.figure for c in plain]
    assert charts(open_page({"run": run_id})) == plain


def test_a_run_that_changes_is_shown_as_it_is_now(bench: Bench) -> None:
    """A stored run with another title, other results or another status is another revision, whatever was cached before."""
    whole = samples.run(id="growing", status="interrupted")
    part = samples.run(whole.results[:10], id="growing", status="interrupted")
    store = bench.history
    run_id = store.add(part)
    before = open_page({"run": run_id})
    store.rename(run_id, "another title")
    renamed = open_page({"run": run_id})
    assert charts(renamed) == charts(before)
    assert "another title" in str([c.value for c in renamed.caption])
    other_id = store.add(samples.run(whole.results, id="growing", status="interrupted"))
    assert other_id != run_id
    assert len(_tables(open_page({"run": other_id}))[0]) == 30
    assert len(_tables(open_page({"run": run_id}))[0]) == 10


def test_results_that_arrive_during_a_run_are_shown(bench: Bench, tmp_path: Path) -> None:
    run = samples.run(id="live", status="interrupted")
    run_id = bench.history.add(samples.run(run.results[:5], id="live", status="interrupted"))
    assert len(_tables(open_page({"run": run_id}))[0]) == 5
    writer = Store.open(tmp_path)
    try:
        writer.results.put(run_id, [(n, result) for n, result in enumerate(run.results[:6])])
    finally:
        writer.close()
    assert len(_tables(open_page({"run": run_id}))[0]) == 6
