"""The roofs of a device, measured by the same method as everything else: streams by read:write mix, size and level,
arithmetic by precision and unit, launches, and transfers between host and device.

A roof is the best of the candidates tried, so it is a ceiling that was reached, never a constant.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelviz.core.events import RoofDone
from kernelviz.core.run import Device, Roof
from kernelviz.measure.contract import Emit, Stop
from kernelviz.measure.roofs import launches, products, streams, streams_host, transfers, vectors
from kernelviz.measure.roofs.candidate import GPU, HOST, Contest, Effort
from kernelviz.measure.timer import DeviceTimer

__all__ = ["Contest", "Effort", "calibrate"]


def calibrate(device: Device, timer: DeviceTimer, emit: Emit, stop: Stop, effort: Effort | None = None) -> None:
    """Measure every roof of the device and emit each as soon as it is known. Ends early when stopped."""
    contest = Contest(timer, stop, effort or (GPU if device.kind == "cuda" else HOST))
    launched = launches.HostLaunches(device)
    for roof in _roofs(device, contest, launched):
        if stop():
            return
        if roof is not None:
            emit(RoofDone(roof=roof))
        launched.take()


def _roofs(device: Device, contest: Contest, launched: launches.HostLaunches) -> Iterator[Roof | None]:
    if device.kind == "cuda":
        yield from streams.roofs(device, contest)
        yield from vectors.roofs(device, contest)
        yield from products.roofs(device, contest)
        yield launches.empty_kernel(device, contest)
        yield from transfers.roofs(device, contest)
    else:
        yield from streams_host.roofs(device, contest)
        yield from products.roofs(device, contest)
    yield from launched.roofs()
