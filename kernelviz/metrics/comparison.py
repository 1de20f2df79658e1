"""Two runs, or two variants, case by case: which is slower, by how much, and where nobody may say.

A pair is one case of A (the baseline) and its counterpart of B. Ratios are B's time over A's: above 1, B is slower. The worst
pairs come first. Nothing here is stored; the rule and the figures that it rests on: docs/measuring.md, "Two runs".
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kernelviz.core import BadField, Figure, Problem, Result, Run, Timing, UnknownName
from kernelviz.metrics import winner
from kernelviz.metrics.comparability import one_run, reason_against, same_code
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.rows import in_plan_order
from kernelviz.metrics.statistics import (
    LEAST_DIFFERENCE,
    MIN_BLOCKS,
    Interval,
    geometric_mean,
    judged,
    noise_floor,
)
from kernelviz.metrics.unpaired_verdict import fewest_blocks, unpaired, verdict_between
from kernelviz.metrics.verdict_reasons import NoTime, PairReason, SameCode

PairKind = Literal["slower", "unclear", "same", "faster", "same code", "not comparable"]
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)


@dataclass(frozen=True, slots=True)
class Pair:
    """A case of A, its counterpart of B, and what may be said of them.

    `ratio`: B's time over A's, None where either has no time that counts; shown for pairs that are not comparable too.
    `floor`: what the interval has to clear. `reason`: what the word rests on. `shared`: the two were measured in shared rounds.
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
        """A had a correct time and B has none: what no ratio can say."""
        return self.before.timing is not None and self.after.timing is None

    @property
    def key(self) -> str:
        """Equal for equal pairs of equal runs; fits into an address."""
        return self.before.case.key


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs, worst first, and the cases that only one side has.

    `noise`: the largest difference that cases with the same code in both show between these runs; None where there are none,
    or where both sides are of one run. `noise_cases`: how many they are. `variant_a`, `variant_b`: set where one variant is
    held against another.
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
        """Whether one variant of each side was chosen, so that a pair is told by its problem."""
        return self.variant_a is not None

    @property
    def counts(self) -> dict[PairKind, int]:
        """How many pairs have each word, all words named."""
        found = Counter(pair.kind for pair in self.pairs)
        return {word: found[word] for word in PAIR_KINDS}

    @property
    def judged(self) -> tuple[Pair, ...]:
        """The pairs with a verdict on the code: faster, slower, same or unclear."""
        return tuple(p for p in self.pairs if p.kind not in ("same code", "not comparable"))

    @property
    def mean_ratio(self) -> float | None:
        """The geometric mean of the ratios of the pairs with a verdict; None where there are none."""
        return mean_ratio(self.judged)

    def slower_than(self, limit: float = 0.0) -> tuple[Pair, ...]:
        """The pairs that are slower by more than `limit` (a fraction) with their whole interval, and those that are broken."""
        return tuple(p for p in self.pairs if p.broken or (p.kind == "slower" and _low(p) > 1 + limit))


def mean_ratio(pairs: Iterable[Pair]) -> float | None:
    """The geometric mean of their ratios, None of none."""
    return geometric_mean([p.ratio.estimate for p in pairs if p.ratio is not None])


def compare(
    a: Run, b: Run, *, variant_a: str | None = None, variant_b: str | None = None, headline: Headline = "cold"
) -> Comparison:
    """Every case of A with its counterpart of B: the same case, or (one variant of each) the same problem.

    One variant named stands for both sides. Errors: UnknownName for a variant that its run has not; BadField for a run against
    itself without two different variants.
    """
    variant_a, variant_b = variant_a or variant_b, variant_b or variant_a
    for side, run, variant in (("A", a, variant_a), ("B", b, variant_b)):
        if variant is not None and variant not in run.plan.variants:
            raise UnknownName(f"variant {side}", variant, run.plan.variants, of=f"run {run.id!r}")
    if one_run(a, b) and variant_a == variant_b:
        raise BadField("run B", b.id, "it is run A itself; name another run, or two different variants of it")
    both, only_a, only_b = paired(_of(a, variant_a), _of(b, variant_b), by_problem=variant_a is not None)
    if one_run(a, b):
        made, noise = [_inside(a, *two, headline) for two in both], None
    else:
        made = [_between(a, b, *two, headline) for two in both]
        ratios = [p.ratio.estimate for p in made if p.kind == "same code" and p.ratio is not None]
        alike = [max(r, 1 / r) - 1 for r in ratios]
        noise = max(alike, default=None)
        made = [p if noise is None else _over(p, noise) for p in made]
    known = 0 if noise is None else sum(p.kind == "same code" and p.ratio is not None for p in made)
    return Comparison(
        a, b, headline, variant_a, variant_b, tuple(sorted(made, key=_badness)), only_a, only_b, noise, known
    )


