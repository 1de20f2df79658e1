"""The map of winners: a cell for each size, hatched where variants are tied, a line where winner changes."""

from __future__ import annotations

import msgspec
import plotly.graph_objects as go
import pytest
import sample_runs as samples

from kernelviz import plots
from kernelviz.core.run import Run, Status
from kernelviz.metrics.rows import rows
from kernelviz.metrics.winner import winners

GRID = [{"m": m, "n": n} for m in (16, 4096) for n in (1024, 2048, 4096)]


def grid() -> Run:
    """At m = 16 two are the same, at m = 4096 torch_compile leads up to n = 2048, triton_persistent beyond."""
    made = []
    for p in samples.problems("rmsnorm", GRID):
        compiled = 0.5 if p.sizes["m"] == 16 else 0.95 if p.sizes["n"] < 4096 else 0.6
        made += [
            samples.timed(p, "torch_eager", 0.3, again=True),
            samples.timed(p, "torch_compile", compiled),
            samples.timed(p, "triton_persistent", 0.5 if p.sizes["m"] == 16 else 0.8),
        ]
    return samples.run(made, sizes=GRID, shares={})


def cells(figure: go.Figure) -> dict[tuple[int, float], go.Bar]:
    return {
        (x, base + 0.5): t
        for t in figure.data
        if t.type == "bar" and t.base is not None
        for x, base in zip(t.x, t.base, strict=True)
    }


@pytest.mark.parametrize("run", [samples.run([]), samples.run(), samples.mixed(), grid()], ids=range(4))
def test_every_run_is_drawn_or_says_why_not(run: Run) -> None:
    figure = plots.winner_by_size(run)
    text = figure.to_json()
    assert "NaN" not in text
    assert "<b>too much" not in text
    if not run.results:
        assert any("No case has a correct" in a.text for a in figure.layout.annotations)


def test_a_cell_a_size_with_its_key_hatched_where_it_is_not_decided() -> None:
    run = grid()
    figure = plots.winner_by_size(run, axis="n")
    found = cells(figure)
    assert set(found) == {(x, y) for x in range(3) for y in (0, 1)}
    assert [found[x, 1].name for x in range(3)] == ["torch compile", "torch compile", "triton persistent"]
    for x in range(3):
        assert found[x, 0].marker.pattern.shape == "/"
        assert set(found[x, 0].name.split(" or ")) == {"torch compile", "triton persistent"}
        assert found[x, 1].marker.pattern.shape == ""
    keys = {key for t in figure.data if t.type == "bar" and t.customdata is not None for key in t.customdata}
    assert keys == {p.key for p in run.plan.problems}
    assert list(figure.layout.yaxis.ticktext) == ["16", "4,096"]


def test_the_line_stands_where_nobody_can_lead_on_both_sides_and_only_there() -> None:
    figure = plots.winner_by_size(grid(), axis="n")
    lines = [t for t in figure.data if t.type == "scatter" and t.mode == "lines" and t.showlegend is False]
    assert [(list(t.x), list(t.y)) for t in lines] == [([1.5, 1.5, None], [0.5, 1.5, None])] * 2
    assert not any(t.name == "winner changes" for t in plots.winner_by_size(samples.mixed()).data)


def test_the_legend_names_each_by_marker_and_the_hatching_in_words() -> None:
    figure = plots.winner_by_size(grid())
    named = {t.name: t for t in figure.data if t.showlegend is not False}
    assert set(named) == {"torch compile", "triton persistent", "statistical tie", "winner changes"}
    for variant in ("torch_compile", "triton_persistent"):
        style = plots.style_of("rmsnorm", variant)
        marker = named[variant.replace("_", " ")].marker
        assert (marker.symbol, marker.color) == (style.marker, style.colour)


