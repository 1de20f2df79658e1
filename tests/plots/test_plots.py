"""Every chart with every kind of run: nothing, one result, only failures, two devices, many; and what must be true of each."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable

import msgspec
import peers
import plotly.graph_objects as go
import pytest
import sample_runs as samples
import sample_tunings as tunings
from charts import charts, drawn
from hypothesis import given
from hypothesis import strategies as st

from kernelviz import plots
from kernelviz.core.result import Figure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import read
from kernelviz.metrics.figures import figure_of
from kernelviz.ops import catalogue
from kernelviz.plots import line_labels
from kernelviz.plots.frame import LEGEND_GROWTH_PX, format_run

CHARTS = charts()
OTHER_GPU = msgspec.structs.replace(samples.H200, id="cuda:1", uuid="GPU-1", name="NVIDIA H100")
_ONE = samples.problems("rmsnorm", [{"m": 4096, "n": 4096}])[0]


def _only_failures() -> Run:
    return samples.run(
        [
            samples.failed(p, "triton_persistent", "compile", "no <ptx>")
            for p in samples.problems("rmsnorm", samples.RMSNORM_SWEEP)
        ]
    )


def _two_devices() -> tuple[Run, Run]:
    return samples.run(id="a"), samples.run(id="b", device=samples.CPU, roofs=())


def _many() -> Run:
    return samples.run(
        op="add", sizes=[{"n": 1024 * i} for i in range(1, 1202)], dtype="fp32", shares={"torch_eager": 0.9}
    )


RUNS: dict[str, Callable[[], Run | tuple[Run, ...]]] = {
    "none": lambda: (),
    "empty": lambda: samples.run([]),
    "one": lambda: samples.run([samples.timed(_ONE, "torch_eager", 0.6)]),
    "failures": _only_failures,
    "mixed": samples.mixed,
    "two devices": _two_devices,
    "two GPUs": lambda: (samples.run(id="a"), samples.run(id="b", device=OTHER_GPU)),
    "not calibrated": lambda: samples.run(roofs=()),
    "grid": lambda: samples.run(sizes=[{"m": m, "n": n} for m in (16, 4096) for n in (1024, 2048, 4096)]),
    "many": _many,
    "tuning": tunings.run,
    "another tool's tuning": lambda: read(peers.kernel_tuner("mixed"))[0],
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run | tuple[Run, ...]]:
    return {name: make() for name, make in RUNS.items()}


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_draws_every_run(chart: str, kind: str, runs: dict[str, Run | tuple[Run, ...]]) -> None:
    given = runs[kind]
    for figure in drawn(CHARTS[chart], given if isinstance(given, tuple) else (given,)):
        _check(figure)


def _check(figure: go.Figure) -> None:
    made = json.loads(figure.to_json(), parse_constant=pytest.fail)  # NaN and Infinity, which are no JSON
    go.Figure(made)  # raises for a property that Plotly does not know: they are drawn without its checks
    # Text of documents must reach the browser escaped: Plotly reads tags in names, hovers and annotations.
    words = json.dumps([t.hovertext for t in figure.data if hasattr(t, "hovertext") and t.hovertext is not None])
    assert "<ptx>" not in words
    assert "<b>too much" not in words
    if not figure.data:
        assert any(a.text for a in figure.layout.annotations), "an empty chart says why"


def test_the_charts_are_found() -> None:
    exported = {name for name in plots.__all__ if "_by_" in name}
    assert exported
    assert exported <= CHARTS.keys()


def _named(figure: go.Figure) -> list[str]:
    return [t.name for t in figure.data if t.showlegend is not False]


def test_a_line_for_each_variant_and_one_for_the_roof() -> None:
    run = samples.run()
    assert _named(plots.bandwidth_by_size(run)) == [
        "composite eager",
        "torch eager",
        "torch compile",
        "triton block per row",
        "triton persistent",
        "measured roof 4400 GB/s",
    ]
    assert len(plots.bandwidth_by_size(samples.run(roofs=())).data) == 5


def test_values_and_intervals_are_those_of_the_results() -> None:
    run = samples.run([samples.timed(_ONE, "torch_eager", 0.6)])
    result = run.results[0]
    timing, cost = result.timing, result.cost
    assert timing is not None
    assert cost is not None
    figure = figure_of(timing, "cold")
    assert figure is not None
    assert figure.high is not None
    assert figure.low is not None
    drawn = plots.latency_by_size(run).data[0]
    assert drawn.x[0] == 4096
    assert drawn.y[0] == pytest.approx(figure.estimate * 1e6)
    assert drawn.error_y.array[0] == pytest.approx((figure.high - figure.estimate) * 1e6)
    bandwidth = plots.bandwidth_by_size(run).data[0]
    assert bandwidth.y[0] == pytest.approx(cost.moved_bytes / figure.estimate / 1e9)
    assert bandwidth.error_y.array[0] == pytest.approx(
        (cost.moved_bytes / figure.low - cost.moved_bytes / figure.estimate) / 1e9
    )


def test_a_wrong_result_is_a_cross_without_a_line_and_never_on_the_roofline() -> None:
    figure = plots.bandwidth_by_size(samples.mixed())
    wrong = next(t for t in figure.data if t.name == "triton block per row ✕ wrong")
    assert wrong.mode == "markers"
    assert wrong.marker.symbol == "x-open"
    assert not any("block per row" in (t.name or "") for t in plots.rate_by_intensity(samples.mixed()).data)


def test_failures_stand_in_a_row_of_their_own_with_the_reason() -> None:
    failed = next(t for t in plots.latency_by_size(samples.mixed()).data if t.name == "✕ failed")
    assert failed.yaxis == "y2"
    assert len(failed.x) == 6
    assert "does not compile" in failed.hovertext[0]
    assert "out of memory" in failed.hovertext[-1]


def test_what_was_not_tried_did_not_fail() -> None:
    run = samples.run()
    problems = run.plan.problems
    made = [samples.failed(p, "cuda_row", "cancelled", "") for p in problems]
    made += [samples.failed(p, "triton_online", "crash", "") for p in problems]
    figure = plots.latency_by_size(
        samples.run([r for r in run.results if r.variant not in ("cuda_row", "triton_online")] + made)
    )
    rings, crosses = (next(t for t in figure.data if t.name == name) for name in ("not measured", "✕ failed"))
    assert (rings.marker.symbol, crosses.marker.symbol) == ("circle-open", "x")
    assert len(rings.x) == len(crosses.x) == len(problems)
    assert set(rings.y).isdisjoint(crosses.y)
    assert "cancelled" in rings.hovertext[0]


def test_above_a_thousand_points_webgl_draws() -> None:
    assert isinstance(plots.latency_by_size(_many()).data[0], go.Scattergl)
    assert isinstance(plots.latency_by_size(samples.run()).data[0], go.Scatter)


def test_the_end_of_the_cache_is_marked_above_the_frame() -> None:
    sizes = [{"n": 2**e} for e in range(18, 27)]
    figure = plots.bandwidth_by_size(samples.run(op="add", sizes=sizes, dtype="fp32", shares={"torch_eager": 0.9}))
    (line,) = figure.layout.shapes
    assert line.x0 == pytest.approx(60 * 2**20 / 12, rel=0.01)
    (label,) = (a for a in figure.layout.annotations if "L2" in a.text)
    assert (label.y, label.yanchor) == (1, "bottom")


def test_a_grid_of_sizes_gets_a_line_for_each_other_size_but_one_legend_entry() -> None:
    run = RUNS["grid"]()
    assert isinstance(run, Run)
    figure = plots.latency_by_size(run, axis="n")
    eager = [t for t in figure.data if t.name == "torch eager"]
    assert len(eager) == 2
    assert [t.showlegend for t in eager] == [True, False]


def test_a_long_legend_makes_the_chart_higher_and_leaves_the_lines_their_room() -> None:
    """22 variants have six rows beside the few of four, in a chart that grows by as much."""
    run = samples.run(op="matmul", sizes=[{"m": 512, "n": 512, "k": 512}, {"m": 1024, "n": 1024, "k": 1024}])
    names = [v.name for v in catalogue()["matmul"].variants][:22]
    many = samples.run(op="matmul", sizes=[p.sizes for p in run.plan.problems], shares=dict.fromkeys(names, 0.5))
    few, long = (plots.rate_by_size(one) for one in (run, many))
    assert few.layout.height < long.layout.height <= few.layout.height + LEGEND_GROWTH_PX
    lines_px = [f.layout.height * (1 - f.layout.legend.maxheight) for f in (few, long)]
    assert lines_px[0] == pytest.approx(lines_px[1], abs=1)


def test_lines_of_one_variant_are_named_at_their_ends_by_the_size_that_differs() -> None:
    run = RUNS["grid"]()
    assert isinstance(run, Run)
    for draw in (plots.latency_by_size, plots.bandwidth_by_size):
        figure = draw(run, axis="n")
        named = [a for a in figure.layout.annotations if "m = " in a.text]
        assert {a.text for a in named} == {"— m = 16", "··· m = 4,096"}, "each with its dash"
        dashes = [t.line.dash for t in figure.data if t.legendgroup]
        assert dashes.count("solid") == dashes.count("dot") == len(dashes) / 2
        assert {a.x for a in named} == {math.log10(4096)}
        ends = [t.y[-1] for t in figure.data if t.legendgroup]
        at = [10**a.y if figure.layout.yaxis.type == "log" else a.y for a in named]
        for value in ends:  # each line's own words, or those of lines that it lies on
            assert min(abs(a - value) for a in at) < 0.06 * max(ends)
        assert figure.layout.margin.r > 40, "room for them"
    assert not [a for a in plots.latency_by_size(samples.run()).layout.annotations if " = " in a.text]


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12).map(sorted))
def test_words_behind_lines_stay_apart_and_in_order(heights: list[float]) -> None:
    moved = [h + s for h, s in zip(heights, line_labels.shifts(heights), strict=True)]
    assert all(b - a >= 13 - 1e-6 for a, b in itertools.pairwise(moved))
    alone = [h for i, h in enumerate(heights) if all(abs(h - o) > 13 * 12 for o in heights[:i] + heights[i + 1 :])]
    assert all(h in moved for h in alone), "who has room stays"


def test_two_runs_are_told_apart_by_device() -> None:
    names = _named(plots.latency_by_size(_two_devices()))
    assert "torch eager · NVIDIA H200" in names
    assert "torch eager · AMD EPYC 9654" in names


@pytest.mark.parametrize("size", [4096, 2**28])
def test_roofline_labels_stay_apart_below_the_roof_and_inside_the_frame(size: int) -> None:
    """At 4096 elements all variants take the launch's time: their points fall together far below the roof."""
    shares = {"torch_eager": 0.95, "torch_compile": 0.94, "triton_block": 0.8, "cuda_scalar": 0.9, "cuda_vec16": 0.97}
    figure = plots.rate_by_intensity(samples.run(op="add", sizes=[{"n": size}], dtype="fp32", shares=shares))
    labels = sorted((a for a in figure.layout.annotations if a.ayref == "y"), key=lambda a: a.ay)
    low, high = figure.layout.yaxis.range
    pixels = 250 / (high - low)
    gaps = [(b.ay - a.ay) * pixels for a, b in itertools.pairwise(labels)]
    roof = math.log10(4.40e12 / 12)
    assert len(labels) == 5
    assert min(gaps) >= 16, "labels overlap"
    assert (labels[0].ay - low) * pixels >= 10, "a label leaves the frame"
    assert (roof - labels[-1].ay) * pixels >= 12, "a label touches the roof"


