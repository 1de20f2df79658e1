"""Secondary timings: device warm, the call as a program makes it, energy, the naive protocol. They follow the cold times."""

import itertools
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from kernelviz.core import (
    Block,
    CallTooLong,
    Device,
    Energy,
    Figure,
    LaunchMode,
    Method,
    NaiveTiming,
    NotCapturable,
    Note,
    Timing,
)
from kernelviz.core.merge import merge_timings
from kernelviz.measure.naive.process import MeasureNaive
from kernelviz.measure.session.binding import BoundVariant
from kernelviz.measure.session.contract import Stop
from kernelviz.measure.session.device_state import DeviceState, Watch
from kernelviz.measure.timing.burst import LEAST_RESTED, LOAD_S, WINDOW_S, Pace
from kernelviz.measure.timing.compilations import compilations
from kernelviz.measure.timing.energy import energy
from kernelviz.measure.timing.rounds import Rounds, Series
from kernelviz.measure.timing.timer import BoundLaunch, Calls, may_compile
from kernelviz.metrics.absences import never_measured
from kernelviz.metrics.statistics import median_interval

CALL_BLOCKS, CALLS_A_BLOCK, LEAST_CALLS = 20, 50, 2
"""1,000 calls, so that ten are above the 99th percentile. A call gets fewer if they would take more than CALLS_S together."""
CALLS_S = 0.1
LONGEST_S = 0.1
"""A longer call has no secondary timings: its launch cost is negligible, and no cache can hold its data."""
KINDS = 3
"""The number of kinds of host times (eager, graph, back to back). Each may take the budget of the case."""
SHARE_TO_LEARN, LEARNT_FROM_S, LEARNT_AGAIN = 5, 0.5e-3, 2
"""A clock is learnt from so many times fewer calls than a block has, but at least from so many seconds, or a whole block; and so
often again while the hardware slows the device down."""
PILOT_S = 5e-3
"""Calls before all others, so that the device is not idle."""
BACK_TO_BACK_S, MOST_BACK_TO_BACK = 2e-3, 200
"""Length of a back-to-back block, and its most calls: the device's queue holds about 1,000."""


UNKNOWN_CALL_S = 1e-3
"""The assumed device time of a call for its energy, where neither its warm time nor its kernels are known."""


class Progress(Protocol):
    """Reports the fraction of the measurement of all variants, or of one of them."""

    def __call__(self, fraction: float, only: BoundVariant | None = None) -> None: ...


@dataclass(slots=True)
class Samples:
    """Times of one kind, block by block."""

    launch: LaunchMode
    method: str
    samples: list[float] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    rested: list[bool] = field(default_factory=list)
    """Of each block, whether the device had rested before it."""

    def add(self, started_s: float, times: Sequence[float], round_number: int, *, rested: bool) -> None:
        self.samples += times
        self.blocks.append(Block(size=len(times), started_s=started_s, round=round_number))
        self.rested.append(rested)

    def keep_rested(self) -> None:
        """Remove the blocks before which the device had not rested."""
        each = [rested for block, rested in zip(self.blocks, self.rested, strict=True) for _ in range(block.size)]
        self.samples = list(itertools.compress(self.samples, each))
        self.blocks = list(itertools.compress(self.blocks, self.rested))
        self.rested = [True] * len(self.blocks)

    def figure(self) -> Figure | None:
        """The median of all samples, with an interval from the blocks' medians."""
        if not self.samples:
            return None
        ends = np.cumsum([b.size for b in self.blocks])
        interval = median_interval(
            [float(np.median(self.samples[e - b.size : e])) for b, e in zip(self.blocks, ends, strict=True)]
        )
        return Figure(
            estimate=float(np.median(self.samples)),
            low=interval.low,
            high=interval.high,
            samples=tuple(self.samples),
            blocks=tuple(self.blocks),
            timer="host",
            launch=self.launch,
            method=self.method,
        )


