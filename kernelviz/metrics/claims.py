"""The verdict on a published claim: the number that follows from results, compared with the published one.

A number of the source may be missed by its tolerance (`core.claim.Published.tolerance`). ``at_least`` holds if the whole 95 %
interval is above the lower limit, ``at_most`` if it is below the upper one, ``about`` if it is between both; if all of it
is on the other side, the claim does not hold, otherwise it is unclear. ``above`` takes the verdict on two times
(metrics.verdicts). A number whose measurement is suspect (metrics.quality), or whose interval is wider than MOST_HALF_WIDTH,
decides nothing: the claim is unclear, however far the number is from the published one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, assert_never

from kernelviz.core import Failure, Figure, FigureName, Result, Run
from kernelviz.core.claim import (
    ArithmeticTest,
    CaseTest,
    Claim,
    DataSheetTest,
    MemoryTest,
    NoTest,
    Published,
    RatioTest,
    RoofTest,
    TimeTest,
    WorkloadTest,
)
from kernelviz.metrics.absences import FIELDS
from kernelviz.metrics.claim_limits import compare
from kernelviz.metrics.claim_reasons import (
    CaseFailed,
    ClaimReason,
    ClaimVerdict,
    Decided,
    MemoryUnknown,
    NeedsWork,
    NoDataSheet,
    NotCalibrated,
    NotMeasured,
    Obstacle,
    Unreliable,
    WithoutInterval,
    Wrong,
)
from kernelviz.metrics.claim_workloads import WorkloadEvidence, workload_number
from kernelviz.metrics.comparability import one_run
from kernelviz.metrics.figures import Headline, again_of, figure_of
from kernelviz.metrics.quality import PartName, Quality, quality_of_figure
from kernelviz.metrics.statistics import LEAST_DIFFERENCE, MIN_BLOCKS, Interval, ratio_interval, unpaired
from kernelviz.metrics.verdict_reasons import FewSharedRounds, NoSharedRounds
from kernelviz.metrics.verdicts import Verdict, judged_as_launched
from kernelviz.metrics.winner import NEVER_WINNING, compared

_HEADLINES: Mapping[str, Headline] = {"cold": "cold", "warm": "warm"}
"""The figures with a second series of the baseline, and so with a noise floor of their own."""
_JUDGED_OTHERWISE: frozenset[PartName] = frozenset({"interval"})
"""Parts of the quality that have reasons of their own: a time without an interval."""
Basis = Literal["measurement", "roof", "data_sheet", "arithmetic", "none"]
"""What a claim is tested by: measured cases, a calibration of the device, a data sheet, a calculation, or nothing here."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A result of a case, and the run that it is of."""

    run: Run
    result: Result


@dataclass(frozen=True, slots=True)
class Scale:
    """By what a number of the source's card is multiplied to be one of this card: the ratio of the data sheets."""

    by: str
    from_card: str
    to_card: str
    factor: float


@dataclass(frozen=True, slots=True)
class CaseQuality:
    """The measurement quality of a time that counts for a claim."""

    variant: str
    quality: Quality


