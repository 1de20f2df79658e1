"""The bundle of Plotly: its version, its traces, and figures as the JSON that it draws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import sample_runs as samples
from charts import charts, drawn
from plotly.offline import get_plotlyjs_version

from kernelviz.formats.browser import bundle, figure_json
from kernelviz.plots.frame import MOST_SVG_POINTS

BUILD = Path(__file__).parents[2] / "kernelviz/formats/browser/source"


def test_the_bundle_has_the_version_of_the_plotly_package_and_of_its_pins() -> None:
    pins = json.loads((BUILD / "package.json").read_text())
    locked = json.loads((BUILD / "package-lock.json").read_text())["packages"]
    assert bundle.version() == get_plotlyjs_version() == pins["dependencies"]["plotly.js"]
    for name, version in {**pins["dependencies"], **pins["devDependencies"]}.items():
        assert locked[f"node_modules/{name}"]["version"] == version, "not pinned"


def test_the_bundle_compiles_no_text_to_code() -> None:
    script = bundle.script().decode()
    assert "new Function" not in script
    assert " eval(" not in script


def test_every_trace_that_a_chart_uses_is_in_the_bundle() -> None:
    types = {
        trace["type"]
        for chart in charts().values()
        for figure in drawn(chart, [samples.run()])
        for trace in figure_json.plain(figure)["data"]
    }
    assert types == set(bundle.TRACES), (
        "change TRACES and kernelviz/formats/browser/source/entry.js, and build the bundle again"
    )
    entry = (BUILD / "entry.js").read_text()
    assert all(f"plotly.js/lib/{name}" in entry for name in types - {"scatter"})  # scatter is part of the core


def test_a_long_series_is_thinned_with_its_extremes_and_everything_that_belongs_to_a_point() -> None:
    count = 20_000
    values = np.ones(count)
    values[12_345] = 9.0
    figure = go.Figure(
        go.Scattergl(
            x=np.arange(count), y=values, customdata=[str(i) for i in range(count)], marker={"size": list(range(count))}
        )
    )
    figure.update_layout(height=300)
    (trace,) = figure_json.drawable(figure)["data"]
    assert trace["type"] == "scatter"
    assert 500 <= len(trace["x"]) <= MOST_SVG_POINTS
    assert len(trace["x"]) == len(trace["y"]) == len(trace["customdata"]) == len(trace["marker"]["size"])
    at = trace["y"].index(9.0)
    assert trace["x"][at] == 12_345
    assert trace["customdata"][at] == "12345"
    assert trace["marker"]["size"][at] == 12_345


def test_a_number_that_json_does_not_have_becomes_null() -> None:
    figure = go.Figure(go.Bar(x=[1, 2], y=[float("nan"), float("inf")]))
    assert figure_json.plain(figure)["data"][0]["y"] == [None, None]


def test_a_heat_map_of_an_array_keeps_its_rows() -> None:
    values = np.arange(6.0).reshape(2, 3)
    for z in (values, values.tolist()):
        assert figure_json.plain(go.Figure(go.Heatmap(z=z)))["data"][0]["z"] == [[0, 1, 2], [3, 4, 5]]
