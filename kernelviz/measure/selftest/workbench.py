"""The tools of a selftest's check: the product's own timer and rounds, and problems with planted variants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch

from kernelviz.core import CaseDone, Device, Event, Figure, Method, Problem, Result
from kernelviz.core.selftest import CheckUnit
from kernelviz.measure.session.binding import MAX_BUFFERS, copies_bytes
from kernelviz.measure.session.contract import Session, Stop
from kernelviz.measure.session.device_state import DeviceState
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.host import DEFAULT_CACHE_BYTES
from kernelviz.measure.timing.rounds import Rounds, Series
from kernelviz.measure.timing.timer import BoundLaunch, DeviceTimer, Timed
from kernelviz.measure.timing.trace import Tracer
from kernelviz.metrics.verdicts import Verdict, verdict
from kernelviz.ops import Op, Variant, op_named


class Stopped(Exception):
    """The selftest was cancelled."""


class Spoilt(Exception):
    """A planted variant broke the process, so further measurements in it would not be valid."""


class NotHere(Exception):
    """The check cannot be made on this machine, for the reason in the message."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. Without `passed`, the comparison of `value` with the check's limit decides."""

    value: float | None
    figures: dict[str, float]
    passed: bool | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A check: `make` returns its finding, or raises NotHere or Stopped.

    The value must be at most `limit`, or at least `limit` if `at_most` is False.
    """

    name: str
    question: str
    make: Callable[[Workbench], Finding]
    limit: float | None = None
    unit: CheckUnit | None = None
    at_most: bool = True


def probe(
    question: str, *, limit: float | None = None, unit: CheckUnit | None = None, at_most: bool = True
) -> Callable[[Callable[[Workbench], Finding]], Probe]:
    """Make a Probe of a function, with its name; a processor's version of a check has the same name as the GPU's."""

    def decorate(make: Callable[[Workbench], Finding]) -> Probe:
        return Probe(make.__name__.removesuffix("_on_processor"), question, make, limit, unit, at_most)

    return decorate


@dataclass(slots=True)
class Workbench:
    """One device under test. All methods use the device's own timer, never another method.

    `opened` opens the product's session on the same device and timer with other ops, so that planted variants do not stay bound
    beside honest ones. `stop`: see Session.
    """

    state: DeviceState
    ops: Mapping[str, Op]
    opened: Callable[[Mapping[str, Op]], Session]
    stop: Stop
    quick: bool = False

    @property
    def device(self) -> Device:
        return self.state.device

    @property
    def timer(self) -> DeviceTimer:
        return self.state.timer

    @property
    def where(self) -> torch.device:
        return torch.device(self.device.id)

    @property
    def room_bytes(self) -> int:
        """The bytes that a check may allocate: an eighth of the device's memory."""
        return (self.device.memory_bytes or 2**32) // 8

    @property
    def cache_bytes(self) -> int:
        """The bytes of the last-level cache, as far as a check may fill it."""
        return min(self.device.last_level_cache_bytes or DEFAULT_CACHE_BYTES, self.room_bytes // 8)

    def tracing(self) -> tuple[CudaTimer, Tracer]:
        """The GPU's timer and its tracer. Raises NotHere where times come from events."""
        assert isinstance(self.timer, CudaTimer)
        if self.timer.tracer is None:
            raise NotHere("nothing can be traced on this GPU: its times come from events")
        return self.timer, self.timer.tracer

    def go_on(self) -> None:
        """Called between steps. Raises Stopped."""
        if self.stop():
            raise Stopped

    def repeats(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def wait(self) -> None:
        if self.where.type == "cuda":
            torch.cuda.synchronize(self.where)

    def timed(self, bound_launch: BoundLaunch, more: Iterable[BoundLaunch] = ()) -> Timed:
        """A call that is ready to be timed, after one call."""
        bound_launch.launch()
        self.wait()
        timed = self.timer.prepare(bound_launch, more)
        self.timer.refine(timed)
        return timed

    def figure(self, timed: Timed, budget_s: float = 1.0) -> Figure:
        """The cold time of a call by the product's rounds."""
        return self.together([timed], budget_s)[0]

    def together(self, calls: list[Timed], budget_s: float = 1.0) -> list[Figure]:
        """The cold times of calls from shared, interleaved rounds."""
        series = [Series(str(i), timed) for i, timed in enumerate(calls)]
        self._take(series, None, None, budget_s)
        return [s.figure(self.timer) for s in series]

    def compared(self, call: Timed, baseline: Timed, budget_s: float = 1.0) -> Verdict:
        """The product's verdict on `call`: shared rounds, the baseline twice."""
        base, again, other = Series("base", baseline), Series("again", baseline), Series("call", call)
        self._take([other, base, again], base, again, budget_s)
        return verdict(other.figure(self.timer), base.figure(self.timer), again.figure(self.timer))

    def _take(self, series: list[Series], base: Series | None, again: Series | None, budget_s: float) -> None:
        rounds = Rounds(self.timer, Method(budget_s=budget_s), self.stop)
        if not rounds.take(series, base, again, lambda _: None):
            raise Stopped

    def add(self, n: int) -> Timed:
        """torch.add of n fp32 elements, on as many copies of its tensors as the product uses."""
        room_bytes = copies_bytes(self.where, self.device.memory_bytes or 0)
        most = max(1, min(MAX_BUFFERS, room_bytes // max(12 * n, 6 * 2**20)))
        return self.timed(self._add_launch(n), (self._add_launch(n) for _ in range(most - 1)))

    def _add_launch(self, n: int) -> BoundLaunch:
        x, y = (torch.randn(n, device=self.where) for _ in range(2))
        out = torch.empty_like(x)
        return BoundLaunch(lambda: torch.add(x, y, out=out))

    def results(
        self, problem: Problem, variants: tuple[Variant, ...], baseline: str, budget_s: float = 0.05
    ) -> dict[str, Result]:
        """Results of the baseline and of planted variants, by a session of the product. Raises Stopped."""
        self.go_on()
        op = op_named(problem.op, self.ops).plus(variants)
        planted = self.opened({op.name: op})
        names = (baseline, *(v.name for v in variants))
        events: list[Event] = []
        planted.measure(problem, names, baseline, Method(budget_s=budget_s), events.append, self.stop)
        if planted.spoilt is not None:
            raise Spoilt(planted.spoilt)
        self.go_on()
        return {e.result.variant: e.result for e in events if isinstance(e, CaseDone)}
