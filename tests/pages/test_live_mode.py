"""Live mode on the Bench page: what is changed is measured at once, and what it replaces is thrown away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sample_runs as samples
from open_page import charts, open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.core import RunEnded
from kernelviz.core.problem import QUICK
from kernelviz.ui.bench import live_mode
from kernelviz.ui.shared import callbacks

Open = Callable[..., AppTest]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    def opened(bench: RehearsedBench, **params: str) -> AppTest:
        monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
        return open_page(params)

    return opened


ASKED = {"op": "add", "variants": "torch_eager", "n": "4096"}


def shown(test: AppTest) -> str:
    assert not test.exception, test.exception
    found: str = test.query_params["run"]  # type: ignore[assignment]
    return found if isinstance(found, str) else found[0]


def test_a_change_is_measured_and_drawn_in_the_same_rerun(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    assert bench.runs() == ()
    test.toggle(key="live_mode").set_value(True).run()
    first = shown(test)
    assert bench.load(first).method == QUICK
    assert len(charts(test)) == 3
    test.text_input(key="size_add_n").set_value("8192").run()
    second = shown(test)
    assert bench.load(second).plan.problems[0].sizes == {"n": 8192}
    assert len(charts(test)) == 3
    assert [r.id for r in bench.runs()] == [second]


@pytest.mark.parametrize("late", [True, False], ids=["too late", "gone back to"])
def test_an_address_from_before_a_change_is_a_link_only_when_the_browser_can_know_better(
    page: Open, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """A redraw that was asked for before the browser learnt of the new address comes with the old one."""
    monkeypatch.setattr(callbacks, "STALE_S", 60.0 if late else 0.0)
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    test.toggle(key="live_mode").set_value(True).run()
    first, before = shown(test), dict(test.query_params)
    test.text_input(key="size_add_n").set_value("8192").run()
    second = shown(test)
    test.query_params.clear()
    test.query_params.update(before)
    test.run()
    assert shown(test) == (second if late else first)
    assert first != second
    assert test.text_input(key="size_add_n").value == ("8192" if late else "4096")
    assert test.toggle(key="live_mode").value is late


def test_without_a_change_nothing_is_measured_again(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    test.toggle(key="live_mode").set_value(True).run()
    first = shown(test)
    test.number_input(key="budget").set_value(2.0).run()
    test.run()
    assert shown(test) == first


def test_the_knob_writes_the_size_and_follows_it(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    assert not test.select_slider
    test.toggle(key="live_mode").set_value(True).run()
    knob = test.select_slider(key="knob_size_add_n")
    assert knob.value == 4096
    knob.set_value(16384).run()
    assert test.text_input(key="size_add_n").value == "16384"
    assert bench.load(shown(test)).plan.problems[0].sizes == {"n": 16384}
    test.text_input(key="size_add_n").set_value("5000").run()
    assert test.select_slider(key="knob_size_add_n").value == 5000
    test.text_input(key="size_add_n").set_value("2^12..2^14").run()
    assert not test.select_slider


def test_what_takes_longer_is_followed_and_its_successor_cancels_it(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,), case_s=30.0)
    test = page(bench, **ASKED)
    test.toggle(key="live_mode").set_value(True).run()
    first = shown(test)
    assert test.button(key="cancel")
    entry = bench._entries[first]
    test.text_input(key="size_add_n").set_value("8192").run()
    assert entry.cancelled.is_set()
    assert shown(test) != first
    bench.close()


def drawn(test: AppTest, size: int) -> bool:
    """Whether the chart by size shows results at that size."""
    by_size = next(chart for chart in charts(test) if chart.key == "by_size")
    return any(f"n={size}" in str(trace.get("customdata")) for trace in by_size.figure["data"])


def outdated(test: AppTest) -> list[str]:
    """The note that says which results are shown while others are measured."""
    return [str(c.value).replace("\\", "") for c in test.caption if "Being measured" in str(c.value)]


def test_the_last_result_stays_while_the_next_is_measured_and_what_was_superseded_is_dropped(
    page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pace is set by the test, so the machine's speed does not matter. The third and fourth change are like the second."""
    monkeypatch.setattr(live_mode, "WAIT_S", 0.0)
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    test.toggle(key="live_mode").set_value(True).run()
    first = shown(test)
    wait_for_end(bench, first)
    test.run()
    assert len(charts(test)) == 3
    assert not outdated(test)
    bench.case_s = 30.0
    superseded = []
    for size in ("8192", "16384", "32768"):
        test.text_input(key="size_add_n").set_value(size).run()
        superseded.append(shown(test))
        assert drawn(test, 4096)
        assert test.button(key="cancel")
        assert outdated(test) == [f"Shown: add fp32 n = 4,096. Being measured: add fp32 n = {int(size):,}."]
        assert {r.id for r in bench.runs()} == {first, superseded[-1]}
        assert not any(
            "in the queue" in str(c.value) for c in test.caption
        )  # the page's own run is not a job ahead of it
    bench.case_s = 0.0
    test.text_input(key="size_add_n").set_value("65536").run()
    last = shown(test)
    wait_for_end(bench, last)
    test.run()
    assert not outdated(test)
    assert drawn(test, 65536)
    assert not drawn(test, 4096)
    assert [r.id for r in bench.runs()] == [last]
    bench.close()


def test_a_stored_run_that_was_shown_before_live_mode_is_never_discarded(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    test.button(key="run").click().run()
    own = shown(test)
    wait_for_end(bench, own)
    test.run()
    test.toggle(key="live_mode").set_value(True).run()
    test.text_input(key="size_add_n").set_value("8192").run()
    wait_for_end(bench, shown(test))
    test.run()
    assert {r.id for r in bench.runs()} == {own, shown(test)}


def wait_for_end(bench: RehearsedBench, run_id: str) -> None:
    assert any(isinstance(event, RunEnded) for _, event in bench.follow(run_id, timeout_s=20))


def test_a_form_that_asks_for_nothing_is_not_measured(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    test.toggle(key="live_mode").set_value(True).run()
    first = shown(test)
    test.text_input(key="size_add_n").set_value("many").run()
    assert shown(test) == first
    assert "many" in test.error[0].value


def test_a_link_measures_nothing_by_itself(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,))
    test = page(bench, **ASKED)
    test.toggle(key="live_mode").set_value(True).run()
    test.query_params.clear()
    test.query_params.update({"op": "scale", "variants": "torch_eager", "n": "1024"})
    before = len(bench.runs())
    test.run()
    assert not test.exception
    assert test.toggle(key="live_mode").value is False
    assert len(bench.runs()) == before
