"""Checks of the instrument by known work: an empty kernel or call, a copy of known traffic, gaps between kernels."""

from collections.abc import Sequence
from functools import partial
from statistics import median

import torch

from kernelviz.hardware.datasheet import datasheet
from kernelviz.measure.selftest import kernels
from kernelviz.measure.selftest.workbench import Finding, Workbench, probe
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.kernels import between_events_s, captured, empty_launch
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.measure.timing.trace import Record
from kernelviz.ops import Launch

EMPTY_LEAST_S, EMPTY_MOST_S = 0.4e-6, 1.5e-6
EMPTY_CALL_MOST_S = 20e-6
COPY_BYTES, COPY_CALLS, COPY_REPEATS = 2**30, 20, 5
HOST_COPY_CACHES, HOST_COPY_REPEATS = 4, 12
BETWEEN = 0.25
"""Two ways of timing a copy on a processor may differ by this share: other processes on a small machine occupy a core for
milliseconds."""
LEAST_SHARE = 0.6
"""Least share of the data sheet's bandwidth that a copy on a working device reaches."""
GAP_KERNELS, GAP_REPEATS = 200, 15
COVER = 12
"""Flushes (about 43 us each on an H200) before a graph, so that the whole graph is submitted before its first kernel runs."""


@probe("What does the method read for a kernel that does nothing?", limit=EMPTY_MOST_S, unit="s")
def empty_kernel(at: Workbench) -> Finding:
    """A kernel cannot end before it starts, and its launch overhead on the device is about 1 us."""
    figure = at.figure(at.timed(BoundLaunch(empty_launch())))
    figures = {"estimate_s": figure.estimate, "low_s": figure.low or 0.0, "high_s": figure.high or 0.0}
    passed = EMPTY_LEAST_S <= figure.estimate <= EMPTY_MOST_S
    return Finding(figure.estimate, figures | {"least_s": EMPTY_LEAST_S}, passed)


