"""The frame of a run in Python has every figure, in SI units, and the trust line."""

from __future__ import annotations

import msgspec
import pandas as pd
import pytest
import sample_figures as figures
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench

import kernelviz as kv
import kernelviz.bench
from kernelviz.cli import console, tables
from kernelviz.core.notes import CallTooLong, EnergyCounterStill, Note
from kernelviz.core.problem import USUAL_FIGURES, FigureName, Method
from kernelviz.core.result import Conditions, Energy, Timing
from kernelviz.formats import export_named

COLUMNS = (
    "warm_s", "call_eager_s", "call_eager_p90_s", "call_eager_p99_s", "enqueue_s", "call_graph_s", "loop_s", "busy_s",
)  # fmt: skip


def test_every_figure_is_a_column_of_seconds() -> None:
    run = figures.run()
    frame = kv.Report.of(run).to_frame()
    for row, result in zip(frame.itertuples(), run.results, strict=True):
        timing = result.timing
        assert timing is not None
        assert timing.device_warm_s is not None
        assert timing.loop_s is not None
        assert (row.warm_s, row.loop_s) == (timing.device_warm_s.estimate, timing.loop_s.estimate)
        assert row.time_s == row.busy_s
        assert timing.device_cold_s is not None
        times_s = timing.device_cold_s.samples
        assert times_s is not None
        assert (row.minimum_s, row.maximum_s) == pytest.approx((min(times_s), max(times_s)))
        assert row.mean_s == pytest.approx(sum(times_s) / len(times_s))
        assert row.call_eager_s < row.call_eager_p90_s < row.call_eager_p99_s
    assert list(frame.host_bound[:3]) == [True] * 3
    assert list(frame.host_bound[-3:]) == [False] * 3
    assert frame.trust.iloc[0].startswith("✓ good · 480 samples")
    assert frame.trust.iloc[-1].startswith("◐ caveats")
    assert frame.energy_joules.isna().all()


def test_what_was_not_measured_is_nothing() -> None:
    frame = kv.Report.of(samples.mixed()).to_frame()
    assert set(COLUMNS) <= set(frame.columns)
    assert frame.warm_s.isna().all()
    assert all(pd.isna(bound) for bound in frame.host_bound)
    assert (frame[frame.failure == "compile"].trust == "not timed").all()


ASKED: tuple[FigureName, ...] = (*USUAL_FIGURES, "energy")
LOAD = "call eager, call by graph, loop: not measured under sustained load, because the device would be idle between these calls"


@pytest.mark.parametrize(
    ("method", "note", "reason"),
    [
        (Method(clock="sustained", figures=ASKED), None, LOAD),
        (
            Method(figures=("cold", "energy")),
            EnergyCounterStill(figure="energy", seconds=8),
            "energy: the energy counter of the board did not change twice in 8 s",
        ),
        (
            Method(figures=ASKED),
            CallTooLong(figure="secondary", call_s=0.31),
            "device warm, call eager, call by graph, loop, energy: not measured, because one call takes 0.31 s",
        ),
    ],
    ids=["sustained", "still", "long"],
)
def test_a_figure_that_was_asked_for_has_a_value_or_a_reason_everywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], method: Method, note: Note | None, reason: str
) -> None:
    """`kernelviz run matmul --clock sustained --energy --verbose` printed neither joules nor a reason."""
    run = samples.run(id="kept", shares={"torch_eager": 0.6})
    made = []
    for result in run.results:
        whole = figures.complete(result).outcome
        assert isinstance(whole, Timing)
        outcome = figures.as_asked(whole, method)
        if note is not None:
            outcome = Timing(device_cold_s=outcome.device_cold_s)
        seen = Conditions(notes=() if note is None else (note,))
        made.append(msgspec.structs.replace(result, outcome=outcome, conditions=seen))
    run = msgspec.structs.replace(run, results=tuple(made), method=method)
    console.show(tables.report(run, (), verbose=True))
    terminal = " ".join(capsys.readouterr().out.split())
    console.show(tables.report(run, ()))
    short = " ".join(capsys.readouterr().out.split())
    offline = export_named("html").encode(run).decode()
    markdown = export_named("md").encode(run).decode()
    frame = kv.Report.of(run).to_frame()
    monkeypatch.setattr(kernelviz.bench, "current", lambda: RehearsedBench((samples.H200,), stored=(run,)))
    page = open_page({"run": "kept", "tab": "figures"})
    assert not page.exception
    on_page = " ".join(m.value for m in page.markdown).replace("\\", "")
    assert reason in terminal
    assert reason in offline
    assert reason in on_page
    assert set(frame.figure_notes) == {reason}
    if note is None:
        assert terminal.count("21.0 mJ") == 2 * len(run.results)
        assert all("21.0 mJ" in text for text in (short, markdown))
        assert "Energy per call" in offline
        assert set(frame.energy_joules) == {0.021}
        assert "Energy per call, mJ" in next(t.value for t in page.dataframe if "Device warm, µs" in t.value)
    else:
        assert all("energy: " in text for text in (short, markdown))


def test_energy_is_that_of_one_call() -> None:
    run = figures.run()
    energy = Energy(joules=0.021, calls=100_000, seconds=2.1)
    first = msgspec.structs.replace(
        run.results[0], outcome=msgspec.structs.replace(run.results[0].outcome, energy=energy)
    )
    frame = kv.Report.of(msgspec.structs.replace(run, results=(first, *run.results[1:]))).to_frame()
    assert frame.energy_joules.iloc[0] == pytest.approx(0.021)
