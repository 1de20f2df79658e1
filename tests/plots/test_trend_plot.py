"""The chart of a trend: runs, levels, changes."""

from __future__ import annotations

import json

import plotly.graph_objects as go
import pytest

from kernelviz import plots
from kernelviz.metrics.trend import Point, trend


def test_runs_levels_and_changes_are_drawn() -> None:
    times_s = [2e-5] * 6 + [2.1e-5] * 6
    points = [Point(f"<b>{i}", f"2026-10-{i + 1:02}T03:00", t, 0.998 * t, 1.002 * t) for i, t in enumerate(times_s)]
    figure = plots.time_by_run(trend(points), "add", "torch_eager")
    go.Figure(json.loads(figure.to_json()))
    runs, levels = figure.data
    assert list(runs.y) == pytest.approx([20.0] * 6 + [21.0] * 6)
    assert runs.customdata[0] == "<b>0"
    assert "<b>0" not in runs.hovertext[0].replace("<b>&lt;b&gt;0</b>", "")
    assert [y for y in levels.y if y] == pytest.approx([20.0, 20.0, 21.0, 21.0])
    assert levels.y[2] is None
    (note,) = figure.layout.annotations
    assert note.text == "▼ 5.0 % slower"
    assert len(figure.layout.shapes) == 1


def test_nothing_says_so() -> None:
    figure = plots.time_by_run(trend([]), "add", "torch_eager")
    assert not figure.data
    assert "No run" in figure.layout.annotations[0].text
