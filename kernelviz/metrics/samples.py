"""The samples of one figure in the order in which they were measured: quantiles, pauses, clocks and drift."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from kernelviz.core import Block, Figure, Result, Run, Timing
from kernelviz.metrics.drift import Drift, drift, lag_1
from kernelviz.metrics.figures import Extent, extent, quantiles
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.quality import CLOCK_MOVED
from kernelviz.metrics.statistics import Floats, means_by_block
from kernelviz.metrics.uncertainty import with_uncertainty

PAUSE = 10.0
"""Blocks have a pause between them if their distance is more than this many median distances."""
BY_MEDIAN = ("call_eager_s", "enqueue_s", "call_graph_s", "loop_s")
"""Figures by the host's clock. Their interval is of block medians, and that of device times of trimmed block means."""


@dataclass(frozen=True, slots=True)
class Series:
    """A figure's samples in the order of their blocks' start. Arrays by sample: `samples_s`, `block_of`; the others by block.
    Where only the mean of each block is kept, it is the block's only sample.

    `started_s` counts from the first block; `middles_s` are the values of which the interval is computed (trimmed means, or
    medians of a figure by the host's clock); `clocks_hz` is NaN if unknown. `again`: the block is of a round that was measured
    again because the clock had fallen the first time. `slow`: its clock was more than 1 % under that of the first block.
    """

    samples_s: Floats
    block_of: NDArray[np.int64]
    started_s: Floats
    middles_s: Floats
    clocks_hz: Floats
    again: NDArray[np.bool_]
    slow: NDArray[np.bool_]

    @property
    def pauses(self) -> tuple[tuple[int, float], ...]:
        """The blocks before which there was a pause, with its length in seconds."""
        gaps = np.diff(self.started_s)
        if len(gaps) < 2:
            return ()
        usual = max(float(np.median(gaps)), 1e-6)
        return tuple((i, float(gap)) for i, gap in enumerate(gaps, 1) if gap > PAUSE * usual)


@lru_cache(maxsize=64)
def in_order(figure: Figure, field: str) -> Series | None:
    """The series of a figure; None without samples or blocks. `field`: its name in `Timing`."""
    if not figure.samples or not figure.blocks:
        return None
    blocks = figure.blocks
    started_s = np.array([b.started_s for b in blocks])
    order = np.argsort(started_s, kind="stable")
    sizes = [1 if figure.by_block else b.size for b in blocks]
    pieces = np.split(np.asarray(figure.samples, dtype=np.float64), np.cumsum(sizes)[:-1])
    by_median = field in BY_MEDIAN and not figure.by_block
    middles_s = np.array([np.median(p) for p in pieces]) if by_median else means_by_block(figure)
    clocks_hz = np.array([b.clock_hz or math.nan for b in blocks])[order]
    first_hz = next((b.clock_hz for b in blocks if b.clock_hz), math.nan)
    return Series(
        samples_s=np.concatenate([pieces[i] for i in order]),
        block_of=np.repeat(np.arange(len(order)), [len(pieces[i]) for i in order]),
        started_s=started_s[order] - started_s.min(),
        middles_s=middles_s[order],
        clocks_hz=clocks_hz,
        again=np.array(_repeated(blocks))[order],
        slow=clocks_hz < first_hz * (1 - CLOCK_MOVED),
    )


def _repeated(blocks: Sequence[Block]) -> list[bool]:
    """Which blocks were measured after a block of a later round, so that their round was repeated; no block without a round.

    >>> _repeated([Block(size=1, started_s=t, round=r) for r, t in enumerate((0.0, 0.5, 0.2, 0.3))])
    [False, True, False, False]
    """
    later_s: dict[int | None, float] = {None: math.inf}  # by round: when the first block of a later round started
    rounds = grouped((b for b in blocks if b.round is not None), key=lambda b: b.round or 0)
    first_s = math.inf
    for number in sorted(rounds, reverse=True):
        later_s[number] = first_s
        first_s = min(first_s, *(b.started_s for b in rounds[number]))
    return [b.started_s > later_s[b.round] for b in blocks]


