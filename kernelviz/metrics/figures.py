"""The figures of a case: which question each answers, and what follows from them together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelviz.core.result import Figure, Timing

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
    Asked("device_warm_s", "device warm", "And with its data where the call itself leaves them, in the L2 if they fit?"),
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


def host_bound(timing: Timing | None) -> bool | None:
    """Whether calls back to back wait for the host: loop > 1.1 × device warm; None where either is unknown.

    >>> host_bound(Timing(device_warm_s=Figure(estimate=1e-6), loop_s=Figure(estimate=5e-6)))
    True
    """
    if timing is None or timing.device_warm_s is None or timing.loop_s is None:
        return None
    return timing.loop_s.estimate > HOST_BOUND * timing.device_warm_s.estimate
