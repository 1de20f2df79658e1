"""Two times at equal clock: their ratio in shares of the issue rate, each at the SM clock that was measured beside it."""

from dataclasses import dataclass

from kernelviz.core import Result, Run
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.headline import Headline
from kernelviz.metrics.issue_rate import IssueShare, issue_share
from kernelviz.metrics.stability import stability


@dataclass(frozen=True, slots=True)
class EqualClock:
    """The shares of the issue rate of both sides of a pair; None: unknown."""

    before: IssueShare | None
    after: IssueShare | None

    @property
    def ratio(self) -> float | None:
        """B's time over A's as it would be at equal clock (on two kinds of GPU: at an equal issue rate); None if a share is
        unknown."""
        if self.before is None or self.after is None or self.after.fraction <= 0:
            return None
        return self.before.fraction / self.after.fraction


def equal_clock(pair: Pair, comparison: Comparison) -> EqualClock:
    """Both sides of a pair. Where the ratio at equal clock is 1 and that of the times is not, the clocks explain the
    difference."""
    headline = comparison.headline
    return EqualClock(_share(pair.before, comparison.a, headline), _share(pair.after, comparison.b, headline))


def _share(result: Result, run: Run, headline: Headline) -> IssueShare | None:
    figure = figure_of(result.timing, headline)
    if figure is None or stability(figure).unstable:
        return None
    return issue_share(result.problem, result.cost, figure, run.environment.device)
