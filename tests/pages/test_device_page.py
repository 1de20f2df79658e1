"""The Device page, run by AppTest from the real entry script over a played monitor and shipped roofs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import sample_runs as samples
from open_page import charts, open_page
from sample_device import DeviceBench, cpu_sample, gpu_sample
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench import Progress
from kernelviz.bench.summaries import UnderWay
from kernelviz.core.device_sample import Sample
from kernelviz.core.errors import UnknownRun
from kernelviz.core.run import Roof
from kernelviz.hardware.datasheet import sheets

Open = Callable[..., AppTest]
PLAYED = {
    "cuda:0": tuple(gpu_sample(s) for s in range(300)),
    "cpu": tuple(cpu_sample(s) for s in range(30)),
}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    def opened(bench: DeviceBench, **params: str) -> AppTest:
        monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
        return open_page(params, "device")

    return opened


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning", "error", "info") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def tile_values(test: AppTest) -> dict[str, tuple[str, str]]:
    return {m.label.replace("\\", ""): (m.value.replace("\\", ""), m.delta.replace("\\", "")) for m in test.metric}


def test_the_machine_is_told_and_unknown_stays_unknown(page: Open) -> None:
    test = page(DeviceBench(PLAYED))
    said = words(test)
    assert "NVIDIA H200 · 132 multiprocessors · 139.70 GiB of memory · driver 580.159 (CUDA 13.0) · MIG " in said
    assert "| cuda:0 | NVIDIA H200 |" in said
    assert "| cpu | AMD EPYC 9654 |" in said
    assert "| MIG | not supported, or unknown |" in said, "no driver answers here"
    assert "| last-level cache | 60.00 MiB |" in said
    bare = msgspec.structs.replace(
        samples.H200, driver=None, driver_cuda=None, multiprocessors=None, last_level_cache_bytes=None
    )
    said = words(page(DeviceBench(PLAYED, devices=(bare,))))
    assert "| last-level cache | 60.00 MiB (data sheet) |" in said
    assert "| driver | unknown, supports CUDA up to unknown |" in said
    assert "| multiprocessors | unknown |" in said


def test_the_tiles_say_what_it_reports_now(page: Open) -> None:
    test = page(DeviceBench(PLAYED))
    now = PLAYED["cuda:0"][-1]
    found = tile_values(test)
    assert found["SMs busy"][0] == f"{now.busy_fraction * 100:.0f} %"
    assert found["Power"] == (f"{now.power_w:.0f} W", f"{now.temperature_c:.0f} °C")
    assert found["PCIe to the device"][0].endswith("GB/s")
    assert "No measurement is running" in words(test)
    assert len(charts(test)) == 2


class Measuring(DeviceBench):
    """Measures for somebody else."""

    def under_way(self, device_id: str) -> UnderWay:
        return UnderWay("1f", "softmax", "somebody", 3, 22, 12.3)


def test_what_is_measured_now_for_whom_and_how_long_still_is_said(page: Open) -> None:
    said = words(page(Measuring(PLAYED)))
    assert "Measuring now: softmax for another user, 3 of 22 cases done, about 12 s left" in said.replace("\\", "")


def test_a_processor_shows_its_cores_and_says_what_it_does_not_report(page: Open) -> None:
    test = page(DeviceBench(PLAYED), on="cpu")
    assert tile_values(test)["Load"] == ("40 %", "most loaded core 60 %")
    assert tile_values(test)["Temperature"][0] == "unknown"
    said = words(test)
    assert "Not reported by this device: temperature." in said
    assert "kernelviz has data sheets of NVIDIA GPUs only" in said


def test_before_the_first_sample_everything_is_unknown(page: Open) -> None:
    test = page(DeviceBench({}))
    assert tile_values(test)["Power"][0] == "unknown"
    assert not test.warning


def test_alerts_by_the_users_thresholds_which_the_address_keeps(page: Open) -> None:
    idle = tuple(msgspec.structs.replace(gpu_sample(s, running=True), busy_fraction=0.4) for s in range(60))
    test = page(DeviceBench({"cuda:0": idle}))
    assert "was busy 40 % of the last 30 s while a run was in progress, below the alert's 60 %" in words(test)
    assert "burst run keeps the device idle on purpose" in words(test)
    test.number_input(key="busy").set_value(30.0).run()
    assert not test.warning
    assert test.query_params["busy"] == "30"
    again = page(DeviceBench({"cuda:0": idle}), busy="30")
    assert not again.warning
    assert again.number_input(key="busy").value == 30.0
    # Another address in the open page, as of the browser's Back button.
    again.query_params.clear()
    again.query_params.update({"grows": "7", "window": "1 h"})
    again.run()
    assert again.number_input(key="busy").value == 60.0
    assert again.number_input(key="grows").value == 7.0
    assert again.segmented_control(key="window").value == "1 h"
    assert {name: again.query_params[name] for name in again.query_params} == {"grows": "7", "window": "1 h"}
    bad = page(DeviceBench({"cuda:0": idle}), busy="lots")
    assert "is not a number from 0 to 100: showing 60" in words(bad)


def test_growing_memory_is_told(page: Open) -> None:
    grown = tuple(Sample(at_s=float(s), used_bytes=2**30 + s * 2**23) for s in range(601))
    assert "grew by 4.2" in words(page(DeviceBench({"cuda:0": grown})))
    assert not page(DeviceBench({"cuda:0": grown}), grows="50").warning


def test_roofs_stand_against_the_sheet_with_share_date_and_clock(page: Open) -> None:
    test = page(DeviceBench(PLAYED))
    table = test.dataframe[0].value
    bf16 = table[table["Roof"].str.startswith("matmul bf16")].iloc[0]
    assert (bf16["Measured"], bf16["Clock"]) == ("784.5 TFLOP/s", "1625 MHz")
    assert (bf16["Data sheet"], bf16["Data-sheet clock"]) == ("989.4 TFLOP/s", "1830 MHz")
    assert (bf16["Of data sheet"], bf16["At this clock"]) == ("79.3 %", "89.3 %")
    read = table[table["Roof"].str.startswith("read from memory")].iloc[0]
    assert (read["Data sheet"], read["Of data sheet"]) == ("4800 GB/s", "96.5 %")
    assert "H200 Tensor Core GPU (data sheet)" in words(test)


WIDE = Roof(
    name="matmul",
    precision="fp64",
    unit="tensor",
    rate_flop_per_s=1e9,
    low=1e8,
    high=1.262e10,
    measured_at="2026-11-22T10:00",
)


def test_a_roof_that_cannot_be_used_is_named_with_the_reason(page: Open) -> None:
    test = page(DeviceBench(PLAYED, newest_roofs=(WIDE,)))
    (warning,) = test.warning
    assert "1 roof of the newest calibration cannot be used." in warning.value
    assert "matmul fp64: its 95 % interval, ±626 %, is wider than ±10 %" in warning.value.replace("\\", "")
    assert not page(DeviceBench(PLAYED)).warning


def test_an_unknown_gpu_has_no_sheet_and_no_column_of_one(page: Open) -> None:
    slice_ = msgspec.structs.replace(samples.H200, name="NVIDIA H200 MIG 1g.18gb", uuid="MIG-1")
    test = page(DeviceBench(PLAYED, devices=(slice_,)))
    assert "Data sheet" not in test.dataframe[0].value.columns
    assert "kernelviz has no data sheet of a GPU with exactly this name" in words(test)
    assert "| MIG | this is a slice of a GPU |" in words(test)


def test_how_roofs_moved_is_dated_and_in_percent(page: Open) -> None:
    test = page(DeviceBench(PLAYED))
    assert "(52 roofs), compared with 2026-11-19" in words(test)
    moves = test.dataframe[1].value
    assert len(moves) == 52
    assert set(moves[moves["Roof"].str.startswith("read from memory")]["Change"]) == {"▲ +2.0 %"}
    launch = moves[moves["Roof"].str.startswith("launch")]
    assert not launch.empty
    three = page(DeviceBench(PLAYED, calibrations=3))
    assert len(three.selectbox(key="against_calibration").options) == 2
    three.selectbox(key="against_calibration").select_index(1).run()
    changes = set(three.dataframe[1].value["Change"])
    assert "▲ +4.2 %" in changes
    assert "There is only one calibration." in words(page(DeviceBench(PLAYED, calibrations=1)))


class Calibrated(DeviceBench):
    """Its calibration goes on until it is cancelled or ended."""

    status = "running"
    cancelled = False

    def calibrate(self, device_id: str, *, owner: str = "") -> str:
        return "calibration-new"

    def progress(self, run_id: str) -> Progress:
        if run_id != "calibration-new":
            raise UnknownRun(run_id)
        return Progress(self.status, 7, 0, 0, 0, "the worker died <b>", {}, 1)  # type: ignore[arg-type]

    def cancel(self, run_id: str) -> None:
        self.status = "cancelled"


def test_a_calibration_is_started_followed_and_cancelled(page: Open) -> None:
    bench = Calibrated(PLAYED, calibrations=0)
    test = page(bench)
    assert "The roofs of this device were not measured yet. Press **Calibrate** to measure them" in words(test)
    test.button(key="calibrate_device").click().run()
    assert test.query_params["calibration"] == "calibration-new"
    assert test.button(key="calibrate_device").disabled
    assert "Measuring the roofs of NVIDIA H200: 7 done" in words(test)
    test.button(key="cancel_device_calibration").click().run()
    test.run()
    assert "was cancelled. The 7 roofs that it had measured are stored" in words(test)
    bench.status = "interrupted"
    assert "The calibration failed: the worker died <b>" in words(page(bench, calibration="calibration-new"))
    assert "The calibration failed" not in words(page(bench, calibration="calibration-gone"))


def test_a_redraw_with_the_address_from_before_still_follows_it(page: Open) -> None:
    """As the live chart asks for one each other second, perhaps just before the browser learns of the new address."""
    bench = Calibrated(PLAYED, calibrations=0)
    test = page(bench)
    test.button(key="calibrate_device").click().run()
    del test.query_params["calibration"]
    test.run()
    assert "Measuring the roofs of NVIDIA H200: 7 done" in words(test)
    assert test.query_params["calibration"] == "calibration-new"
    bench.status = "finished"
    del test.query_params["calibration"]
    test.run()
    assert "calibration" not in test.query_params
    assert not test.button(key="calibrate_device").disabled


def test_a_device_that_cannot_be_used_is_not_calibrated(page: Open) -> None:
    broken = msgspec.structs.replace(samples.H200, usable=False, reason="the driver is too old; update it")
    test = page(DeviceBench({}, devices=(broken,), calibrations=0, runs=0))
    assert test.button(key="calibrate_device").disabled
    assert "the driver is too old" in words(test)


def test_samples_of_the_page_come_from_the_one_monitor(page: Open) -> None:
    bench = DeviceBench(PLAYED)
    asked: list[str] = []
    look = bench.monitor.look
    bench.monitor.look = lambda d: (asked.append(d), look(d))[1]  # type: ignore[method-assign]
    page(bench)
    assert set(asked) == {"cuda:0"}, "the device that is not shown is left alone"


def test_data_sheets_of_all_gpus_are_searched_by_the_address_and_mark_the_card_that_is_here(page: Open) -> None:
    test = page(DeviceBench(PLAYED))
    table = next(d.value for d in test.dataframe if "GPU" in d.value)
    assert len(table) == len(sheets())
    assert (table["GPU"].iloc[0], table["In this machine"].iloc[0]) == ("● NVIDIA H200", "● cuda:0")
    assert table["In this machine"].isna().sum() == len(sheets()) - 1
    assert table["Bandwidth measured, GB/s"].iloc[0] > 4000
    assert f"{len(sheets())} data sheets, 1 of a card in this machine (●)." in words(test)
    few = page(DeviceBench(PLAYED), sheet="ampere a100 pcie")
    found = next(d.value for d in few.dataframe if "GPU" in d.value)
    assert set(found["GPU"]) == {"NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB"}
    none = page(DeviceBench(PLAYED), sheet="h300")
    assert "No data sheet matches “h300”." in words(none)
    unknown = msgspec.structs.replace(samples.H200, name="NVIDIA H200 MIG 1g.18gb")
    assert "cuda:0 (NVIDIA H200 MIG 1g.18gb) has no data sheet here" in words(
        page(DeviceBench(PLAYED, devices=(unknown,)))
    )
