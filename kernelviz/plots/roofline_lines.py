"""The line of a roofline: the memory roof up to the compute roof."""

import math
from collections.abc import Sequence

from kernelviz.plots.frame import decade_ticks

_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def under(
    low: float, high: float, bandwidth_bytes_per_s: float, peak_flop_per_s: float | None
) -> tuple[list[float], list[float]]:
    """The corners of min(intensity × bandwidth, peak) between two intensities; without a level part if the peak is unknown.

    >>> under(0.1, 100.0, 4.0, 8.0)
    ([0.1, 2.0, 100.0], [0.4, 8.0, 8.0])
    """
    ridge = peak_flop_per_s / bandwidth_bytes_per_s if peak_flop_per_s else None
    xs = sorted({low, high, *([ridge] if ridge and low < ridge < high else [])})
    return xs, [min(x * bandwidth_bytes_per_s, peak_flop_per_s or math.inf) for x in xs]


def rate_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks of a rate between two values, each with its SI prefix, so that nine decades stay readable.

    >>> rate_ticks(2e9, 3e12)
    ([10000000000.0, 100000000000.0, 1000000000000.0], ['10 G', '100 G', '1 T'])
    """
    values, _ = decade_ticks(low, high, 1.0)
    prefixes = [next((p for p in _SI if value >= p[0] * (1 - 1e-9)), _SI[-1]) for value in values]
    return values, [f"{v / scale:g} {prefix}".strip() for v, (scale, prefix) in zip(values, prefixes, strict=True)]


def frame_of(values: Sequence[float], below: float, above: float) -> list[float]:
    """Exponents of a logarithmic axis around the values, with factors of space below and above."""
    return [math.log10(min(values) / below), math.log10(max(values) * above)]
