"""The samples of one figure in the order in which they were taken, and what they say: quantiles, pauses, clocks, drift."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelviz.core import Block, Figure, Result, units
from kernelviz.metrics.drift import Drift, drift, drift_words, lag_1, lag_1_words
from kernelviz.metrics.figures import FIGURES, Asked, quantiles
from kernelviz.metrics.quality import CLOCK_MOVED
from kernelviz.metrics.statistics import Floats, block_means

SHOWN: tuple[Asked, ...] = tuple(f for f in FIGURES if f.field != "busy_s")
"""The figures whose samples are shown; those of busy are the cold ones but for the gaps between a call's kernels."""
PAUSE = 10.0
"""Blocks farther apart than so many usual distances stand on two sides of a pause: a rest, a batch, a later task."""
_BY_MEDIAN = ("call_eager_s", "enqueue_s", "call_graph_s", "loop_s")
"""Figures by the host's clock: their interval rests on block medians, that of device times on trimmed block means."""


@dataclass(frozen=True, slots=True)
class Series:
    """A figure's samples in the order of their blocks' start. Arrays by sample: `samples_s`, `block_of`; the others by block.

    `started_s` counts from the first block; `middles_s` is what the interval rests on (trimmed mean, or median of a
    figure by the host's clock); `clocks_hz` is NaN where it is not known. `again`: of a round that was taken again after
    the first take had lost clock. `slow`: kept although its clock was more than 1 % under the first.
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
        """Before which blocks the device was left alone, and for how many seconds."""
        gaps = np.diff(self.started_s)
        if len(gaps) < 2:
            return ()
        usual = max(float(np.median(gaps)), 1e-6)
        return tuple((i + 1, float(gap)) for i, gap in enumerate(gaps) if gap > PAUSE * usual)


@lru_cache(maxsize=64)
def in_order(figure: Figure, field: str) -> Series | None:
    """The series of a figure, whose field in `Timing` says what its interval rests on; None without samples or blocks."""
    if not figure.samples or not figure.blocks:
        return None
    blocks = figure.blocks
    order = sorted(range(len(blocks)), key=lambda i: blocks[i].started_s)
    ends = np.cumsum([b.size for b in blocks])
    values = np.asarray(figure.samples, dtype=np.float64)
    pieces = [values[ends[i] - blocks[i].size : ends[i]] for i in order]
    middles = (
        [float(np.median(p)) for p in pieces] if field in _BY_MEDIAN else block_means(figure.samples, blocks)[order]
    )
    clocks = np.array([blocks[i].clock_hz or math.nan for i in order])
    first = next((b.clock_hz for b in blocks if b.clock_hz), math.nan)
    started = np.array([blocks[i].started_s for i in order])
    again = _taken_again(blocks)
    return Series(
        samples_s=np.concatenate(pieces),
        block_of=np.repeat(np.arange(len(order)), [len(p) for p in pieces]),
        started_s=started - started[0],
        middles_s=np.asarray(middles, dtype=np.float64),
        clocks_hz=clocks,
        again=np.array([again[i] for i in order]),
        slow=clocks < first * (1 - CLOCK_MOVED),
    )


def _taken_again(blocks: Sequence[Block]) -> list[bool]:
    """Which blocks were taken after one of a later round: theirs was taken again. A block without a round never is.

    >>> _taken_again([Block(size=1, started_s=t, round=r) for r, t in enumerate((0.0, 0.5, 0.2, 0.3))])
    [False, True, False, False]
    """
    found = [False] * len(blocks)
    rounds: dict[int, list[int]] = {}
    for i, block in enumerate(blocks):
        if block.round is not None:
            rounds.setdefault(block.round, []).append(i)
    later = math.inf
    for number in sorted(rounds, reverse=True):
        for i in rounds[number]:
            found[i] = blocks[i].started_s > later
        later = min(later, *(blocks[i].started_s for i in rounds[number]))
    return found


@dataclass(frozen=True, slots=True)
class Spread:
    """What the samples of one figure of one case say, times in seconds. None is unknown."""

    field: str
    figure: Figure
    samples: int
    blocks: int | None
    p50_s: float
    p90_s: float
    p99_s: float
    low_clock_hz: float | None
    high_clock_hz: float | None
    slow: int
    again: int
    retried: int | None
    drift: Drift
    lag_1: float | None


def spread(result: Result, field: str) -> Spread | None:
    """Of a correct result's figure; None where it was not measured or its samples are not known.

    `retried`: how many blocks were given up and taken again, as the conditions of cold and warm count them.
    """
    timing, seen = result.timing, result.conditions
    figure = timing.figures.get(field) if timing else None
    if figure is None or not figure.samples:
        return None
    retried = {"device_cold_s": "retried_blocks", "device_warm_s": "retried_warm_blocks"}.get(field)
    return _spread(figure, field, getattr(seen, retried) if seen and retried else None)


@lru_cache(maxsize=512)
def _spread(figure: Figure, field: str, retried: int | None) -> Spread:
    p50, p90, p99 = quantiles(figure) or (math.nan, math.nan, math.nan)
    found = in_order(figure, field)
    clocks = [] if found is None else [float(c) for c in found.clocks_hz if not math.isnan(c)]
    return Spread(
        field=field,
        figure=figure,
        samples=len(figure.samples or ()),
        blocks=len(figure.blocks) if figure.blocks else None,
        p50_s=p50,
        p90_s=p90,
        p99_s=p99,
        low_clock_hz=min(clocks, default=None),
        high_clock_hz=max(clocks, default=None),
        slow=0 if found is None else int(found.slow.sum()),
        again=0 if found is None else int(found.again.sum()),
        retried=retried,
        drift=Drift("unknown", 0) if found is None else drift(found.middles_s),
        lag_1=None if found is None else lag_1(found.middles_s),
    )


def count_words(found: Spread) -> str:
    """How many samples, in how many blocks."""
    blocks = (
        "blocks unknown" if found.blocks is None else f"in {found.blocks:,} block{'s' if found.blocks != 1 else ''}"
    )
    return f"{found.samples:,} sample{'s' if found.samples != 1 else ''} {blocks}"


def clock_words(found: Spread) -> str:
    """From the slowest block's SM clock to the fastest, and how many were slow against the first."""
    low, high = found.low_clock_hz, found.high_clock_hz
    if low is None or high is None:
        return "SM clock unknown" if found.figure.timer != "host" else "clock not measured: timed by the host's clock"
    words = f"SM clock {low / 1e6:.0f}–{units.clock(high)}"
    return words + (f", {found.slow} of {found.blocks} blocks over 1 % under the first" if found.slow else "")


