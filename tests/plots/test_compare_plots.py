"""The bars of a comparison and the samples of one pair: checked by Plotly, with every look a pair can have."""

from __future__ import annotations

import math

import compared_runs as runs
import msgspec
import plotly.graph_objects as go
import pytest
import sample_runs as samples

from kernelviz.core.result import Figure, Timing
from kernelviz.formats import shipped_runs
from kernelviz.metrics.comparison import Comparison, compare
from kernelviz.metrics.sweep import varying_axes
from kernelviz.plots import ratio_by_case, shares_by_time
from kernelviz.plots.comparison import ROW_PX, TWO_LINES_PX, ratio_ticks
from kernelviz.text.charts import describe_comparison

MIXED = {"triton_persistent": 1.05, "triton_block_per_row": 0.5}


def checked(figure: go.Figure) -> go.Figure:
    """The same figure through Plotly's own checks."""
    traces = [t.to_plotly_json() if hasattr(t, "to_plotly_json") else t for t in figure.data]
    return go.Figure(data=traces, layout=figure.layout)


def mixed() -> Comparison:
    return compare(runs.before(), runs.after(MIXED, wrong="triton_persistent"))


def test_a_bar_a_pair_in_its_order_with_the_sign_beside_the_colour() -> None:
    found = mixed()
    figure = checked(ratio_by_case(found))
    bars = [t for t in figure.data if t.customdata is not None]
    assert {t.name for t in bars} == {"▼ slower", "▲ faster", "≈ identical", "⊘ not comparable"}
    assert sorted(k for t in bars for k in t.customdata) == sorted(p.key for p in found.pairs)
    rows = list(figure.layout.yaxis.categoryarray)
    assert len(rows) == len(set(rows)) == 18
    assert rows[0].endswith("✕")
    assert "▼ 1.05" in rows[1] or "▼ 1.049" in rows[1]
    slower = next(t for t in bars if t.name == "▼ slower")
    pair = found.pairs[1]
    assert pair.ratio is not None
    assert slower.x[0] == pytest.approx(math.log(pair.ratio.estimate))
    assert slower.x[0] - slower.error_x.arrayminus[0] == pytest.approx(math.log(pair.ratio.low or 0))
    assert "noise floor" in slower.hovertext[0]
    assert any(a.text == "B has no correct time (wrong result)" for a in figure.layout.annotations)


def test_a_row_names_every_size_that_varies() -> None:
    rows = list(ratio_by_case(mixed()).layout.yaxis.categoryarray)
    varying = varying_axes([p.problem for p in mixed().pairs])
    assert varying
    assert all(f"{axis} = " in row for row in rows for axis in varying)
    shipped = shipped_runs.load("h200-softmax")
    both = ratio_by_case(compare(shipped, shipped, variant_a="torch_eager", variant_b="triton_persistent"))
    assert all("m = " in row and "n = " in row for row in both.layout.yaxis.categoryarray)


def test_a_label_of_variant_and_sizes_has_two_lines_and_a_higher_row() -> None:
    """In one line, the labels left a phone 60 pixels for bars, ticks and title."""
    found = compare(runs.before(), runs.after())
    figure = ratio_by_case(found)
    assert all(row.count("<br>") == 1 for row in figure.layout.yaxis.categoryarray)
    assert figure.layout.height - ratio_by_case(found, most=1).layout.height == TWO_LINES_PX * (len(found.pairs) - 1)
    by_size = compare(runs.before(), runs.before(), variant_a="torch_eager", variant_b="triton_persistent")
    assert not any("<br>" in row for row in ratio_by_case(by_size).layout.yaxis.categoryarray)


def test_only_the_worst_are_drawn_when_asked() -> None:
    figure = ratio_by_case(mixed(), most=3)
    assert len(figure.layout.yaxis.categoryarray) == 3


def test_every_value_lies_in_the_frame() -> None:
    for found in (
        mixed(),
        compare(runs.before(), runs.after()),
        compare(runs.before(), runs.after({"torch_eager": 40.0})),
    ):
        figure = ratio_by_case(found)
        low, high = figure.layout.xaxis.range
        assert low < 0 < high
        for pair in found.pairs:
            if pair.ratio is not None:
                assert low <= math.log(pair.ratio.estimate) <= high
        assert any(text == "equal" for text in figure.layout.xaxis.ticktext)
        assert not any(" " in text for text in figure.layout.xaxis.ticktext)  # a phone has no space for one long line
        assert 2 <= len(figure.layout.xaxis.ticktext) <= 7


