"""What rank processes answer for each variant, and how the answers of all ranks become values of figures.

All ranks have the same rounds, so that the sample of a round is the mean over the ranks, as nccl-tests takes it by default.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kernelviz.core.problem import Struct
from kernelviz.core.reasons import ErrorTooLarge, NotFinite
from kernelviz.core.result import Failure
from kernelviz.core.workload import Measured, Span, WorkloadCase
from kernelviz.workloads.catalog import MeasuringContext, RankFailed, Series, WorkloadContext

ALONE = "not_interleaved"


class RankSeries(Struct, frozen=True, kw_only=True):
    """What one rank knows of one variant. `samples`, `rounds`, `again`: as in `Series`. `counted`: by figure. `bound_share`: the
    error of its result as a share of what a right one may have; None: not finite. `spans`: of one step."""

    samples: dict[str, tuple[float, ...]] = {}
    rounds: tuple[int, ...] = ()
    again: dict[str, tuple[float, ...]] = {}
    counted: dict[str, float] = {}
    bound_share: float | None = 0.0
    spans: tuple[Span, ...] = ()


class RankAnswers(Struct, frozen=True, kw_only=True):
    """What one rank answers. `beside`: series that belong to no variant, such as a peer copy."""

    variants: dict[str, RankSeries]
    beside: dict[str, RankSeries] = {}


def series_of(series: Series) -> RankSeries:
    """The samples of a rank as they travel."""
    return RankSeries(samples=dict(series.samples), rounds=series.rounds, again=dict(series.again))


def answers_of(value: Sequence[Any]) -> tuple[RankAnswers, ...]:
    """What `WorkloadContext.ranks` returned, typed."""
    return msgspec.convert(tuple(value), tuple[RankAnswers, ...], strict=False)


def mean_over_ranks(ranks: Sequence[RankSeries], figure: str, *, again: bool = False) -> tuple[float, ...]:
    """The samples of a figure, each the mean of what the ranks have of that round.

    >>> one, other = RankSeries(samples={"s": (1.0, 2.0)}), RankSeries(samples={"s": (3.0, 2.0)})
    >>> mean_over_ranks([one, other], "s")
    (2.0, 2.0)
    """
    of_ranks = [(rank.again if again else rank.samples).get(figure, ()) for rank in ranks]
    return tuple(sum(sample) / len(sample) for sample in zip(*of_ranks, strict=True))


def measured(
    context: MeasuringContext,
    ranks: Sequence[RankSeries],
    figure: str,
    of: Callable[[float], float] = lambda sample: sample,
) -> Measured:
    """The value of a figure over all ranks; `of` makes it from each sample."""
    return context.measured(
        [of(s) for s in mean_over_ranks(ranks, figure)],
        rounds=ranks[0].rounds,
        again=[of(s) for s in mean_over_ranks(ranks, figure, again=True)],
    )


def refusal(ranks: Sequence[RankSeries]) -> Failure | None:
    """The failure of a variant whose result is wrong on a rank; None if it is right on all.

    >>> refusal([RankSeries(bound_share=0.1)]), refusal([RankSeries(bound_share=0.1), RankSeries(bound_share=30.0)]).stage
    (None, 'wrong')
    """
    shares = [rank.bound_share for rank in ranks]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        return Failure(stage="wrong", reasons=(NotFinite(elements=1),))
    return Failure(stage="wrong", reasons=(ErrorTooLarge(of_bound=max(known)),)) if max(known) > 1 else None


def in_ranks(
    cases: Sequence[WorkloadCase], context: WorkloadContext, function: str, arguments: Mapping[str, object]
) -> Iterator[tuple[Sequence[WorkloadCase], tuple[RankAnswers, ...], bool]]:
    """Call a rank function for all cases together. If a rank fails, call it for each case alone, so that only the one that is
    the cause fails. Yields cases with the answers, by rank, and whether they were measured together.

    The rank function gets `arguments` and, as ``variants``, the names of the variants."""

    def call(of: Sequence[WorkloadCase]) -> tuple[RankAnswers, ...]:
        return answers_of(context.ranks(function, {**arguments, "variants": [case.variant for case in of]}))

    try:
        together = call(cases)
    except RankFailed:
        if len(cases) == 1:
            raise
    else:
        yield cases, together, True
        return
    for case in cases:
        answers = None
        with context.case(case):
            answers = call([case])
        if answers is not None:
            yield [case], answers, False
