"""The Bench page's Samples tab and its choice "winner"."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples
from open_page import charts, open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.core.run import Run
from kernelviz.metrics.samples import spread
from kernelviz.text import describe_methods_of
from kernelviz.text.samples import SAMPLED_FIGURES, WHY_MEDIAN, describe_spread

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


def chart_keys(test: AppTest) -> list[str]:
    return [c.key for c in charts(test)]


def test_the_samples_are_drawn_only_when_their_tab_is_open(page: Open) -> None:
    assert chart_keys(page(figures.run())) == ["by_size", "roofline", "bars"]
    drawn = chart_keys(page(figures.run(), "Samples"))
    assert drawn == ["by_size", "roofline", "share_by_time", "samples_by_order", "bars"]


def test_every_figure_that_is_there_can_be_chosen_and_is_kept_in_the_address(page: Open) -> None:
    test = page(figures.run(), "Samples", at="4096")
    assert test.segmented_control(key="samples").value == "device_cold_s"
    for asked in SAMPLED_FIGURES[1:]:
        test.segmented_control(key="samples").set_value(asked.field).run()
        assert not test.exception
        assert test.query_params["samples"] == asked.field
        assert asked.question in words(test)
    again = page(figures.run(), "Samples", samples="loop_s")
    assert again.segmented_control(key="samples").value == "loop_s"
    assert "could not be used" not in words(again)


def test_only_figures_with_samples_are_offered(page: Open) -> None:
    test = page(samples.mixed(), "Samples")
    assert test.segmented_control(key="samples").options == ["device cold"]


def test_the_words_and_the_table_say_what_the_samples_say(page: Open) -> None:
    run = figures.run()
    test = page(run, "Samples", at="16777216", samples_of="triton_block")
    result = run.results[-1]
    found = spread(result, "device_cold_s")
    assert found is not None
    for line in (*map(str, describe_spread(found)), "throttle: none", str(describe_methods_of(result)).split(";")[0]):
        assert line in words(test)
    table = next(d.value for d in test.dataframe if "Drift" in d.value)
    assert list(table["Variant"]) == ["torch eager", "torch compile", "triton block"]
    assert list(table["Samples"]) == [480] * 3
    assert table["p50, µs"].iloc[-1] == pytest.approx(found.p50_s * 1e6)
    assert found.extent is not None
    extents = {"Min": found.extent.minimum_s, "Mean": found.extent.mean_s, "Max": found.extent.maximum_s}
    assert {name: table[f"{name}, µs"].iloc[-1] for name in extents} == pytest.approx(
        {name: time_s * 1e6 for name, time_s in extents.items()}
    )
    assert WHY_MEDIAN in words(test)
    assert table["Repeated"].iloc[-1] == "2 blocks discarded"


def test_the_fastest_is_shown_in_order_until_somebody_chooses(page: Open) -> None:
    run = figures.run()
    test = page(run, "Samples", at="16777216")
    at_size = [r for r in run.results if r.problem.sizes["n"] == 2**24]
    fastest = min(at_size, key=lambda r: r.timing.device_cold_s.estimate)  # type: ignore[union-attr]
    assert test.selectbox(key="samples_of").value == fastest.variant
    test.selectbox(key="samples_of").set_value("triton_block").run()
    test.segmented_control(key="samples").set_value("loop_s").run()
    assert test.selectbox(key="samples_of").value == "triton_block"


def test_a_run_without_samples_says_so(page: Open) -> None:
    bare = []
    for r in samples.run().results:
        assert r.timing is not None
        assert r.timing.device_cold_s is not None
        cold = msgspec.structs.replace(r.timing.device_cold_s, samples=None, blocks=None)
        bare.append(msgspec.structs.replace(r, outcome=msgspec.structs.replace(r.timing, device_cold_s=cold)))
    test = page(samples.run(bare), "Samples")
    assert "was imported without samples" in words(test)
    assert "share_by_time" not in chart_keys(test)
    failed = [samples.failed(r.problem, r.variant, "compile") for r in samples.run().results]
    assert "No variant has a correct time at this size" in words(page(samples.run(failed), "Samples"))


def test_winner_is_a_way_to_draw_with_its_words_below(page: Open) -> None:
    test = page(samples.run(), show="winner")
    assert test.segmented_control(key="show").value == "winner"
    assert "triton persistent is the fastest at all 6 sizes." in words(test)
    test.segmented_control(key="show").set_value("time").run()
    assert "is the fastest at all" not in words(test)


def test_winner_over_two_axes_has_a_line_for_each_row_and_follows_the_axis(page: Open) -> None:
    grid = [{"m": m, "n": n} for m in (16, 4096) for n in (1024, 2048)]
    test = page(
        samples.run(sizes=grid, shares={"torch_eager": 0.5, "triton_persistent": 0.9}), show="winner", against="n"
    )
    assert "m = 4,096: triton persistent is the fastest at both sizes." in words(test) or "m = 16, 4,096: " in words(
        test
    )
    test.selectbox(key="against").set_value("m").run()
    assert not test.exception
    assert "n = 1,024" in words(test)


def test_nobody_leads_before_a_warm_time_is_there(page: Open) -> None:
    test = page(samples.run(), show="winner", l2="warm")
    assert "no correct time at any size." in words(test)
