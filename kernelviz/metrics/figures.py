"""The figures of a case, and what follows from them together."""

from dataclasses import dataclass

import numpy as np

from kernelviz.core import Figure, Preparation, Result, Timing
from kernelviz.metrics.headline import Headline as Headline
from kernelviz.metrics.uncertainty import with_uncertainty

HOST_BOUND = 1.1
"""An eager call in a back-to-back series waits for the host if it takes more than this many times the warm device time, and so
does the host to enqueue a call. If the host is faster, the device itself is slower in a series."""


def figure_of(timing: Timing | None, headline: Headline) -> Figure | None:
    """The device time with flushed or with warm caches, with the interval of everything that is known (metrics.uncertainty)."""
    if timing is None:
        return None
    figure = timing.device_cold_s if headline == "cold" else timing.device_warm_s
    return None if figure is None else with_uncertainty(figure)


def again_of(timing: Timing | None, headline: Headline) -> Figure | None:
    """The second series of a baseline: its difference from the first is the noise floor."""
    if timing is None:
        return None
    return timing.again_s if headline == "cold" else timing.again_warm_s


def quantiles(figure: Figure | None) -> tuple[float, float, float] | None:
    """The 50th, 90th and 99th percentile of all samples, seconds; None without samples.

    >>> quantiles(Figure(estimate=2.0, samples=(1.0, 2.0, 3.0)))
    (2.0, 2.8, 2.98)
    """
    if figure is None or not figure.samples:
        return None
    p50, p90, p99 = figure.percentiles_s or np.quantile(figure.samples, (0.5, 0.9, 0.99))
    return round(float(p50), 12), round(float(p90), 12), round(float(p99), 12)


@dataclass(frozen=True, slots=True)
class Extent:
    """The least, the mean and the largest of all samples, seconds."""

    minimum_s: float
    mean_s: float
    maximum_s: float


def extent(figure: Figure | None) -> Extent | None:
    """The least, the mean and the largest of all samples; None without samples, and where only the mean of each block is stored.

    >>> extent(Figure(estimate=2.0, samples=(2.0, 1.0, 6.0)))
    Extent(minimum_s=1.0, mean_s=3.0, maximum_s=6.0)
    """
    if figure is None or not figure.samples:
        return None
    if isinstance(figure.extent_s, tuple):
        return Extent(*figure.extent_s)
    if figure.by_block:
        return None
    low, mean, high = min(figure.samples), float(np.mean(figure.samples)), max(figure.samples)
    # Rounding must not move the mean of equal samples beyond them.
    return Extent(*(round(float(s), 12) for s in (low, min(max(mean, low), high), high)))


def back_to_back_over_warm(timing: Timing | None) -> float | None:
    """The time of one of many back-to-back eager calls over the warm device time; None if either is unknown.

    None on a CPU, too: there, the host clock takes both times, and no device waits for the host.

    >>> back_to_back_over_warm(Timing(device_warm_s=Figure(estimate=0.5), loop_s=Figure(estimate=2.5)))
    5.0
    >>> back_to_back_over_warm(Timing(device_warm_s=Figure(estimate=0.5, timer="host"), loop_s=Figure(estimate=2.5)))
    """
    if timing is None or timing.device_warm_s is None or timing.loop_s is None or timing.device_warm_s.timer == "host":
        return None
    return timing.loop_s.estimate / timing.device_warm_s.estimate


def host_bound(timing: Timing | None) -> bool | None:
    """Whether back-to-back calls wait for the host: they take over 1.1 × device warm, and so does the host to enqueue a call, if
    that is known. None if the times are unknown, and on a CPU.

    >>> short = Timing(device_warm_s=Figure(estimate=1e-6), loop_s=Figure(estimate=5e-6), enqueue_s=Figure(estimate=4e-6))
    >>> long = Timing(device_warm_s=Figure(estimate=7e-4), loop_s=Figure(estimate=9e-4), enqueue_s=Figure(estimate=9e-6))
    >>> gaps = Timing(device_warm_s=Figure(estimate=23e-6), loop_s=Figure(estimate=27e-6), enqueue_s=Figure(estimate=18e-6))
    >>> host_bound(short), host_bound(long), host_bound(gaps)
    (True, False, False)
    """
    ratio = back_to_back_over_warm(timing)
    if ratio is None or timing is None or timing.device_warm_s is None:
        return None
    enqueue = timing.enqueue_s
    return ratio > HOST_BOUND and (enqueue is None or enqueue.estimate > HOST_BOUND * timing.device_warm_s.estimate)


def times_s(result: Result) -> dict[str, float | None]:
    """Every figure of a case in seconds, by the names of their columns; None if it was not measured or the case is wrong.

    A call of one kernel is busy during its whole span, so the cold samples are not stored a second time.

    >>> from kernelviz.core.problem import Problem
    >>> timing = Timing(device_cold_s=Figure(estimate=2e-6), call_eager_s=Figure(estimate=9e-6))
    >>> one = Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), variant="v", outcome=timing)
    >>> {name: value for name, value in times_s(one).items() if value is not None}
    {'cold_s': 2e-06, 'call_eager_s': 9e-06}
    """
    timing = result.timing or Timing()
    p50, p90, p99 = quantiles(timing.call_eager_s) or (_estimate(timing.call_eager_s), None, None)
    busy = timing.busy_s or (timing.device_cold_s if len(result.kernels) == 1 else None)
    return {
        "cold_s": _estimate(timing.device_cold_s),
        "warm_s": _estimate(timing.device_warm_s),
        "call_eager_s": p50,
        "call_eager_p90_s": p90,
        "call_eager_p99_s": p99,
        "enqueue_s": _estimate(timing.enqueue_s),
        "call_graph_s": _estimate(timing.call_graph_s),
        "loop_s": _estimate(timing.loop_s),
        "busy_s": _estimate(busy),
    }


def _estimate(figure: Figure | None) -> float | None:
    return None if figure is None else figure.estimate


def first_call_s(preparation: Preparation | None) -> float | None:
    """Binding and first call together; None if neither is known."""
    known = [s for s in (preparation.bind_s, preparation.first_call_s) if s is not None] if preparation else []
    return sum(known) if known else None
