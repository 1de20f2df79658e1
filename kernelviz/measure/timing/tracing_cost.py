"""The time that tracing adds to a call: CUPTI stamps a kernel by code in each of its blocks, which makes some kernels longer.

Measured on an H200: a copy of 2^24 floats by 65,536 small blocks takes 48.8 us untraced (48.4 by ncu) and 53.5 us while it is
traced; softmax 8192 x 8192 by torch gets 5.6 us of 258 longer; an add of 2^24 in 16-byte vectors does not change. So every
captured call is run traced and untraced, by events round whole graphs, and the difference is subtracted from its samples.

Tracing can also make a kernel shorter: on an H100, gelu of 2^26 by Triton with libdevice's erf takes 113 us traced and 131 us
untraced. Such a call is not corrected but timed without the tracer (`shortened`).
"""

import time
from collections.abc import Callable
from statistics import median

import torch

from kernelviz.measure.timing.burst import Burst
from kernelviz.measure.timing.kernels import Instruments, captured, empty_launch, timing_event
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.measure.timing.trace import Tracer

GRAPH_S, MOST_CALLS = 1e-3, 20
"""The length of a graph of calls and the maximum number of calls in it. The events' error of 0.5 us is divided by the calls."""
ATTEMPTS, MORE_ATTEMPTS = 7, 15
LONG_S = 10e-3
"""Longer calls vary by more than the events' half microsecond, so a graph holds one of them, and only the least number of
attempts is made: for a call of 0.36 s the usual attempts take 10 s to determine 0.01 % of it."""
RESOLVED_S, DOUBT_S = 0.3e-6, 0.15e-6
"""Differences below RESOLVED_S count as zero; within DOUBT_S of a limit that decides (`counted_s`) more attempts are made."""
LIGHT_S = 100e-6
"""Before a graph of shorter calls there is no rest: none of those that were tried without rests lost clock (docs/measuring.md,
"Rests between bursts"), and what is compared are two graphs that follow each other."""
LEAST_ATTEMPTS = 4
"""With fewer valid attempts, the cost of tracing is unknown. With so many that all clearly count as zero, it is zero."""
SHORTER_S, SHORTER_SHARE = 0.8e-6, 0.005
"""A call that tracing shortens by more than the first, and by more than this share of it, is another call while it is traced. It
is timed by events, which resolve SHORTER_S."""
MOST_SHARE = 1 / 3
"""If what counts of the difference is a larger share of a call, it is an error of this measurement. The largest cost of tracing
seen is 8 %."""
COVER_CYCLES, MOST_COVER_CYCLES = 2_000_000, 32_000_000
"""A kernel that only waits (1 ms at 2 GHz) runs before a graph, so that the whole graph is in the queue before its first kernel
runs. When the host was late, the kernel waits twice as long from the next attempt on, and each new graph begins with half of that
wait: without the halving, one delay of the host made all later cases of a process wait up to 16 ms in each of their 14 graphs,
0.2 s a case (H200, a sweep of 300 cases). After 0.24 ms of flushes every traced graph was late, because the tracer makes its
launch longer. The delay of an empty call cancelled this, until a busy host made a call of 16 blocks 2 us "longer"."""
_IN_TIME = 0.8
"""The share of that wait within which the host must have launched the graph."""