@dataclass(slots=True)
class _Kind:
    """One kind of host times of one call: where they go, the calls of a block, and what times so many of them."""

    samples: tuple[Samples, ...]
    calls: int
    times: Callable[[int], Sequence[Sequence[float]]]
    device_s: float
    """About how long the device works for one of these calls."""
    call_s: float
    pace: Pace = field(default_factory=Pace)
    unrested_s: float = 0.0
    """How long the blocks took that followed no rest."""

    @property
    def blocks(self) -> int:
        return len(self.samples[0].blocks)


@dataclass(slots=True)
class _Called:
    """One variant while its calls are timed."""

    bound: BoundVariant
    calls: Calls
    device_s: float
    call_s: float = 0.0
    kinds: list[_Kind] = field(default_factory=list)
    eager: Samples = field(
        default_factory=lambda: Samples("call", "host clock round one eager call, from idle to done")
    )
    enqueue: Samples = field(
        default_factory=lambda: Samples("call", "host clock round one eager call, until Python goes on")
    )
    graph: Samples = field(
        default_factory=lambda: Samples("graph", "host clock round a graph of one call, from idle to done")
    )
    back_to_back: Samples = field(
        default_factory=lambda: Samples("call", "host clock round eager calls back to back, divided by them")
    )


@dataclass(slots=True)
class SecondaryTimings:
    """Measures the secondary timings of correct variants. `compiled`: names of variants that compiled inside a timed region."""

    state: DeviceState
    method: Method
    stop: Stop
    progress: Progress
    watch: Watch
    measure_naive: MeasureNaive | None = None
    measure_energy: Callable[[Device, BoundLaunch, float, Stop], Energy | Note | None] = energy
    compiled: set[str] = field(default_factory=set)
    notes: defaultdict[str, list[Note]] = field(default_factory=lambda: defaultdict(list))
    retried: dict[str, int] = field(default_factory=dict)
    seed: int = 0

    def take(self, ready: Sequence[BoundVariant], baseline: str) -> dict[str, Timing]:
        """The timings that the method requests, by variant; fewer when stopped."""
        ready = [b for b in ready if self._short(b)]
        if not ready:
            return {}
        warm = "warm" in self.method.figures
        timings = self._warm(ready, baseline) if warm else {b.variant.name: Timing() for b in ready}
        device = self.state.device
        if any(
            name in self.method.figures and never_measured(name, self.method.clock, device.kind) is None
            for name in ("call", "graph", "loop")
        ):
            timings = {
                name: merge_timings(timings[name], timing) for name, timing in self._calls(ready, timings).items()
            }
        if "energy" in self.method.figures:
            for b in ready:
                # One case takes seconds, so each has a report of its own, which also starts the limit of its silence anew.
                self.progress(1.0, b)
                known = timings[b.variant.name]
                timings[b.variant.name] = merge_timings(known, self._energy(b, known))
        if "naive" in self.method.figures and self.measure_naive is not None:
            for b in ready:
                known = timings[b.variant.name]
                timings[b.variant.name] = merge_timings(known, self._naive(b, known, self.measure_naive))
            # Last, because this process measures short kernels less exactly afterwards.
            self.state.share("processes of the naive protocol")
        return timings

    def _short(self, bound: BoundVariant) -> bool:
        """Whether the call is short enough for secondary timings; a note is added where it is not."""
        calls = self.state.timer.calls(bound.timed.launches[0])
        call_s = calls.eager(1)[0][0]
        if call_s > LONGEST_S:  # again, because another process may have interrupted this call
            call_s = min(call_s, *calls.eager(2)[0])
        if call_s > LONGEST_S:
            self.notes[bound.variant.name].append(CallTooLong(figure="secondary", call_s=call_s))
        return call_s <= LONGEST_S

    def _warm(self, ready: Sequence[BoundVariant], baseline: str) -> dict[str, Timing]:
        timer = self.state.timer
        series: list[Series] = []
        for b in ready:
            if b.warm is None:
                b.warm = timer.prepare(b.timed.launches[0], b.timed.launches[1:], warm=True)
                timer.refine_like(b.warm, b.timed)
                b.warm.notes = tuple(dict.fromkeys((*b.warm.notes, *b.timed.notes)))
            series.append(Series(b.variant.name, b.warm))
        timer.launch_alike([s.timed for s in series])
        base = next((s for s in series if s.name == baseline), None)
        again = Series("again", base.timed) if base is not None and len(series) > 1 else None
        before = compilations()
        rounds = Rounds(timer, self.method, self.stop, self.watch.look)
        rounds.take_stable([*series, again] if again else series, base, again, lambda f: self.progress(f / 2))
        if compilations() > before:
            suspects = may_compile([s.timed for s in series])
            self.compiled |= {s.name for s in series if s.timed in suspects}
        for s in series:
            self.notes[s.name] += s.notes("warm")
            self.retried[s.name] = s.retried
        return {
            s.name: Timing(
                device_warm_s=s.figure(timer, timer.describe(s.timed)) if s.blocks else None,
                again_warm_s=again.figure(timer) if again is not None and again.blocks and s is base else None,
            )
            for s in series
        }

    def _calls(self, ready: Sequence[BoundVariant], known: Mapping[str, Timing]) -> dict[str, Timing]:
        called = [
            _Called(b, self.state.timer.calls(b.timed.launches[0]), _device_s(known[b.variant.name], b)) for b in ready
        ]
        for c in called:
            c.calls.eager(2)
            c.call_s = min(c.calls.eager(3)[0])
            if c.calls.no_graph and "graph" in self.method.figures and self.state.device.kind == "cuda":
                self.notes[c.bound.variant.name].append(NotCapturable(figure="graph", error=c.calls.no_graph))
        self._blocks(called)
        on_gpu = self.state.device.kind == "cuda"
        return {
            c.bound.variant.name: Timing(
                call_eager_s=c.eager.figure(),
                # On a processor the call has ended when Python continues, so both times are the same.
                enqueue_s=c.enqueue.figure() if on_gpu else None,
                call_graph_s=c.graph.figure(),
                loop_s=c.back_to_back.figure(),
            )
            for c in called
        }

    def _blocks(self, called: Sequence[_Called]) -> None:
        """Time the calls in interleaved blocks, until there are enough, the budget is spent, or the user stops it."""
        for c in called:
            c.kinds = self._kinds(c)
        every = [kind for c in called for kind in c.kinds]
        shuffled = random.Random(self.seed)
        number = time.time_ns() // 1_000_000
        until_s = time.monotonic() + self.method.budget_s * len(called) * KINDS
        self._learn_clocks(every)
        done = 0
        for block_number in itertools.count():
            left = [c for c in called if any(kind.blocks < CALL_BLOCKS for kind in c.kinds)]
            if not left or (block_number and time.monotonic() > until_s):
                return
            for c in shuffled.sample(left, len(left)):
                if self.stop():
                    return
                before = compilations()
                for kind in c.kinds:
                    until_s += self._block(kind, number + block_number)
                if compilations() > before:
                    self.compiled.add(c.bound.variant.name)
            self.watch.look()
            done = max(done, min((kind.blocks for kind in every), default=CALL_BLOCKS))
            self.progress(0.5 + min(done, CALL_BLOCKS) / CALL_BLOCKS / 2)

    def _kinds(self, c: _Called) -> list[_Kind]:
        """The kinds of host times that the method requests of this call, and how many calls a block of each has."""
        wanted = self.method.figures
        calls = max(LEAST_CALLS, min(CALLS_A_BLOCK, int(CALLS_S / CALL_BLOCKS / max(c.call_s, 1e-6))))
        length = max(LEAST_CALLS, min(MOST_BACK_TO_BACK, int(BACK_TO_BACK_S / max(c.call_s, 1e-6))))
        kinds: list[_Kind] = []
        if "call" in wanted:
            kinds.append(_Kind((c.eager, c.enqueue), calls, c.calls.eager, c.device_s, c.call_s))
        if "graph" in wanted and c.calls.replay is not None:
            kinds.append(_Kind((c.graph,), calls, lambda count: (c.calls.graph(count),), c.device_s, c.call_s))
        if "loop" in wanted:
            kinds.append(
                _Kind((c.back_to_back,), length, lambda count: ([c.calls.back_to_back(count)],), c.device_s, c.call_s)
            )
        return kinds

    def _learn_clocks(self, kinds: Sequence[_Kind]) -> None:
        """Measure the clock of each kind behind rests, by calls that are not kept, where fewer calls than a block are enough:
        then the rests are short. The first blocks of the others follow rests and are kept."""
        short = [kind for kind in kinds if kind.calls >= 2 * SHARE_TO_LEARN]
        if self.state.device.kind != "cuda" or not short:
            return
        # An idle device begins at a lower clock, so the first calls of all tell nothing.
        self._time(short[0], Pace(), math.ceil(PILOT_S / max(short[0].call_s, 1e-6)))
        for _ in range(LEARNT_AGAIN + 1):
            for kind in short * LEAST_RESTED:
                if self.stop():
                    return
                least = min(kind.calls, math.ceil(LEARNT_FROM_S / max(kind.call_s, 1e-6)))
                self._time(kind, kind.pace, max(kind.calls // SHARE_TO_LEARN, least))
            self.progress(0.5)
            if not self.watch.look():
                return
            for kind in short:
                kind.pace.rested_hz.clear()

    def _time(self, kind: _Kind, pace: Pace, calls: int) -> None:
        self.state.timer.paced(pace, calls * kind.device_s, partial(kind.times, calls))

    def _block(self, kind: _Kind, number: int) -> float:
        """Time a block. Returns how many seconds longer all of it may take, because blocks have to be measured again."""
        started_s = 0.0

        def timed() -> Sequence[Sequence[float]]:
            nonlocal started_s
            started_s = time.time()
            return kind.times(kind.calls)

        begun = time.monotonic()
        needed_rests = kind.pace.needs_rests
        times, rested = self.state.timer.paced(kind.pace, kind.calls * kind.device_s, timed)
        fell = kind.pace.needs_rests and not needed_rests
        for samples, one in zip(kind.samples, times, strict=True):
            if fell:
                samples.keep_rested()  # the clock fell little by little, until it was noticed
            samples.add(started_s, one, number, rested=rested)
        if fell:
            return min(self.method.budget_s, kind.unrested_s * WINDOW_S / LOAD_S)
        kind.unrested_s += 0.0 if rested else time.monotonic() - begun
        return 0.0

    def _energy(self, bound: BoundVariant, known: Timing) -> Timing:
        # Too long a time would make the load so short that the device is idle while the counter is read.
        call_s = _device_s(known, bound) or UNKNOWN_CALL_S
        measured = self.measure_energy(self.state.device, bound.timed.launches[0], call_s, self.stop)
        if isinstance(measured, Energy):
            return Timing(energy=measured)
        if measured is not None:
            self.notes[bound.variant.name].append(measured)
        return Timing()

    def _naive(self, bound: BoundVariant, known: Timing, measure: MeasureNaive) -> Timing:
        if self.stop():
            return Timing()
        call_s = max(_device_s(known, bound), known.loop_s.estimate if known.loop_s else 0.0)
        measured = measure(bound.variant, call_s, self.stop, lambda: self.progress(1.0, bound))
        if isinstance(measured, NaiveTiming):
            return Timing(naive=measured)
        if measured is not None:
            self.notes[bound.variant.name].append(measured)
        return Timing()


def _device_s(known: Timing, bound: BoundVariant) -> float:
    """About how long the device works for one call, which is its load while the host clock is used."""
    warm = known.device_warm_s
    return warm.estimate if warm is not None else sum(k.duration_s or 0.0 for k in bound.timed.kernels)
