"""What the charts by size can show: time, bandwidth, arithmetic rate, or speed-up over the baseline."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from kernelviz.core import Cost, Run, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.quality import quality
from kernelviz.metrics.roofline import bandwidth_bytes_per_s, rate_flop_per_s
from kernelviz.metrics.rows import Row
from kernelviz.text import format_share, format_time, format_variant, format_verdict
from kernelviz.text.failures import format_stage
from kernelviz.text.quality import format_level

Ends = tuple[float | None, float | None, float | None]
"""A value and the ends of its interval; unknown ones are None."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """The vertical quantity: its name, its value from cost, time and the baseline's time, its units, and its text on hover.

    The axis of `ratio` quantities is always logarithmic, so that 2× and ½× are equally far from 1.
    """

    name: str
    of: Callable[[Cost | None, float, float | None], float | None]
    prefixes: tuple[tuple[float, str], ...]
    text: Callable[[Row], str]
    empty: str
    ratio: bool = False


def _share(row: Row) -> str:
    return "" if row.efficiency is None else f" · {format_share(row.efficiency)}"


TIME = Quantity(
    "time",
    lambda _cost, time_s, _base: time_s,
    ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    lambda row: str(format_time(row.figure or row.wrong_figure)),
    "No case has a time yet. Press Run to measure.",
)
BANDWIDTH = Quantity(
    "bandwidth",
    lambda cost, time_s, _base: bandwidth_bytes_per_s(cost, time_s) if cost and cost.moved_bytes else None,
    ((1e9, "GB/s"), (1e6, "MB/s")),
    lambda row: f"{units.gigabytes_per_s(row.bandwidth_bytes_per_s, units.digits_of(row.half_width))}{_share(row)}",
    "No case has a bandwidth yet. Press Run to measure.",
)
RATE = Quantity(
    "rate",
    lambda cost, time_s, _base: rate_flop_per_s(cost, time_s) if cost and cost.work_flop else None,
    ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s")),
    lambda row: f"{units.rate(row.rate_flop_per_s, 'FLOP/s', units.digits_of(row.half_width))}{_share(row)}",
    "No case has an arithmetic rate: nothing was measured yet, or the op does no arithmetic.",
)
SPEED_UP = Quantity(
    "speed-up",
    lambda _cost, time_s, base_s: base_s / time_s if base_s and time_s else None,
    ((1.0, "×"),),
    lambda row: str(format_verdict(row.verdict)) if row.verdict else "1× (baseline)",
    "No case has a speed-up: neither the baseline nor another variant has a correct time at the same size yet.",
    ratio=True,
)


def interval_of(quantity: Quantity, row: Row) -> Ends:
    """The value of the quantity and the ends of its interval."""
    if quantity is SPEED_UP:
        ratio = row.verdict.ratio if row.verdict else None
        ends = (1 / ratio.high, 1 / ratio.low) if ratio and ratio.low and ratio.high else (None, None)
        return row.speed_up, *ends
    figure, cost = row.figure or row.wrong_figure, row.result.cost
    if figure is None:
        return None, None, None
    y = quantity.of(cost, figure.estimate, None)
    times = [] if figure.low is None or figure.high is None else [figure.low, figure.high]
    known = [v for v in (quantity.of(cost, time_s, None) for time_s in times) if v is not None]
    return y, min(known, default=None), max(known, default=None)


def brief_hover(run: Run, row: Row, quantity: Quantity, headline: Headline) -> str:
    """One line of the hover of all variants. An unreliable time is marked."""
    name = f"<b>{escape(format_variant(row.result.variant))}</b>"
    if row.figure is not None:
        judged = quality(row.result, headline, run.method.clock)
        unreliable = f" {format_level('suspect')}" if judged is not None and judged.level == "suspect" else ""
        # Of a time that is not stable, both levels: a rate would be that of neither.
        value = format_time(row.figure) if row.unstable and quantity is not SPEED_UP else quantity.text(row)
        return f"{name} {escape(str(value))}{unreliable}"
    failed = escape(f"✕ {format_stage(row.failure)}") if row.failure else "no time"
    time = f" {escape(quantity.text(row))}" if row.wrong_figure and quantity is TIME else ""
    return f"{name}{time} {failed}"
