"""The naive timing protocol in text: what it times, and what it gets wrong beside our times."""

import math
from collections.abc import Sequence

from kernelviz.core import DeviceKind, Result, Timing, units
from kernelviz.metrics.naive import ratio_to_cold
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text

_PROTOCOL = (
    "The naive protocol, as published numbers are often taken: in a new process, {clock} around the first call, and around the "
    "first calls together, divided by their number (100, or fewer for long calls). Binding (allocation, compilation) comes "
    "before it. Nothing is warmed up, flushed, repeated or subtracted."
)
WHAT: dict[DeviceKind, str] = {
    "cuda": _PROTOCOL.format(clock="one pair of CUDA events"),
    "cpu": _PROTOCOL.format(clock="the host clock"),
}
"""What the protocol times on each kind of device."""
WRONG = (
    "The first call also loads or compiles its kernels, while the device waits for Python and its clock is still low; the mean "
    "contains that first call, data that the call before left in the caches, and launches that take longer than their kernels; "
    "and neither has an interval, so that a difference cannot be told from chance."
)
"""What the protocol gets wrong, in one sentence."""
NAIVE_USE = """
It is measured on request, beside our times and never in place of them: *Time naively, too* in the form of Bench,
`kernelviz run OP --naive`, or `kv.run(op, figures=("cold", "naive"))`. The tab *Figures* shows it with the ratio to the cold
device time. The compilers' caches on disk are as they are, and the variant was checked before. A new process for each case takes
about five seconds.
"""


def describe_naive(timing: Timing | None) -> Text | None:
    """Both times by the naive protocol, and how many times the cold device time they are; None if it was not measured.

    >>> from kernelviz.core import Figure, NaiveTiming
    >>> naive = NaiveTiming(first_s=12.5e-3, mean_s=0.4e-3, calls=100, bind_and_first_s=13e-3, timer="events")
    >>> str(describe_naive(Timing(device_cold_s=Figure(estimate=0.25e-3), naive=naive)))
    'naive: 12.50 ms for the first call (50.0× our device cold), 400.0 µs for the mean of 100 calls (1.60×)'
    >>> str(describe_naive(Timing(naive=naive)))
    'naive: 12.50 ms for the first call, 400.0 µs for the mean of 100 calls'
    """
    naive = None if timing is None else timing.naive_timing
    if naive is None:
        return None
    first, mean = (ratio_to_cold(timing, time_s) for time_s in (naive.first_s, naive.mean_s))
    of_first = "" if first is None else f" ({units.factor(first)}× our device cold)"
    of_mean = "" if mean is None else f" ({units.factor(mean)}×)"
    calls = units.counted(naive.calls, "call")
    return Text(
        f"naive: {units.seconds(naive.first_s)} for the first call{of_first}, {units.seconds(naive.mean_s)} for the mean of "
        f"{calls}{of_mean}"
    )


def describe_naive_of_run(results: Sequence[Result], device: DeviceKind) -> list[Text]:
    """What the protocol is and gets wrong, and the case in which its first call differs most from our time; nothing if no case
    has been timed by it."""
    known = [r for r in results if r.timing is not None and r.timing.naive_timing is not None]
    if not known:
        return []
    lines = [Text(WHAT[device]), Text(WRONG)]
    ratios = [(abs(math.log(ratio)), r) for r in known if (ratio := _first_ratio(r.timing)) is not None]
    if ratios:
        farthest = max(ratios, key=lambda pair: pair[0])[1]
        case = f"{format_variant(farthest.variant)} at {format_sizes(farthest.problem)}"
        lines.append(Text(f"Farthest from our time: {case}, {describe_naive(farthest.timing)}."))
    return lines


def _first_ratio(timing: Timing | None) -> float | None:
    naive = None if timing is None else timing.naive_timing
    ratio = ratio_to_cold(timing, None if naive is None else naive.first_s)
    return ratio if ratio is not None and ratio > 0 else None
