"""Quantities formatted for people. Only this module writes SI prefixes; everywhere else values are in SI base units."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def significant(value: float, digits: int = 4) -> str:
    """`value` with `digits` significant digits, without scientific notation below 1e15.

    >>> significant(44.5678), significant(1234567), significant(0.012345)
    ('44.57', '1234567', '0.01235')
    """
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        # 'g' drops trailing zeros. A measurement keeps them, because 4.360 is more precise than 4.36.
        whole = len(text.split(".")[0].lstrip("-"))
        return f"{value:.{max(digits - whole, 0)}f}" if abs(value) >= 1 else f"{value:.{digits}g}"
    return f"{value:.0f}" if abs(value) >= 1 else f"{value:.{digits}g}"


def seconds(value_s: float | None, digits: int = 4) -> str:
    """A time with its unit.

    >>> seconds(4.36e-6), seconds(0.000181412), seconds(None)
    ('4.360 µs', '181.4 µs', 'unknown')
    """
    if value_s is None:
        return "unknown"
    scale, unit = time_unit(value_s)
    return f"{significant(value_s / scale, digits)} {unit}"


def time_unit(value_s: float) -> tuple[float, str]:
    """The unit for a time, as its length in seconds and its name: the largest unit that is not longer than the time.

    >>> time_unit(4.36e-6), time_unit(0.0)
    ((1e-06, 'µs'), (1e-09, 'ns'))
    """
    return next((u for u in _TIME if abs(value_s) >= u[0]), _TIME[-1])


def digits_of(half_width: float | None) -> int:
    """The significant digits of a value, down to the first place that is smaller than half its interval (a fraction of it).

    At least two, and four without an interval.

    >>> digits_of(0.002), digits_of(0.03), digits_of(0.2), digits_of(2.9), digits_of(None), digits_of(0.0)
    (4, 3, 2, 2, 4, 4)
    """
    return 4 if not half_width else min(4, max(2, 1 + math.ceil(-math.log10(half_width))))


def factor_decimals(value: float, low: float | None = None, high: float | None = None, *, most: int = 2) -> int:
    """The decimals of a factor between two times: down to the first place that is smaller than half its interval.

    At least two significant digits, at most `most` decimals. Without an interval three significant digits, and four below 2.

    >>> factor_decimals(58.004, 57.7, 58.3), factor_decimals(1.023, 1.02, 1.026, most=3), factor_decimals(2.0, 1.6, 2.5)
    (1, 3, 1)
    >>> factor_decimals(58.004), factor_decimals(5700.4), factor_decimals(1.0234, most=3), factor_decimals(4.0, most=3)
    (1, 0, 3, 2)
    """
    if not (math.isfinite(value) and value > 0):
        return most
    first = math.floor(math.log10(value))
    if low is None or high is None or not 0 < high - low < math.inf:
        decimals = (3 if value < 2 else 2) - first
    else:
        decimals = -math.floor(math.log10((high - low) / 2))
    return min(most, max(decimals, 1 - first, 0))


def factor(value: float, low: float | None = None, high: float | None = None) -> str:
    """How many times faster or slower, with the digits that its interval leaves, and at most two after the point.

    >>> factor(1.4712), factor(108.43), factor(58.004), factor(58.004, 52.1, 63.9), factor(5700.4)
    ('1.47', '108', '58.0', '58', '5,700')
    """
    return f"{value:,.{factor_decimals(value, low, high)}f}"


def all_of(count: int, noun: str) -> str:
    """All of several things.

    >>> all_of(1, "size"), all_of(2, "size"), all_of(11, "size")
    ('the only size', 'both sizes', 'all 11 sizes')
    """
    return f"the only {noun}" if count == 1 else f"both {noun}s" if count == 2 else f"all {count:,} {noun}s"


def interval_decimals(value: float, low: float, high: float, *, most: int = 2) -> int:
    """The decimals of a factor and the ends of its interval: a third one if the ends would read alike.

    >>> interval_decimals(2.0, 1.96, 2.04), interval_decimals(58.004, 57.7, 58.3), interval_decimals(1.183, 1.181, 1.184)
    (2, 1, 3)
    """
    decimals = factor_decimals(value, low, high, most=most)
    return 3 if decimals == 2 and f"{low:.2f}" == f"{high:.2f}" and low < high else decimals


def factor_with_interval(value: float, low: float, high: float, *, most: int = 2) -> tuple[str, str, str]:
    """A factor and the ends of its interval, all with the same decimals: with a third one if the ends would read alike.

    >>> factor_with_interval(2.0, 1.96, 2.04), factor_with_interval(58.004, 57.7, 58.3)
    (('2.00', '1.96', '2.04'), ('58.0', '57.7', '58.3'))
    >>> factor_with_interval(1.0113, 1.0098, 1.0128)
    ('1.011', '1.010', '1.013')
    """
    decimals = interval_decimals(value, low, high, most=most)
    return f"{value:,.{decimals}f}", f"{low:,.{decimals}f}", f"{high:,.{decimals}f}"


def share_of_tolerance(share: float) -> str:
    """The largest error of a right result, as a share of the tolerance.

    >>> share_of_tolerance(0.412), share_of_tolerance(0.0004), share_of_tolerance(0.0)
    ('error 41 % of tolerance', 'error below 1 % of tolerance', 'no error')
    """
    if share == 0:
        return "no error"
    return f"error {f'{share:.0%}'[:-1]} % of tolerance" if share >= 0.01 else "error below 1 % of tolerance"


def difference(ratio: float, direction: str) -> str:
    """How much longer or shorter a time is than another one: in percent, and as a factor if it is twice as long or more.

    >>> difference(1.03, "slower"), difference(58.004, "slower"), difference(0.8, "faster"), difference(0.2, "faster")
    ('3.0 % slower', '58.0× slower', '20.0 % faster', '5.00× faster')
    """
    if ratio > 0 and max(ratio, 1 / ratio) >= 2:
        return f"{factor(max(ratio, 1 / ratio))}× {direction}"
    return f"{percent(abs(ratio - 1))} {direction}"


def rate(value: float | None, unit: str, digits: int = 4) -> str:
    """A rate with SI prefix.

    >>> rate(4.46e12, "B/s"), rate(798e12, "FLOP/s")
    ('4.460 TB/s', '798.0 TFLOP/s')
    """
    if value is None:
        return "unknown"
    for scale, prefix in _SI:
        if abs(value) >= scale:
            return f"{significant(value / scale, digits)} {prefix}{unit}"
    return f"{significant(value, digits)} {unit}"


def gigabytes_per_s(value: float | None, digits: int = 4) -> str:
    """Bandwidth in the field's usual unit, GB/s (1e9).

    >>> gigabytes_per_s(4.0923e12)
    '4092 GB/s'
    """
    return "unknown" if value is None else f"{significant(value / 1e9, digits)} GB/s"


def size_bytes(value: float | None) -> str:
    """A memory size in binary units.

    >>> size_bytes(3 * 2**30), size_bytes(100)
    ('3.00 GiB', '100 B')
    """
    if value is None:
        return "unknown"
    for scale, unit in _BINARY:
        if value >= scale:
            return f"{value / scale:.2f} {unit}"
    return f"{value:.0f} B"


def percent(fraction: float | None, digits: int = 1) -> str:
    """A share as percent; from 1,000 % on without decimals.

    >>> percent(0.9634), percent(57.004)
    ('96.3 %', '5,700 %')
    """
    return "unknown" if fraction is None else f"{fraction * 100:,.{digits if abs(fraction) < 10 else 0}f} %"


def width(fraction: float) -> str:
    """Half the width of an interval as percent of the estimate. Below 0.1 % it has two digits, so that it does not read as zero,
    and from 100 % on none.

    >>> width(2.9199), width(0.0834), width(0.0021), width(0.00037), width(0.00004), width(0.0)
    ('292 %', '8.3 %', '0.2 %', '0.04 %', '< 0.01 %', '0.00 %')
    """
    if 0 < fraction < 0.00005:
        return "< 0.01 %"
    return percent(fraction, 0 if fraction >= 1 else 1 if fraction >= 0.001 else 2)


def clock(value_hz: float | None) -> str:
    """A clock in MHz.

    >>> clock(1.98e9)
    '1980 MHz'
    """
    return "clock unknown" if value_hz is None else f"{value_hz / 1e6:.0f} MHz"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "case"), counted(0, "case"), counted(1200, "element")
    ('1 case', '0 cases', '1,200 elements')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def enumerated(names: Iterable[str]) -> str:
    """One name or more in a sentence.

    >>> enumerated(["a"]), enumerated(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def typed_size(size: int) -> str:
    """A size as a person types it into a command or a field: without commas, because a comma separates sizes.

    >>> typed_size(2**20), typed_size(1_000_000), typed_size(64)
    ('2^20', '1000000', '64')
    """
    return f"2^{size.bit_length() - 1}" if size >= 1024 and size & (size - 1) == 0 else str(size)


def common_time_unit(times_s: Sequence[float]) -> tuple[float, str]:
    """One unit for many times: milliseconds if the shortest time is at least 1 ms, else microseconds.

    >>> common_time_unit([2e-6, 180e-6]), common_time_unit([0.02, 0.4]), common_time_unit([])
    ((1e-06, 'µs'), (0.001, 'ms'), (1e-06, 'µs'))
    """
    return _TIME[1] if min(times_s, default=0.0) >= 1e-3 else _TIME[2]


@dataclass(frozen=True, slots=True)
class Unit:
    """The format of the values of a column.

    In a column of one unit, a number is divided by `scale` and formatted with `form`, and `name` is the unit in the heading. A
    `scale` of None is the common time unit of the table. `single` formats one value with its own unit. Without a `form`, values
    are text. The text is `foreign` if it may come from an imported document.
    """

    name: str = ""
    scale: float | None = 1.0
    form: str = ""
    single: Callable[..., str] = str
    foreign: bool = False
    rate: bool = False
    """Whether values differ by orders of magnitude: `single` also takes the number of significant digits, and a column with a
    value below 1 has significant digits instead of a fixed number of digits after the point."""
    number: bool = False
    """Whether the text is a number, so that it is aligned like one."""

    def of_values(self, values: Sequence[float]) -> "Unit":
        """The unit of a column with these values, in this unit.

        >>> BYTES_PER_S.of_values([0.017, 20.1]).form, BYTES_PER_S.of_values([20.1, 4092]).form
        ('.3g', '.1f')
        """
        least, most = min(filter(None, values), default=1.0), max(values, default=1.0)
        return (
            replace(self, form=f".{4 if most >= 1000 else 3}g")
            if self.rate and least < 1 and self.form[-1] == "f"
            else self
        )

    def in_column(self, value: float) -> str:
        """A value of a column in text.

        >>> GFLOP_PER_S.in_column(12345.6), BYTES_PER_S.in_column(4092.34)
        ('12346', '4092.3')
        """
        return significant(value, int(self.form[1:-1])) if self.form.endswith("g") else format(value, self.form)

    @property
    def right(self) -> bool:
        return self.number or bool(self.form)


TEXT = Unit(foreign=True)
OWN_TEXT = Unit()
OWN_NUMBER = Unit(number=True)
SECONDS = Unit(scale=None, form=".2f", single=seconds)
WALL_SECONDS = Unit("s", form=".3f", single=seconds)
BYTES_PER_S = Unit("GB/s", 1e9, ".1f", gigabytes_per_s, rate=True)
FLOP_PER_S = Unit("TFLOP/s", 1e12, ".4g", lambda value, digits=4: rate(value, "FLOP/s", digits), rate=True)
GFLOP_PER_S = Unit("GFLOP/s", 1e9, ".4g", lambda value, digits=4: rate(value, "FLOP/s", digits), rate=True)
SHARE = Unit("%", 0.01, ".1f", percent)
"""A fraction of a reference that is 100 %, such as the roof."""
WIDTH = Unit("%", 0.01, ".2f", width)
"""Half an interval or a noise floor, as a fraction of the estimate."""
CHANGE = Unit("%", 0.01, "+.2f", percent)
RATIO = Unit(form=".4g", single=significant)
"""Of two times that may differ by less than a percent."""
FACTOR = Unit("×", form=".3g", single=lambda value: f"{significant(value, 3)} ×")
FLOP_PER_BYTE = Unit("FLOP/B", form=".3g", single=lambda value: f"{significant(value, 3)} FLOP/B")
JOULES = Unit("mJ", 1e-3, ".3g", lambda value: f"{significant(value * 1e3, 3)} mJ")
BYTES = Unit("B", form=",d", single=lambda value: f"{value} B")
MEMORY = Unit("MiB", 2**20, ".4g", size_bytes)
TRAFFIC = Unit("MB", 1e6, ".4g", lambda value, digits=3: rate(value, "B", digits), rate=True)
"""Bytes that were moved, in decimal units, as bandwidths have them."""
MEAN_COUNT = Unit(form=".3g", single=lambda value: significant(value, 3))
COUNT = Unit(form=",d", single="{:,}".format)
CLOCK = Unit("MHz", 1e6, ".0f", clock)
SIZE = COUNT
"""The size of an axis."""
