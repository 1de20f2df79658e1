"""The figures of a case: which question each answers, and what follows from them together."""

from dataclasses import dataclass

import numpy as np

from kernelviz.core import Figure, Result, Timing

HOST_BOUND = 1.1
"""A loop of eager calls that takes more than this many times the device's time for one waits for Python, not for the device."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A figure: its field in `Timing`, what people call it, and the question that it answers."""

    field: str
    name: str
    question: str


FIGURES = (
    Asked("device_cold_s", "device cold", "How good is the kernel, with its data in memory? The headline."),
    Asked(
        "device_warm_s", "device warm", "And with its data where the call itself leaves them, in the L2 if they fit?"
    ),
    Asked("call_eager_s", "call eager", "How long is one Python call, from idle to done?"),
    Asked("enqueue_s", "enqueue", "How much of that passes before Python goes on?"),
    Asked("call_graph_s", "call by graph", "How long is it when it is launched as a graph of one call?"),
    Asked("loop_s", "loop", "How long is one of many eager calls back to back?"),
    Asked("busy_s", "busy", "During how much of the cold span did one of its kernels run?"),
)


def quantiles(figure: Figure | None) -> tuple[float, float, float] | None:
    """The 50th, 90th and 99th percentile of the samples, seconds; None without samples.

    >>> quantiles(Figure(estimate=2.0, samples=(1.0, 2.0, 3.0)))
    (2.0, 2.8, 2.98)
    """
    if figure is None or not figure.samples:
        return None
    p50, p90, p99 = np.quantile(figure.samples, (0.5, 0.9, 0.99))
    return round(float(p50), 12), round(float(p90), 12), round(float(p99), 12)


def loop_over_warm(timing: Timing | None) -> float | None:
    """One of many eager calls back to back over the device's warm time; None where either is unknown.

    >>> loop_over_warm(Timing(device_warm_s=Figure(estimate=0.5), loop_s=Figure(estimate=2.5)))
    5.0
    """
    if timing is None or timing.device_warm_s is None or timing.loop_s is None:
        return None
    return timing.loop_s.estimate / timing.device_warm_s.estimate


def host_bound(timing: Timing | None) -> bool | None:
    """Whether calls back to back wait for the host: loop > 1.1 × device warm; None where either is unknown.

    >>> host_bound(Timing(device_warm_s=Figure(estimate=1e-6), loop_s=Figure(estimate=5e-6)))
    True
    """
    ratio = loop_over_warm(timing)
    return None if ratio is None else ratio > HOST_BOUND


def times_s(result: Result) -> dict[str, float | None]:
    """Every figure of a case in seconds, by the names of their columns; None where it was not measured, and for a wrong case.

    A call of one kernel is busy for its whole span, whose samples are not stored twice.

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


def host_bound_words(timing: Timing | None) -> str:
    """The badge of a loop that waits for Python, with by how much; empty where it does not or where that is unknown.

    >>> host_bound_words(Timing(device_warm_s=Figure(estimate=1e-6), loop_s=Figure(estimate=5e-6)))
    'host-bound: loop 5.0× device warm'
    >>> host_bound_words(Timing())
    ''
    """
    ratio = loop_over_warm(timing)
    return f"host-bound: loop {ratio:.1f}× device warm" if ratio is not None and ratio > HOST_BOUND else ""
