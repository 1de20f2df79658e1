"""Every chart shows the time that the switch chose: with flushed caches or with warm ones."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import pytest
import sample_figures as figures
import sample_runs as samples
from msgspec.structs import replace

from kernelviz import plots
from kernelviz.core import Timing

CHARTS: dict[str, Callable[..., go.Figure]] = {
    "latency": plots.latency_by_size,
    "bandwidth": plots.bandwidth_by_size,
    "rate": plots.rate_by_size,
    "roofline": plots.rate_by_intensity,
    "bars": plots.time_by_variant,
}


@pytest.mark.parametrize("chart", CHARTS)
def test_cold_is_the_default_and_warm_draws_other_values(chart: str) -> None:
    run = figures.run()
    cold, warm = CHARTS[chart](run), CHARTS[chart](run, headline="warm")
    assert cold == CHARTS[chart](run, headline="cold")
    assert [t.name for t in cold.data] == [t.name for t in warm.data]
    assert cold.to_json() != warm.to_json()
    hovers = [h for t in warm.data if t.hovertext is not None for h in t.hovertext if "samples" in h]
    assert all("L2 warm" in h.replace("<br>", " ") for h in hovers)
    if chart in ("latency", "bandwidth", "rate"):  # with one hover for all variants, the axis says it
        assert "(cold L2)" in cold.layout.yaxis.title.text
        assert "(warm L2)" in warm.layout.yaxis.title.text
    else:
        assert hovers


def test_the_axis_calls_the_caches_of_a_cpu_by_the_name_of_the_switch_above_it() -> None:
    host = samples.run(device=samples.CPU, roofs=())
    assert "(cold caches)" in plots.bandwidth_by_size(host).layout.yaxis.title.text
    assert "(cold caches)" in plots.bandwidth_by_size([samples.run(), host]).layout.yaxis.title.text


def test_a_warm_time_is_the_stored_one() -> None:
    run = figures.run()
    drawn = plots.latency_by_size(run, headline="warm").data[0]
    stored = [r.timing.device_warm_s.estimate * 1e6 for r in run.results if r.variant == "torch_eager" and r.timing]  # type: ignore[union-attr]
    assert list(drawn.y) == pytest.approx(stored)


@pytest.mark.parametrize("chart", CHARTS)
def test_without_warm_times_every_chart_still_draws(chart: str) -> None:
    figure = CHARTS[chart](samples.mixed(), headline="warm")
    assert figure.data or figure.layout.annotations


def test_bars_say_which_time_is_missing() -> None:
    words = [a.text for a in plots.time_by_variant(samples.run(), headline="warm").layout.annotations]
    assert words.count("✕ no warm time") == 5


def test_the_badge_stands_in_every_hover_of_a_point_in_lines_that_a_phone_can_show() -> None:
    problem = figures.run().plan.problems[0]
    hovers = [h for t in plots.time_by_variant(figures.run(), problem).data for h in t.hovertext or ()]
    assert hovers
    assert all("✓ good" in h or "◐ caveats" in h for h in hovers)
    assert max(len(line) for h in hovers for line in h.split("<br>")) <= 100


def test_the_hover_of_all_variants_marks_the_unreliable_time_and_no_other() -> None:
    run = figures.run()
    bad = next(r for r in run.results if isinstance(r.outcome, Timing) and r.variant == "torch_eager")
    assert isinstance(bad.outcome, Timing)
    assert bad.outcome.device_cold_s is not None
    wide = replace(bad.outcome.device_cold_s, low=None, high=None)
    planted = replace(bad, outcome=replace(bad.outcome, device_cold_s=wide))
    run = replace(run, results=tuple(planted if r is bad else r for r in run.results))
    hovers = [h for t in plots.bandwidth_by_size(run).data for h in t.hovertext or () if "<b>" in h]
    assert len([h for h in hovers if h.endswith("⚠ unreliable")]) == 1
    assert next(h for h in hovers if h.endswith("⚠ unreliable")).startswith("<b>torch eager</b>")
