"""`kernelviz device --watch`, and what `device` says of sheets and calibrations."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
import sample_runs as samples
from sample_device import DeviceBench, cpu_sample, gpu_sample

from kernelviz import bench as use_cases
from kernelviz.cli import main
from kernelviz.core.device_sample import Sample


class Watched(DeviceBench):
    """Gives three samples, then somebody presses Ctrl-C."""

    def __init__(self, kind: str = "cuda") -> None:
        super().__init__({}, devices=(samples.H200,) if kind == "cuda" else (samples.CPU,))
        made = gpu_sample if kind == "cuda" else cpu_sample
        given = tuple(made(n, running=n == 2) for n in range(3))

        def watch(device_id: str) -> Iterator[Sample]:
            yield from given
            raise KeyboardInterrupt

        self.machine.watch = watch  # type: ignore[method-assign]


def test_a_line_a_sample_until_ctrl_c_which_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(use_cases, "current", Watched)
    assert main(["device", "--watch"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "SMs busy 50 %" in lines[0]
    assert "PCIe to 1.25 GB/s from 550 MB/s" in lines[0]
    assert "360 W" in lines[0]
    assert "PCIe to not asked from not asked" in lines[2]
    assert lines[2].endswith("measuring")


def test_an_alert_is_told_once_on_stderr_with_ones_own_threshold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Watched()
    idle = [msgspec.structs.replace(gpu_sample(n, running=True), busy_fraction=0.4) for n in range(40)]
    made.monitor.played = {"cuda:0": tuple(idle)}
    monkeypatch.setattr(use_cases, "current", lambda: made)
    assert main(["device", "--watch"]) == 0
    told = capsys.readouterr().err
    assert (
        told.count("NVIDIA H200 was busy 40 % of the last 30 s while a run was in progress, below the alert's 60 %")
        == 1
    )
    assert main(["device", "--watch", "--busy-below", "30"]) == 0
    assert "was busy" not in capsys.readouterr().err


def test_a_processor_has_its_own_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(use_cases, "current", lambda: Watched("cpu"))
    assert main(["device", "--watch"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith("load 40 %  memory 3.00 GiB of 32.00 GiB  2600 MHz  temperature unknown")


def test_json_is_an_object_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(use_cases, "current", Watched)
    assert main(["device", "--watch", "--json"]) == 0
    found = [msgspec.convert(json.loads(line), Sample) for line in capsys.readouterr().out.splitlines()]
    assert [s.running for s in found] == [False, False, True]


def test_an_unknown_device_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(use_cases, "current", DeviceBench)
    assert main(["device", "--watch", "--device", "cuda:7"]) == 2
    assert "cuda:7" in capsys.readouterr().err


def test_the_sheet_stands_beside_the_measured_roofs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(use_cases, "current", DeviceBench)
    assert main(["device", "--device", "cuda:0"]) == 0
    said = capsys.readouterr().out
    assert "memory 4.800 TB/s, 98.2 % measured" in said
    assert "bf16 989.4 TFLOP/s at 1830 MHz, 79.3 % measured" in said
    assert "H200 Tensor Core GPU (data sheet)" in said
    assert "read at 126 MB ▲ +2.0 % since 2026-11-19" in said
    assert main(["device", "--device", "cuda:0", "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert device["data_sheet"]["at_clock_hz"]["bf16"] == 1.83e9
    assert [len(c["roofs"]) for c in device["calibrations"]] == [52, 52]
