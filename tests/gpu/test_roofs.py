"""The roofs of a GPU: how long they take, that two calibrations agree, and that none of them is more than the hardware has."""

import time
from dataclasses import dataclass

import pytest
from figures import record
from parts import part

from kernelviz.core import Device, Event, Roof, RoofDone
from kernelviz.hardware.datasheet import datasheet
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.text.roofs import format_roof_name, format_roof_value

pytestmark = [part("timing"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(300)]

AGREE, LAUNCHES_AGREE = 0.01, 0.10
TICK_S = 32e-9
"""What the device's stamps are rounded to: 4 % of an empty kernel's time."""
STREAMS = {"read", "copy", "write", "read2_write1", "read1_write2"}


@dataclass(frozen=True)
class Calibrated:
    device: Device
    rounds: tuple[dict[str, Roof], ...]
    seconds: tuple[float, ...]


def _calibration(session: DeviceSession) -> tuple[dict[str, Roof], dict[str, float]]:
    """The roofs, and how many seconds after the beginning each was known."""
    events: list[tuple[float, Event]] = []
    begun = time.monotonic()
    session.calibrate(lambda event: events.append((time.monotonic() - begun, event)), lambda: False)
    found = {e.roof.key: (at, e.roof) for at, e in events if isinstance(e, RoofDone)}
    return {k: roof for k, (_, roof) in found.items()}, {k: at for k, (at, _) in found.items()}


@pytest.fixture(scope="module")
def calibrated() -> Calibrated:
    """Two calibrations, one after the other, in one process."""
    from kernelviz.measure.session.device_session import open_session

    session = open_session("cuda:0")
    rounds: list[dict[str, Roof]] = []
    seconds: list[float] = []
    known_s: list[dict[str, float]] = []
    for _ in range(2):
        begun = time.monotonic()
        roofs, at_s = _calibration(session)
        seconds.append(time.monotonic() - begun)
        rounds.append(roofs)
        known_s.append(at_s)
    made = Calibrated(session.device, tuple(rounds), tuple(seconds))
    record(
        "roofs_twice",
        {
            "device": made.device.name,
            "seconds": made.seconds,
            "known_s": known_s,
            "roofs": {k: [_figure(r[k]) for r in rounds if k in r] for k in rounds[0]},
            "words": {k: f"{format_roof_name(r)}: {format_roof_value(r)}" for k, r in rounds[0].items()},
            "how": {k: [r[k].how for r in rounds if k in r] for k in rounds[0]},
            "clocks_hz": {k: [r[k].clock_hz for r in rounds if k in r] for k in rounds[0]},
        },
    )
    return made


def _figure(roof: Roof) -> float:
    found = roof.bandwidth_bytes_per_s or roof.rate_flop_per_s or roof.time_s
    assert found is not None
    return found


def test_a_calibration_takes_at_most_thirty_seconds(calibrated: Calibrated) -> None:
    assert max(calibrated.seconds) <= 30


def test_every_kind_of_roof_is_there(calibrated: Calibrated) -> None:
    from kernelviz.measure.roofs.streams import CACHED_SHARES

    roofs = list(calibrated.rounds[0].values())
    l2_bytes = calibrated.device.last_level_cache_bytes or 0
    for name in STREAMS:
        sizes = {
            level: [r.moved_bytes or 0 for r in roofs if (r.name, r.level) == (name, level)] for level in ("dram", "l2")
        }
        assert len(sizes["dram"]) >= 3
        assert min(sizes["dram"]) >= 1.99 * l2_bytes
        assert len(sizes["l2"]) == len(CACHED_SHARES)
        assert max(sizes["l2"]) <= l2_bytes / 2
    assert {r.precision for r in roofs if r.name == "matmul"} >= {"fp32", "tf32", "fp16", "bf16", "fp64"}
    assert {r.precision for r in roofs if r.name == "fma"} == {"fp32", "fp64", "fp16", "bf16"}
    assert {r.what for r in roofs if r.name == "launch"} == {
        "empty_kernel", "torch_call", "kernel_launch", "graph_launch",
    }  # fmt: skip
    assert {"h2d", "d2h"} <= {r.name for r in roofs}
    assert all(r.measured_at and r.how and r.timer for r in roofs)
    assert all(r.clock_hz for r in roofs if r.level or r.rate_flop_per_s)


def test_two_calibrations_agree(calibrated: Calibrated) -> None:
    first, second = calibrated.rounds
    assert first.keys() == second.keys()
    apart = {k: _apart(first[k], second[k]) for k in first}
    record("roofs_apart", dict(sorted(apart.items(), key=lambda item: -abs(item[1]))))
    allowed = {k: LAUNCHES_AGREE if r.name == "launch" and r.timer == "host" else AGREE for k, r in first.items()}
    ticks = {k: TICK_S / r.time_s for k, r in first.items() if r.timer != "host" and r.time_s is not None}
    assert {k: d for k, d in apart.items() if abs(d) > max(allowed[k], ticks.get(k, 0.0))} == {}


def _apart(first: Roof, second: Roof) -> float:
    """The change from the first to the second, as a fraction.

    Of arithmetic rates it is the smaller one of the changes of the rate and of the rate per clock cycle, because the clock under
    the power cap differs between two calibrations, and each roof states it (8192^3 int8 on an H100: 1,796 and 1,829 MHz).
    """
    changes = [_figure(second) / _figure(first) - 1]
    if first.rate_flop_per_s is not None and first.clock_hz and second.clock_hz:
        changes.append((_figure(second) / second.clock_hz) / (_figure(first) / first.clock_hz) - 1)
    return min(changes, key=abs)


def test_memory_is_read_as_fast_as_this_gpu_can(calibrated: Calibrated) -> None:
    if calibrated.device.name != "NVIDIA H200":
        pytest.skip(f"the bounds are those of an H200, this is {calibrated.device.name}")
    for roofs in calibrated.rounds:
        read = [r for r in roofs.values() if (r.name, r.level) == ("read", "dram")]
        assert all(4.3e12 < _figure(r) < 4.8e12 for r in read)


def test_the_l2_is_faster_than_memory(calibrated: Calibrated) -> None:
    for roofs in calibrated.rounds:
        for name in STREAMS:
            best = {
                level: max(_figure(r) for r in roofs.values() if (r.name, r.level) == (name, level))
                for level in ("dram", "l2")
            }
            assert best["l2"] > best["dram"], name


def test_no_rate_is_more_than_the_data_sheet_at_its_clock(calibrated: Calibrated) -> None:
    sheet = datasheet(calibrated.device.name)
    if sheet is None:
        pytest.skip(f"no data sheet of {calibrated.device.name}")
    for roofs in calibrated.rounds:
        for roof in roofs.values():
            peak = sheet.peaks.get(roof.precision or "")
            # A sheet's fp16 and bf16 are the tensor cores', which no vector unit reaches.
            if roof.rate_flop_per_s is not None and peak is not None:
                assert _figure(roof) <= (peak.at(roof.clock_hz) or 0.0), roof.key
            if roof.level == "dram" and roof.name == "read":
                assert _figure(roof) <= sheet.bandwidth_bytes_per_s


def test_multiply_adds_come_near_the_units_peak(calibrated: Calibrated) -> None:
    """One kernel that is held back by something else than its unit would set too low a roof."""
    sheet = datasheet(calibrated.device.name)
    if sheet is None:
        pytest.skip(f"no data sheet of {calibrated.device.name}")
    for roofs in calibrated.rounds:
        fp32 = roofs["fma fp32 vector"]
        assert _figure(fp32) > 0.9 * (sheet.peaks["fp32"].at(fp32.clock_hz) or float("inf"))
