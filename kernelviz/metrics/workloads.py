"""What follows from runs of workloads: gains over the baseline, verdicts by intervals, the best variant, and comparisons.

A workload is compared case by case: the same workload at the same values of its axes. A verdict is about the headline figure and
follows the rules for two times (`metrics.verdicts`); a figure of which more is better enters as its inverse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelviz.core import Block, Figure
from kernelviz.core.workload import (
    AxisValue,
    Counted,
    Measured,
    WorkloadCase,
    WorkloadFigure,
    WorkloadResult,
    WorkloadRun,
    WorkloadValue,
)
from kernelviz.metrics.statistics import Interval, opposed, unpaired
from kernelviz.metrics.verdicts import Verdict, noise_floor, verdict, verdict_apart

LEAST_APART = 0.05
"""By less, the ratio of the two medians is no objection to a gain."""
SEEN_APART = 0.01
"""A reader who divides the two medians that are shown sees a larger difference from the gain."""


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times better a value is than that of the baseline; above 1 is better (shorter, smaller, or more where more is
    better). `verdict`: None for counted values, and where there is no interval to judge by. `of_values`: the same for the two
    medians that are shown. `within_rounds`: `ratio` is the median of the ratios within rounds, not the ratio of two medians."""

    ratio: Interval
    verdict: Verdict | None
    of_values: float | None = None
    within_rounds: bool = False

    @property
    def apart(self) -> bool:
        """Whether the ratio of the two medians is outside of the interval that the ratios within rounds give. The interval was
        widened to contain it then, so that it is an end of it.

        >>> rounds = Gain(Interval(0.65, 0.23, 1.26), None, of_values=0.23, within_rounds=True)
        >>> rounds.apart, replace(rounds, of_values=0.7).apart
        (True, False)
        """
        low, high = self.ratio.low, self.ratio.high
        if not self.within_rounds or self.of_values is None or low is None or high is None:
            return False
        outside = self.of_values <= low * (1 + 1e-9) or self.of_values >= high * (1 - 1e-9)
        return outside and abs(self.of_values / self.ratio.estimate - 1) > LEAST_APART

    @property
    def seen_apart(self) -> bool:
        """Whether the ratio of the two medians is another number than the gain for a reader who divides them.

        >>> rounds = Gain(Interval(3.4, 2.7, 3.6), None, of_values=3.31, within_rounds=True)
        >>> rounds.seen_apart, replace(rounds, of_values=3.41).seen_apart, replace(rounds, of_values=None).seen_apart
        (True, False, False)
        """
        return self.of_values is not None and abs(self.of_values / self.ratio.estimate - 1) > SEEN_APART


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """A case of a run. `result`: None if it has none yet. `gains`: by the name of the figure; empty for the baseline itself, for
    failed cases, and for figures of which neither direction is better. `floor`: the noise floor of the headline figure at this
    point, a fraction; None without a second series of the baseline."""

    case: WorkloadCase
    caption: str
    idea: str
    is_baseline: bool
    result: WorkloadResult | None
    gains: Mapping[str, Gain]
    floor: float | None = None
    best: bool = False

    @property
    def usable(self) -> bool:
        """Whether it has values that may be compared."""
        return self.result is not None and self.result.failure is None

    def value(self, figure: str) -> WorkloadValue | None:
        """The value of a figure; None if it is not known. That of a failed case is kept with the case, but is not given here."""
        return self.result.values.get(figure) if self.result is not None and self.usable else None


def number(value: WorkloadValue | None) -> float | None:
    """The estimate, or the counted value; None if unknown."""
    return None if value is None else value.estimate if isinstance(value, Measured) else value.value


def interval_of(value: WorkloadValue | None) -> tuple[float | None, float | None]:
    """The ends of the interval; None where there is none."""
    return (value.low, value.high) if isinstance(value, Measured) else (None, None)


def as_figure(value: Measured, *, inverse: bool = False, again: bool = False) -> Figure | None:
    """The samples as those of a time, a block for each, so that the rules for times apply. `inverse`: of a rate. `again`: the
    second series. None if a sample is not above zero.

    >>> as_figure(Measured(estimate=2.0, samples=(2.0, 4.0), rounds=(0, 1)), inverse=True).samples
    (0.5, 0.25)
    """
    samples = value.again if again else value.samples
    if not samples or min(samples) <= 0:
        return None
    rounds: Sequence[int | None] = value.rounds if len(value.rounds) == len(samples) else (None,) * len(samples)
    times = tuple(1 / s for s in samples) if inverse else samples
    blocks = tuple(Block(size=1, started_s=float(i), round=r) for i, r in enumerate(rounds))
    ends = (value.low, value.high)
    low, high = ends if not inverse else tuple(None if end is None or end <= 0 else 1 / end for end in reversed(ends))
    estimate = 1 / value.estimate if inverse and value.estimate > 0 else value.estimate
    return Figure(estimate=estimate, low=low, high=high, samples=times, blocks=blocks)


