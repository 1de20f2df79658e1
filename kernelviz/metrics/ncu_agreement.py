"""How far a time of kernelviz is from ncu's, and which part of that the clock and the place in memory explain."""

from kernelviz.core import Figure

NCU_S, NCU_FRACTION = 0.8e-6, 0.01
"""By how much a time may differ from ncu's: so many seconds and this fraction, beyond what ncu adds to an empty kernel."""
ADDS_MOST_S = 1.8e-6
"""The most that ncu may add to an empty kernel. Found: 0.87 us on an H200, 1.43 us on an H100. If it seems to add more, or less
than nothing, the times themselves are wrong, which the difference for an empty kernel must not hide."""


def middle_samples_s(figure: Figure) -> tuple[float, float]:
    """The 5th and the 95th percentile of the samples of a figure."""
    samples = sorted(figure.samples or (figure.estimate,))
    return samples[len(samples) // 20], samples[-1 - len(samples) // 20]


def unexplained_s(
    own_s: float, middle_s: tuple[float, float], own_hz: float | None, ncu_s: float, ncu_hz: float
) -> float:
    """The smallest difference between a time of this process and ncu's (less what ncu adds): of the times as they are, with ncu's
    time converted to the clock of this process, and of both from the nearest of this process's samples.

    `middle_s`: the 5th and the 95th percentile of those samples, which are at many places in memory.
    """
    ncu_times_s = [ncu_s] if own_hz is None else [ncu_s, ncu_s * ncu_hz / own_hz]
    return min(
        abs(time_s - own) for time_s in ncu_times_s for own in (own_s, min(max(time_s, middle_s[0]), middle_s[1]))
    )