def test_over_a_cell_stand_every_time_the_ratio_and_the_reason() -> None:
    run = grid()
    figure = plots.winner_by_size(run, axis="n")
    trace = cells(figure)[0, 1]
    words = trace.hovertext[list(trace.x).index(0)]
    (one,) = (w for w in winners(rows(run, ())) if w.problem.sizes == {"m": 4096, "n": 1024})
    assert one.ratio is not None
    assert "<b>torch compile is the fastest</b>" in words
    assert f"triton persistent takes {one.ratio:.3f}× the time" in words
    assert "the whole 95 % interval is beyond the ±0.5 % noise floor" in words
    assert all(name in words for name in ("torch eager: ", "torch compile: ", "triton persistent: "))


def test_one_axis_is_a_strip_and_sizes_without_a_correct_time_are_crossed() -> None:
    run = samples.run(shares={"torch_eager": 0.6})
    gone = samples.failed(run.results[0].problem, "torch_eager", "out_of_memory")
    figure = plots.winner_by_size(msgspec.structs.replace(run, results=(gone, *run.results[1:])))
    found = cells(figure)
    assert {y for _, y in found} == {0}
    assert found[0, 0].marker.pattern.shape == "x"
    assert "no correct time" in {t.name for t in figure.data if t.showlegend}
    assert not figure.layout.yaxis.showticklabels


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("finished", "No case has a warm time: only cold times were measured."),
        ("running", "No case has a correct warm time yet."),
    ],
)
def test_charts_without_a_warm_time_say_the_same(status: Status, says: str) -> None:
    run = samples.run(status=status)
    assert not any(r.timing.device_warm_s for r in run.results if r.timing)
    for chart in (plots.winner_by_size, plots.bandwidth_by_size, plots.rate_by_intensity):
        (note,) = chart(run, headline="warm").layout.annotations
        assert " ".join(note.text.replace("<br>", " ").split()) == says


def test_a_cell_of_more_than_two_variants_says_how_many_and_the_legend_what_that_means() -> None:
    problem, *others = samples.problems("rmsnorm", GRID)
    names = ("torch_eager", "torch_compile", "triton_persistent", "triton_two_passes")
    made = [
        samples.timed(p, name, 0.5 if p is problem else 0.5 - 0.1 * i)
        for p in (problem, *others)
        for i, name in enumerate(names)
    ]
    drawn = plots.winner_by_size(samples.run(made, sizes=GRID, shares={}), axis="n").data
    points = [t for t in drawn if t.type == "scatter" and t.x[0] is not None]
    (more,) = (t for t in points if t.mode == "text")
    assert (list(more.x), list(more.text)) == ([0], ["+2"])
    assert [t.name for t in drawn if t.showlegend and "+n" in (t.name or "")] == ["+n: n more may win"]
    marked = [
        y for t in points if t.mode == "markers" for x, y in zip(t.x, t.y, strict=True) if abs(x) < 0.5 and y < 0.5
    ]
    assert len(marked) == 2
    others_marked = [
        y for t in points if t.mode == "markers" for x, y in zip(t.x, t.y, strict=True) if x > 0.5 and y < 0.5
    ]
    assert min(marked) > max(others_marked), "room for the number below"
    few = plots.winner_by_size(grid()).data
    assert not [t for t in few if (t.type == "scatter" and t.mode == "text") or (t.name or "").startswith("+n")]


def test_the_cells_leave_room_for_the_whole_legend_of_a_phone() -> None:
    names = [f"cuda_variant_{number}" for number in range(9)]
    sizes = [{"m": 4096, "n": 1024 * (number + 1)} for number in range(9)]
    made = [
        samples.timed(p, name, 0.8 if i == number else 0.4)
        for number, p in enumerate(samples.problems("rmsnorm", sizes))
        for i, name in enumerate(names)
    ]
    few, many = plots.winner_by_size(grid(), axis="n"), plots.winner_by_size(samples.run(made, sizes=sizes, shares={}))
    for figure in (few, many):
        entries = [t for t in figure.data if t.showlegend is not False]
        legend_px = 10 + 19 * -(-len(entries) // 2)  # two columns
        layout = figure.layout
        assert layout.legend.maxheight * layout.height >= legend_px
        cells_px = 48 / -layout.legend.y
        assert layout.height >= cells_px + 48 + legend_px
        assert cells_px >= 80
    assert many.layout.height > few.layout.height
