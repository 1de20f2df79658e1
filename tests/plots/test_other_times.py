"""The chart of another tool's times: every case is there with its time, and nothing that the file does not say."""

from __future__ import annotations

import msgspec
import peers
import plotly.graph_objects as go
import pytest
import sample_runs as samples

from kernelviz import plots
from kernelviz.core.result import Failure, Figure, Timing
from kernelviz.formats import read
from kernelviz.metrics import foreign_times

RUNS = {r.title: r for r in read(peers.nvbench())}
RUNS |= {name: read(peers.gbench(name))[0] for name in ("1", "repetitions")}


def checked(figure: go.Figure) -> go.Figure:
    """Put through Plotly's own checks, which a chart made as data skips."""
    return go.Figure(figure.to_dict())


@pytest.mark.parametrize("title", RUNS)
def test_every_time_of_every_case_is_drawn(title: str) -> None:
    run = RUNS[title]
    for name in foreign_times.names(run):
        figure = checked(plots.other_times_by_size(run, name))
        drawn = [trace for trace in figure.data if trace.xaxis != "x2"]
        assert sum(len(trace.x) for trace in drawn) == sum(name in foreign_times.of_case(r) for r in run.results)
        for trace in figure.data[len(drawn) :]:  # beside bars, the marker of each variant
            assert (trace.y, trace.marker.color) == (drawn[0].y, drawn[0].marker.color)
        assert not any(trace.error_y.array for trace in figure.data if hasattr(trace, "error_y"))


def test_lines_of_a_grid_are_told_apart_by_more_than_colour() -> None:
    figure = checked(plots.other_times_by_size(RUNS["nvbench: copy_sweep_grid_shape on Quadro GV100"]))
    assert [t.name for t in figure.data] == [f"copy_sweep_grid_shape, BlockSize = {n:,}" for n in (64, 256, 1024)]
    assert len({t.marker.symbol for t in figure.data}) == 3
    assert figure.data[0].y[0] == pytest.approx(6.4857, rel=1e-4)
    assert figure.layout.yaxis.title.text == "GPU time, cold, ms"


def test_bars_over_many_decades_name_their_units() -> None:
    figure = checked(plots.other_times_by_size(RUNS["1"], "real time"))
    assert figure.layout.xaxis.type == "log"
    assert {text.split()[1] for text in figure.layout.xaxis.ticktext} <= {"ns", "µs", "ms", "s"}


def test_nothing_to_draw_is_said() -> None:
    first = samples.mixed().results[0]
    failed = samples.run([msgspec.structs.replace(first, outcome=Failure(stage="crash", message="x"))])
    for run in (failed, samples.run([])):
        assert "No case of this run has this time" in checked(plots.other_times_by_size(run)).layout.annotations[0].text


def test_words_of_a_file_are_no_html() -> None:
    evil = "<img src=x onerror=alert(1)>"
    outcome = Timing(other_times={evil: Figure(estimate=1e-6, method=evil)})
    first = samples.mixed().results[0]
    for problem in (first.problem, msgspec.structs.replace(first.problem, sizes={evil: 1})):
        one = msgspec.structs.replace(first, problem=problem, variant=evil, outcome=outcome)
        again = msgspec.structs.replace(one, problem=msgspec.structs.replace(problem, sizes={evil: 2}))
        run = samples.run([one])
        assert "<img" not in checked(plots.other_times_by_size(run)).to_json()
        both = msgspec.structs.replace(
            run, plan=msgspec.structs.replace(run.plan, problems=(one.problem, again.problem)), results=(one, again)
        )
        if problem.sizes == {evil: 1}:
            assert "<img" not in checked(plots.other_times_by_size(both)).to_json()
