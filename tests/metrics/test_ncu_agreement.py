"""What the clock and the place in memory explain of a difference to ncu's time."""

import pytest

from kernelviz.core import Figure
from kernelviz.metrics.ncu_agreement import middle_samples_s, unexplained_s


@pytest.mark.parametrize(
    ("ncu_us", "ncu_hz", "expected_us"),
    [
        (5.2, 2e9, 1.0),  # neither explains anything: from the 95th percentile, 4.2 us, it is 1.0
        (4.1, 2e9, 0.0),  # one place in memory of those that were measured here
        (8.0, 1e9, 0.0),  # half the clock, twice the time
        (8.4, 1e9, 0.0),  # half the clock, and the slowest place of those that were measured here
        (9.0, 1e9, 0.3),  # more than both explain
    ],
)
def test_what_clock_and_place_explain_is_no_disagreement(ncu_us: float, ncu_hz: float, expected_us: float) -> None:
    samples = tuple(4e-6 + 0.2e-6 * (i % 2) for i in range(100))
    own = Figure(estimate=4e-6, low=4e-6, high=4e-6, samples=samples, timer="cupti")
    assert middle_samples_s(own) == pytest.approx((4e-6, 4.2e-6))
    found_s = unexplained_s(own.estimate, middle_samples_s(own), 2e9, ncu_us * 1e-6, ncu_hz)
    assert found_s == pytest.approx(expected_us * 1e-6, abs=1e-12)
