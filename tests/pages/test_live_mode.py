"""Live mode on the Bench page: what is changed is measured at once, and what it replaces is thrown away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.core.problem import QUICK
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
    assert len(test.get("plotly_chart")) == 3
    test.text_input(key="size_add_n").set_value("8192").run()
    second = shown(test)
    assert bench.load(second).plan.problems[0].sizes == {"n": 8192}
    assert len(test.get("plotly_chart")) == 3
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
