"""The columns of the statistics of a figure's samples."""

from dataclasses import dataclass

from kernelviz.core import Result, units
from kernelviz.metrics.samples import Spread
from kernelviz.tables.column import VARIANT, VARIANT_TEXT, Column, View
from kernelviz.text import describe_drift, describe_lag_1, describe_repeats, describe_sm_clock
from kernelviz.text.samples import EXTENT_HELP


@dataclass(frozen=True, slots=True)
class SpreadOfCase:
    """A row of the table: one figure of a case."""

    result: Result
    figure: str
    spread: Spread


def _clocks(spread: Spread) -> str | None:
    low, high = spread.low_clock_hz, spread.high_clock_hz
    return None if low is None or high is None else f"{low / 1e6:.0f}–{high / 1e6:.0f}"


DRIFT_HELP = (
    "Mann-Kendall test over the blocks in order. Drift means: p < 1 %, and the last third of the blocks differs from the first "
    "third by at least 0.5 %."
)
_LAG_HELP = (
    "Autocorrelation of consecutive blocks. Beyond ±1.96 / √blocks it is significant, and intervals are too narrow."
)
_CLOCK_HELP = "Clock in the block with the lowest and in the one with the highest clock."
SPREADS: tuple[Column[SpreadOfCase], ...] = (
    VARIANT,
    VARIANT_TEXT,
    Column("", "Figure", "What was timed.", units.OWN_TEXT, lambda row: row.figure, View.TERMINAL),
    Column("", "Samples", "Number of samples.", units.COUNT, lambda row: row.spread.samples),
    Column("", "Blocks", "Groups of samples measured without a pause. The 95 % interval is computed over blocks.", units.COUNT,
           lambda row: row.spread.blocks),
    Column("", "p50", "50 % of the samples take at most this long.", units.SECONDS, lambda row: row.spread.p50_s),
    Column("", "p90", "90 % of the samples take at most this long.", units.SECONDS, lambda row: row.spread.p90_s),
    Column("", "p99", "99 % of the samples take at most this long.", units.SECONDS, lambda row: row.spread.p99_s),
    Column("", "Min", f"The shortest sample. {EXTENT_HELP}", units.SECONDS,
           lambda row: row.spread.extent.minimum_s if row.spread.extent else None),
    Column("", "Mean", f"The mean of all samples. {EXTENT_HELP}", units.SECONDS,
           lambda row: row.spread.extent.mean_s if row.spread.extent else None),
    Column("", "Max", f"The longest sample. {EXTENT_HELP}", units.SECONDS,
           lambda row: row.spread.extent.maximum_s if row.spread.extent else None),
    Column("", "±", "Half the 95 % interval of the estimate, bootstrapped over blocks.", units.WIDTH,
           lambda row: row.spread.figure.half_width),
    Column("", "Drift", DRIFT_HELP, units.OWN_TEXT, lambda row: describe_drift(row.spread.drift) if row.spread.blocks else None,
           View.WIDE),
    Column("", "Drift", DRIFT_HELP, units.OWN_NUMBER, lambda row: row.spread.drift.kind, View.TERMINAL),
    Column("", "Lag-1", _LAG_HELP, units.OWN_TEXT,
           lambda row: describe_lag_1(row.spread.lag_1, row.spread.blocks) if row.spread.blocks else None, View.WIDE),
    Column("", "Lag-1", _LAG_HELP, units.OWN_NUMBER,
           lambda row: None if row.spread.lag_1 is None else f"{row.spread.lag_1:+.2f}", View.TERMINAL),
    Column("", "SM clock", _CLOCK_HELP, units.OWN_TEXT, lambda row: describe_sm_clock(row.spread), View.WIDE),
    Column("", "SM clock, MHz", _CLOCK_HELP, units.OWN_NUMBER, lambda row: _clocks(row.spread), View.TERMINAL),
    Column("", "Repeated", "Blocks that were measured again because the clock or the device was slowed down.",
           units.OWN_TEXT, lambda row: describe_repeats(row.spread) or None, View.WIDE),
)  # fmt: skip