@pytest.mark.parametrize(("low", "high"), [(0.999, 1.001), (0.9, 1.05), (0.5, 3.0), (0.01, 500.0), (1.0, 1.0)])
def test_ticks_hold_equal_and_are_few(low: float, high: float) -> None:
    ticks, words = ratio_ticks(low, high)
    assert 1.0 in ticks
    assert words[ticks.index(1.0)] == "equal"
    assert len(ticks) == len(set(words)) <= 7
    assert ticks == sorted(ticks)


def test_hostile_names_are_words_and_equal_names_are_two_rows() -> None:
    hostile = "<b onclick=x>"
    shares = {"torch_eager": 0.6, hostile: 0.9}
    a, b = (samples.run(id=i, shares=shares) for i in ("a", "b"))
    results = tuple(runs.again(r, 1.1, seed=n) for n, r in enumerate(b.results))
    found = compare(a, msgspec.structs.replace(b, results=results))
    drawn = str(checked(ratio_by_case(found)).to_json()) + str(shares_by_time(found, found.pairs[0]).to_json())
    drawn = (
        drawn.replace("\\u003c", "<").replace("\\u003e", ">").replace(f"| {hostile}", "")
    )  # keys are for clicks only
    assert "&lt;b onclick" in drawn
    assert "<b onclick" not in drawn, drawn[drawn.index("<b onclick") - 200 :][:300]


def test_nothing_in_common_is_a_sentence() -> None:
    other = samples.run(id="other", op="add", sizes=[{"n": 8}], dtype="fp32", shares={"torch_eager": 1.0})
    figure = checked(ratio_by_case(compare(runs.before(), other)))
    assert "A and B have no case in common" in figure.layout.annotations[0].text
    assert "0 cases" in str(describe_comparison(compare(runs.before(), other)))


def test_samples_of_both_sides_rise_to_the_whole() -> None:
    found = mixed()
    figure = checked(shares_by_time(found, found.pairs[1]))
    lines = [t for t in figure.data if t.mode == "lines"]
    assert [t.line.dash for t in lines] == ["dash", "solid"]
    assert [(t.y[0], t.y[-1]) for t in lines] == [(0, 100), (0, 100)]
    assert [t.name for t in figure.data if t.mode == "markers"] == ["A: triton persistent", "B: triton persistent"]
    assert lines[0].line.color != lines[1].line.color
    alone = checked(shares_by_time(found, found.pairs[0]))
    assert [t.name for t in alone.data if t.mode == "markers"] == ["A: triton persistent"]


def test_no_samples_is_a_sentence() -> None:
    bare = Timing(device_cold_s=Figure(estimate=1e-3, timer="cupti", launch="graph"))
    a = runs.before()
    made = [msgspec.structs.replace(a, id=i, results=tuple(msgspec.structs.replace(r, outcome=bare) for r in a.results))
            for i in "ab"]  # fmt: skip
    found = compare(*made)
    assert "The samples of this case are not stored" in shares_by_time(found, found.pairs[0]).layout.annotations[0].text


def test_times_that_were_not_measured_are_a_sentence_and_no_empty_axis() -> None:
    cold = samples.run(id="cold", shares=runs.VARIANTS)
    found = compare(cold, cold, variant_a="torch_eager", variant_b="triton_persistent", headline="warm")
    bars, samples_of_case = ratio_by_case(found), shares_by_time(found, found.pairs[0])
    assert "neither A nor B has a warm time" in bars.layout.annotations[0].text
    assert not bars.layout.xaxis.visible
    assert "Neither A nor B has a correct warm time" in samples_of_case.layout.annotations[0].text
    one = compare(cold, runs.before(), headline="warm")
    assert "A has no warm time" in ratio_by_case(one).layout.annotations[0].text


def test_real_runs_are_drawn() -> None:
    run = shipped_runs.load("h200-matmul")
    found = compare(run, run, variant_a="torch_eager", variant_b="cuda_naive")
    figure = checked(ratio_by_case(found))
    assert "8×<br>slower" in figure.layout.xaxis.ticktext
    assert str(describe_comparison(found)).startswith("Time of B divided by time of A for 5 cases. Worst: matmul")


def test_ticks_of_a_single_case_keep_their_space() -> None:
    """Plotly takes the space of ticks and title for a plot of less than `minreducedheight`, by default 64 pixels."""
    assert ratio_by_case(mixed(), most=1).layout.minreducedheight <= ROW_PX
