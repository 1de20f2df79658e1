"""One more line in the list of columns is one more column everywhere: on the page, in the terminal and in files."""

from __future__ import annotations

import io

import pandas as pd
import pytest
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from rich.console import Console

import kernelviz as kv
import kernelviz.bench
from kernelviz.cli import tables
from kernelviz.core import units
from kernelviz.formats import export_named
from kernelviz.tables import cases
from kernelviz.tables.cases import Case
from kernelviz.tables.column import Column

FOREIGN = "<b>*_x_*</b> | =1+1"
NUMBER: Column[Case] = Column("half_time_s", "Half time", "Half of it.", units.SECONDS, lambda c: c.figure.estimate / 2)  # type: ignore[union-attr]
TEXT: Column[Case] = Column("remark", "Remark", "What somebody wrote.", units.TEXT, lambda c: FOREIGN)


@pytest.fixture(autouse=True)
def more_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "COLUMNS", (*cases.COLUMNS, NUMBER, TEXT))


def test_one_line_adds_a_column_to_page_terminal_markdown_offline_page_and_data_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = samples.run(id="kept", shares={"torch_eager": 0.6})
    halves_s = [r.timing.device_cold_s.estimate / 2 for r in run.results if r.timing and r.timing.device_cold_s]
    assert len(halves_s) == len(run.results)

    monkeypatch.setattr(kernelviz.bench, "current", lambda: RehearsedBench((samples.H200,), stored=(run,)))
    page: pd.DataFrame = open_page({"run": "kept"}).dataframe[0].value
    assert list(page["Half time, µs"]) == pytest.approx([half_s * 1e6 for half_s in halves_s])
    assert set(page["Remark"]) == {FOREIGN}

    terminal = Console(width=300, file=io.StringIO())
    terminal.print(tables.report(run, run.environment.roofs))
    printed = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "Half time" in printed
    assert printed.count(FOREIGN) == len(run.results)
    assert all(units.seconds(half_s) in printed for half_s in halves_s)

    markdown = export_named("md").encode(run).decode()
    heads = next(line for line in markdown.splitlines() if line.startswith("| "))
    assert "| Half time | Remark |" in heads
    assert all(f"| {units.seconds(half_s)} |" in markdown for half_s in halves_s)
    assert markdown.count("`<b>*_x_*</b> \\| =1+1`") == len(run.results), "a text of a document is code"

    offline = export_named("html").encode(run).decode()
    assert '<th scope=col title="Half of it.">Half time, µs' in offline
    assert all(f"data-v={half_s * 1e6:.9g}" in offline for half_s in halves_s)
    assert "&lt;b&gt;*_x_*&lt;/b&gt; | =1+1" in offline
    assert FOREIGN not in offline

    frame = kv.Report.of(run).to_frame()
    assert list(frame.half_time_s) == halves_s
    assert set(frame.remark) == {FOREIGN}
    assert "half_time_s,remark" in export_named("csv").encode(run).decode().splitlines()[0]
