"""The checks of a planted delay, without a GPU: they find a delay that is exposed, and refuse one that is hidden or too short."""

from __future__ import annotations

import random

import pytest
from planted_delay import PLANTED, delay_checks, difference_of_medians

from kernelviz.core.workload import Measured, Span, Timeline, WorkloadCase, WorkloadResult

DELAY_US = 2000


def result(
    variant: str, delay_us: int, exposed_s: float, *, waits: int = 1, wait_s: float = 2e-3, noise_s: float = 1e-4
) -> WorkloadResult:
    draws = random.Random(delay_us)
    spans = [Span(lane="compute", start_s=0.0, end_s=0.015)]
    spans += [
        Span(
            lane="communication",
            start_s=0.02 + i * 0.01,
            end_s=0.02 + i * 0.01 + wait_s,
            name=f"at::cuda::{PLANTED}(long)",
        )
        for i in range(waits)
    ]
    case = WorkloadCase(workload="gradient_sync", values={"delay_us": delay_us}, variant=variant)
    samples = tuple(draws.gauss(exposed_s, noise_s) for _ in range(30))
    return WorkloadResult(
        case=case,
        values={"exposed_s": Measured(estimate=exposed_s, samples=samples)},
        timeline=Timeline(spans=tuple(spans), clock="cupti"),
    )


def passed(*results: WorkloadResult) -> bool:
    checks = list(delay_checks(results))
    assert len(checks) >= 2
    return all(ok for _, ok in checks)


def test_an_exposed_delay_is_found_within_the_interval() -> None:
    assert passed(result("after_backward", 0, 6e-3), result("after_backward", DELAY_US, 8e-3))
    assert passed(result("ddp", 0, 6e-3), result("ddp", DELAY_US, 60e-3, waits=33))
    # The times of two H200s: noisier, and found nevertheless.
    noisy = [result("after_backward", us, s, noise_s=1.5e-3) for us, s in ((0, 6.13e-3), (DELAY_US, 7.92e-3))]
    more_s, low_s, high_s = difference_of_medians(*(r.values["exposed_s"].samples for r in reversed(noisy)))  # type: ignore[union-attr]
    assert low_s < more_s < high_s
    assert 0 < low_s < 2e-3 < high_s
    assert passed(*noisy)


@pytest.mark.parametrize(
    ("variant", "more_s", "waits", "wait_s"),
    [
        ("after_backward", 0.0, 1, 2e-3),  # hidden
        ("after_backward", 1e-3, 1, 2e-3),  # half of it is not exposed
        ("after_backward", 4e-3, 1, 2e-3),  # more than was planted
        ("after_backward", 2e-3, 1, 1e-3),  # the wait was too short
        ("after_backward", 2e-3, 0, 2e-3),  # there was none
        ("ddp", 0.0, 5, 2e-3),
        ("ddp", 11e-3, 5, 2e-3),  # more than a delay for each bucket
    ],
)
def test_what_is_not_the_planted_delay_is_refused(variant: str, more_s: float, waits: int, wait_s: float) -> None:
    delayed = result(variant, DELAY_US, 6e-3 + more_s, waits=waits, wait_s=wait_s)
    assert not passed(result(variant, 0, 6e-3), delayed)
