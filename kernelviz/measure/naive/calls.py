"""The calls of the naive protocol, in the process that was started for them."""

import time
from typing import Any

import torch

from kernelviz.core import NaiveTiming, Timer
from kernelviz.core.problem import TIMED_SEED
from kernelviz.measure.naive.messages import NaiveRequest
from kernelviz.measure.session.inputs import allocate, fill
from kernelviz.measure.timing.kernels import timing_event
from kernelviz.ops import op_named, refresh, with_plugins


class _EventMarks:
    """CUDA events on the current stream."""

    timer: Timer = "events"

    def __init__(self) -> None:
        self._events: list[Any] = []

    def mark(self) -> None:
        event = timing_event(external=False)
        event.record()
        self._events.append(event)

    def since_first_s(self) -> list[float]:
        """The time of each later mark since the first one, when the device is idle."""
        torch.cuda.synchronize()
        first, *later = self._events
        return [first.elapsed_time(event) / 1e3 for event in later]


class _HostMarks:
    """The host's clock. On a processor, a call has ended when it returns."""

    timer: Timer = "host"

    def __init__(self) -> None:
        self._at_s: list[float] = []

    def mark(self) -> None:
        self._at_s.append(time.perf_counter())

    def since_first_s(self) -> list[float]:
        """The time of each later mark since the first one."""
        first_s, *later_s = self._at_s
        return [at_s - first_s for at_s in later_s]


def naive_timing(request: NaiveRequest) -> NaiveTiming:
    """Time the first calls of this process as a naive user would. Raises what the variant raises.

    Before the first mark, only the inputs exist: they are filled, the device is idle, and torch's allocator holds nothing else.
    Between the marks there is only: binding; the first call; the other calls. Nothing is warmed up, flushed, restored, repeated
    or subtracted, and the garbage collector is left as it is.
    """
    device = torch.device(request.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # events are recorded on the current device's stream
    op = op_named(request.problem.op, with_plugins(request.plugins)).of(request.problem)
    variant = op.variant_named(request.variant)
    if request.configuration is not None:
        variant = variant.configured(request.configuration)
    inputs = allocate(op.inputs, request.problem, device)
    fill(op, inputs, request.problem, TIMED_SEED)
    keywords = variant.keywords(request.problem)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
    marks: _EventMarks | _HostMarks = _EventMarks() if device.type == "cuda" else _HostMarks()
    marks.mark()
    launch = variant.bind(*inputs, **keywords)
    refresh(launch)
    marks.mark()
    launch()
    marks.mark()
    for _ in range(request.calls - 1):
        launch()
    marks.mark()
    since_s = marks.since_first_s()
    return NaiveTiming(
        first_s=since_s[1] - since_s[0],
        mean_s=(since_s[2] - since_s[0]) / request.calls,
        calls=request.calls,
        bind_and_first_s=since_s[1],
        timer=marks.timer,
    )
