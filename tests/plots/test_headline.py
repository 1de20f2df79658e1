"""Every chart shows the time that the switch chose: with flushed caches or with warm ones."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz import plots

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
    assert hovers
    assert all("L2 warm" in h.replace("<br>", " ") for h in hovers)


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


def test_the_trust_line_stands_in_every_hover_in_lines_that_a_phone_can_show() -> None:
    hovers = [h for t in plots.latency_by_size(figures.run()).data[:3] for h in t.hovertext]
    assert all("✓ good" in h or "◐ note" in h for h in hovers)
    assert max(len(line) for h in hovers for line in h.split("<br>")) <= 100