def gain(figure: WorkloadFigure, value: WorkloadValue | None, base: WorkloadValue | None) -> Gain | None:
    """How many times better a value is than the baseline's, in the same run; None where that cannot be said. A counted fraction
    or number, such as an error, has none: rounding in another format is no gain of 1e-5."""
    small = figure.origin == "counted" and figure.unit in ("fraction", "number")
    if figure.better == "neither" or small or value is None or base is None:
        return None
    inverse = figure.better == "higher"
    if isinstance(value, Measured) and isinstance(base, Measured):
        return _measured_gain(value, base, inverse=inverse, paired=bool(value.rounds and base.rounds))
    first, second = number(base), number(value)
    if first is None or second is None or first <= 0 or second <= 0:
        return None
    ratio = first / second
    return Gain(Interval(1 / ratio if inverse else ratio, None, None), None)


def _measured_gain(value: Measured, base: Measured, *, inverse: bool, paired: bool) -> Gain | None:
    time, other = as_figure(value, inverse=inverse), as_figure(base, inverse=inverse)
    if time is None or other is None:
        return None
    judged = (
        verdict(time, other, as_figure(base, inverse=inverse, again=True)) if paired else verdict_apart(time, other)
    )
    if judged.ratio is None:
        judged, paired = verdict_apart(time, other), False
    ratio, within_rounds = judged.ratio, paired
    if ratio is None:
        return None
    if judged.kind == "unclear" and opposed(ratio.estimate, time.estimate / other.estimate):
        # Beside other work on a CPU, rounds said 0.87 times as good while the two values that are shown said 1.29.
        ratio, within_rounds = unpaired(time, other), False
    return Gain(ratio.inverse(), judged, of_values=other.estimate / time.estimate, within_rounds=within_rounds)


def rows(run: WorkloadRun, *, point: str | None = None) -> tuple[WorkloadRow, ...]:
    """The cases of a run in the order of its plan, or those at one point."""
    results = {result.case.key: result for result in run.results}
    variants = {variant.name: variant for variant in run.declared.variants}
    calculated = []
    for case in run.plan.cases:
        if point is not None and case.point != point:
            continue
        result = results.get(case.key)
        declared = variants.get(case.variant)
        gains = _gains(run, case, result, results)
        calculated.append(
            WorkloadRow(
                case=case,
                caption=declared.caption if declared else "",
                idea=declared.idea if declared else "",
                is_baseline=case.variant == run.plan.baseline,
                result=result,
                gains=gains,
                floor=_floor(run, case, gains, results),
            )
        )
    return _with_best(run, calculated)


def _gains(
    run: WorkloadRun, case: WorkloadCase, result: WorkloadResult | None, results: Mapping[str, WorkloadResult]
) -> dict[str, Gain]:
    baseline = WorkloadCase(workload=case.workload, values=case.values, variant=run.plan.baseline)
    base = results.get(baseline.key)
    if result is None or result.failure or base is None or base.failure or case.variant == run.plan.baseline:
        return {}
    gains = {f.name: gain(f, result.values.get(f.name), base.values.get(f.name)) for f in run.declared.figures}
    return {name: one for name, one in gains.items() if one is not None}


def _floor(
    run: WorkloadRun, case: WorkloadCase, gains: Mapping[str, Gain], results: Mapping[str, WorkloadResult]
) -> float | None:
    """The noise floor that the verdict on the headline uses, or that the baseline itself has."""
    headline = run.declared.headline
    judged = gains[headline.name].verdict if headline.name in gains else None
    if judged is not None:
        return judged.floor
    base = results.get(WorkloadCase(workload=case.workload, values=case.values, variant=run.plan.baseline).key)
    value = None if base is None or base.failure is not None else base.values.get(headline.name)
    if not isinstance(value, Measured) or not value.again or case.variant != run.plan.baseline:
        return None
    time, again = (as_figure(value, inverse=headline.better == "higher", again=of) for of in (False, True))
    return None if time is None else noise_floor(time, again)


def _with_best(run: WorkloadRun, calculated: Sequence[WorkloadRow]) -> tuple[WorkloadRow, ...]:
    """Mark the variant of each point whose headline is best, if it is better than the baseline by its verdict."""
    headline = run.declared.headline
    best: dict[str, WorkloadRow] = {}
    for row in calculated:
        one = row.gains.get(headline.name)
        if one is None or one.verdict is None or one.verdict.kind != "faster":
            continue
        known = best.get(row.case.point)
        if known is None or one.ratio.estimate > known.gains[headline.name].ratio.estimate:
            best[row.case.point] = row
    chosen = {id(row) for row in best.values()}
    return tuple(replace(row, best=id(row) in chosen) for row in calculated)


def points(run: WorkloadRun) -> dict[str, dict[str, AxisValue]]:
    """The points of a run (values of the axes) by their key, in the order of the plan."""
    return {case.point: case.values for case in run.plan.cases}


def varying_axes(run: WorkloadRun) -> tuple[str, ...]:
    """The axes that have more than one value in the run."""
    all_values = list(points(run).values())
    return tuple(a.name for a in run.declared.axes if len({str(values[a.name]) for values in all_values}) > 1)


