"""Comparison of the variants written here with the libraries' variants and with the measured roof, for each problem."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelviz.core import Cost, Failure, Problem, Result, Roof, Run
from kernelviz.core.backends import BACKENDS
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.roofline import bandwidth_bytes_per_s, efficiency, speed_of_light
from kernelviz.metrics.statistics import geometric_mean
from kernelviz.metrics.winner import NEVER_WINNING

OWN = tuple(backend.name for backend in BACKENDS.values() if backend.written_here)
"""Backends of kernels that are written here. Every other backend is a library: torch's own kernels, Inductor's, Liger's."""
EAGER, COMPILED, LIGER = "torch_eager", "torch_compile", "liger"


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One problem: the fastest correct variant written here, and the fastest correct variant of a library.

    `ratio`: time of the best library divided by the time of the best own variant, so that 1 or more means that the own variant
    is not slower. `share`: fraction of the measured roof for the problem's read:write mix. Both are None if a side has no
    correct time.
    """

    problem: Problem
    cost: Cost
    own: Result | None
    library: Result | None
    named: dict[str, Result]
    share: float | None

    @property
    def ratio(self) -> float | None:
        own, library = time_s(self.own), time_s(self.library)
        return None if own is None or library is None else library / own

    def bandwidth(self, result: Result | None) -> float | None:
        """The bytes that the problem needs, divided by the time of this variant, in bytes/s."""
        duration_s = time_s(result)
        return None if duration_s is None else bandwidth_bytes_per_s(self.cost, duration_s)


def time_s(result: Result | None) -> float | None:
    """The cold device time of a correct result."""
    cold = figure_of(result.timing, "cold") if result is not None else None
    return None if cold is None else cold.estimate


def comparison_rows(runs: Iterable[Run], roofs: Sequence[Roof] = ()) -> tuple[ComparisonRow, ...]:
    """One row for each problem, sorted by op, forward before backward. If a problem was measured again, its last result counts.

    A variant that was wrong or impossibly fast at one problem of a run is left out of all problems of that run.
    `roofs`: the roofs to compare with; by default each run's own.
    """
    rows: dict[str, ComparisonRow] = {}
    for run in runs:
        wrong = {r.variant for r in run.results if isinstance(r.outcome, Failure) and r.outcome.stage in NEVER_WINNING}
        right = (r for r in run.results if r.variant not in wrong)
        for key, results in grouped(right, key=lambda r: r.problem.key).items():
            row = _comparison_row(results, roofs or run.environment.roofs)
            if row is not None:
                rows[key] = row
    # The sort is stable: the problems of an op stay in the order of their plan.
    return tuple(sorted(rows.values(), key=lambda r: (r.problem.op, r.problem.direction == "backward")))


def _comparison_row(results: Sequence[Result], roofs: Sequence[Roof]) -> ComparisonRow | None:
    cost = next((r.cost for r in results if r.cost is not None), None)
    if cost is None:
        return None
    timed = sorted((r for r in results if time_s(r) is not None), key=lambda r: time_s(r) or math.inf)
    own = next((r for r in timed if r.backend in OWN), None)
    library = next((r for r in timed if r.backend not in OWN), None)
    return ComparisonRow(
        problem=results[0].problem,
        cost=cost,
        own=own,
        library=library,
        named={r.variant: r for r in timed},
        share=efficiency(speed_of_light(own.problem, own.cost, roofs), figure_of(own.timing, "cold")) if own else None,
    )


def mean_ratio(rows: Iterable[ComparisonRow]) -> float | None:
    """The geometric mean of the known ratios.

    >>> mean_ratio([]) is None
    True
    """
    return geometric_mean([row.ratio for row in rows if row.ratio])
