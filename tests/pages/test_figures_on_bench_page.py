"""The Bench page's switch between cold and warm L2, its figures, and the trust line beside each time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.core.problem import USUAL_FIGURES
from kernelviz.core.result import Timing
from kernelviz.core.run import Run
from kernelviz.text.quality import describe_quality_of, format_badge_of
from kernelviz.text.times import FIGURES

Open = Callable[..., AppTest]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    def opened(run: Run, tab: str = "Table", **params: str) -> AppTest:
        made = RehearsedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS, stored=(run,))
        monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
        return open_page({"run": run.id, **params}, state={"tables": tab})

    return opened


def words(test: AppTest) -> str:
    return "\n".join(str(e.value) for kind in ("markdown", "caption") for e in getattr(test, kind)).replace("\\", "")


def test_cold_is_shown_first_and_warm_by_the_switch_and_from_the_address(page: Open) -> None:
    run = figures.run()
    test = page(run)
    (table,) = (d.value for d in test.dataframe)  # the tabs that are not open hold nothing
    assert "Cold time, µs" in table
    assert "l2" not in test.query_params
    test.segmented_control(key="l2").set_value("warm").run()
    assert not test.exception
    assert test.query_params["l2"] == "warm"
    again = page(run, l2="warm")
    table = next(d.value for d in again.dataframe if "Warm time, µs" in d.value)
    stored = [r.timing.device_warm_s.estimate * 1e6 for r in run.results if r.timing and r.timing.device_warm_s]
    assert list(table["Warm time, µs"]) == pytest.approx(stored)
    assert list(table["Quality"]) == [str(format_badge_of(r, "warm", "burst")) for r in run.results]
    again.segmented_control(key="l2").set_value("cold").run()
    assert "l2" not in again.query_params


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("running", "No case has a warm time yet: warm times are measured after"),
        ("finished", "this run did not measure them. Measure it again on a machine with NVIDIA H200."),
    ],
)
def test_the_switch_says_when_no_case_has_a_warm_time(page: Open, status: str, says: str) -> None:
    test = page(samples.run(id="kept", status=status), l2="warm")  # type: ignore[arg-type]
    assert says in words(test)
    assert test.metric[0].value == "–"


def test_the_switch_counts_those_that_lack_one(page: Open) -> None:
    run = figures.run()
    cold_only = msgspec.structs.replace(run.results[0].outcome, device_warm_s=None)
    first = msgspec.structs.replace(run.results[0], outcome=cold_only)
    test = page(msgspec.structs.replace(run, results=(first, *run.results[1:])), l2="warm")
    assert "1 of 12 cases have no warm time yet" in words(test)


def test_a_bad_value_in_the_address_is_named(page: Open) -> None:
    test = page(figures.run(), l2="hot")
    assert "'hot' is not among cold, warm" in words(test)
    assert test.segmented_control(key="l2").value == "cold"


def test_every_figure_has_a_column_and_its_question(page: Open) -> None:
    test = page(figures.run(), tab="Figures")
    table = next(d.value for d in test.dataframe if "Call eager p99, µs" in d.value)
    names = [
        "Device cold", "Device warm", "Call eager p50", "Call eager p90", "Call eager p99", "Enqueue", "Call by graph", "Loop",
        "Busy",
    ]  # fmt: skip
    assert [f"{n}, µs" for n in names] == list(table.columns[2:11])
    assert table["CPU-bound"].iloc[0].startswith("yes, ")
    assert table["CPU-bound"].iloc[-1] == "no, 1.0×"
    assert (
        table["How"].iloc[-1]
        == "CUPTI timestamps (stream launch), 320 ns tracing overhead subtracted; warm: CUPTI timestamps (CUDA graph)"
    )
    assert table["Notes"].iloc[-1] == "graph of one call: not capturable as a graph: it synchronises"
    assert not [name for name in table if name.startswith("Energy")]
    assert all(f"**{f.name}** {f.question}" in words(test) for f in FIGURES)


def test_unknown_figures_are_empty_not_zero(page: Open) -> None:
    run = figures.run()
    first = run.results[0]
    assert isinstance(first.outcome, Timing)
    bare = msgspec.structs.replace(first, outcome=Timing(device_cold_s=first.outcome.device_cold_s))
    run = msgspec.structs.replace(run, results=(bare, *run.results[1:]))
    table = next(d.value for d in page(run, tab="Figures").dataframe if "Call eager p99, µs" in d.value)
    assert list(table["Device warm, µs"].isna()) == [True] + [False] * 11
    assert list(table["CPU-bound"].isna()) == [True] + [False] * 11
    table = next(d.value for d in page(samples.mixed(), tab="Figures").dataframe if "Notes" in d.value)
    assert not {"Device warm, µs", "Call eager p99, µs"} & set(table)  # which the run did not ask for
    wrong = table[table["Variant"] == "triton block per row"]
    assert wrong["Device cold, µs"].isna().all()


def test_why_columns_are_empty_is_said_when_the_run_did_not_ask(page: Open) -> None:
    why = "This run measured the cold device time only"
    run = figures.run()
    cold_only = msgspec.structs.replace(run, method=msgspec.structs.replace(run.method, figures=("cold",)))
    assert why in words(page(cold_only, tab="Figures"))
    everything = msgspec.structs.replace(run, method=msgspec.structs.replace(run.method, figures=USUAL_FIGURES))
    assert why not in words(page(everything, tab="Figures"))


def test_each_time_beside_the_bars_has_its_line_and_host_bound_in_words(page: Open) -> None:
    said = words(page(figures.run(), at="4096"))
    run = figures.run()
    for result in run.results[:3]:
        assert str(describe_quality_of(result, "cold", "burst")) in said
    assert said.count("CPU-bound: back-to-back calls") == 3
    assert "CPU-bound: back-to-back calls" not in words(page(figures.run(), at="16777216"))


def test_kernels_stand_with_the_span_of_their_call(page: Open) -> None:
    run = figures.run()
    table = next(d.value for d in page(run, tab="Kernels").dataframe if "Kernel" in d.value)
    cold = [r.timing.device_cold_s.estimate * 1e6 for r in run.results if r.timing and r.timing.device_cold_s]
    assert list(table["Span of the call, µs"]) == pytest.approx(cold)
    assert list(table["Busy, µs"]) == pytest.approx(cold)
    assert {"Traced duration, µs", "Grid", "Block", "Registers per thread", "Shared memory, B"} <= set(table.columns)
