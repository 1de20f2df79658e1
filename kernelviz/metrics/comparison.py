"""Two runs, or two variants, case by case: which is slower, by how much, and which pairs have no verdict.

A pair is one case of A (the baseline) and its counterpart of B. Ratios are B's time over A's: above 1, B is slower. The worst
pairs come first. Nothing here is stored. docs/measuring.md, "Two runs", has the rule and the figures behind it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kernelviz.core import BadField, Figure, Problem, Result, Run, UnknownName
from kernelviz.metrics import foreign_times, winner
from kernelviz.metrics.comparability import one_run, reason_against, same_code
from kernelviz.metrics.figures import Headline, again_of, figure_of
from kernelviz.metrics.judgement import measured_apart
from kernelviz.metrics.rows import in_plan_order
from kernelviz.metrics.stability import level_decides, levels_overlap
from kernelviz.metrics.statistics import LEAST_DIFFERENCE, MIN_BLOCKS, Interval, fewest_blocks, geometric_mean, unpaired
from kernelviz.metrics.verdict_reasons import NoTime, NotStable, OtherTool, PairReason, SameCode
from kernelviz.metrics.verdicts import judged, noise_floor, verdict_apart, verdict_between

PairKind = Literal["slower", "unclear", "same", "faster", "same code", "not comparable"]
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
WITHOUT_VERDICT: tuple[PairKind, ...] = ("same code", "not comparable")


@dataclass(frozen=True, slots=True)
class Pair:
    """A case of A, its counterpart of B, and the result of the comparison.

    `ratio`: B's time over A's, None if either has no time that counts; it is shown for pairs that are not comparable, too.
    `floor`: the noise floor that the interval has to clear. `reason`: the reason of the `kind`. `shared`: the two were measured
    in shared rounds.
    """

    before: Result
    after: Result
    kind: PairKind
    ratio: Interval | None
    floor: float | None
    reason: PairReason
    shared: bool = False

    @property
    def problem(self) -> Problem:
        return self.before.problem

    @property
    def broken(self) -> bool:
        """A has a correct time and B has none, which no ratio can express."""
        return self.before.timing is not None and self.after.timing is None

    @property
    def low(self) -> float:
        """The lower end of the interval of the ratio; 0 without an interval."""
        return 0.0 if self.ratio is None else self.ratio.low or 0.0

    @property
    def key(self) -> str:
        """Equal for equal pairs of equal runs; fits into an address."""
        return self.before.case.key


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs, worst first, and the cases that only one side has.

    `noise`: the largest difference between these runs of cases with the same code in both; None if there are none, or if both
    sides are of one run. `noise_cases`: the number of these cases. `variant_a`, `variant_b`: set if one variant is compared
    with another.
    """

    a: Run
    b: Run
    headline: Headline
    variant_a: str | None
    variant_b: str | None
    pairs: tuple[Pair, ...]
    only_a: tuple[Result, ...]
    only_b: tuple[Result, ...]
    noise: float | None
    noise_cases: int

    @property
    def by_problem(self) -> bool:
        """Whether one variant of each side was chosen, so that the problem identifies a pair."""
        return self.variant_a is not None

    @property
    def counts(self) -> dict[PairKind, int]:
        """How many pairs there are of each kind, all kinds named."""
        counts = Counter(pair.kind for pair in self.pairs)
        return {kind: counts[kind] for kind in PAIR_KINDS}

    @property
    def judged(self) -> tuple[Pair, ...]:
        """The pairs with a verdict on the code: faster, slower, same or unclear."""
        return tuple(p for p in self.pairs if p.kind not in WITHOUT_VERDICT)

    @property
    def mean_ratio(self) -> float | None:
        """The geometric mean of the ratios of the pairs with a verdict; None if there are none."""
        return mean_ratio(self.judged)

    def slower_than(self, limit: float = 0.0) -> tuple[Pair, ...]:
        """The pairs that are slower by more than `limit` (a fraction) with their whole interval, and those that are broken."""
        return tuple(p for p in self.pairs if p.broken or (p.kind == "slower" and p.low > 1 + limit))


def mean_ratio(pairs: Iterable[Pair]) -> float | None:
    """The geometric mean of their ratios, None of none."""
    return geometric_mean([p.ratio.estimate for p in pairs if p.ratio is not None])


def compare(
    a: Run, b: Run, *, variant_a: str | None = None, variant_b: str | None = None, headline: Headline = "cold"
) -> Comparison:
    """Every case of A with its counterpart of B: the same case, or (one variant of each) the same problem.

    If one variant is named, it is that of both sides. Errors: UnknownName for a variant that its run does not have; BadField
    for a run against itself without two different variants.
    """
    variant_a, variant_b = variant_a or variant_b, variant_b or variant_a
    for side, run, variant in (("A", a, variant_a), ("B", b, variant_b)):
        if variant is not None and variant not in run.plan.variants:
            raise UnknownName(f"variant {side}", variant, run.plan.variants, of=f"run {run.id!r}")
    shared = one_run(a, b)
    if shared and variant_a == variant_b:
        raise BadField("run B", b.id, "it is run A itself; name another run, or two different variants of it")
    both, only_a, only_b = paired(_of(a, variant_a), _of(b, variant_b), by_problem=variant_a is not None)
    pairs = [pair_of(a, before, b, after, headline, shared=shared) for before, after in both]
    identical = [p.ratio.estimate for p in pairs if p.kind == "same code" and p.ratio is not None]
    noise = max((max(ratio, 1 / ratio) - 1 for ratio in identical), default=None)
    if noise is not None:
        pairs = [_with_noise(pair, noise) for pair in pairs]
    ordered = tuple(sorted(pairs, key=_rank))
    return Comparison(a, b, headline, variant_a, variant_b, ordered, only_a, only_b, noise, len(identical))