@dataclass(frozen=True, slots=True)
class Assessment:
    """A claim with its verdict. `measured`: the number here, in the unit of the claim; None without one. `expected`: the
    published number, converted to this card by `scale` if there is one. `fastest`: of a ratio, the variant that `case` was
    compared with. `run_ids`: of the runs whose results were used. `qualities`: of the times that count, in the order of the
    cases. `device`: its name.
    """

    claim: Claim
    verdict: ClaimVerdict
    reason: ClaimReason
    expected: float
    measured: Interval | None = None
    scale: Scale | None = None
    fastest: str | None = None
    run_ids: tuple[str, ...] = ()
    qualities: tuple[CaseQuality, ...] = ()
    device: str = ""

    @property
    def basis(self) -> Basis:
        """What the claim is tested by."""
        match self.claim.test:
            case TimeTest() | RatioTest() | MemoryTest() | WorkloadTest():
                return "measurement"
            case RoofTest():
                return "roof"
            case DataSheetTest():
                return "data_sheet"
            case ArithmeticTest():
                return "arithmetic"
            case NoTest():
                return "none"
            case _ as unknown:
                assert_never(unknown)

    @property
    def by_measurement(self) -> bool:
        """Whether the verdict is about the device: neither a data sheet nor arithmetic."""
        return self.basis not in ("data_sheet", "arithmetic")

    @property
    def other_card(self) -> str | None:
        """The device of the source, if it is another one and the number stays as it was published; None else."""
        there, stays = self.claim.published_on, self.scale is None or self.scale.factor == 1.0
        return there if stays and there and self.device not in ("", there) else None

    @property
    def unconverted(self) -> bool:
        """Whether the claim asks for the number of this card, which is unknown because a data sheet is missing."""
        scaled = self.claim.scaled_by is not None and isinstance(self.claim.test, TimeTest | RoofTest)
        return scaled and self.scale is None and self.other_card is not None

    @property
    def verdict_by_number(self) -> ClaimVerdict | None:
        """The verdict that the number alone gives, as if the result were right; None without a number or a limit."""
        if self.measured is None or self.claim.direction == "above":
            return None
        return compare(self.claim, self.expected, self.measured)[0]

    @property
    def ratio(self) -> Interval | None:
        """The number here over the expected one."""
        if self.measured is None:
            return None
        low, high = self.measured.low, self.measured.high
        return Interval(
            self.measured.estimate / self.expected,
            None if low is None else low / self.expected,
            None if high is None else high / self.expected,
        )

    @property
    def measurable(self) -> bool:
        """Whether its cases can be measured on the device; a case that failed can be measured again."""
        return bool(self.claim.cases or self.claim.workload_cases) and (
            self.verdict != "cannot be tested here" or bool(self.run_ids)
        )

    @property
    def wrong(self) -> bool:
        """Whether the number is that of a wrong result."""
        return isinstance(self.reason, Wrong)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a device gives besides results: `data_sheet` and `roof` return the value of a test, None where there is none. `scale`:
    the conversion of a published number to this device; None: as it stands. `device`: its name. `workload`: the newest run
    with all cases of a claim about a workload."""

    data_sheet: Callable[[DataSheetTest], float | None]
    roof: Callable[[RoofTest], Interval | None]
    scale: Scale | None = None
    obstacle: Obstacle | None = None
    results: Mapping[str, Evidence] = field(default_factory=dict)
    workload: WorkloadEvidence | None = None
    device: str = ""


def assess(claim: Claim, facts: Facts) -> Assessment:
    """The verdict on a claim. `facts.results`: of its cases that were measured, by the key of the case."""
    scale = facts.scale
    expected = claim.published.value * (scale.factor if scale is not None else 1.0)
    assessed = partial(Assessment, claim, expected=expected, scale=scale, device=facts.device)
    if facts.obstacle is not None:
        return assessed("cannot be tested here", facts.obstacle)
    match claim.test:
        case NoTest(takes=takes):
            return assessed("cannot be tested here", NeedsWork(takes))
        case ArithmeticTest() as test:
            return _compared(assessed, claim, expected, _exact(test.value))
        case DataSheetTest() as test:
            stated = facts.data_sheet(test)
            if stated is None:
                return assessed("cannot be tested here", NoDataSheet(test.card))
            return _compared(assessed, claim, expected, _exact(stated))
        case RoofTest() as test:
            roof = facts.roof(test)
            if roof is None:
                return assessed("not measured yet", NotCalibrated())
            return _compared(assessed, claim, expected, roof)
        case WorkloadTest() as test:
            assessed = partial(assessed, run_ids=() if facts.workload is None else (facts.workload.run_id,))
            match workload_number(test, facts.workload):
                case Interval() as number:
                    return _compared(assessed, claim, expected, number)
                case Wrong() as reason:
                    return assessed("wrong result", reason)
                case NotMeasured() as reason:
                    return assessed("not measured yet", reason)
                case reason:
                    return assessed("cannot be tested here", reason)
        case TimeTest() | RatioTest() | MemoryTest() as test:
            return _of_cases(assessed, claim, test, expected, facts.results)


_Assessed = Callable[..., Assessment]


def _exact(value: float) -> Interval:
    return Interval(value, value, value)


def _of_cases(
    assessed: _Assessed, claim: Claim, test: CaseTest, expected: float, results: Mapping[str, Evidence]
) -> Assessment:
    missing = sum(case.key not in results or results[case.key].result.given_up for case in claim.cases)
    if missing:
        return assessed("not measured yet", NotMeasured(missing))
    of_claim = [results[case.key] for case in claim.cases]
    assessed = partial(assessed, run_ids=tuple(dict.fromkeys(e.run.id for e in of_claim)))
    broken = next((e.result for e in of_claim if _timed(e.result) is None), None)
    if broken is not None and isinstance(broken.outcome, Failure):
        return assessed("cannot be tested here", CaseFailed(broken.variant, broken.outcome))
    if isinstance(test, MemoryTest):
        return _of_memory(assessed, claim, test, expected, of_claim[0].result)
    wrong = next((w for e in of_claim if (w := _wrong(e.result)) is not None), None)
    # A wrong result has its cold time only: other figures are measured of correct variants.
    names: list[FigureName] = ["cold" if wrong is not None else case.figure for case in claim.cases]
    figures = [_figure(e.result, name) for name, e in zip(names, of_claim, strict=True)]
    if any(figure is None for figure in figures):
        return assessed("not measured yet", NotMeasured(sum(figure is None for figure in figures)))
    times = [figure for figure in figures if figure is not None]
    qualities = tuple(
        CaseQuality(e.result.variant, quality_of_figure(e.result, time, name, e.run.method.clock))
        for name, e, time in zip(names, of_claim, times, strict=True)
    )
    assessed = partial(assessed, qualities=qualities)
    if isinstance(test, TimeTest):
        number = _from_time(claim.published, of_claim[0].result, times[0])
        verdict = None
    else:
        number, verdict, fastest = _gain(test, of_claim, times)
        assessed = partial(assessed, fastest=fastest)
    if wrong is not None:
        return assessed("wrong result", wrong, measured=number)
    if verdict is not None and verdict.ratio is None:
        return assessed("unclear", WithoutInterval(verdict.reason), measured=number)
    # The rule for two times of shared rounds says itself whether two levels decide.
    together = verdict is not None and all(one_run(of_claim[0].run, e.run) for e in of_claim)
    unreliable = _unreliable(qualities, _JUDGED_OTHERWISE | {"stability"} if together else _JUDGED_OTHERWISE)
    if unreliable is not None:
        return assessed("unclear", unreliable, measured=number)
    if claim.direction == "above":
        return _decided(assessed, number, verdict)
    return _compared(assessed, claim, expected, number)


def _timed(result: Result) -> Result | None:
    """The result if it has a time, whether it is correct or not."""
    outcome = result.outcome
    return None if isinstance(outcome, Failure) and outcome.timing is None else result


def _wrong(result: Result) -> Wrong | None:
    outcome = result.outcome
    if isinstance(outcome, Failure) and outcome.stage in NEVER_WINNING:
        return Wrong(result.variant, outcome)
    return None


def _unreliable(qualities: tuple[CaseQuality, ...], ignored: frozenset[PartName]) -> Unreliable | None:
    """The worst objection to the times; None if none of them is suspect."""
    for one in qualities:
        for part in one.quality.reasons:
            if part.level == "suspect" and part.name not in ignored:
                return Unreliable(one.variant, part)
    return None


def _figure(result: Result, name: str) -> Figure | None:
    timing = result.outcome.timing if isinstance(result.outcome, Failure) else result.outcome
    if name in _HEADLINES:
        return figure_of(timing, _HEADLINES[name])
    figure = None if timing is None else getattr(timing, FIELDS[name])  # type: ignore[index]
    return figure if isinstance(figure, Figure) else None


def _from_time(published: Published, result: Result, time: Figure) -> Interval:
    """A time, or the rate that follows from it, in the unit of the claim."""
    interval = Interval(time.estimate, time.low, time.high)
    if published.unit == "s":
        return interval
    cost = result.cost
    amount = {
        "flop/s": 0 if cost is None else cost.work_flop,
        "B/s": 0 if cost is None else cost.moved_bytes,
        "1/s": result.problem.sizes.get("n", 0),
    }[published.unit]
    per_amount = interval.inverse()
    low, high = per_amount.low, per_amount.high
    return Interval(
        amount * per_amount.estimate, None if low is None else amount * low, None if high is None else amount * high
    )


def _gain(test: RatioTest, of_claim: list[Evidence], times: list[Figure]) -> tuple[Interval, Verdict, str]:
    """How many times as fast the case is as the fastest of the others, the verdict on both times, and that variant."""
    own, own_time = of_claim[0], times[0]
    alternatives = list(zip(test.over, of_claim[1:], times[1:], strict=True))
    right = [one for one in alternatives if _wrong(one[1].result) is None] or alternatives
    _, other, other_time = min(right, key=lambda one: one[2].estimate)
    verdict = _verdict(own, own_time, other, other_time, test.case.figure)
    if verdict.ratio is not None:
        return verdict.ratio.inverse(), verdict, other.result.variant
    return Interval(other_time.estimate / own_time.estimate, None, None), verdict, other.result.variant


def _verdict(own: Evidence, own_time: Figure, other: Evidence, other_time: Figure, figure: str) -> Verdict:
    """The verdict of the time of the case against the other one, by the rule of the page Bench where both share rounds."""
    together = one_run(own.run, other.run) and own.result.problem == other.result.problem
    if together and figure in _HEADLINES:
        headline = _HEADLINES[figure]
        timings = (
            r.timing for r in own.run.results if r.problem == own.result.problem and r.variant == own.run.plan.baseline
        )
        timing = next(timings, None)
        verdict = compared(own_time, other_time, figure_of(timing, headline), again_of(timing, headline))
        if not isinstance(verdict.reason, NoSharedRounds):
            return verdict
    shared, rounds = ratio_interval(own_time, other_time) if together else (None, 0)
    ratio = shared if shared is not None and shared.low is not None else unpaired(own_time, other_time)
    if ratio.low is None:
        return Verdict("unclear", None, LEAST_DIFFERENCE, rounds, FewSharedRounds(rounds, MIN_BLOCKS))
    return judged_as_launched(ratio, LEAST_DIFFERENCE, rounds, own_time, other_time)


def _decided(assessed: _Assessed, number: Interval, verdict: Verdict | None) -> Assessment:
    if verdict is None or verdict.kind == "unclear":
        return assessed("unclear", WithoutInterval(None if verdict is None else verdict.reason), measured=number)
    reason = Decided(verdict.kind, verdict.reason)
    return assessed("holds" if verdict.kind == "faster" else "does not hold", reason, measured=number)


def _of_memory(assessed: _Assessed, claim: Claim, test: MemoryTest, expected: float, result: Result) -> Assessment:
    memory, cost = result.peak_memory, result.cost
    if memory is None or (test.with_inputs and cost is None):
        return assessed("cannot be tested here", MemoryUnknown())
    inputs_bytes = cost.read_bytes if test.with_inputs and cost is not None else 0
    number = _exact(float(inputs_bytes + memory.call_bytes))
    wrong = _wrong(result)
    if wrong is not None:
        return assessed("wrong result", wrong, measured=number)
    return _compared(assessed, claim, expected, number)


def _compared(assessed: _Assessed, claim: Claim, expected: float, number: Interval) -> Assessment:
    verdict, reason = compare(claim, expected, number)
    judged = assessed(verdict, reason, measured=number)
    if judged.unconverted:  # the sources' cards have data sheets, so it is that of this device
        return replace(judged, verdict="cannot be tested here", reason=NoDataSheet(judged.device))
    return judged
