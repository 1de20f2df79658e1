"""The data sheets of all GPUs: every sheet once, searched and sorted, the attached card marked, measured roofs beside it."""

from __future__ import annotations

import json

import msgspec
import pytest
import sample_runs as samples
from rehearsed_bench import RehearsedBench

import kernelviz
import kernelviz.bench
from kernelviz.bench.data_sheets import ORDERS, data_sheets, records, without_sheet
from kernelviz.cli.commands import invoke
from kernelviz.core.errors import UnknownName
from kernelviz.formats import shipped_runs
from kernelviz.hardware.datasheet import sheets
from kernelviz.tables.column import View
from kernelviz.tables.data_sheets import PRECISIONS, sheet_columns

HERE = RehearsedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS)
NOWHERE = RehearsedBench((samples.CPU,))


def test_every_sheet_is_listed_once_with_every_figure() -> None:
    rows = data_sheets(NOWHERE)
    assert sorted(row.names for row in rows) == sorted(sheet.names for sheet in sheets())
    by_names = {row.names: row for row in rows}
    for sheet in sheets():
        row = by_names[sheet.names]
        assert row.bandwidth.promised == sheet.bandwidth_bytes_per_s
        assert {p: v.promised for p, v in row.rates.items()} == {p: k.rate_flop_per_s for p, k in sheet.peaks.items()}
        assert sheet.peaks.keys() <= set(PRECISIONS), "a precision without a column"
        assert (row.l2_bytes, row.multiprocessors, row.source) == (sheet.l2_bytes, sheet.multiprocessors, sheet.source)
        assert row.here == ()


def test_the_card_of_this_machine_is_first_and_has_its_own_roofs() -> None:
    first, *others = data_sheets(HERE, order="name")
    assert (first.name, first.here) == ("NVIDIA H200", ("cuda:0",))
    assert first.measured_on is not None
    assert (first.measured_on.kind, first.measured_on.id) == ("device", "cuda:0")
    of_memory = [
        r.bandwidth_bytes_per_s for r in samples.H200_ROOFS if r.level != "l2" and r.name not in ("h2d", "d2h")
    ]
    assert first.bandwidth.measured in of_memory
    assert first.bandwidth.share == pytest.approx((first.bandwidth.measured or 0) / 4.8e12)
    assert not any(row.here for row in others)
    assert [row.name.lower() for row in others] == sorted(row.name.lower() for row in others)


def test_a_card_that_is_not_here_has_the_roofs_of_a_recorded_run_and_others_none() -> None:
    by_name = {row.name: row for row in data_sheets(NOWHERE)}
    recorded = {line.device for line in shipped_runs.lines().values()}
    for name, row in by_name.items():
        assert (row.measured_on is not None) == (name in recorded), name
        assert (row.bandwidth.measured is not None) == (name in recorded), name
        if row.measured_on is not None:
            run = shipped_runs.load(row.measured_on.id)
            assert row.measured_on.kind == "recorded_run"
            assert run.environment.device.name == name
            rates = [r.rate_flop_per_s for r in run.environment.roofs if r.precision == "bf16" and r.unit == "tensor"]
            assert row.measured_rate("bf16") == max(filter(None, rates))


def test_words_are_searched_and_numbers_sorted_with_unknown_ones_last() -> None:
    assert {row.name for row in data_sheets(HERE, "HOPPER hbm3e")} == {"NVIDIA GH200 144G HBM3e"}
    assert [row.name for row in data_sheets(HERE, "cuda:0")] == ["NVIDIA H200"]
    assert data_sheets(HERE, "h300") == ()
    for order in ORDERS[1:]:
        rows = data_sheets(NOWHERE, order=order)
        column = {"bandwidth": "bandwidth_bytes_per_s", "l2": "l2_bytes"}.get(order, f"{order}_flop_per_s")
        values = [record[column] or 0.0 for record in records(rows)]
        assert values == sorted(values, reverse=True), order  # type: ignore[type-var]
    with pytest.raises(UnknownName, match="did you mean 'bf16'"):
        data_sheets(HERE, order="bf15")


def test_a_gpu_without_a_sheet_is_named_and_marks_no_other() -> None:
    slice_of_one = msgspec.structs.replace(samples.H200, name="NVIDIA H200 MIG 1g.18gb")
    bench = RehearsedBench((slice_of_one,))
    assert without_sheet(bench) == (slice_of_one,)
    assert not any(row.here for row in data_sheets(bench))
    assert without_sheet(HERE) == ()


def test_measured_columns_are_shown_only_where_something_was_measured() -> None:
    def titles(search: str) -> list[str]:
        rows = data_sheets(NOWHERE, search)
        return [column.title for column in sheet_columns(rows, View.WIDE)]

    assert "Bandwidth measured" in titles("h200")
    assert not any("measured" in title.lower() for title in titles("ada"))


def test_command_and_python_print_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernelviz.bench, "current", lambda: HERE)
    assert invoke(["device", "--sheets", "--search", "hopper", "--sort", "bf16", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == records(data_sheets(HERE, "hopper", order="bf16"))
    frame = kernelviz.data_sheets("hopper", order="bf16")
    assert list(frame.name) == [record["name"] for record in printed]
    assert invoke(["device", "--sheets", "--search", "hopper"]) == 0
    shown = capsys.readouterr()
    assert "● cuda:0" in shown.out
    assert "without sparsity" in shown.err
    for arguments, message in (
        (["--search", "x"], "--search: 'x' cannot be used"),
        (["--sheets", "--watch"], "leave out --watch"),
        (["--sheets", "--sort", "bf15"], "no --sort 'bf15'"),
    ):
        assert invoke(["device", *arguments]) == 2
        assert message in capsys.readouterr().err
