"""With which numbers a published claim holds, and the verdict on a number by these limits."""

from kernelviz.core.claim import Claim, ClaimDirection
from kernelviz.metrics.claim_reasons import (
    ClaimReason,
    ClaimVerdict,
    Missed,
    Reached,
    Straddling,
    TooWide,
    WithoutInterval,
)
from kernelviz.metrics.statistics import Interval

MOST_HALF_WIDTH = 0.25
"""A number whose 95 % interval is wider than this share of it on either side is that of a disturbed measurement. Beside other
processes on both cores of a machine, the loops of eager calls that a claim needs had 51 and 84 %."""


def compare(claim: Claim, expected: float, number: Interval) -> tuple[ClaimVerdict, ClaimReason]:
    """The verdict on a claim by its number, and the reason. `expected`: the published number on the card of `number`."""
    if number.low is None or number.high is None:
        return "unclear", WithoutInterval()
    if (number.half_width or 0.0) > MOST_HALF_WIDTH:
        return "unclear", TooWide(number.half_width or 0.0)
    least, most = limits(claim.direction, expected, claim.published.tolerance)
    if number.low >= least and number.high <= most:
        return "holds", Reached()
    if number.high < least:
        return "does not hold", Missed("below")
    if number.low > most:
        return "does not hold", Missed("above")
    return "unclear", Straddling()


def limits(direction: ClaimDirection, expected: float, tolerance: float) -> tuple[float, float]:
    """The least and the largest number with which a claim holds.

    >>> limits("at_least", 100.0, 0.1), limits("at_most", 100.0, 0.1)
    ((90.0, inf), (0.0, 110.00000000000001))
    """
    least = expected * (1 - tolerance) if direction != "at_most" else 0.0
    most = expected * (1 + tolerance) if direction in ("about", "at_most") else float("inf")
    return least, most
