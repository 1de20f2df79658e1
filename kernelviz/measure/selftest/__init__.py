"""The selftest: checks of the instrument's claims about its own numbers on this machine.

A check is a function with `@probe(question, limit=…)` in one of the modules of this package, listed in CUDA or CPU.
"""

import gc
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import torch

from kernelviz.core import Check, CheckDone, TimelineDone, UnknownName
from kernelviz.core.errors import one_line
from kernelviz.measure.selftest import (
    agreement,
    caches,
    hosted,
    instrument,
    picture,
    refusals,
    verdicts,
)
from kernelviz.measure.selftest.workbench import Finding, NotHere, Probe, Spoilt, Stopped, Workbench
from kernelviz.measure.session import failures
from kernelviz.measure.session.contract import Emit, Session, Stop
from kernelviz.measure.session.device_state import DeviceState
from kernelviz.ops import Op

__all__ = ["CPU", "CUDA", "TIMELINE", "selftest"]

CUDA: tuple[Probe, ...] = (
    instrument.empty_kernel,
    instrument.known_traffic_copy,
    instrument.gap_widening,
    agreement.traced_calls,
    verdicts.a_a,
    verdicts.planted_1_percent_of_200_us,
    verdicts.planted_1_percent_of_1_ms,
    verdicts.planted_2_percent_of_20_us,
    hosted.host_sleep,
    caches.flush_by_time,
    caches.flush_by_counters,
    agreement.torch_profiler,
    agreement.events_fallback,
    agreement.ncu_duration,
    *refusals.CUDA,
)
CPU: tuple[Probe, ...] = (
    instrument.empty_call_on_processor,
    instrument.known_traffic_copy_on_processor,
    verdicts.a_a_on_processor,
    verdicts.planted_20_percent_on_processor,
    hosted.host_sleep_on_processor,
    caches.flush_by_time_on_processor,
    *refusals.CPU,
)
TIMELINE = "timeline"
"""The name that requests the timeline of one measurement; it is not a check."""


def selftest(
    state: DeviceState,
    ops: Mapping[str, Op],
    opened: Callable[[Mapping[str, Op]], Session],
    emit: Emit,
    stop: Stop,
    *,
    only: Sequence[str] = (),
    quick: bool = False,
) -> None:
    """Make every check of the device, or those named in `only`; see Session.selftest. `opened`: see Workbench.

    Errors: UnknownName.
    """
    probes = CUDA if state.device.kind == "cuda" else CPU
    names = (*(p.name for p in probes), TIMELINE)
    for prefix in only:
        if not any(name.startswith(prefix) for name in names):
            raise UnknownName("check", prefix, names)
    prefixes = tuple(only) or ("",)
    bench = Workbench(state, ops, opened, stop, quick)
    # A processor has no timeline: it has no stamps except those of the call.
    if state.device.kind == "cuda" and TIMELINE.startswith(prefixes):
        with suppress(NotHere, Stopped):
            emit(TimelineDone(timeline=picture.timeline(bench)))
    for one in (p for p in probes if p.name.startswith(prefixes)):
        if stop():
            return
        try:
            check = _make_check(one, bench)
        except Stopped:
            return
        emit(CheckDone(check=check))
        gc.collect()
        if state.device.kind == "cuda":
            torch.cuda.empty_cache()
        if state.spoilt is not None:
            raise Spoilt(f"the selftest ends after {one.name}: {state.spoilt}")


def _make_check(one: Probe, bench: Workbench) -> Check:
    begun = time.monotonic()
    try:
        finding = one.make(bench)
        passed = finding.passed if finding.passed is not None else _within(one, finding)
    except NotHere as reason:
        finding, passed = Finding(None, {}, message=str(reason)), None
    except (Stopped, Spoilt):
        raise
    except Exception as error:
        traceback.print_exc()
        bench.state.note(error)
        if failures.sticky(error):
            raise
        finding, passed = Finding(None, {}, message=one_line(error)), False
    return Check(
        name=one.name,
        question=one.question,
        passed=passed,
        value=finding.value,
        limit=one.limit,
        unit=one.unit,
        at_most=one.at_most,
        message=finding.message,
        figures=finding.figures,
        took_s=time.monotonic() - begun,
    )


def _within(one: Probe, finding: Finding) -> bool:
    if finding.value is None or one.limit is None:
        raise ValueError(f"check {one.name} has nothing to compare")
    return finding.value <= one.limit if one.at_most else finding.value >= one.limit
