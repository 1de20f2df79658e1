"""The statistics of samples in text."""

import math

from kernelviz.core import units
from kernelviz.metrics.drift import Drift
from kernelviz.metrics.samples import BY_MEDIAN, Spread
from kernelviz.metrics.statistics import MIN_BLOCKS
from kernelviz.text.text import Text
from kernelviz.text.times import FIGURES

SAMPLED_FIGURES = tuple(f for f in FIGURES if f.field != "busy_s")
"""The figures whose samples are shown. Those of busy equal the cold ones except for the gaps between the kernels of a call."""


WHY_MEDIAN = (
    "The estimate is a median, because one sample that was interrupted, by the operating system, the driver or a lower clock, "
    "moves the mean and decides the maximum, and because the minimum is the luckiest sample, which falls as more are taken."
)
"""Why neither the mean nor the minimum is the time of a case."""
EXTENT_HELP = "Unknown where only the mean of each block is stored."


def describe_extent(spread: Spread) -> Text:
    """The least, the mean and the largest sample, or why they are not known."""
    known = spread.extent
    if known is None:
        return Text("minimum, mean and maximum unknown: only the mean of each block is stored")
    values = (("minimum", known.minimum_s), ("mean", known.mean_s), ("maximum", known.maximum_s))
    return Text(", ".join(f"{name} {units.seconds(time_s)}" for name, time_s in values))


def describe_drift(drift: Drift) -> Text:
    """The result of the test for drift, with its statistics.

    >>> str(describe_drift(Drift("up", 100, 0.41, 1e-9, 0.0123)))
    'drifts up: +1.2 % from the first third of its blocks to the last (τ = +0.41, p < 0.001)'
    >>> str(describe_drift(Drift("unknown", 8)))
    'drift unknown: 8 blocks, 10 are needed'
    >>> str(describe_drift(Drift("none", 100, 0.03, 0.61, 0.0)))
    'no drift found (τ = +0.03, p = 0.61)'
    """
    if drift.tau is None or drift.p is None or drift.change is None:
        return Text(f"drift unknown: {drift.blocks} block{'s' if drift.blocks != 1 else ''}, {MIN_BLOCKS} are needed")
    test = f"(τ = {round(drift.tau, 2) + 0.0:+.2f}, p {'< 0.001' if drift.p < 0.001 else f'= {drift.p:.2g}'})"
    if drift.kind in ("up", "down"):
        percent = drift.change * 100
        return Text(f"drifts {drift.kind}: {percent:+.1f} % from the first third of its blocks to the last {test}")
    if drift.kind == "small":
        return Text(f"a trend too small to matter: {drift.change * 100:+.2f} % {test}")
    return Text(f"no drift found {test}")


def describe_lag_1(lag_1: float | None, blocks: int) -> Text:
    """The correlation of neighbouring blocks; beyond 1.96 / √blocks it is more than chance (Bartlett 1946).

    >>> str(describe_lag_1(0.5, 100)), str(describe_lag_1(0.05, 100)), str(describe_lag_1(None, 3))
    ('lag-1 correlation +0.50: neighbouring blocks resemble each other', 'lag-1 correlation +0.05: not significant', \
'lag-1 correlation unknown')
    """
    if lag_1 is None:
        return Text("lag-1 correlation unknown")
    if abs(lag_1) <= 1.96 / math.sqrt(blocks):
        meaning = "not significant"
    else:
        meaning = f"neighbouring blocks {'resemble each other' if lag_1 > 0 else 'alternate'}"
    return Text(f"lag-1 correlation {round(lag_1, 2) + 0.0:+.2f}: {meaning}")


def describe_sm_clock(spread: Spread) -> Text:
    """The SM clock from the slowest block to the fastest, and how many blocks were slower than the first."""
    low, high = spread.low_clock_hz, spread.high_clock_hz
    if low is None or high is None:
        host = spread.figure.timer == "host"
        return Text("clock not measured: timed by the host's clock" if host else "SM clock unknown")
    slow = f", in {spread.slow} of {spread.blocks} blocks more than 1 % below the first block" if spread.slow else ""
    return Text(f"SM clock {low / 1e6:.0f}–{units.clock(high)}{slow}")


def describe_repeats(spread: Spread) -> Text | None:
    """How many blocks were discarded and measured again, and how many of the stored ones come from a repeated round. None for
    calls that were timed by the host's clock: these are never repeated."""
    if spread.field in BY_MEDIAN:
        return None
    parts = []
    if spread.retried is not None:
        parts.append(f"{spread.retried or 'no'} block{'s' if spread.retried != 1 else ''} discarded")
    if spread.again:
        parts.append(f"{units.counted(spread.again, 'block')} from a repeated round")
    return Text(", ".join(parts) or "repeats unknown")


def describe_spread(spread: Spread) -> list[Text]:
    """Everything that is shown beside a chart of samples, a line each."""
    figure, blocks = spread.figure, spread.blocks
    in_blocks = "blocks unknown" if blocks is None else f"in {blocks:,} block{'s' if blocks != 1 else ''}"
    width = figure.half_width
    interval = "no interval: too few blocks" if width is None else f"± {units.width(width)}"
    quantiles = (("p50", spread.p50_s), ("p90", spread.p90_s), ("p99", spread.p99_s))
    means = "; only the mean of each block is stored" if figure.by_block else ""
    lines: list[str | Text | None] = [
        f"{spread.samples:,} sample{'s' if spread.samples != 1 else ''} {in_blocks}{means}",
        f"estimate {units.seconds(figure.estimate)} {interval}",
        ", ".join(f"{name} {units.seconds(time_s)}" for name, time_s in quantiles),
        describe_extent(spread),
        describe_sm_clock(spread),
        describe_repeats(spread),
    ]
    if blocks is not None:
        lines += [describe_drift(spread.drift), describe_lag_1(spread.lag_1, blocks)]
    return [Text(line) for line in lines if line is not None]
