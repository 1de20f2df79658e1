"""The roofline of many cases: every point and roof is in it, names stand outside the plot, one can be isolated."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser

import earlier_runs
import msgspec
import planted_limits as plant
import plotly.graph_objects as go
import pytest
import sample_runs as samples

from kernelviz.core.run import Roof, Run
from kernelviz.hardware.datasheet import ceilings
from kernelviz.metrics.compute_ceilings import ceiling_of
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.placement import Placed, placed
from kernelviz.plots import rates_by_intensity, style_of
from kernelviz.plots.roofline_of_runs import MOST_NAMED, describe_point, lines_of
from kernelviz.text.roofs import describe_distance


def cases(*runs: Run, headline: Headline = "cold") -> tuple[Placed, ...]:
    return tuple(
        c for r in runs for c in placed(r, r.title or r.id, r.environment.roofs, r.environment.roofs, headline)
    )


def points(figure: go.Figure) -> list[go.Scatter]:
    """The traces of cases, without the two of the legend of sizes."""
    return [t for t in figure.data if t.mode == "markers" and t.legend != "legend3"]


def lines(figure: go.Figure) -> list[go.Scatter]:
    return [t for t in figure.data if t.mode == "lines"]


@pytest.mark.parametrize("name", ["none", "no arithmetic", "only failures", "two devices", "not calibrated", "shipped"])
def test_every_kind_of_runs_makes_a_figure(name: str) -> None:
    made = {
        "none": (),
        "no arithmetic": cases(earlier_runs.load("h200-copy")),
        "only failures": cases(samples.run([samples.failed(samples.problems("add", [{"n": 8}])[0], "v", "crash")])),
        "two devices": cases(samples.run(id="a"), samples.run(id="b", device=samples.CPU, roofs=samples.H200_ROOFS)),
        "not calibrated": cases(samples.run(roofs=())),
        "shipped": cases(*map(earlier_runs.load, earlier_runs.names())),
    }[name]
    figure = rates_by_intensity(made)
    json.loads(figure.to_json())
    drawn = [c for c in made if c.drawable]
    assert sum(len(t.x) for t in points(figure)) == len(drawn)
    if not drawn:
        assert len(figure.layout.annotations) == 1
        return
    # Every point and the start of every ceiling lie inside the frame.
    for axis, values in (("xaxis", [c.intensity for c in drawn]), ("yaxis", [c.rate_flop_per_s for c in drawn])):
        low, high = figure.layout[axis].range
        assert all(low < math.log10(v) < high for v in values if v)
    assert bool(lines(figure)) == (name != "not calibrated")


def test_nothing_is_written_inside_the_plot() -> None:
    figure = rates_by_intensity(cases(*map(earlier_runs.load, earlier_runs.names())))
    assert not figure.layout.annotations
    assert {t.mode for t in figure.data} == {"markers", "lines"}


def test_no_point_of_a_case_below_its_roof_lies_above_the_lines() -> None:
    made = cases(earlier_runs.load(plant.MATMUL), earlier_runs.load(plant.RMSNORM))
    slope = max(x.value for x in lines_of(made) if not x.is_ceiling)
    for case in made:
        assert case.share is not None
        assert case.rate_flop_per_s <= case.intensity * slope * max(case.share, 1.0) * 1.0001  # type: ignore[operator]


@pytest.mark.parametrize(
    ("least", "label"), [(4.352e12, "DRAM 4.35 TB/s"), (4.2e12, "DRAM 4.20 TB/s to 4.35 TB/s by the read:write mixes")]
)
def test_a_slope_names_a_range_only_where_its_ends_read_differently(least: float, label: str) -> None:
    read, copy, *others = samples.H200_ROOFS
    runs = [
        samples.run(id=f"{rate:.0f}", roofs=(read, msgspec.structs.replace(copy, bandwidth_bytes_per_s=rate), *others))
        for rate in (4.354e12, least)
    ]
    slope = next(line for line in lines_of(cases(*runs)) if not line.is_ceiling)
    assert slope.label.startswith(label), slope.label


def test_a_slope_meets_the_highest_ceiling_and_each_ceiling_begins_on_it() -> None:
    figure = rates_by_intensity(cases(earlier_runs.load(plant.MATMUL), earlier_runs.load(plant.RMSNORM)))
    slope, *ceilings = lines(figure)
    bandwidth = slope.y[0] / slope.x[0]
    assert max(t.y[0] for t in ceilings) == pytest.approx(slope.y[-1])
    for ceiling in ceilings:
        assert ceiling.y[0] == ceiling.y[1] == pytest.approx(bandwidth * ceiling.x[0])
        assert ceiling.x[0] < 10 ** figure.layout.xaxis.range[1]


def test_lines_and_runs_are_told_apart_without_colour() -> None:
    runs = (samples.run(id="a"), samples.run(id="b", device=samples.CPU, roofs=samples.H200_ROOFS))
    figure = rates_by_intensity(cases(*runs))
    assert len({t.line.dash for t in lines(figure)}) == len(lines(figure))
    assert {samples.H200.name, samples.CPU.name} <= {n for t in lines(figure) for n in str(t.name).split(" · ")}
    same = [t for t in points(figure) if "persistent" in t.name]
    marker = style_of("rmsnorm", "triton_persistent").marker
    assert [t.marker.symbol for t in same] == [marker, f"{marker}-open"]
    assert len({t.name for t in points(figure)}) == len(points(figure))


def test_a_variant_has_the_colour_and_marker_that_it_has_everywhere() -> None:
    for trace in points(rates_by_intensity(cases(earlier_runs.load(plant.MATMUL)))):
        style = style_of("matmul", trace.name.replace(" ", "_"))
        assert set(trace.marker.color) == {style.colour}
        assert trace.marker.symbol == style.marker


@pytest.mark.parametrize("by", ["group", "case"])
def test_what_is_isolated_stays_and_the_rest_is_faint(by: str) -> None:
    made = cases(earlier_runs.load(plant.MATMUL))
    chosen = next(c for c in made if c.variant == "cuda_naive" and c.problem.sizes["m"] == 2048)
    figure = rates_by_intensity(made, **({"case": chosen.key} if by == "case" else {"group": chosen.group}))
    clear = [
        key
        for t in points(figure)
        for key, colour in zip(t.customdata, t.marker.color, strict=True)
        if "rgba" not in colour
    ]
    assert set(clear) == ({chosen.key} if by == "case" else {c.key for c in made if c.group == chosen.group})
    assert sum(t.showlegend for t in points(figure)) == 1


def test_the_legend_has_room_and_is_left_out_when_it_would_be_longer_than_the_plot() -> None:
    few, many = cases(earlier_runs.load(plant.ADD)), cases(*map(earlier_runs.load, earlier_runs.names()))
    assert all(t.showlegend for t in points(rates_by_intensity(few)))
    figure = rates_by_intensity(many)
    assert len(points(figure)) > MOST_NAMED
    assert not any(t.showlegend for t in points(figure))
    for made in (figure, rates_by_intensity(few)):
        plot_px = made.layout.height - made.layout.margin.t - made.layout.margin.b
        assert plot_px == 360
        assert -made.layout.legend2.y * plot_px < made.layout.margin.b + 1


def test_hover_says_share_limiter_and_distance() -> None:
    case = next(
        c for c in cases(earlier_runs.load(plant.MATMUL)) if c.variant == "cuda_tiled" and c.problem.sizes["m"] == 4096
    )
    said = describe_point(case).replace("<br>", " ")
    assert "1 % of the roof (matmul bf16, 784 TFLOP/s, measured): 89× the 175.2 µs that the roof allows" in said
    assert "unclear: 8.81 TFLOP/s: 1 % of the measured matmul bf16, 784 TFLOP/s" in said
    assert "± " in said
    over = next(c for c in cases(earlier_runs.load(plant.ADD)) if c.share is not None and c.share > 1.01)
    assert "101 % of the roof" in describe_distance(over)
    assert "×" not in describe_distance(over)


def test_names_from_a_document_are_text() -> None:
    problem = samples.problems("rmsnorm", [{"m": 64, "n": 64}])[0]
    evil = "<script>alert(1)</script>"
    run = samples.run([samples.timed(problem, evil, 0.5)], title=evil)
    device = msgspec.structs.replace(samples.H200, name=f"<b>{evil}")
    figure = rates_by_intensity(cases(plant.moved_to(run, device, samples.H200_ROOFS), samples.run(id="b")))
    tags: set[str] = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.add(tag)  # type: ignore[method-assign]
    for trace in figure.data:
        texts = trace.hovertext if isinstance(trace.hovertext, tuple) else (trace.hovertext,)
        parser.feed("".join(map(str, (*texts, trace.name))))
    assert tags <= {"b", "br"}


def test_the_ceilings_of_arithmetic_are_lines_with_their_clock() -> None:
    run = earlier_runs.load(plant.MATMUL)
    instructions = Roof(
        name="mma", precision="bf16", unit="tensor", rate_flop_per_s=830e12, clock_hz=1.55e9, measured_at="2026-11-26"
    )
    measured = (*run.environment.roofs, instructions)
    sheet = ceilings(run.environment.device.name)
    made = placed(run, run.id, measured, measured, "cold", sheet)
    labels = [line.label for line in lines_of(made) if line.is_ceiling]
    best = max(made, key=lambda c: c.rate_flop_per_s or 0.0)
    issue = ceiling_of(best.ceilings, "issue_rate")
    assert issue is not None
    assert issue.clock_hz is not None
    assert [label.split(",")[0] for label in labels] == [
        "matmul bf16 784 TFLOP/s", "data sheet", "issue rate at the measured clock", "tensor-core loop without memory",
    ]  # fmt: skip
    assert f"at {issue.clock_hz / 1e6:.0f} MHz" in labels[2]
    assert "830 TFLOP/s at 1550 MHz" in labels[3]
    said = describe_point(best).replace("<br>", " ")
    assert "of the issue rate at the measured clock" in said
    # A run that is compared with the data sheet has its peak as the roof, and no second line of it.
    # Without measured roofs, ceilings of the data sheet are lines, but there is no memory roof and no ridge.
    alone = placed(run, run.id, (), (), "cold", sheet)
    assert {line.is_ceiling for line in lines_of(alone)} == {True}
    assert len(lines(rates_by_intensity(alone))) == len(lines_of(alone))
    on_sheet = placed(run, run.id, measured, sheet, "cold", sheet)
    assert sum("data sheet" in line.label for line in lines_of(on_sheet) if line.is_ceiling) == 1
    assert len(lines(rates_by_intensity(made))) == 5