def test_other_sizes_stand_on_the_roofline_only_at_another_intensity() -> None:
    assert {len(t.x) for t in plots.rate_by_intensity(samples.run()).data if t.mode == "markers"} == {1}
    square = [{"m": s, "n": s, "k": s} for s in (512, 1024, 2048)]
    figure = plots.rate_by_intensity(samples.run(op="matmul", sizes=square, shares={"torch_eager": 0.9}))
    assert [len(t.x) for t in figure.data if t.mode == "markers"] == [3]


def test_bars_of_times_that_no_call_can_take_are_drawn() -> None:
    """A file may claim them."""
    made = samples.run(shares={"torch_eager": 0.9, "composite_eager": 0.5}, sizes=samples.RMSNORM_SWEEP[:1])
    for times_s in ((1e-3, 5e-324), (1e-322, 5e-324), (1e300, 1e-300)):
        results = [
            msgspec.structs.replace(r, outcome=Timing(device_cold_s=Figure(estimate=time_s)))
            for r, time_s in zip(made.results, times_s, strict=True)
        ]
        run = msgspec.structs.replace(made, results=tuple(results))
        endless = [msgspec.structs.replace(r, bandwidth_bytes_per_s=1e308) for r in samples.H200_ROOFS if r.level]
        plots.time_by_variant(run, roofs=endless)
        figure = plots.time_by_variant(run)
        assert all(map(math.isfinite, figure.layout.xaxis.range)), times_s


