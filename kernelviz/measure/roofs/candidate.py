"""The candidates for one roof, timed in interleaved rounds: five rounds of all, then the best two until they are precise."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from kernelviz.core import Figure, Method, Roof, timestamps
from kernelviz.hardware.thread_times import ThreadTimes
from kernelviz.measure.session.contract import Stop
from kernelviz.measure.timing.rounds import Rounds, Series
from kernelviz.measure.timing.timer import BoundLaunch, DeviceTimer
from kernelviz.metrics.roof_checks import half_width_of, refusal
from kernelviz.metrics.statistics import MIN_BLOCKS, Interval
from kernelviz.ops import Launch


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """How long a roof is measured.

    `finalists` is the number of candidates that are measured after the first rounds. `host_product_s` is about how long one
    matrix product may take on a CPU. Two calibrations must agree within 1 %, so the target of the interval is 0.15 %. A series
    ends at its budget at the latest. `again_s`: the time for all roofs that have to be measured again because they were refused.
    """

    choosing: Method
    deciding: Method
    finalists: int = 2
    host_product_s: float = 0.05
    again_s: float = 4.0


GPU = Effort(choosing=Method(budget_s=1e-3), deciding=Method(budget_s=0.2, half_width=0.0015))
HOST = Effort(choosing=Method(budget_s=1e-3), deciding=Method(budget_s=1.5, half_width=0.0025), again_s=30.0)
"""More time on a CPU, because its clock and load vary more; it has fewer roofs."""
CHOOSING_ROUNDS = 5
"""Rounds of all candidates before the finalists are chosen. The finalists are measured anew, so these rounds only have to put the
candidates in order. Of a stream on a GPU, each round is at another of its offsets (`streams.OFFSETS`)."""
LEAST_WAIT = 0.05
"""A wait for the processor during a smaller part of the time does not count."""
ATTEMPTS = 3
"""How often a roof is measured at most. Other load on the machine often lasts longer than that, and then the roof is refused."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to reach `roof`; its rate is `amount` (bytes or flop of one call) divided by the time.

    `amount` None: the time itself is the roof. The launch must not return large tensors, because its outputs are poisoned.
    `more_launches`: the same call on other buffers, over which the blocks rotate: depending on its addresses a stream inside
    the L2 was 1.3 % faster in one calibration than in the next.
    """

    roof: Roof
    launch: Launch
    amount: float | None = None
    more_launches: tuple[Launch, ...] = ()


@dataclass(slots=True)
class Contest:
    """Times candidates with one timer and selects the best. `tried` contains every roof of the last contest.

    `ceilings` and `cache_bytes`: the data sheet's roofs and the size of the cache, for the checks of `metrics.roof_checks`.
    `times`: where a processor is measured, how long the threads of this process have run, and waited for a processor.
    `results`: every roof so far. `again_s`: the time that was spent on roofs that had to be measured again.
    """

    timer: DeviceTimer
    stop: Stop
    effort: Effort
    tried: list[Roof] = field(default_factory=list)
    ceilings: tuple[Roof, ...] = ()
    cache_bytes: int | None = None
    times: Callable[[], ThreadTimes | None] | None = None
    results: list[Roof] = field(default_factory=list)
    again_s: float = 0.0

    def best(self, candidates: Iterable[Candidate], *, warm: bool = False) -> Roof | None:
        """The roof of the fastest candidate; None if there are no candidates or if the calibration was stopped."""
        series: list[tuple[Candidate, Series]] = []
        for candidate in candidates:
            if self.stop():
                return None
            candidate.launch()
            more = map(BoundLaunch, candidate.more_launches)
            timed = self.timer.prepare(BoundLaunch(candidate.launch), more, warm=warm)
            series.append((candidate, Series(candidate.roof.how, timed)))
        if len(series) > self.effort.finalists:
            if not self._take([s for _, s in series], self.effort.choosing, CHOOSING_ROUNDS):
                return None
            series = self._ordered(series)
        chosen, rest = series[: self.effort.finalists], series[self.effort.finalists :]
        for place, (candidate, first) in enumerate(chosen):
            # Refining takes 0.15 s. Tracing adds 1 % to matrix products and nothing to streams in 16-byte vectors
            # (tracing_cost.py), so of streams only the leader is refined: a second one read too slow cannot raise a roof.
            if not warm and (place == 0 or candidate.roof.name == "matmul"):
                self.timer.refine(first.timed)
        finalists = [(candidate, Series(first.name, first.timed)) for candidate, first in chosen]
        before = self._times()
        if not finalists or not self._decide(finalists):
            return None
        self.tried = [self._roof(candidate, s) for candidate, s in (*finalists, *rest) if s.blocks]
        best = self._not_alone(self._roof(*self._ordered(finalists)[0]), before)
        return self.settled(best, lambda: self._once_more(finalists))

    def settled(self, first: Roof, again: Callable[[], Roof | None]) -> Roof | None:
        """The first of up to ATTEMPTS measurements that is not refused, else the one with the narrowest interval, which all
        readers refuse by name. None if the calibration was stopped. `again` measures the roof once more."""
        attempts = [first]
        while self._refused(attempts[-1]) and len(attempts) < ATTEMPTS and self.again_s < self.effort.again_s:
            began_s = time.monotonic()
            attempt = again()
            self.again_s += time.monotonic() - began_s
            if attempt is None:
                return None
            attempts.append(attempt)
        refused = self._refused(attempts[-1])
        roof = min(attempts, key=lambda r: half_width_of(r) or 0.0) if refused else attempts[-1]
        self.results.append(roof)
        return roof

    def _refused(self, roof: Roof) -> bool:
        return refusal(roof, self.results, self.ceilings, self.cache_bytes) is not None

    def _once_more(self, finalists: Sequence[tuple[Candidate, Series]]) -> Roof | None:
        """The roof of the best finalist from new blocks. None if stopped."""
        candidate, series = self._ordered(finalists)[0]
        fresh, before = Series(series.name, series.timed), self._times()
        if not self._take([fresh], self.effort.deciding):
            return None
        return self._not_alone(self._roof(candidate, fresh), before)

    def _times(self) -> ThreadTimes | None:
        return None if self.times is None else self.times()

    def _not_alone(self, roof: Roof, before: ThreadTimes | None) -> Roof:
        """The roof as `without_the_wait` gives it, by the times since `before`."""
        now = self._times()
        return roof if before is None or now is None else without_the_wait(roof, now.waited_fraction(before))

    def _decide(self, finalists: Sequence[tuple[Candidate, Series]]) -> bool:
        """Measure the finalists until the best is precise enough or the budget is spent. False if stopped.

        A finalist that is clearly slower after the first rounds cannot be the roof, so it is not measured further: its blocks
        would take half of the time.
        """
        method, both = self.effort.deciding, [s for _, s in finalists]
        if len(finalists) > 1:
            began_s = time.monotonic()
            if not self._take(both, self.effort.choosing):
                return False
            contenders = [s for _, s in self._contenders(finalists)]
            if Rounds(self.timer, method, self.stop).decided(contenders, None, None):
                return True
            if len(contenders) == len(both):
                spent_s = (time.monotonic() - began_s) / len(both)
                method = msgspec.structs.replace(method, budget_s=max(1e-3, method.budget_s - spent_s))
            both = contenders
        return self._take(both, method)

    def _contenders(self, finalists: Sequence[tuple[Candidate, Series]]) -> list[tuple[Candidate, Series]]:
        """The finalists that may be the best, by their intervals so far."""

        def rates(pair: tuple[Candidate, Series]) -> tuple[float, float]:
            """The lowest and the highest rate in the interval of the time."""
            amount, time_s = pair[0].amount or 1.0, pair[1].figure(self.timer)
            return (amount / time_s.high if time_s.high else 0.0), (amount / time_s.low if time_s.low else math.inf)

        leader = self._ordered(finalists)[0]
        at_least, _ = rates(leader)
        return [pair for pair in finalists if pair is leader or rates(pair)[1] >= at_least]

    def _take(self, series: Sequence[Series], method: Method, least: int = MIN_BLOCKS) -> bool:
        return Rounds(self.timer, method, self.stop, least=least).take(series, None, None, lambda _: None)

    def _ordered(self, series: Sequence[tuple[Candidate, Series]]) -> list[tuple[Candidate, Series]]:
        """The candidates, the fastest first."""

        def speed(pair: tuple[Candidate, Series]) -> float:
            return (pair[0].amount or 1.0) / pair[1].figure(self.timer).estimate

        return sorted(series, key=speed, reverse=True)

    def _roof(self, candidate: Candidate, series: Series) -> Roof:
        clocks = [b.clock_hz for b in series.blocks if b.clock_hz]
        return measured(
            candidate.roof,
            candidate.amount,
            series.figure(self.timer),
            clock_hz=median(clocks) if clocks else None,
            timer=self.timer.timer_of(series.timed),
        )


def without_the_wait(roof: Roof, fraction: float) -> Roof:
    """A roof of a processor whose threads waited for it during this fraction of their time, because others used it: the roof lies
    between what was reached and what would have been reached without the wait. From a fifth on, its interval is too wide to use
    it (`metrics.roof_checks`). On two cores beside other programs, all rates were half, each within ±0.2 %, and were used.

    >>> alone = Roof(name="copy", bandwidth_bytes_per_s=10e9, low=9.9e9, high=10.1e9)
    >>> without_the_wait(alone, 0.5).high, without_the_wait(alone, 0.03).high
    (20000000000.0, 10100000000.0)
    """
    if fraction < LEAST_WAIT or roof.low is None or roof.high is None:
        return roof
    own = max(1e-3, 1 - fraction)
    if roof.time_s is not None:
        return msgspec.structs.replace(roof, low=min(roof.low, roof.time_s * own))
    rate = roof.rate_flop_per_s or roof.bandwidth_bytes_per_s or 0.0
    return msgspec.structs.replace(roof, high=max(roof.high, rate / own))


def fastest_quarter(times: Sequence[float]) -> list[float]:
    """The shortest quarter of the times, at least one: a roof is a rate that was reached, and other load makes times longer."""
    return sorted(times)[: max(1, len(times) // 4)]


def measured(
    roof: Roof, amount: float | None, time: Figure | Interval, *, timer: str, clock_hz: float | None = None
) -> Roof:
    """`roof` with the date and the measured rate (`amount` divided by time), or with the time if `amount` is None."""
    dated = msgspec.structs.replace(roof, clock_hz=clock_hz, timer=timer, measured_at=timestamps.now("seconds"))
    if amount is None:
        return msgspec.structs.replace(dated, time_s=time.estimate, low=time.low, high=time.high)
    field_name = "rate_flop_per_s" if roof.name in ("matmul", "fma", "mma") else "bandwidth_bytes_per_s"
    low, high = amount / time.high if time.high else None, amount / time.low if time.low else None
    return msgspec.structs.replace(dated, low=low, high=high, **{field_name: amount / time.estimate})
