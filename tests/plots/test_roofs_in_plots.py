"""The roof that a chart draws is the one of the problem's own mix and bytes, and its name says so."""

import math

import msgspec
import pytest
import sample_runs as samples

from kernelviz import plots
from kernelviz.core.run import Roof
from kernelviz.hardware.datasheet import ceilings_by_device
from kernelviz.metrics.roofline import memory_roof

MB = 10**6
ROOFS = (
    Roof(name="copy", level="dram", moved_bytes=100 * MB, bandwidth_bytes_per_s=4.8e12),
    Roof(name="copy", level="dram", moved_bytes=1000 * MB, bandwidth_bytes_per_s=4.2e12),
    Roof(name="fma", precision="bf16", unit="vector", rate_flop_per_s=120e12),
    Roof(name="matmul", precision="bf16", unit="tensor", rate_flop_per_s=800e12),
)


def test_the_roofline_names_mix_bytes_and_unit_of_the_chosen_problem() -> None:
    run = samples.run(roofs=ROOFS)
    for problem in run.plan.problems:
        cost = next(r.cost for r in run.results if r.problem == problem)
        assert cost is not None
        roof = memory_roof(cost, ROOFS)
        assert roof is not None
        assert roof.bandwidth_bytes_per_s is not None
        line = next(
            t for t in plots.rate_by_intensity(run, problem).data if (t.name or "").startswith("measured roofs")
        )
        size = min(max(cost.moved_bytes, 100 * MB), 1000 * MB)
        words = "1.00 GB" if size == 1000 * MB else f"{size / MB:.3g} MB"
        assert line.name == (
            f"measured roofs: copy at {words}, {roof.bandwidth_bytes_per_s / 1e12:.2f} TB/s<br>and fma bf16, 120 TFLOP/s"
        )
        # The slope is that bandwidth, the ceiling that rate.
        assert line.y[0] / line.x[0] == pytest.approx(roof.bandwidth_bytes_per_s)
        assert line.y[-1] == 120e12


def test_the_roof_by_size_follows_the_bytes() -> None:
    asked = samples.problems("add", [{"n": 2**12}, {"n": 2**24}, {"n": 2**26}], "fp32")
    made = [samples.timed(p, "torch_eager", 0.6) for p in asked]
    run = samples.run(made, op="add", dtype="fp32", shares={}, roofs=ROOFS)
    line = plots.bandwidth_by_size(run).data[-1]
    assert line.name == "measured roof"
    assert line.y[0] == pytest.approx(4800)
    assert list(line.y) == sorted(line.y, reverse=True)
    assert line.y[-1] < 4800
    assert line.hovertext[0].endswith("GB/s (copy at 100 MB)")


def test_text_of_a_roof_from_elsewhere_is_text() -> None:
    from kernelviz.core.problem import Problem

    named = "<b>bf16</b>"
    problems = [msgspec.structs.replace(p, dtype=named) for p in samples.run().plan.problems]
    problem: Problem = problems[0]
    roofs = (*ROOFS, Roof(name="fma", precision=named, rate_flop_per_s=1e12))
    run = samples.run([msgspec.structs.replace(samples.run().results[0], problem=problem)], roofs=roofs)
    drawn = plots.rate_by_intensity(run, problem).to_json()
    assert "fma \\u003cb" not in drawn
    assert "fma <b" not in drawn


def test_the_roofline_shows_its_ridge_and_the_roofs_of_the_data_sheet() -> None:
    """The frame was zoomed to the points: of a memory-bound op, the ridge and the compute roof were outside of it."""
    run = samples.run(roofs=ROOFS)
    sheets = ceilings_by_device([run.environment.device.name])
    figure = plots.rate_by_intensity(run, sheets=sheets)
    (left, right), (low, high) = figure.layout.xaxis.range, figure.layout.yaxis.range
    measured = next(t for t in figure.data if (t.name or "").startswith("measured roofs"))
    ridge = measured.x[1]
    assert left < math.log10(ridge) < right
    assert low < math.log10(measured.y[-1]) < high
    assert f"ridge {ridge:.1f} FLOP per byte" in [a.text for a in figure.layout.annotations]
    sheet = next(t for t in figure.data if (t.name or "").startswith("data sheet"))
    assert sheet.line.dash != measured.line.dash
    assert sheet.y[0] / sheet.x[0] == pytest.approx(4.8e12)
    # The sheet's bf16 peak is of the tensor cores, which do not run this op: its line ends at the measured peak.
    assert sheet.y[-1] == pytest.approx(measured.y[-1])
    square = [{"m": 4096, "n": 4096, "k": 4096}]
    product = plots.rate_by_intensity(
        samples.run(op="matmul", sizes=square, shares={"torch_eager": 0.9}), sheets=sheets
    )
    assert next(t for t in product.data if (t.name or "").startswith("data sheet")).y[-1] == pytest.approx(989.4e12)
    assert not any((t.name or "").startswith("data sheet") for t in plots.rate_by_intensity(run).data)


def test_many_variants_are_labelled_only_as_far_as_the_frame_has_room() -> None:
    shares = {f"variant_{i}": 0.9 - i / 100 for i in range(14)}
    labels = [a for a in plots.rate_by_intensity(samples.run(shares=shares)).layout.annotations if a.ayref == "y"]
    assert [a.text.split()[-1] for a in labels] == [str(i) for i in range(6)]