class TracingCost:
    """Measures the cost of tracing on one device, relative to that of an empty kernel in the same pattern."""

    def __init__(self, instruments: Instruments, tracer: Tracer, burst: Burst) -> None:
        """Prepare for one device, whose load `burst` limits."""
        self._instruments, self._tracer, self._burst = instruments, tracer, burst
        self._cover_cycles = COVER_CYCLES
        self._of_nothing_s: float | None = None

    def adds_s(self, bound_launch: BoundLaunch, iteration_s: float, call_s: float) -> float | None:
        """Seconds by which a call in a graph is longer while it is traced, as far as it counts (`counted_s`).

        None when memory is short, when the host is too busy, or when the difference exceeds MOST_SHARE of the call.

        `iteration_s`: about how long flush and call take together; `call_s`: the call alone.
        """
        long = iteration_s > LONG_S
        calls = 1 if long else max(2, min(MOST_CALLS, round(GRAPH_S / iteration_s)))
        differences_s: list[float] = []

        def add(attempts: int) -> None:
            load_s = 2 * attempts * calls * iteration_s
            if call_s < LIGHT_S:
                self._burst.count(load_s)
            else:
                self._burst.rest(load_s)
            differences_s.extend(self._added(graph, calls, attempts))

        try:
            nothing_s = self._nothing_s()
            if nothing_s is None:
                return None
            graph = self._captured(bound_launch, calls)
            add(LEAST_ATTEMPTS)
            if not long:
                clearly_zero = all(is_clearly_zero(d - nothing_s, call_s) for d in differences_s)
                if len(differences_s) < LEAST_ATTEMPTS or not clearly_zero:
                    add(ATTEMPTS - LEAST_ATTEMPTS)
                if differences_s and in_doubt(median(differences_s) - nothing_s, call_s):
                    add(MORE_ATTEMPTS)
        except torch.OutOfMemoryError:  # another set of outputs may not fit
            return None
        if len(differences_s) < LEAST_ATTEMPTS:
            return None
        counts_s = counted_s(median(differences_s) - nothing_s, call_s)
        return None if abs(counts_s) > MOST_SHARE * call_s else counts_s

    def _nothing_s(self) -> float | None:
        """The cost of tracing for an empty kernel in the same pattern; None while the host is too busy to measure it."""
        if self._of_nothing_s is None:
            graph = self._captured(BoundLaunch(empty_launch()), MOST_CALLS)
            differences_s = self._added(graph, MOST_CALLS, MORE_ATTEMPTS)
            self._of_nothing_s = median(differences_s) if len(differences_s) >= LEAST_ATTEMPTS else None
        return self._of_nothing_s

    def _added(self, graph: torch.cuda.CUDAGraph, calls: int, attempts: int) -> list[float]:
        """The cost of tracing for one of the graph's calls, by each valid attempt; at most three times `attempts` are made."""
        differences_s: list[float] = []
        for _ in range(3 * attempts):
            untraced_s = self._between_events_s(graph)
            traced: list[float | None] = []
            self._tracer.trace(lambda times=traced: times.append(self._between_events_s(graph)))  # type: ignore[misc]
            if untraced_s is not None and traced[0] is not None:
                differences_s.append((traced[0] - untraced_s) / calls)
            if len(differences_s) == attempts:
                break
        return differences_s

    def _captured(self, bound_launch: BoundLaunch, calls: int) -> torch.cuda.CUDAGraph:
        def work() -> None:
            for _ in range(calls):
                self._instruments.flush()
                bound_launch.launch()
                self._instruments.marker()

        self._cover_cycles = max(COVER_CYCLES, self._cover_cycles // 2)
        graph, _ = captured(work)
        graph.replay()
        torch.cuda.synchronize()
        return graph

    def _between_events_s(self, graph: torch.cuda.CUDAGraph) -> float | None:
        """The time of the graph; None when the host was late, so that the device may have waited for it."""
        first, begun, ended = (timing_event() for _ in range(3))
        wait: Callable[[int], None] = torch.cuda._sleep
        began_s = time.perf_counter()
        first.record()
        wait(self._cover_cycles)
        begun.record()
        graph.replay()
        ended.record()
        ready_s = time.perf_counter() - began_s
        torch.cuda.synchronize()
        if ready_s > _IN_TIME * float(first.elapsed_time(begun)) / 1e3:
            self._cover_cycles = min(2 * self._cover_cycles, MOST_COVER_CYCLES)
            return None
        return float(begun.elapsed_time(ended)) / 1e3


def counted_s(added_s: float, call_s: float) -> float:
    """What counts of the difference between a call of `call_s` and an empty kernel: more than RESOLVED_S, or a call that tracing
    `shortened`.

    A smaller negative difference is a property of the empty kernel: it has no work behind which the tracer's could be done. On an
    H200 tracing adds 0.88 us to it and 0.55 to 0.65 us to each `add` of 2^12 to 2^18. While that difference counted where it was
    over RESOLVED_S, the same `add` of 2^14 took 1.45 us in one process and 1.77 us in the next.

    >>> counted_s(-0.31e-6, 1.45e-6), counted_s(0.2e-6, 50e-6), counted_s(4.7e-6, 48e-6), counted_s(-17e-6, 113e-6)
    (0.0, 0.0, 4.7e-06, -1.7e-05)
    """
    return added_s if added_s > RESOLVED_S or shortened(added_s, call_s) else 0.0


def shortened(added_s: float, call_s: float) -> bool:
    """Whether tracing shortens a call of `call_s` so much that its traced time says nothing about the untraced call.

    >>> shortened(-17e-6, 113e-6), shortened(-0.5e-6, 20e-6), shortened(4.7e-6, 48e-6)
    (True, False, False)
    """
    return added_s < -_shortened_by_s(call_s)


def _shortened_by_s(call_s: float) -> float:
    return max(SHORTER_S, SHORTER_SHARE * call_s)


def is_clearly_zero(added_s: float, call_s: float) -> bool:
    """Whether one measured difference is far from the limits between which it counts as zero.

    >>> [is_clearly_zero(us * 1e-6, 1.5e-6) for us in (0.1, 0.2, -0.3, -0.7)]
    [True, False, True, False]
    """
    return DOUBT_S - _shortened_by_s(call_s) < added_s < RESOLVED_S - DOUBT_S


def in_doubt(added_s: float, call_s: float) -> bool:
    """Whether the median of measured differences is so near one of these limits that a few more could change what counts.

    Between them nothing is in doubt. Until 2026-11-29, a difference of -0.15 to -0.45 us, which most calls of 1 to 2 us have, led
    to 22 attempts in place of 4, for a result of zero (H200, the mean of 27 such cases: 18 attempts of 9 ms).

    >>> [in_doubt(us * 1e-6, 1.5e-6) for us in (0.1, 0.2, 0.5, -0.3, -0.7)]
    [False, True, False, False, True]
    """
    return min(abs(added_s - RESOLVED_S), abs(added_s + _shortened_by_s(call_s))) < DOUBT_S
