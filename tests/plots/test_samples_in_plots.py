"""Charts of samples: their distribution by variant, and those of one variant in the order of measurement."""

from __future__ import annotations

import msgspec
import numpy as np
import plotly.graph_objects as go
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz import plots
from kernelviz.core.result import Block, Figure


def trace(figure: go.Figure, name: str) -> go.Scatter:
    (found,) = (t for t in figure.data if t.name == name)
    return found


def test_the_line_passes_every_sample_and_the_percentiles_carry_the_marker_on_it() -> None:
    taken = samples.figure(2e-6)
    figure = plots.share_by_time({"torch_eager": taken}, "add")
    line, points = figure.data
    assert list(line.x) == pytest.approx([s * 1e6 for s in sorted(taken.samples or ())])
    assert (line.y[0], line.y[-1], len(line.y)) == (0, 100, 480)
    assert list(points.y) == pytest.approx(np.interp(points.x, line.x, line.y))
    assert list(points.x) == pytest.approx(np.quantile(taken.samples, (0.5, 0.9, 0.99)) * 1e6)
    assert points.marker.symbol == plots.style_of("add", "torch_eager").marker
    assert "90 % of 480 samples take at most" in points.hovertext[1]


def test_above_a_thousand_samples_webgl_draws() -> None:
    many = samples.figure(2e-6, blocks=60)
    assert isinstance(plots.share_by_time({"torch_eager": many}, "add").data[0], go.Scattergl)
    assert isinstance(plots.share_by_time({"torch_eager": samples.figure(2e-6)}, "add").data[0], go.Scatter)
    order = plots.samples_by_order(many, "device_cold_s", op="add", variant="torch_eager")
    assert isinstance(order.data[0], go.Scattergl)


def test_a_wide_range_is_logarithmic_with_ticks_in_the_unit() -> None:
    both = {"torch_eager": samples.figure(2e-6), "triton_block": samples.figure(50e-6)}
    axis = plots.share_by_time(both, "add").layout.xaxis
    assert axis.type == "log"
    assert list(axis.ticktext) == ["2", "5", "10", "20", "50"]
    narrow = {"torch_eager": samples.figure(2e-6), "triton_block": samples.figure(3e-6)}
    assert plots.share_by_time(narrow, "add").layout.xaxis.type is None


def test_without_samples_or_blocks_it_says_why() -> None:
    assert "No samples" in plots.share_by_time({"v": Figure(estimate=1.0)}, "add").layout.annotations[0].text
    bare = plots.samples_by_order(Figure(estimate=1.0), "loop_s", op="add", variant="v")
    assert "the samples are not stored" in bare.layout.annotations[0].text
    unblocked = plots.samples_by_order(Figure(estimate=1.0, samples=(1.0,)), "loop_s", op="add", variant="v")
    assert "the blocks of the samples are not stored" in unblocked.layout.annotations[0].text


def moved() -> Figure:
    """Round 1 was repeated after round 2, round 3 is slow, and round 4 follows a pause."""
    starts, clocks = (0.0, 0.3, 0.1, 0.2, 0.4, 9.0), (2e9, 2e9, 2e9, 1.9e9, 2e9, 2e9)
    blocks = tuple(
        Block(size=2, started_s=s, clock_hz=c, round=i) for i, (s, c) in enumerate(zip(starts, clocks, strict=True))
    )
    taken = tuple(float(i + 1) for i in range(12))
    return Figure(estimate=6.0, low=5.0, high=7.0, samples=taken, blocks=blocks, timer="cupti")


def test_samples_stand_in_the_order_of_their_blocks_with_marks_clocks_and_pauses() -> None:
    figure = plots.samples_by_order(moved(), "device_cold_s", op="add", variant="torch_eager")
    assert list(trace(figure, "samples of torch eager").y) == [1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12]
    assert list(trace(figure, "block mean").y) == [1.5, 5.5, 7.5, 3.5, 9.5, 11.5]
    assert list(trace(figure, "in a repeated round").x) == [3]
    assert list(trace(figure, "SM clock more than 1 % below the first block").x) == [2]
    clock = trace(figure, "SM clock")
    assert (clock.yaxis, clock.y[2]) == ("y2", 1900)
    assert "<b>block 4 of 6</b>, started at 0.300 s" in trace(figure, "block mean").hovertext[3]
    assert list(figure.layout.xaxis.ticktext) == ["0.00 s", "0.10 s", "0.20 s", "0.30 s", "0.40 s", "9.00 s"]
    dotted = [s.x0 for s in figure.layout.shapes if s.line.dash == "dot"]
    assert dotted == [4.5]
    assert trace(figure, "pause").line.dash == "dot"


def test_the_estimate_is_a_line_and_its_interval_a_band_said_in_words() -> None:
    figure = plots.samples_by_order(moved(), "device_cold_s", op="add", variant="torch_eager")
    (band,) = (s for s in figure.layout.shapes if s.type == "rect")
    assert (band.y0, band.y1) == (5.0, 7.0)
    assert any(s.y0 == s.y1 == 6.0 for s in figure.layout.shapes)
    assert figure.layout.annotations[0].text == "estimate 6.000 s ± 16.7 %, 95 % interval (band)"
    without = msgspec.structs.replace(moved(), low=None, high=None)
    bare = plots.samples_by_order(without, "device_cold_s", op="add", variant="torch_eager")
    assert not any(s.type == "rect" for s in bare.layout.shapes)


def test_calls_by_the_hosts_clock_have_medians_and_no_panel_of_clocks() -> None:
    figure = plots.samples_by_order(figures.called(9e-6), "call_eager_s", op="add", variant="torch_eager")
    assert trace(figure, "block median")
    assert not any(t.name == "SM clock of a block" for t in figure.data)
    assert "NaN" not in figure.to_json()