@probe(
    "Do kernel stamps and events agree on copies back to back, at a bandwidth that the device can have?",
    limit=0.02,
    unit="fraction",
)
def known_traffic_copy(at: Workbench) -> Finding:
    """Twenty copies by events and by the tracer's stamps; the bandwidth of one copy by the product's method."""
    count = min(COPY_BYTES, at.room_bytes // 2) // kernels.VECTOR_BYTES
    source, target = kernels.vectors(count, at.where), torch.empty(4 * count, dtype=torch.int32, device=at.where)
    launch = kernels.copy(source, target, count)
    cold = at.figure(at.timed(BoundLaunch(launch)))
    at.go_on()
    moved = 2 * count * kernels.VECTOR_BYTES
    timer, tracer = at.tracing()

    # In a graph: launched one by one, twenty copies under the tracer took 3 % longer than without it.
    graph = _graph(launch, COPY_CALLS)
    by_events: list[float] = []
    by_stamps: list[float] = []
    spans: list[float] = []
    for _ in range(COPY_REPEATS):
        at.go_on()
        timer.rest(2 * COPY_CALLS * cold.estimate)
        by_events.append(between_events_s(graph.replay) / COPY_CALLS)
        records = tracer.trace(graph.replay)
        by_stamps.append(sum(r.end_ns - r.start_ns for r in records) / 1e9 / COPY_CALLS)
        spans.append(_span_s(records) / COPY_CALLS)
    events_s, stamps_s = median(by_events), median(by_stamps)
    apart = abs(stamps_s - events_s) / events_s
    rate = moved / cold.estimate
    figures = {
        "cold_s": cold.estimate,
        "back_to_back_by_events_s": events_s,
        "back_to_back_by_stamps_s": stamps_s,
        "back_to_back_span_s": median(spans),
        "bandwidth_bytes_per_s": rate,
        "back_to_back_bandwidth_bytes_per_s": moved / events_s,
    }
    sheet = datasheet(at.device.name)
    if sheet is None:
        return Finding(apart, figures, message="no data sheet is known for this GPU: its bandwidth is not judged")
    figures["data_sheet_bytes_per_s"] = sheet.bandwidth_bytes_per_s
    possible = LEAST_SHARE * sheet.bandwidth_bytes_per_s < rate < sheet.bandwidth_bytes_per_s
    message = "" if possible else "the bandwidth lies outside 60 to 100 % of the data sheet's"
    return Finding(apart, figures, apart <= 0.02 and possible, message)


@probe("By how much does tracing widen the gap between two kernels of a graph?", limit=0.5e-6, unit="s")
def gap_widening(at: Workbench) -> Finding:
    """The slope of a graph's time over its number of empty kernels: by stamps while traced, by events while not."""
    traced_s, untraced_s = _slopes(at)
    return Finding(traced_s - untraced_s, {"traced_slope_s": traced_s, "untraced_slope_s": untraced_s})


@probe("What does the method read for a call that does nothing?", limit=EMPTY_CALL_MOST_S, unit="s")
def empty_call_on_processor(at: Workbench) -> Finding:
    """One Python call after a flush, which has also emptied its caches."""
    figure = at.figure(at.timed(BoundLaunch(lambda: ())), 0.3)
    return Finding(
        figure.estimate, {"estimate_s": figure.estimate, "low_s": figure.low or 0.0, "high_s": figure.high or 0.0}
    )


@probe("Do one copy behind a flush and copies back to back give the same bandwidth?", limit=BETWEEN, unit="fraction")
def known_traffic_copy_on_processor(at: Workbench) -> Finding:
    """Copies of four times the last-level cache, timed alternately in both ways."""
    elements = at.cache_bytes * HOST_COPY_CACHES // 8
    source, target = torch.randn(elements), torch.empty(elements)
    copy = BoundLaunch(lambda: target.copy_(source))
    timed, calls = at.timed(copy), at.timer.calls(copy)
    alone: list[float] = []
    in_a_row: list[float] = []
    for _ in range(HOST_COPY_REPEATS):
        at.go_on()
        alone += at.timer.collect([[timed]])[0][0].samples[:2]
        in_a_row.append(calls.back_to_back(2))
    moved = 8 * elements
    figures = {
        "behind_a_flush_s": median(alone),
        "back_to_back_s": median(in_a_row),
        "bandwidth_bytes_per_s": moved / median(alone),
    }
    return Finding(abs(median(alone) / median(in_a_row) - 1), figures)


def _slopes(at: Workbench) -> tuple[float, float]:
    """Seconds for one more empty kernel in a graph: (by stamps, traced; by events, untraced)."""
    timer, tracer = at.tracing()
    launch = empty_launch()
    launch()
    short, long = _graph(launch, GAP_KERNELS), _graph(launch, 2 * GAP_KERNELS)
    traced: list[list[float]] = [[], []]
    untraced: list[list[float]] = [[], []]
    for _ in range(GAP_REPEATS):
        for index, graph in enumerate((short, long)):
            timer.rest(1e-3)
            _cover(timer)
            untraced[index].append(between_events_s(graph.replay))
            records = tracer.trace(partial(_replay_covered, timer, graph))
            traced[index].append(_span_s([r for r in records if r.name.startswith("kernelviz_empty")]))
    by_stamps, by_events = ([median(one) for one in kind] for kind in (traced, untraced))
    return (by_stamps[1] - by_stamps[0]) / GAP_KERNELS, (by_events[1] - by_events[0]) / GAP_KERNELS


def _graph(launch: Launch, count: int) -> torch.cuda.CUDAGraph:
    graph, _ = captured(lambda: [launch() for _ in range(count)])
    graph.replay()
    torch.cuda.synchronize()
    return graph


def _cover(timer: CudaTimer) -> None:
    for _ in range(COVER):
        timer.flush()


def _replay_covered(timer: CudaTimer, graph: torch.cuda.CUDAGraph) -> None:
    _cover(timer)
    graph.replay()


def _span_s(records: Sequence[Record]) -> float:
    return (max(r.end_ns for r in records) - min(r.start_ns for r in records)) / 1e9
