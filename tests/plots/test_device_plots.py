"""The monitor's charts: what is known is drawn, what is not is named, gaps stay gaps."""

from __future__ import annotations

import pytest
from sample_device import cpu_sample, gpu_sample

from kernelviz.core.device_sample import Sample
from kernelviz.core.kernel_times import RunTimes
from kernelviz.plots.monitor import MOST_POINTS, panels, reports_by_time, thinned, times_by_run
from kernelviz.plots.variant_styles import style_of

GPU = tuple(gpu_sample(s, running=100 < s < 160) for s in range(300))


def test_every_quantity_of_a_gpu_is_a_line_with_its_unit() -> None:
    figure = reports_by_time(GPU, gpu=True)
    assert [t.name for t in figure.data] == [
        "SMs busy", "memory busy", "memory in use", "PCIe to the device", "PCIe from the device", "SM clock", "memory clock",
        "power", "temperature",
    ]  # fmt: skip
    assert [a.text.rpartition(", ")[2] for a in figure.layout.annotations] == ["%", "GiB", "GB/s", "MHz", "W", "°C"]
    by_name = {t.name: t for t in figure.data}
    assert by_name["memory in use"].y[-1] == pytest.approx(GPU[-1].used_bytes / 2**30)
    assert by_name["PCIe to the device"].y[-1] == pytest.approx(GPU[-1].to_device_bytes_per_s / 1e9)
    assert by_name["SM clock"].y[-1] == pytest.approx(GPU[-1].sm_clock_hz / 1e6)
    assert by_name["SMs busy"].line.dash != by_name["memory busy"].line.dash, "told apart without colour"


def test_where_something_was_measured_is_shaded_and_pcie_is_not_drawn_as_nothing() -> None:
    figure = reports_by_time(GPU, gpu=True)
    (shade,) = figure.layout.shapes
    assert (shade.x0 * 60, shade.x1 * 60) == pytest.approx((101 - 299, 159 - 299))
    pcie = next(t for t in figure.data if t.name == "PCIe to the device")
    assert pcie.y[130] is None
    assert pcie.y[99] is not None


def test_a_processor_shows_each_core_and_names_what_it_does_not_report() -> None:
    samples = tuple(cpu_sample(s) for s in range(10))
    shown, unknown = panels(samples, gpu=False)
    assert [[line.name for line in p.lines] for p in shown] == [
        ["mean load", "core 0", "core 1"], ["memory in use"], ["clock"]
    ]  # fmt: skip
    assert unknown == ("temperature",)
    many = tuple(Sample(at_s=float(s), busy_fraction=0.5, cores_fraction=(0.1,) * 63 + (0.9,)) for s in range(3))
    (first,) = panels(many, gpu=False)[0]
    assert [line.name for line in first.lines] == ["mean load", "least loaded core", "most loaded core"]
    assert [line.value(many[0]) for line in first.lines] == [50, 10, 90]


def test_an_hour_is_thinned_and_a_pause_is_a_gap() -> None:
    hour = tuple(gpu_sample(s) for s in range(3600))
    figure = reports_by_time(hour, gpu=True, window_s=3600.0)
    assert all(len(t.x) <= MOST_POINTS for t in figure.data)
    x, y = thinned([0.0, 1 / 60, 5.0, 5.0 + 1 / 60], [1.0, 1.0, 2.0, 2.0], 1)
    assert y == [1.0, 1.0, None, 2.0, 2.0]
    assert x == sorted(x)


def test_without_samples_a_sentence() -> None:
    assert "first sample" in reports_by_time((), gpu=True).layout.annotations[0].text
    assert "No kernel was timed" in times_by_run(()).layout.annotations[0].text


def test_runs_show_their_kernels_in_their_variants_own_style() -> None:
    times = (("torch_eager", 2e-6), ("triton_block", 5e-6), ("torch_eager", 9e-5))
    runs = [RunTimes(run_id=str(n), title="<b>same", op="add", created_at="", times_s=times) for n in range(2)]
    figure = times_by_run([*runs, RunTimes(run_id="3", title="none", op="add", created_at="")])
    points = [t for t in figure.data if t.mode == "markers"]
    assert len(points) == 2
    assert points[0].y[0] != points[1].y[0], "two runs of one title are two rows"
    assert "<b>" not in points[0].y[0]
    style = style_of("add", "triton_block")
    assert (points[0].marker.color[1], points[0].marker.symbol[1]) == (style.colour, style.marker)
    assert points[0].x[0] == pytest.approx(2.0)
    assert list(figure.layout.xaxis.ticktext) == ["2", "5", "10", "20", "50", "100"]
