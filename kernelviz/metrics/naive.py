"""Times by the naive protocol beside the cold device time."""

from kernelviz.core import Timing
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.stability import stability


def ratio_to_cold(timing: Timing | None, time_s: float | None) -> float | None:
    """A time over the cold device time; None if either is unknown, or if the cold time is not stable.

    >>> from kernelviz.core import Figure
    >>> ratio_to_cold(Timing(device_cold_s=Figure(estimate=2.0)), 5.0), ratio_to_cold(Timing(), 5.0)
    (2.5, None)
    """
    cold = figure_of(timing, "cold")
    if time_s is None or cold is None or cold.estimate <= 0 or stability(cold).unstable:
        return None
    return time_s / cold.estimate
