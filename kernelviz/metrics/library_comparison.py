"""Comparison of the variants written here with those of libraries and with the measured roof, for each problem of each card."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kernelviz.core import Cost, Device, Failure, Problem, Result, Roof, Run
from kernelviz.core.backends import BACKENDS
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.roofline import bandwidth_bytes_per_s, efficiency, speed_of_light
from kernelviz.metrics.statistics import geometric_mean
from kernelviz.metrics.winner import NEVER_WINNING

OWN = tuple(backend.name for backend in BACKENDS.values() if backend.written_here)
"""Backends of kernels that are written here. Every other backend is a library: torch's own kernels, Inductor's, Liger's."""
EAGER, COMPILED, LIGER = "torch_eager", "torch_compile", "liger"
MOST_SLOWER = 1.03
"""The choice counts as good where it takes at most so many times the time of the best own variant."""
Auto = Callable[[Problem, Device], Sequence[str]]
"""The names of the own variants that a user should get for a problem on a device, the best first (`ops.catalog.choice`)."""


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One problem: the fastest correct variant written here, and the fastest correct variant of a library.

    `ratio`: time of the best library divided by the time of the best own variant, so that 1 or more means that the own variant
    is not slower. `share`: fraction of the measured roof for the problem's read:write mix. Both are None if a side has no
    correct time. `choice`: the name of the variant that the op's rule chooses, None if no rule was asked; `auto`: its result,
    None if it was not measured beside the others or has no correct time. Results of runs that come with the package have the cold
    time and its interval alone; the run `run_id` has all of them.
    """

    problem: Problem
    cost: Cost
    own: Result | None
    library: Result | None
    named: dict[str, Result]
    share: float | None
    card: str
    run_id: str
    choice: str | None = None
    auto: Result | None = None

    @property
    def ratio(self) -> float | None:
        own, library = time_s(self.own), time_s(self.library)
        return None if own is None or library is None else library / own

    @property
    def auto_ratio(self) -> float | None:
        """The time of the best own variant divided by that of the chosen one: 1 if the rule chooses the best."""
        own, auto = time_s(self.own), time_s(self.auto)
        return None if own is None or auto is None else own / auto

    @property
    def auto_over_library(self) -> float | None:
        """The time of the best library divided by that of the chosen variant."""
        auto, library = time_s(self.auto), time_s(self.library)
        return None if auto is None or library is None else library / auto

    @property
    def libraries(self) -> tuple[Result, ...]:
        """Every library's correct result, the fastest first."""
        return tuple(result for result in self.named.values() if result.backend not in OWN)

    def bandwidth(self, result: Result | None) -> float | None:
        """The bytes that the problem needs, divided by the time of this variant, in bytes/s."""
        duration_s = time_s(result)
        return None if duration_s is None else bandwidth_bytes_per_s(self.cost, duration_s)


def time_s(result: Result | None) -> float | None:
    """The cold device time of a correct result."""
    cold = figure_of(result.timing, "cold") if result is not None else None
    return None if cold is None else cold.estimate


def comparison_rows(
    runs: Iterable[Run], roofs: Sequence[Roof] = (), auto: Auto | None = None
) -> tuple[ComparisonRow, ...]:
    """One row for each problem of each card, sorted by op, forward before backward. If a problem was measured again, its last
    result counts, but never one without a library or an own variant in place of one with both.

    A variant that was wrong or impossibly fast at one problem of a run is left out of all problems of that run.
    `roofs`: the roofs to compare with; by default each run's own. `auto`: the rules that choose a variant.
    """
    rows = last_of_each(row for run in runs for row in _rows_of(run, roofs, auto))
    # The sort is stable: the problems of an op stay in the order of their plan.
    return tuple(sorted(rows, key=lambda r: (r.problem.op, r.problem.direction == "backward")))


def _rows_of(run: Run, roofs: Sequence[Roof], auto: Auto | None) -> Iterator[ComparisonRow]:
    wrong = {r.variant for r in run.results if isinstance(r.outcome, Failure) and r.outcome.stage in NEVER_WINNING}
    right = (r for r in run.results if r.variant not in wrong)
    for results in grouped(right, key=lambda r: r.problem.key).values():
        row = _comparison_row(results, roofs or run.environment.roofs, run, auto)
        if row is not None:
            yield row


def last_of_each(rows: Iterable[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    """The last row of each problem of each card, but never one without a library or an own variant in place of one with both."""
    last: dict[tuple[str, str], ComparisonRow] = {}
    for row in rows:
        place = (row.card, row.problem.key)
        if row.ratio is not None or place not in last or last[place].ratio is None:
            last[place] = row
    return tuple(last.values())


def misses_first(rows: Iterable[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    """The rows by the ratio of own and library, the lowest first, and those without a ratio last."""
    return tuple(sorted(rows, key=lambda row: math.inf if row.ratio is None else row.ratio))


def _comparison_row(
    results: Sequence[Result], roofs: Sequence[Roof], run: Run, auto: Auto | None
) -> ComparisonRow | None:
    cost = next((r.cost for r in results if r.cost is not None), None)
    if cost is None:
        return None
    timed = sorted((r for r in results if time_s(r) is not None), key=lambda r: time_s(r) or math.inf)
    own = next((r for r in timed if r.backend in OWN), None)
    library = next((r for r in timed if r.backend not in OWN), None)
    device = run.environment.device
    choice = None if auto is None else _chosen(auto(results[0].problem, device), results)
    return ComparisonRow(
        problem=results[0].problem,
        cost=cost,
        own=own,
        library=library,
        named={r.variant: r for r in timed},
        share=efficiency(speed_of_light(own.problem, own.cost, roofs), figure_of(own.timing, "cold")) if own else None,
        card=device.name,
        run_id=run.id,
        choice=choice,
        auto=next((r for r in timed if r.variant == choice), None),
    )


def _chosen(names: Sequence[str], results: Sequence[Result]) -> str | None:
    """The first of these variants that the run did not find to be unavailable."""
    outcomes = {r.variant: r.outcome for r in results}

    def unavailable(name: str) -> bool:
        outcome = outcomes.get(name)
        return isinstance(outcome, Failure) and outcome.stage == "unavailable"

    return next((name for name in names if not unavailable(name)), None)


def mean_ratio(rows: Iterable[ComparisonRow]) -> float | None:
    """The geometric mean of the known ratios.

    >>> mean_ratio([]) is None
    True
    """
    return geometric_mean([row.ratio for row in rows if row.ratio])


@dataclass(frozen=True, slots=True)
class AutoSummary:
    """Problems with a time of the variant that the rules choose, how many are near the best own one, and the lowest ratio."""

    problems: int
    as_fast: int
    lowest: float | None

    @classmethod
    def of(cls, rows: Iterable[ComparisonRow]) -> "AutoSummary":
        """Of all rows whose choice has a correct time.

        >>> AutoSummary.of([])
        AutoSummary(problems=0, as_fast=0, lowest=None)
        """
        ratios = [row.auto_ratio for row in rows if row.auto_ratio is not None]
        return cls(len(ratios), sum(ratio >= 1 / MOST_SLOWER for ratio in ratios), min(ratios, default=None))