@dataclass(frozen=True, slots=True)
class Spread:
    """The statistics of the samples of one figure of one case, times in seconds. None is unknown.

    `extent`: the least, the mean and the largest sample.
    """

    field: str
    figure: Figure
    samples: int
    blocks: int | None
    p50_s: float
    p90_s: float
    p99_s: float
    extent: Extent | None
    low_clock_hz: float | None
    high_clock_hz: float | None
    slow: int
    again: int
    retried: int | None
    drift: Drift
    lag_1: float | None


def spread(result: Result, field: str) -> Spread | None:
    """The statistics of a figure of a correct result; None if it was not measured or its samples are unknown.

    `retried`: how many blocks were discarded and measured again, which the conditions count for cold and warm.
    """
    figure = result.timing.figures.get(field) if result.timing else None
    if figure is None or not figure.samples:
        return None
    if field not in BY_MEDIAN:
        figure = with_uncertainty(figure)
    retried = {"device_cold_s": "retried_blocks", "device_warm_s": "retried_warm_blocks"}.get(field, "")
    return _spread(figure, field, getattr(result.conditions, retried, None))


@lru_cache(maxsize=512)
def _spread(figure: Figure, field: str, retried: int | None) -> Spread:
    p50, p90, p99 = quantiles(figure) or (math.nan, math.nan, math.nan)
    series = in_order(figure, field)
    clocks = [] if series is None else [float(c) for c in series.clocks_hz if not math.isnan(c)]
    return Spread(
        field=field,
        figure=figure,
        samples=figure.sample_count or 0,
        blocks=len(figure.blocks) if figure.blocks else None,
        p50_s=p50,
        p90_s=p90,
        p99_s=p99,
        extent=extent(figure),
        low_clock_hz=min(clocks, default=None),
        high_clock_hz=max(clocks, default=None),
        slow=0 if series is None else int(series.slow.sum()),
        again=0 if series is None else int(series.again.sum()),
        retried=retried,
        drift=Drift("unknown", 0) if series is None else drift(series.middles_s),
        lag_1=None if series is None else lag_1(series.middles_s),
    )


def by_block(run: Run) -> Run:
    """The run with the trimmed mean of each block in place of its samples, for figures that have blocks of several samples.

    Estimates, intervals, percentiles and extents stay the same, and so does what is derived from the means of blocks: verdicts,
    stability and measurement quality. The distribution inside a block is lost.
    """

    def of_result(result: Result) -> Result:
        timing = result.timing
        if timing is None or not isinstance(result.outcome, Timing):
            return result
        figures = {name: _by_block(figure) for name, figure in timing.figures.items()}
        return msgspec.structs.replace(result, outcome=msgspec.structs.replace(timing, **figures))

    return msgspec.structs.replace(run, results=tuple(map(of_result, run.results)))


def _by_block(figure: Figure) -> Figure:
    percentiles = quantiles(figure)
    if percentiles is None or figure.by_block or all(b.size == 1 for b in figure.blocks or ()):
        return figure
    known = extent(figure)
    return msgspec.structs.replace(
        figure,
        samples=tuple(means_by_block(figure).tolist()),
        percentiles_s=percentiles,
        extent_s=msgspec.UNSET if known is None else (known.minimum_s, known.mean_s, known.maximum_s),
    )


def records(result: Result, fields: Sequence[str]) -> list[dict[str, object]]:
    """A record for each sample of the given figures, in the order in which they are stored; none for a wrong result.

    `calls`: 1, or the size of the block where only the mean of each block is kept. `block` counts from 0 and `started_s` is its
    wall-clock start (Unix time); both are None if they are unknown.
    """
    records: list[dict[str, object]] = []
    for field in fields:
        figure = result.timing.figures.get(field) if result.timing else None
        if figure is None or not figure.samples:
            continue
        blocks = [(i, b) for i, b in enumerate(figure.blocks or ()) for _ in range(1 if figure.by_block else b.size)]
        records += [
            {
                "figure": field,
                "variant": result.variant,
                **result.problem.sizes,
                "sample": number,
                "time_s": time_s,
                "calls": block.size if figure.by_block and block is not None else 1,
                "block": index,
                "round": getattr(block, "round", None),
                "started_s": getattr(block, "started_s", None),
                "clock_hz": getattr(block, "clock_hz", None),
            }
            for number, time_s in enumerate(figure.samples)
            for index, block in (blocks[number] if blocks else (None, None),)
        ]
    return records
