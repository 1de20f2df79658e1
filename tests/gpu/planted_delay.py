"""What gradient_sync must show where a delay is planted: the delay ran, and it is found as exposed communication.

The step with and without a delay are measured one after the other, so that the exposed times have no rounds in common. Their
difference is judged by its 95 % interval: 1.79 ms (0.02 ms to 2.80 ms) for a delay of 2 ms in 27 and 13 rounds.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from kernelviz.core.workload import Measured, Span, WorkloadResult
from kernelviz.metrics.statistics import RESAMPLES
from kernelviz.metrics.timelines import hidden_share

PLANTED = "spin_kernel"
LENGTH_TOLERANCE = 0.1
"""A wait is a number of cycles, so that it is longer where the clock is lower: up to 9 % in the recorded runs."""


def difference_of_medians(samples: Sequence[float], less: Sequence[float]) -> tuple[float, float, float]:
    """The median of one series minus that of another, and its 95 % interval; each is resampled by itself."""
    draws = np.random.default_rng(0)
    first, second = (np.median(draws.choice(np.asarray(of), (RESAMPLES, len(of))), axis=1) for of in (samples, less))
    low, high = np.quantile(first - second, [0.025, 0.975])
    return float(np.median(samples) - np.median(less)), float(low), float(high)


def delay_checks(results: Sequence[WorkloadResult]) -> Iterator[tuple[str, bool]]:
    """The checks of each variant that was measured with and without a delay."""
    by_case = {(r.case.variant, int(r.case.values["delay_us"])): r for r in results}
    for (variant, delay_us), delayed in by_case.items():
        without = by_case.get((variant, 0))
        if not delay_us or without is None:
            continue
        planted = [] if delayed.timeline is None else [s for s in delayed.timeline.spans if PLANTED in s.name]
        yield from _lengths(variant, delay_us / 1e6, planted)
        yield _exposed(variant, delay_us / 1e6, len(planted), _samples(delayed), _samples(without))
        if variant == "after_backward" and delayed.timeline is not None:
            share = hidden_share(delayed.timeline.spans)
            yield f"{variant}: nothing of the exchange is hidden: {share}", share == 0


def _samples(result: WorkloadResult) -> tuple[float, ...]:
    value = result.values["exposed_s"]
    assert isinstance(value, Measured)
    return value.samples


def _lengths(variant: str, delay_s: float, planted: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """By the device's stamps: one wait for all gradients, or one for each bucket, and each as long as it should be."""
    lengths = [span.end_s - span.start_s for span in planted]
    right = bool(lengths) and all(abs(length - delay_s) <= LENGTH_TOLERANCE * delay_s for length in lengths)
    count_right = len(lengths) == 1 if variant == "after_backward" else len(lengths) > 1
    ends = f", {min(lengths) * 1e6:.0f} us to {max(lengths) * 1e6:.0f} us long" if lengths else ""
    yield f"{variant}: {len(lengths)} waits in a step{ends}", right and count_right


def _exposed(
    variant: str, delay_s: float, waits: int, delayed: Sequence[float], without: Sequence[float]
) -> tuple[str, bool]:
    """Without overlap the whole delay is exposed. With overlap some of it is, at most a whole one for each bucket."""
    more_s, low_s, high_s = difference_of_medians(delayed, without)
    text = (
        f"{variant}: {waits} delays of {delay_s * 1e6:.0f} us are exposed as {more_s * 1e6:.0f} us more "
        f"({low_s * 1e6:.0f} to {high_s * 1e6:.0f})"
    )
    if variant == "after_backward":
        return text, 0 < low_s <= delay_s <= high_s
    return text, 0 < low_s <= waits * delay_s