def paired(
    first: Sequence[Result], second: Sequence[Result], *, by_problem: bool = False
) -> tuple[list[tuple[Result, Result]], tuple[Result, ...], tuple[Result, ...]]:
    """Pairs of one case (or, `by_problem`, of one problem) in the order of `first`, then the results that only each side has.

    A case that B has only with other input data is paired too, so that the comparison can say why the two are not comparable.
    """

    def key(result: Result, data: bool) -> tuple[object, ...]:
        p = result.problem
        sizes = tuple(sorted(p.sizes.items()))
        variant = None if by_problem else result.variant
        return p.op, sizes, p.dtype, p.compute, p.direction, variant, p.data if data else None

    both: dict[int, tuple[Result, Result]] = {}
    left = dict(enumerate(second))
    for data in (True, False):
        waiting = {key(r, data): i for i, r in reversed(left.items())}
        for i, result in enumerate(first):
            match = None if i in both else waiting.pop(key(result, data), None)
            if match is not None:
                both[i] = (result, left.pop(match))
    only_a = tuple(r for i, r in enumerate(first) if i not in both)
    return [both[i] for i in sorted(both)], only_a, tuple(left.values())


def _of(run: Run, variant: str | None) -> tuple[Result, ...]:
    return tuple(r for r in in_plan_order(run) if variant in (None, r.variant))


def pair_of(a: Run, before: Result, b: Run, after: Result, headline: Headline, *, shared: bool) -> Pair:
    """Two results with the verdict of B against A. Their problems may differ, such as a product and a read of as many bytes.

    Two variants of one run share rounds and get the verdict of the Bench page (metrics.winner). Two runs share none, so each
    side is resampled by itself. `shared`: both are of one run."""
    time, other = figure_of(after.timing, headline), figure_of(before.timing, headline)
    ratio = None if shared or time is None or other is None else unpaired(time, other)
    identical = not shared and same_code(a, before, b, after)
    reason = reason_against(a, before, b, after, headline, one_run=shared, same_code=identical)
    other_tool = _of_another_tool(before, after) if isinstance(reason, NoTime) and not shared else None
    if other_tool is not None:
        return other_tool
    if reason is not None:
        return Pair(before, after, "not comparable", ratio, None, reason, shared)
    assert time is not None and other is not None  # otherwise there is a reason  # noqa: PT018
    if identical:
        return Pair(before, after, "same code", ratio, None, SameCode())
    if ratio is not None and levels_overlap(time, other):
        return Pair(before, after, "unclear", None, None, NotStable())
    if ratio is None and measured_apart(before, after) and not level_decides(time, other):
        verdict = verdict_apart(time, other)
    elif ratio is None:
        verdict = winner.compared(time, other, *_baseline(a, before.problem, headline))
    else:
        floor = max(_floor(a, before.problem, headline), _floor(b, after.problem, headline))
        verdict = verdict_between(ratio, floor, fewest_blocks(time, other))
    return Pair(before, after, verdict.kind, verdict.ratio, verdict.floor, verdict.reason, shared)


def _of_another_tool(before: Result, after: Result) -> Pair | None:
    """The pair of two cases that another tool measured, with the ratio of the first time that both files state; None if they
    have no time in common."""
    times_a, times_b = foreign_times.of_case(before), foreign_times.of_case(after)
    name = next((n for n in times_a if n in times_b and min(times_a[n].estimate, times_b[n].estimate) > 0), None)
    if name is None:
        return None
    ratio = Interval(times_b[name].estimate / times_a[name].estimate, None, None)
    return Pair(before, after, "not comparable", ratio, None, OtherTool(name))


def _with_noise(pair: Pair, noise: float) -> Pair:
    """The pair with a floor of at least the noise between the two runs."""
    if pair.kind in WITHOUT_VERDICT or pair.ratio is None or noise <= (pair.floor or 0.0):
        return pair
    if pair.ratio.low is None:
        return replace(pair, floor=noise)
    verdict = judged(pair.ratio, noise, MIN_BLOCKS)
    return replace(pair, kind=verdict.kind, floor=noise, reason=verdict.reason)


def _baseline(run: Run, problem: Problem, headline: Headline) -> tuple[Figure | None, Figure | None]:
    """The two series of the baseline at that problem, whose difference is the noise floor of the run."""
    timings = (r.timing for r in run.results if r.problem == problem and r.variant == run.plan.baseline)
    timing = next(timings, None)
    return figure_of(timing, headline), again_of(timing, headline)


def _floor(run: Run, problem: Problem, headline: Headline) -> float:
    base, again = _baseline(run, problem, headline)
    return LEAST_DIFFERENCE if base is None else noise_floor(base, again)


def _rank(pair: Pair) -> tuple[bool, int, float]:
    """Broken pairs first, then verdicts from the largest ratio to the smallest, the same code, and what is not comparable."""
    group = WITHOUT_VERDICT.index(pair.kind) + 1 if pair.kind in WITHOUT_VERDICT else 0
    return not pair.broken, group, -pair.ratio.estimate if pair.ratio is not None else 0.0
