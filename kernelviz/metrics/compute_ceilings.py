"""The ceilings of a problem of arithmetic, from the one that is stated to the one that was measured: the data sheet, the issue
rate at the clock that was measured beside the case, and a loop of tensor-core instructions without memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from kernelviz.core import Cost, Device, Figure, Problem, Roof
from kernelviz.metrics.issue_rate import issue_share
from kernelviz.metrics.roof_checks import is_wide
from kernelviz.metrics.roofline import contracts
from kernelviz.metrics.stability import stability

CeilingKind = Literal["data_sheet", "issue_rate", "tensor_loop"]
CEILINGS: tuple[CeilingKind, ...] = get_args(CeilingKind)


@dataclass(frozen=True, slots=True)
class ComputeCeiling:
    """A rate in flop/s, the clock for which it holds (None: unknown), and the share of it that the case reaches."""

    kind: CeilingKind
    precision: str
    rate_flop_per_s: float
    share_fraction: float
    clock_hz: float | None = None


def compute_ceilings(
    problem: Problem, cost: Cost | None, figure: Figure, device: Device, measured: Sequence[Roof], sheet: Sequence[Roof]
) -> tuple[ComputeCeiling, ...]:
    """The ceilings that are known, in the order of CeilingKind. Empty for a problem that is not one of arithmetic, and for a time
    that is not stable. `measured`: roofs of the device. `sheet`: roofs of its data sheet."""
    if cost is None or not cost.work_flop or not contracts(problem, cost) or stability(figure).unstable:
        return ()
    precision, rate = problem.precision, cost.work_flop / figure.estimate

    def of_roof(kind: CeilingKind, roof: Roof | None) -> tuple[ComputeCeiling, ...]:
        value = None if roof is None else roof.rate_flop_per_s
        if roof is None or not value:
            return ()
        return (ComputeCeiling(kind, precision, value, rate / value, roof.clock_hz),)

    promised = next((r for r in sheet if r.rate_flop_per_s and r.precision == precision), None)
    instructions = next((r for r in measured if r.name == "mma" and r.precision == precision and not is_wide(r)), None)
    issue = issue_share(problem, cost, figure, device)
    at_clock = (
        ()
        if issue is None
        else (ComputeCeiling("issue_rate", precision, issue.rate_flop_per_s, issue.fraction, issue.clock_hz),)
    )
    return (*of_roof("data_sheet", promised), *at_clock, *of_roof("tensor_loop", instructions))


def ceiling_of(ceilings: Sequence[ComputeCeiling], kind: CeilingKind) -> ComputeCeiling | None:
    """The ceiling of that kind; None if it is unknown."""
    return next((c for c in ceilings if c.kind == kind), None)