def test_two_runs_of_a_device_are_named_by_what_distinguishes_them() -> None:
    """The titles of two runs of attention with other heads are too long to stand beside each variant."""

    def run(hq: int, title: str, ids: str = "", s: int = 1024) -> Run:
        sizes = [{"b": 1, "s": s * n, "hq": hq, "hk": 4, "d": 64} for n in (1, 2)]
        return samples.run(id=f"run{hq}{ids}", op="attention", sizes=sizes, title=title)

    long = "attention bf16, {} heads, measured on an NVIDIA H200"
    assert _names(run(4, "before"), run(8, "after")) == ["before", "after"]
    assert _names(run(4, long.format(4)), run(8, long.format(8))) == ["hq = 4", "hq = 8"]
    assert _names(run(4, "the same"), run(8, "the same")) == ["hq = 4", "hq = 8"]
    assert _names(run(4, long), run(4, long, "b", s=512)) == ["run4", "run4b"], "a swept axis says nothing"


def _names(*runs: Run) -> list[str]:
    return [format_run(run, runs) for run in runs]


def test_bars_are_one_a_variant_with_time_and_share_in_words() -> None:
    figure = plots.time_by_variant(samples.run())
    bars, markers = ([t for t in figure.data if t.type == kind] for kind in ("bar", "scatter"))
    assert len(bars) == len(markers) == 5
    # Nothing is said by colour alone: each bar has the marker of its variant in the column before it.
    for bar, marker in zip(bars, markers, strict=True):
        style = plots.style_of("rmsnorm", bar.name.replace(" ", "_"))
        assert (marker.y, marker.marker.symbol, marker.marker.color) == (bar.y, style.marker, bar.marker.color)
    assert figure.layout.xaxis2.domain[1] == figure.layout.xaxis.domain[0]
    words = [a.text for a in figure.layout.annotations]
    assert any(w.startswith("129.") and w.endswith("95 %") for w in words), words
    assert any(w.startswith("speed of light 122.0 µs (memory-bound)") for w in words), words
    assert figure.layout.xaxis.title.text == "time, µs"


@pytest.mark.parametrize(("slowest", "logarithmic"), [(0.05, False), (0.04, True)])
def test_bars_of_a_slow_variant_do_not_hide_the_others(slowest: float, logarithmic: bool) -> None:
    """Attention with its scores in memory took 25 times as long as the others, whose bars were a few pixels long."""
    figure = plots.time_by_variant(samples.run(shares={"torch_eager": 0.95, "composite_eager": slowest}))
    axis = figure.layout.xaxis
    assert (axis.type == "log", axis.title.text.endswith(", logarithmic axis")) == (logarithmic, logarithmic)
    shown = [10**end for end in axis.range] if logarithmic else axis.range
    times = [bar.x[0] for bar in figure.data if bar.type == "bar"]
    assert shown[0] < min(times)
    assert max(times) < shown[1]
    light = next(a for a in figure.layout.annotations if a.text.startswith("speed of light"))
    (line,) = figure.layout.shapes
    assert 10**light.x == pytest.approx(line.x0) if logarithmic else light.x == line.x0
    assert shown[0] < line.x0 < min(times)
