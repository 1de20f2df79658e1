"""What tracing adds is taken off when it shows, asked again when it is in doubt, and unknown when it cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelviz.core import TracingShortens
from kernelviz.measure.timing.burst import Burst, Pace
from kernelviz.measure.timing.capture import CudaTimed
from kernelviz.measure.timing.cuda import EVENTS_APART_NS, CudaTimer, _clock_hz
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.measure.timing.trace import Iteration, Record
from kernelviz.measure.timing.tracing_cost import ATTEMPTS, COVER_CYCLES, LEAST_ATTEMPTS, MORE_ATTEMPTS, TracingCost

US = 1e-6
CALL_S = 20 * US


class Known(TracingCost):
    """Differences that are known instead of measured; what was asked is kept."""

    def __init__(self, differences_s: list[float] | None, nothing_s: float | None = 0.0) -> None:
        self.differences_s, self.asked, self.nothing_s = differences_s, [], nothing_s
        self.rested_s, self.counted_s = list[float](), list[float]()
        self._burst = SimpleNamespace(rest=self.rested_s.append, count=self.counted_s.append)

    def _nothing_s(self) -> float | None:
        return self.nothing_s

    def _captured(self, bound_launch: BoundLaunch, calls: int) -> torch.cuda.CUDAGraph:
        self._cover_cycles = COVER_CYCLES
        if self.differences_s is None:
            raise torch.OutOfMemoryError("another set of outputs")
        return None  # type: ignore[return-value]

    def _added(self, graph: object, calls: int, tries: int) -> list[float]:
        assert self.differences_s is not None
        self.asked.append((calls, tries))
        return [self.differences_s.pop(0) for _ in range(min(tries, len(self.differences_s)))]


PLACE = BoundLaunch(lambda: torch.empty(0))


REST = ATTEMPTS - LEAST_ATTEMPTS


@pytest.mark.parametrize(
    ("difference_us", "expected_us", "attempts"),
    [
        (4.5, 4.5, [LEAST_ATTEMPTS, REST]),
        (0.1, 0.0, [LEAST_ATTEMPTS]),
        (-0.1, 0.0, [LEAST_ATTEMPTS]),
        (-0.3, 0.0, [LEAST_ATTEMPTS]),
        (-0.7, 0.0, [LEAST_ATTEMPTS, REST, MORE_ATTEMPTS]),
        (-4.5, -4.5, [LEAST_ATTEMPTS, REST]),
    ],
)
def test_what_shows_is_taken_off_and_what_is_clearly_nothing_is_asked_least_often(
    difference_us: float, expected_us: float, attempts: list[int]
) -> None:
    cost = Known([difference_us * US] * (ATTEMPTS + MORE_ATTEMPTS))
    assert cost.adds_s(PLACE, 50 * US, CALL_S) == pytest.approx(expected_us * US)
    assert cost.asked == [(20, n) for n in attempts]
    assert (cost.rested_s, sum(cost.counted_s)) == ([], pytest.approx(2 * sum(attempts) * 20 * 50 * US))


def test_one_attempt_that_is_not_clearly_below_is_asked_again() -> None:
    cost = Known([0.0, 0.0, 0.2 * US, 0.0, 0.0, 0.0, 0.0])
    assert cost.adds_s(PLACE, 50 * US, CALL_S) == 0.0
    assert [tries for _, tries in cost.asked] == [LEAST_ATTEMPTS, REST]


def test_what_is_near_the_least_that_can_be_told_is_asked_more_often() -> None:
    cost = Known([0.32 * US] * ATTEMPTS + [0.28 * US] * MORE_ATTEMPTS)
    assert cost.adds_s(PLACE, 50 * US, CALL_S) == 0.0
    assert [tries for _, tries in cost.asked] == [LEAST_ATTEMPTS, REST, MORE_ATTEMPTS]


def test_one_outlier_among_the_tries_decides_nothing() -> None:
    cost = Known([0.0] * (ATTEMPTS - 1) + [900 * US])
    assert cost.adds_s(PLACE, 50 * US, CALL_S) == 0.0


def test_long_calls_are_asked_a_few_at_a_time_and_short_memory_leaves_it_unknown() -> None:
    cost = Known([0.0] * ATTEMPTS)
    cost.adds_s(PLACE, 3e-3, 3e-3)
    assert cost.asked[0][0] == 2
    assert (cost.rested_s, cost.counted_s) == ([pytest.approx(2 * LEAST_ATTEMPTS * 2 * 3e-3)], [])
    assert Known(None).adds_s(PLACE, 50 * US, CALL_S) is None


def test_of_calls_that_take_very_long_as_few_as_must_count_are_made() -> None:
    cost = Known([50 * US, 70 * US, 60 * US, 60 * US])
    assert cost.adds_s(PLACE, 0.36, 0.36) == pytest.approx(60 * US)
    assert cost.asked == [(1, LEAST_ATTEMPTS)]
    in_doubt = Known([0.3 * US] * LEAST_ATTEMPTS)
    in_doubt.adds_s(PLACE, 0.36, 0.36)
    assert len(in_doubt.asked) == 1


def test_what_it_adds_to_nothing_is_no_part_of_the_call() -> None:
    assert Known([4.5 * US] * ATTEMPTS, 0.5 * US).adds_s(PLACE, 50 * US, CALL_S) == pytest.approx(4 * US)
    assert Known([4.5 * US] * ATTEMPTS, None).adds_s(PLACE, 50 * US, CALL_S) is None


def test_a_host_that_was_late_too_often_leaves_it_unknown() -> None:
    assert Known([4.5 * US] * (LEAST_ATTEMPTS - 1)).adds_s(PLACE, 50 * US, CALL_S) is None
    assert Known([4.5 * US] * LEAST_ATTEMPTS).adds_s(PLACE, 50 * US, CALL_S) == pytest.approx(4.5 * US)
    assert Known([]).adds_s(PLACE, 50 * US, CALL_S) is None


def test_more_than_a_third_of_the_call_is_not_believed() -> None:
    """A call of 1.3 us from which 2.0 us were taken off stood as -0.7 us in a run."""
    assert Known([2.0 * US] * ATTEMPTS).adds_s(PLACE, 50 * US, 1.3 * US) is None


class Paced(TracingCost):
    """Graphs that take as long as a test says, some of them with a host that was late."""

    def __init__(self, *found_s: float | None) -> None:
        self.found_s = list(found_s)
        self._tracer = self  # type: ignore[assignment]
        self._cover_cycles = COVER_CYCLES

    def trace(self, work: Callable[[], None]) -> None:
        work()

    def _captured(self, place: BoundLaunch, calls: int) -> torch.cuda.CUDAGraph:
        return None  # type: ignore[return-value]

    def _between_events_s(self, graph: object) -> float | None:
        return self.found_s.pop(0)


def test_pairs_in_which_the_host_was_late_are_taken_again() -> None:
    one = Paced(1e-3, 2e-3, None, 9e-3, 1e-3, None, 1e-3, 3e-3)
    assert one._added(None, 10, 2) == pytest.approx([1e-4, 2e-4])
    assert one.found_s == []


def test_a_host_that_is_always_late_is_left_alone_in_the_end() -> None:
    one = Paced(*([None] * 100))
    assert one._added(None, 10, 5) == []
    assert len(one.found_s) == 100 - 2 * 15


class Source:
    """Stamps that know how long each call takes, and write down which calls each of their sessions had."""

    def __init__(self, name: str, tracer: object) -> None:
        self.name, self.tracer, self.sessions, self.replayed = name, tracer, list[list[str]](), list[str]()

    def of(self, work: Callable[[], None], expected: Sequence[tuple[Any, int]]) -> list[list[Iteration]]:
        self.replayed = []
        work()
        self.sessions.append(self.replayed)
        return [[Iteration(1, 1 + t.span_ns, (Record("k", 1, 1 + t.span_ns),))] * count for t, count in expected]


def timed_by(source: Source, label: str, span_ns: int) -> CudaTimed:
    timed = object.__new__(CudaTimed)
    timed.__dict__.update(
        stamps=source, samples=2, correction_s=0.0, notes=(), iteration_s=150e-6, graphs=(1, 2), in_stream=False
    )
    timed.__dict__.update(
        first_cycles=torch.zeros(2), last_cycles=torch.zeros(2), span_ns=span_ns, span_s=span_ns / 1e9, pace=Pace()
    )
    timed.__dict__.update(launches=[PLACE], warm=False, replay=lambda index: timed.stamps.replayed.append(label))
    timed.__dict__.update(capture=lambda samples, graphs: timed.__dict__.update(captured_again=(samples, graphs)))
    return timed


def timer_with(traced: Source, untraced: Source, added_s: float) -> CudaTimer:
    timer = object.__new__(CudaTimer)
    timer.__dict__.update(stamps=traced, name="cupti", instruments=SimpleNamespace(multiprocessors=2, device="cpu"))
    timer.__dict__.update(_burst=Burst(), _graph_index=0, _flush_s=0.0, _events=untraced)
    timer.__dict__.update(_cost=Known([added_s] * (ATTEMPTS + MORE_ATTEMPTS)))
    return timer


@pytest.mark.parametrize(("added_us", "by"), [(-19, "events"), (-0.5, "cupti"), (4, "cupti")])
def test_a_call_that_tracing_shortens_is_timed_without_the_tracer(added_us: float, by: str) -> None:
    """On an H100, gelu by triton_erf takes 113 us traced, and 131 us in graphs that are not traced.

    Half a microsecond less than an empty kernel is a property of the empty kernel, and no cost.
    """
    traced, untraced = Source("cupti", object()), Source("events", None)
    timer, timed = timer_with(traced, untraced, added_us * US), timed_by(traced, "erf", 113_000)
    timer.refine(timed)
    assert timer.timer_of(timed) == by
    assert timed.correction_s == pytest.approx(0.0 if added_us < 0 else added_us * US)
    assert [n.by_s for n in timed.notes if isinstance(n, TracingShortens)] == (
        [pytest.approx(19 * US)] if by == "events" else []
    )
    assert getattr(timed, "captured_again", None) == ((2, 2) if by == "events" else None)
    warm = timed_by(traced, "erf, warm", 113_000)
    timer.refine_like(warm, timed)
    assert (timer.timer_of(warm), warm.correction_s) == (by, timed.correction_s)


def test_each_source_of_times_has_a_session_of_its_own_and_blocks_keep_their_order() -> None:
    traced, untraced = Source("cupti", object()), Source("events", None)
    timer = timer_with(traced, untraced, 0.0)
    a, erf, b = timed_by(traced, "a", 10_000), timed_by(untraced, "erf", 131_000), timed_by(traced, "b", 20_000)
    rounds = timer.collect([[a, erf, b], [b, a, erf]])
    assert [[block.samples for block in one] for one in rounds] == [
        [[pytest.approx(s)] * 2 for s in spans] for spans in ((10e-6, 131e-6, 20e-6), (20e-6, 10e-6, 131e-6))
    ]
    assert (traced.sessions, untraced.sessions) == ([["a", "b", "b", "a"]], [["erf", "erf"]])


def test_the_clock_of_a_short_block_is_not_known_by_events() -> None:
    cycles, short_ns, long_ns = [[0, 0], [2000, 2000]], 99 * EVENTS_APART_NS, 100 * EVENTS_APART_NS
    assert _clock_hz(cycles, short_ns, traced=True) == pytest.approx(2000 / short_ns * 1e9)
    assert _clock_hz(cycles, short_ns, traced=False) is None
    assert _clock_hz(cycles, long_ns, traced=False) == pytest.approx(2000 / long_ns * 1e9)