Incomparable = Literal["failed_a", "failed_b", "no_value", "other_kind", "one_measurement", "no_direction"]
"""Why a pair has no verdict: a side failed; a side has no value; one was measured on a GPU and the other on a processor; both are
the same measurement; or of the figure neither direction is better."""


@dataclass(frozen=True, slots=True)
class WorkloadPair:
    """Two results of one case, or of two variants at one point. `ratio`: value of B over value of A. `gain`: of B over A, with
    its verdict by intervals (``faster``: better); None with the reason `why`."""

    point: str
    values: Mapping[str, AxisValue]
    variant_a: str
    variant_b: str
    a: WorkloadResult
    b: WorkloadResult
    figure: WorkloadFigure
    ratio: float | None
    gain: Gain | None
    why: Incomparable | None


@dataclass(frozen=True, slots=True)
class WorkloadComparison:
    """Two runs of one workload, or two variants of one run. `other_device`: they were measured on different devices.
    `other_source`: the code of the workload differs. `other_software`: packages whose versions differ."""

    a: WorkloadRun
    b: WorkloadRun
    pairs: tuple[WorkloadPair, ...]
    other_device: bool
    other_source: bool
    other_software: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs of the headline figure have each verdict: faster (better), slower (worse), same, unclear, none."""
        counts = {"faster": 0, "slower": 0, "same": 0, "unclear": 0, "none": 0}
        for pair in self.pairs:
            if pair.figure.name == self.b.declared.headline.name:
                judged = pair.gain.verdict if pair.gain is not None else None
                counts["none" if judged is None else judged.kind] += 1
        return counts


def compare(
    a: WorkloadRun, b: WorkloadRun, *, variant_a: str | None = None, variant_b: str | None = None
) -> WorkloadComparison:
    """Compare two runs of one workload case by case, or two variants at the points that both have."""
    one_run = a.id == b.id and a.created_at == b.created_at
    of_a = {(r.case.point, r.case.variant): r for r in a.results if not r.given_up}
    pairs: list[WorkloadPair] = []
    for after in b.results:
        if after.given_up or (variant_b is not None and after.case.variant != variant_b):
            continue
        before = of_a.get((after.case.point, variant_a if variant_a is not None else after.case.variant))
        if before is None:
            continue
        known = before.values.keys() | after.values.keys()
        figures = [f for f in b.declared.figures if f.name in known or f.headline]
        pairs += [_pair(a, before, b, after, figure, one_run=one_run) for figure in figures]
    first, second = a.environment, b.environment
    packages = sorted(first.versions.keys() | second.versions.keys())
    digests = [{r.source_digest for r in run.results} for run in (a, b)]
    return WorkloadComparison(
        a=a,
        b=b,
        pairs=tuple(pairs),
        other_device=[d.uuid for d in a.devices] != [d.uuid for d in b.devices],
        other_source=not one_run and digests[0] != digests[1],
        other_software=tuple(p for p in packages if first.versions.get(p) != second.versions.get(p)),
    )


def _pair(
    a: WorkloadRun,
    before: WorkloadResult,
    b: WorkloadRun,
    after: WorkloadResult,
    figure: WorkloadFigure,
    *,
    one_run: bool,
) -> WorkloadPair:
    first, second = before.values.get(figure.name), after.values.get(figure.name)
    calculated: Gain | None = None
    ratio: float | None = None
    why = _why_not(a, before, b, after, figure)
    if why in (None, "no_direction", "other_kind"):
        low, high = number(first), number(second)
        ratio = high / low if low and high is not None else None
    if why is None:
        calculated = _gain_of_pair(figure, second, first, one_run=one_run)
    return WorkloadPair(
        point=after.case.point,
        values=after.case.values,
        variant_a=before.case.variant,
        variant_b=after.case.variant,
        a=before,
        b=after,
        figure=figure,
        ratio=ratio,
        gain=calculated,
        why=why,
    )


def _gain_of_pair(
    figure: WorkloadFigure, value: WorkloadValue | None, base: WorkloadValue | None, *, one_run: bool
) -> Gain | None:
    if one_run or not (isinstance(value, Measured) and isinstance(base, Measured)):
        return gain(figure, value, base)
    return _measured_gain(value, base, inverse=figure.better == "higher", paired=False)


def _why_not(
    a: WorkloadRun, before: WorkloadResult, b: WorkloadRun, after: WorkloadResult, figure: WorkloadFigure
) -> Incomparable | None:
    if before.failure is not None:
        return "failed_a"
    if after.failure is not None:
        return "failed_b"
    first, second = before.values.get(figure.name), after.values.get(figure.name)
    if first is None or second is None:
        return "no_value"
    measured = not isinstance(first, Counted) and not isinstance(second, Counted)
    if measured and a.devices[0].kind != b.devices[0].kind:
        return "other_kind"
    if measured and before == after:
        return "one_measurement"
    return "no_direction" if figure.better == "neither" else None
