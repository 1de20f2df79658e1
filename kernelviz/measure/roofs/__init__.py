"""The roofs of a device, measured by the same method as variants: streams by read:write mix, size and level, arithmetic by
precision and unit, the tensor cores without memory, launches, and transfers between host and device.

A roof is the fastest of several candidates, so it is a rate that was reached, never a constant.
"""

from collections.abc import Iterator

from kernelviz.core import Device, DeviceError, Roof, RoofDone
from kernelviz.hardware.datasheet import ceilings
from kernelviz.hardware.thread_times import thread_times
from kernelviz.measure.roofs import arithmetic, launches, streams, tensor_loops, transfers
from kernelviz.measure.roofs.candidate import GPU, HOST, Contest, Effort
from kernelviz.measure.session.contract import Emit, Stop
from kernelviz.measure.timing.timer import DeviceTimer

__all__ = ["Contest", "Effort", "calibrate"]


def calibrate(device: Device, timer: DeviceTimer, emit: Emit, stop: Stop, effort: Effort | None = None) -> None:
    """Measure every roof of the device and emit each as soon as it is known. Ends early when stopped.

    A roof with a wide interval, or one that cannot be true, is measured again. If it stays so, it is emitted nevertheless,
    because it is what was measured. Its readers refuse it by name (`metrics.roof_checks`).

    When a kind of roofs cannot be measured, the others are still measured; DeviceError then names that kind and the reason.
    """
    contest = Contest(
        timer,
        stop,
        effort or (GPU if device.kind == "cuda" else HOST),
        ceilings=ceilings(device.name),
        cache_bytes=device.last_level_cache_bytes,
        times=thread_times if device.kind == "cpu" else None,
    )
    launched, transferred = launches.HostLaunches(device), transfers.Transfers(device, stop)
    troubles: list[str] = []
    for kind, roofs in _kinds(device, contest, launched, transferred):
        for roof in _until_failure(kind, roofs, troubles):
            if stop():
                return
            if roof is not None:
                emit(RoofDone(roof=roof))
            launched.take()
            if device.kind == "cuda":
                transferred.take()
    if troubles:
        raise DeviceError(f"not measured: {', '.join(troubles)}; all other roofs were")


def _until_failure(kind: str, roofs: Iterator[Roof | None], troubles: list[str]) -> Iterator[Roof | None]:
    """The roofs up to the first that cannot be measured; its error is added to `troubles`."""
    try:
        yield from roofs
    except Exception as error:
        troubles.append(f"{kind} ({error})")


def _kinds(
    device: Device, contest: Contest, launched: launches.HostLaunches, transferred: transfers.Transfers
) -> tuple[tuple[str, Iterator[Roof | None]], ...]:
    """The kinds of roofs of the device, each with a generator that measures them one by one."""
    if device.kind == "cuda":
        return (
            ("streams", streams.roofs(device, contest)),
            ("multiply-adds", arithmetic.vector_roofs(device, contest)),
            ("loops of tensor-core instructions", tensor_loops.tensor_core_roofs(device, contest)),
            ("matrix products", arithmetic.product_roofs(device, contest)),
            ("the empty kernel", launches.empty_kernel(device, contest)),
            ("transfers", transferred.roofs(contest)),
            ("launches by the host", launched.roofs(contest)),
        )
    return (
        ("streams", streams.host_roofs(device, contest)),
        ("matrix products", arithmetic.product_roofs(device, contest)),
        ("launches by the host", launched.roofs(contest)),
    )
