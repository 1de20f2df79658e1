"""Prefill and decoding weighted by a traffic mix, and the shares at which another variant becomes the fastest.

The share p is that of tokens that are decoded; the rest, 1 − p, is prefilled. A variant then takes p · d + (1 − p) · f seconds
for a token on average, with d seconds a token in decoding (the time of a step over its batch) and f in prefill (the time over
batch times length). This is a straight line in p, so that the shares at which two variants are equal follow exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from kernelviz.core import Figure
from kernelviz.metrics.layer_times import PartTimes
from kernelviz.metrics.statistics import Interval


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """A variant's seconds for a token in both phases."""

    name: str
    prefill: Interval
    decode: Interval

    def at(self, share: float) -> float:
        """Seconds for a token at a share of decoded tokens.

        >>> PhaseTimes("a", Interval(1.0, None, None), Interval(5.0, None, None)).at(0.25)
        2.0
        """
        return share * self.decode.estimate + (1 - share) * self.prefill.estimate


@dataclass(frozen=True, slots=True)
class Flip:
    """The share at which the fastest variant changes from `before` to `after`. `low` and `high`: the share at the ends of the
    intervals of the four times, between 0 and 1; None if an interval is missing."""

    share: float
    before: str
    after: str
    low: float | None = None
    high: float | None = None


def crossing(a: PhaseTimes, b: PhaseTimes) -> float | None:
    """The share at which both take equally long; None if there is none from 0 to 1.

    >>> fast, slow = Interval(1.0, None, None), Interval(3.0, None, None)
    >>> crossing(PhaseTimes("a", fast, slow), PhaseTimes("b", slow, fast))
    0.5
    >>> crossing(PhaseTimes("a", fast, fast), PhaseTimes("b", slow, slow)) is None
    True
    """
    return _crossing(a.prefill.estimate, a.decode.estimate, b.prefill.estimate, b.decode.estimate)


def _crossing(prefill_a: float, decode_a: float, prefill_b: float, decode_b: float) -> float | None:
    behind, ahead = prefill_b - prefill_a, decode_a - decode_b
    if behind + ahead == 0:
        return None
    share = behind / (behind + ahead)
    return share if 0 <= share <= 1 else None


def best_at(variants: Sequence[PhaseTimes], share: float) -> PhaseTimes | None:
    """The variant that takes the least at a share; None without variants."""
    return min(variants, key=lambda v: v.at(share), default=None)


def flips(variants: Sequence[PhaseTimes]) -> tuple[Flip, ...]:
    """Every share at which the fastest variant changes, in ascending order: the corners of the lower envelope of the lines.

    >>> def line(name, prefill, decode):
    ...     return PhaseTimes(name, Interval(prefill, None, None), Interval(decode, None, None))
    >>> [(f.share, f.before, f.after) for f in flips([line("a", 1.0, 9.0), line("b", 3.0, 5.0), line("c", 6.0, 4.0)])]
    [(0.3333333333333333, 'a', 'b'), (0.75, 'b', 'c')]
    >>> flips([line("a", 1.0, 1.0), line("b", 2.0, 2.0)])
    ()
    """
    # At equal times for a prefill, the one that gains more with the share leads right after 0.
    present = min(variants, key=lambda v: (v.prefill.estimate, v.decode.estimate), default=None)
    collected: list[Flip] = []
    reached = 0.0
    while present is not None:
        steeper = [v for v in variants if _slope(v) < _slope(present)]
        met = [(share, v) for v in steeper if (share := crossing(present, v)) is not None and share >= reached]
        if not met:
            break
        share, following = min(met, key=lambda one: (one[0], _slope(one[1])))
        if share >= 1:
            break
        low, high = _ends(present, following)
        collected.append(Flip(share, present.name, following.name, low, high))
        present, reached = following, share
    return tuple(collected)


def _slope(of: PhaseTimes) -> float:
    return of.decode.estimate - of.prefill.estimate


def _ends(a: PhaseTimes, b: PhaseTimes) -> tuple[float | None, float | None]:
    intervals = (a.prefill, a.decode, b.prefill, b.decode)
    if any(i.low is None or i.high is None for i in intervals):
        return None, None
    corners = product(*[(i.low, i.high) for i in intervals])
    shares = []
    for pa, da, pb, db in corners:
        assert pa is not None
        assert da is not None
        assert pb is not None
        assert db is not None
        behind, ahead = pb - pa, da - db
        # Where one variant is ahead in both phases, the change lies outside of the mix: at its nearer end.
        if behind <= 0 or ahead <= 0:
            shares.append(0.0 if behind <= 0 else 1.0)
        else:
            shares.append(behind / (behind + ahead))
    return min(shares), max(shares)


def speed_up(base: PhaseTimes, other: PhaseTimes, share: float) -> float:
    """How many times less time the other takes for a token at a share of decoded tokens."""
    return base.at(share) / other.at(share)


def of_part(prefill: PartTimes, decode: PartTimes, prefill_tokens: int, decode_tokens: int) -> tuple[PhaseTimes, ...]:
    """The seconds for a token of each variant of a part that has a correct and reliable time in both phases. Variants of two ops,
    as of attention, are the same if they have the same name."""
    after = {t.variant: t.figure for t in decode.times if t.figure is not None and not t.wrong and t.level != "suspect"}
    return tuple(
        PhaseTimes(t.variant, _over(t.figure, prefill_tokens), _over(figure, decode_tokens))
        for t in prefill.times
        if t.figure is not None
        and not t.wrong
        and t.level != "suspect"
        and (figure := after.get(t.variant)) is not None
    )


def _over(figure: Figure, tokens: int) -> Interval:
    return per_token(Interval(figure.estimate, figure.low, figure.high), tokens)


def per_token(time: Interval, tokens: int) -> Interval:
    """A time of a call for each of its tokens.

    >>> per_token(Interval(8.0, 4.0, None), 4)
    Interval(estimate=2.0, low=1.0, high=None)
    """
    return Interval(
        time.estimate / tokens,
        None if time.low is None else time.low / tokens,
        None if time.high is None else time.high / tokens,
    )
