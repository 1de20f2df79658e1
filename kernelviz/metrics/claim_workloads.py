"""The number of a claim that follows from a run of a workload: a figure, or how many times better it is than another
variant's."""

from dataclasses import dataclass

from kernelviz.core.claim import WorkloadClaimCase, WorkloadTest
from kernelviz.core.workload import Counted, Measured, WorkloadCase, WorkloadResult, WorkloadRun
from kernelviz.metrics.claim_reasons import CaseFailed, NotMeasured, Wrong
from kernelviz.metrics.statistics import Interval
from kernelviz.metrics.workloads import gain


@dataclass(frozen=True, slots=True)
class WorkloadEvidence:
    """A run of a workload, and its id in the store."""

    run_id: str
    run: WorkloadRun

    def result(self, case: WorkloadClaimCase) -> WorkloadResult | None:
        """The result of a case; None if the run has none, or gave it up."""
        result = self.run.result_of(WorkloadCase(workload=case.workload, values=case.values, variant=case.variant))
        return None if result is None or result.given_up else result


def workload_number(
    test: WorkloadTest, evidence: WorkloadEvidence | None
) -> Interval | NotMeasured | CaseFailed | Wrong:
    """The number, or why there is none."""
    cases = [case for case in (test.case, test.over) if case is not None]
    results = [None if evidence is None else evidence.result(case) for case in cases]
    known = [result for result in results if result is not None]
    if evidence is None or len(known) < len(cases):
        return NotMeasured(len(cases) - len(known))
    for result in known:
        if result.failure is not None:
            wrong = result.failure.stage in ("wrong", "impossible")
            return (Wrong if wrong else CaseFailed)(result.case.variant, result.failure)
    values = [result.values.get(test.case.figure) for result in known]
    missing = sum(value is None for value in values)
    if missing or values[0] is None:
        return NotMeasured(missing)
    if test.over is None:
        return _interval(values[0])
    figure = evidence.run.declared.figure_named(test.case.figure)
    compared = None if figure is None else gain(figure, values[0], values[1])
    if compared is None:
        return NotMeasured(len(cases))
    if all(isinstance(value, Counted) for value in values):
        return Interval(compared.ratio.estimate, compared.ratio.estimate, compared.ratio.estimate)
    return compared.ratio


def _interval(value: Measured | Counted) -> Interval:
    """The value with its interval; a counted one is exact."""
    if isinstance(value, Counted):
        return Interval(value.value, value.value, value.value)
    return Interval(value.estimate, value.low, value.high)
