"""What the driver says beside a measurement, by a driver and a clock that are told what to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kernelviz.core.result import Conditions
from kernelviz.core.run import Device
from kernelviz.hardware.telemetry import EVENT_REASONS
from kernelviz.measure.session.device_state import LOOK_S, THROTTLED, DeviceState, Watch

GPU = Device(id="cuda:0", kind="cuda", name="Test GPU", uuid="GPU-test")


STILL: Any = SimpleNamespace(worn=None)
"""A timer that has measured nothing."""


class Neighbours:
    """Processes of others on the GPU, as a test says."""

    def __init__(self, *pids: int) -> None:
        self.pids = frozenset(pids)

    def __call__(self, device: Device) -> frozenset[int]:
        return self.pids


def test_a_process_that_others_followed_to_the_gpu_is_replaced() -> None:
    """A younger CUDA context makes the short kernels of this process read longer, also when it is gone again."""
    neighbours = Neighbours(7)
    site = DeviceState(GPU, STILL, lambda: None, neighbours)
    assert (site.crowded(), site.spoilt) == (False, None)
    neighbours.pids = frozenset({7, 9})
    assert site.crowded()
    assert "process 9" in (site.spoilt or "")
    neighbours.pids = frozenset()
    assert site.crowded()
    assert not site.context_lost


def test_who_was_there_before_does_not_count() -> None:
    site = DeviceState(GPU, STILL, lambda: None, Neighbours(7, 8))
    assert not site.crowded()


def test_a_processor_has_no_contexts() -> None:
    site = DeviceState(msgspec.structs.replace(GPU, kind="cpu"), STILL, lambda: None)
    site.share("processes of the selftest")
    assert (site.crowded(), site.spoilt) == (False, None)


def watch(*readings: Conditions, every_s: float = 2 * LOOK_S) -> Watch:
    """One that finds an idle device at its start, then these readings (the last one for good), asked each `every_s`."""
    said = iter([Conditions(event_reasons=("idle",)), *readings])

    def read(device: Device) -> Conditions:
        assert device == GPU
        return next(said, readings[-1])

    return Watch(GPU, read, _ticks(every_s))


def _ticks(every_s: float) -> Callable[[], float]:
    def moments() -> Iterator[float]:
        now_s = 1000.0
        while True:
            yield now_s
            now_s += every_s

    return moments().__next__


@pytest.mark.parametrize("reason", EVENT_REASONS.values())
def test_only_what_the_hardware_does_against_its_will_repeats_a_measurement(reason: str) -> None:
    seen = watch(Conditions(event_reasons=("application clocks", reason)))
    assert seen.look() is (reason in THROTTLED)
    assert (reason in seen.summary().event_reasons) is (reason != "idle")


def test_reasons_that_bring_a_repeat_are_words_of_the_driver() -> None:
    assert set(THROTTLED) < set(EVENT_REASONS.values())
    assert not {"power cap", "idle", "application clocks"} & set(THROTTLED)


def test_the_driver_is_not_asked_again_at_once() -> None:
    slowed = Conditions(event_reasons=("hardware slowdown",))
    seen = watch(slowed, every_s=LOOK_S / 4)
    assert [seen.look() for _ in range(8)] == [False, False, False, True, False, False, False, True]


def test_the_summary_is_the_last_reading_with_the_worst_of_all() -> None:
    seen = watch(
        Conditions(event_reasons=("power cap",), other_processes=2, temperature_c=80.0, sm_clock_hz=1.6e9),
        Conditions(event_reasons=("idle",), other_processes=0, temperature_c=70.0, sm_clock_hz=1.9e9),
    )
    seen.look()
    found = seen.summary()
    assert (found.event_reasons, found.other_processes) == (("power cap",), 2)
    assert (found.temperature_c, found.sm_clock_hz) == (80.0, 1.9e9)