def paired(
    first: Sequence[Result], second: Sequence[Result], *, by_problem: bool = False
) -> tuple[list[tuple[Result, Result]], tuple[Result, ...], tuple[Result, ...]]:
    """Pairs of one case (or, `by_problem`, of one problem) in the order of `first`, then what only each side has.

    A case that B has on other input data only is paired too, so that it can be said why the two are not comparable.
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
            found = None if i in both else waiting.pop(key(result, data), None)
            if found is not None:
                both[i] = (result, left.pop(found))
    only_a = tuple(r for i, r in enumerate(first) if i not in both)
    return [both[i] for i in sorted(both)], only_a, tuple(left.values())


def _of(run: Run, variant: str | None) -> tuple[Result, ...]:
    return tuple(r for r in in_plan_order(run) if variant in (None, r.variant))


def _inside(run: Run, before: Result, after: Result, headline: Headline) -> Pair:
    """Two variants of one run share rounds: the verdict of the Bench page (metrics.winner)."""
    time, other = figure_of(after.timing, headline), figure_of(before.timing, headline)
    why = reason_against(run, before, run, after, headline, one_run=True)
    if why is not None or time is None or other is None:
        return Pair(before, after, "not comparable", None, None, why or _no_time(other, headline), shared=True)
    base, again = _aa(run, before.problem, headline)
    found = winner.compared(time, other, base, again)
    return Pair(before, after, found.kind, found.ratio, found.floor, found.reason, shared=True)


def _between(a: Run, b: Run, before: Result, after: Result, headline: Headline) -> Pair:
    """Two runs share no rounds: each side is resampled by itself."""
    time, other = figure_of(after.timing, headline), figure_of(before.timing, headline)
    ratio = None if time is None or other is None else unpaired(time, other)
    alike = same_code(a, before, b, after)
    why = reason_against(a, before, b, after, headline, same_code=alike)
    if why is not None or ratio is None or time is None or other is None:
        return Pair(before, after, "not comparable", ratio, None, why or _no_time(other, headline))
    if alike:
        return Pair(before, after, "same code", ratio, None, SameCode())
    floor = max(_floor(a, before.problem, headline), _floor(b, after.problem, headline))
    found = verdict_between(ratio, floor, fewest_blocks(time, other))
    return Pair(before, after, found.kind, ratio, floor, found.reason)


def _no_time(before: Figure | None, headline: Headline) -> NoTime:
    return NoTime("A" if before is None else "B", headline)


def _over(pair: Pair, noise: float) -> Pair:
    """The pair with the noise between the two runs in its floor too."""
    if pair.kind in ("same code", "not comparable") or pair.ratio is None or noise <= (pair.floor or 0.0):
        return pair
    if pair.ratio.low is None:
        return replace(pair, floor=noise)
    found = judged(pair.ratio, noise, MIN_BLOCKS)
    return replace(pair, kind=found.kind, floor=noise, reason=found.reason)


def _aa(run: Run, problem: Problem, headline: Headline) -> tuple[Figure | None, Figure | None]:
    """The baseline's two series at that problem: the run's live A/A."""
    found = next((r for r in run.results if r.problem == problem and r.variant == run.plan.baseline), None)
    timing = (found.timing if found else None) or Timing()
    return figure_of(timing, headline), timing.again_s if headline == "cold" else timing.again_warm_s


def _floor(run: Run, problem: Problem, headline: Headline) -> float:
    base, again = _aa(run, problem, headline)
    return LEAST_DIFFERENCE if base is None else noise_floor(base, again)


def _low(pair: Pair) -> float:
    return 0.0 if pair.ratio is None or pair.ratio.low is None else pair.ratio.low


def _badness(pair: Pair) -> tuple[bool, int, float]:
    """Broken ones, then verdicts from the largest ratio to the smallest, then the same code, then what is not comparable."""
    group = ("same code", "not comparable").index(pair.kind) + 1 if pair.kind in ("same code", "not comparable") else 0
    return not pair.broken, group, -pair.ratio.estimate if pair.ratio is not None else 0.0
