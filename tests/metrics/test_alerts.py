"""Alerts: over time, with the user's thresholds, and silent where nothing is known."""

from __future__ import annotations

import pytest

from kernelviz.core.device_sample import Sample
from kernelviz.metrics.alerts import Thresholds, alert_state

GIB = 2**30


def _samples(count: int, busy: float | None = 0.2, *, running: bool = True, growth: int = 0) -> list[Sample]:
    return [
        Sample(at_s=float(n), running=running, busy_fraction=busy, used_bytes=GIB + n * growth) for n in range(count)
    ]


def test_a_device_that_idles_while_a_run_is_going() -> None:
    assert alert_state(_samples(40), Thresholds()).too_idle
    assert alert_state(_samples(40), Thresholds()).busy_fraction == pytest.approx(0.2)
    assert not alert_state(_samples(40, 0.7), Thresholds()).too_idle
    assert alert_state(_samples(40, 0.7), Thresholds(least_busy_fraction=0.8)).too_idle


@pytest.mark.parametrize(
    "samples",
    [[], _samples(40, running=False), _samples(5), _samples(40, None)],
    ids=["none", "no run", "few", "unknown"],
)
def test_no_alert_without_ground(samples: list[Sample]) -> None:
    found = alert_state(samples, Thresholds())
    assert (found.busy_fraction, found.too_idle) == (None, False)


def test_only_the_last_half_minute_counts() -> None:
    samples = _samples(100, 0.9)[:60] + [Sample(at_s=float(n), running=True, busy_fraction=0.3) for n in range(60, 100)]
    assert alert_state(samples, Thresholds()).busy_fraction == pytest.approx(0.3)


def test_memory_that_grows_over_the_limit() -> None:
    found = alert_state(_samples(601, growth=3 * 2**20), Thresholds())
    assert found.growing
    assert found.growth_bytes == pytest.approx(540 * 3 * 2**20, rel=0.01)
    assert not alert_state(_samples(601, growth=3 * 2**20), Thresholds(most_growth_bytes=2 * GIB)).growing
    assert alert_state(_samples(60, growth=2**30), Thresholds()).growth_bytes is None, "a minute is no growth yet"


def test_a_short_peak_is_no_growth() -> None:
    samples = _samples(601)
    samples[-20:] = [Sample(at_s=s.at_s, used_bytes=90 * GIB) for s in samples[-20:]]
    assert not alert_state(samples, Thresholds()).growing
