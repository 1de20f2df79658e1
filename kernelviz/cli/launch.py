"""`kernelviz launch`: a bound variant called N times in this very process, for a profiler that was started with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kernelviz.bench import Offer
from kernelviz.cli import console
from kernelviz.cli.progress import case_words
from kernelviz.core.errors import BadField, DeviceError
from kernelviz.core.problem import Case, Plan
from kernelviz.core.run import Device
from kernelviz.core.tuning import Tuned
from kernelviz.worker.device_lock import DeviceLock


def launch(
    plan: Plan, device: Device, offers: Sequence[Offer], calls: int, tuned: Mapping[str, Tuned] = MappingProxyType({})
) -> None:
    """Bind, as `tuned` says where it does, then flush and call `calls` times, holding the device's lock.

    Not in the worker: a profiler follows this process, and replays its kernels most easily when it is the only one.
    Errors: BadField for more than one case, or a variant that cannot run here; DeviceError with what the device or the
    variant said.
    """
    cases = plan.cases()
    if len(cases) != 1:
        raise BadField(
            "launch", f"{len(cases)} cases", "name one variant and one size for each axis (--variants, --size)"
        )
    for offer in offers:
        if offer.variant.name == cases[0].variant and not offer.available:
            raise BadField("--variants", cases[0].variant, offer.reason)
    err = console.err()
    lock = DeviceLock(device.uuid)
    lock.acquire(lambda holder: err.print(f"waiting for the device: {holder} holds it"), lambda: False)
    try:
        _launch(plan, cases[0], calls, tuned)
    finally:
        lock.release()
        lock.close()
    err.print(f"called {calls} time{'s' if calls > 1 else ''}: {case_words(cases[0])}")


def _launch(plan: Plan, case: Case, calls: int, tuned: Mapping[str, Tuned]) -> None:
    from kernelviz.measure.session.device_session import open_session  # imports torch

    session = open_session(plan.device, plan.plugins)
    try:
        session.launch(case.problem, case.variant, calls, tuned=tuned)
    except Exception as error:
        raise DeviceError(f"{case_words(case)}: {type(error).__name__}: {error}") from error
