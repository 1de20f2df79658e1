"""What tracing adds is taken off when it shows, asked again when it is in doubt, and unknown when it cannot be asked."""

from __future__ import annotations

import pytest
import torch

from kernelviz.measure.timer import Place
from kernelviz.measure.tracing_cost import MORE_TRIES, TRIES, TracingCost

US = 1e-6


class Known(TracingCost):
    """Differences that are known instead of measured; what was asked is kept."""

    def __init__(self, differences_s: list[float] | None) -> None:
        self.differences_s, self.asked, self.rested_s = differences_s, [], 0.0
        self._rest = self._note_rest

    def _note_rest(self, coming_s: float) -> None:
        self.rested_s += coming_s

    def _added(self, place: Place, calls: int, tries: int) -> list[float]:
        self.asked.append((calls, tries))
        if self.differences_s is None:
            raise torch.OutOfMemoryError("another set of outputs")
        return [self.differences_s.pop(0) for _ in range(tries)]


PLACE = Place(lambda: torch.empty(0))


@pytest.mark.parametrize(("difference_us", "expected_us"), [(4.5, 4.5), (0.1, 0.0), (-0.3, 0.0)])
def test_what_shows_is_taken_off_and_what_does_not_is_none(difference_us: float, expected_us: float) -> None:
    cost = Known([difference_us * US] * TRIES)
    assert cost.adds_s(PLACE, 50 * US) == pytest.approx(expected_us * US)
    assert cost.asked == [(20, TRIES)]
    assert cost.rested_s == pytest.approx(2 * TRIES * 20 * 50 * US)


def test_what_is_near_the_least_that_can_be_told_is_asked_more_often() -> None:
    cost = Known([0.32 * US] * TRIES + [0.28 * US] * MORE_TRIES)
    assert cost.adds_s(PLACE, 50 * US) == 0.0
    assert [tries for _, tries in cost.asked] == [TRIES, MORE_TRIES]


def test_one_outlier_among_the_tries_decides_nothing() -> None:
    cost = Known([0.0] * (TRIES - 1) + [900 * US])
    assert cost.adds_s(PLACE, 50 * US) == 0.0


def test_long_calls_are_asked_a_few_at_a_time_and_short_memory_leaves_it_unknown() -> None:
    cost = Known([0.0] * TRIES)
    cost.adds_s(PLACE, 3e-3)
    assert cost.asked[0][0] == 2
    assert Known(None).adds_s(PLACE, 50 * US) is None
