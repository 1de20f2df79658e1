"""The interval of a device time: everything by which a second process would find another number (docs/measuring.md).

A bootstrap over blocks only says how well the median is known of *these* blocks. Another process has other buffers in memory, and
measures again what tracing adds. 566 cases on an H200 and 272 on H100s were measured in two processes each: the bootstrap
intervals, combined, contained 86 and 67 % of the differences, those of this module 98 and 95 %
(tests/metrics/test_repeatability.py).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np

from kernelviz.core import Figure, Timer
from kernelviz.metrics.stability import stability
from kernelviz.metrics.statistics import Floats, in_passes, means_by_block, median

Z = 1.96
TICK_S = 32e-9
"""The stamps of an H200 and of an H100 are multiples of 32 ns; the mean of a block is a multiple of this over its samples."""
PROCESS, PROCESS_WEIGHT = 0.0024, 4
"""The standard deviation between processes that nothing inside one of them shows, and how many graphs it counts as where the
spread between the graphs of a call is known: the prior of a pooled variance. Half of it is enough on an H200 (566 repeated
cases); on H100s, calls of 5 to 120 us that read and write memory differ more (272 cases of copy and scale)."""
GRAPH_S, MOST_CALLS, LEAST_CALLS = 1e-3, 20, 2
"""What tracing adds is measured in graphs of about GRAPH_S of calls (measure.timing.tracing_cost)."""
FLUSH_S = 43e-6
"""About how long the flush before each of those calls takes on an H200; until 2026-11-30 it took 30 us, so that intervals of
older runs are a little wider than they need to be."""
TRACING_OF_GRAPH_S = 1.1e-6
"""The standard deviation between processes of what tracing adds to such a graph: 1.1 us at every length of call (80 cases)."""
UNRESOLVED_S = 0.3e-6
"""A smaller cost of tracing was not subtracted. In calls so long that it is not resolved, a second process may subtract it."""
LONG_S, LONG_SHARE = 10e-3, 0.005
"""Of longer calls, one is in a graph, and what tracing adds varies by half a percent of the call."""
_MOST_LOG_RATIO = math.log(1e9 / 1e-12)
"""Of the longest to the shortest time that a document may contain (formats.validation)."""
TRACED: tuple[Timer, ...] = ("cupti", "kineto")
ON_DEVICE: tuple[Timer, ...] = (*TRACED, "events")


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The parts of half a 95 % interval, as fractions of the time. `blocks`: by the bootstrap; `buffers`: other places in memory;
    `ticks`: the resolution of the stamps; `tracing`: what tracing adds; `change`: the distance to the
    levels before and after a significant change."""

    blocks: float
    buffers: float = 0.0
    ticks: float = 0.0
    tracing: float = 0.0
    change: float = 0.0

    @property
    def beside_blocks(self) -> float:
        """All parts except the bootstrap's."""
        return math.hypot(self.buffers, self.ticks, self.tracing, self.change)

    @property
    def half_width(self) -> float:
        return math.hypot(self.blocks, self.beside_blocks)


def uncertainty(figure: Figure) -> Uncertainty | None:
    """The parts of the interval; None without an interval."""
    blocks = figure.half_width
    if blocks is None:
        return None
    change = stability(figure).change
    if figure.timer not in ON_DEVICE or not figure.samples or not figure.blocks:
        return Uncertainty(blocks, change=change)
    traced = figure.timer in TRACED
    return Uncertainty(
        blocks,
        buffers=Z * _between_buffers(figure),
        ticks=TICK_S / figure.blocks[0].size / 2 / figure.estimate if traced else 0.0,
        tracing=_tracing(figure) if traced and (figure.launch == "graph" or figure.correction_s) else 0.0,
        change=change,
    )


@lru_cache(maxsize=4096)
def with_uncertainty(figure: Figure) -> Figure:
    """The figure with the interval of everything that is known, instead of the bootstrap's alone. If the time is not stable, the
    interval contains both levels."""
    parts = uncertainty(figure)
    if parts is None or figure.low is None or figure.high is None or min(figure.low, figure.estimate) <= 0:
        return figure
    more, middle = parts.beside_blocks, figure.estimate
    low = middle * math.exp(-_within_times(math.hypot(math.log(middle / figure.low), more)))
    high = middle * math.exp(_within_times(math.hypot(math.log(figure.high / middle), more)))
    levels = stability(figure).levels_s or ()
    return msgspec.structs.replace(figure, low=min(low, *levels, middle), high=max(high, *levels, middle))


def _within_times(log_ratio: float) -> float:
    """The logarithm of a ratio of times, or of that of the longest to the shortest time that a document may contain.

    A document from elsewhere may state an interval of 1e-12 to 1 s, whose uncertainty has no finite exponential.
    """
    return min(log_ratio, _MOST_LOG_RATIO)


def graphs_of(figure: Figure) -> int:
    """Over how many graphs of a call the blocks rotate; each has buffers of its own."""
    if not figure.blocks or not figure.buffers:
        return 1
    return max(1, -(-figure.buffers // max(1, figure.blocks[0].size)))


def _between_buffers(figure: Figure) -> float:
    """The standard error of the time over buffers and processes, a fraction."""
    blocks = figure.blocks or ()
    graphs, known = graphs_of(figure), 0.0
    logs = np.log(means_by_block(figure))
    freedom = graphs - 1
    if graphs < 2 or len(logs) < 2 * graphs or in_passes(blocks):
        freedom = 0
    else:
        series = [logs[g::graphs] for g in range(graphs)]
        medians = np.array([median(one) for one in series])
        # The variance of a median is pi / 2 times that of a mean, for normal noise.
        within = float(np.mean([_variance(one) * math.pi / 2 / len(one) for one in series]))
        known = max(0.0, _variance(medians) - within) / graphs
    return math.sqrt((PROCESS_WEIGHT * PROCESS**2 + freedom * known) / (PROCESS_WEIGHT + freedom))


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


def _tracing(figure: Figure) -> float:
    """Half the interval of what tracing adds, a fraction of the time."""
    time_s = figure.estimate
    if time_s > LONG_S:
        return LONG_SHARE
    calls = max(LEAST_CALLS, min(MOST_CALLS, round(GRAPH_S / (time_s + FLUSH_S))))
    noise_s = Z * TRACING_OF_GRAPH_S / calls
    if figure.correction_s:
        return noise_s / time_s
    # Short calls are resolved well (20 of them in a graph), so that zero is zero in every process.
    return min(UNRESOLVED_S, noise_s) / time_s if noise_s >= UNRESOLVED_S else 0.0