def repeated_words(found: Spread) -> str:
    """How many blocks were given up for another take, and how many of those kept come from a round taken again. Calls timed
    by the host's clock never are: nothing to say."""
    if found.field in _BY_MEDIAN:
        return ""
    parts = (
        [] if found.retried is None else [f"{found.retried or 'no'} block{'s' if found.retried != 1 else ''} given up"]
    )
    if found.again:
        parts.append(f"{found.again} of a round taken again")
    return ", ".join(parts) or "repeats unknown"


def spread_words(found: Spread) -> list[str]:
    """Everything beside a picture of samples, a line each."""
    figure = found.figure
    width = figure.half_width
    interval = "no interval: too few blocks" if width is None else f"± {units.width(width)}"
    quantities = (("half", found.p50_s), ("90 %", found.p90_s), ("99 %", found.p99_s))
    drifts = [] if found.blocks is None else [drift_words(found.drift), lag_1_words(found.lag_1, found.blocks)]
    return [
        count_words(found),
        f"estimate {units.seconds(figure.estimate)} {interval}",
        ", ".join(f"{name} of the samples within {units.seconds(t)}" for name, t in quantities),
        clock_words(found),
        repeated_words(found),
        *drifts,
    ]


def records(result: Result, fields: Sequence[str]) -> list[dict[str, object]]:
    """A line a sample of the given figures, in the order in which they are stored; a wrong result has none.

    `block` counts from 0 and `started_s` is its wall-clock beginning (Unix time); both are None where they are not known.
    """
    found: list[dict[str, object]] = []
    for field in fields:
        figure = result.timing.figures.get(field) if result.timing else None
        if figure is None or not figure.samples:
            continue
        blocks = [(i, b) for i, b in enumerate(figure.blocks or ()) for _ in range(b.size)]
        found += [
            {
                "figure": field,
                "variant": result.variant,
                **result.problem.sizes,
                "sample": number,
                "time_s": time_s,
                "block": blocks[number][0] if blocks else None,
                "round": blocks[number][1].round if blocks else None,
                "started_s": blocks[number][1].started_s if blocks else None,
                "clock_hz": blocks[number][1].clock_hz if blocks else None,
            }
            for number, time_s in enumerate(figure.samples)
        ]
    return found
