"""How the configuration that was tuned for one shape does at another one: the transfer matrix of a variant.

Each cell is the time, at shape B, of the configuration that is best for shape A, divided by the time of the configuration that
is best for B. Both times come from one run that measured both at B: the tuning of B, or a run made for the purpose. A pair that
no run has measured is unknown, never interpolated. Only tunings of the same code on the same device are in a matrix."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelviz.core import Failure, Problem, Result, Run, Span, Tuning
from kernelviz.core.configuration import configured_name
from kernelviz.core.tuning import tuning_key
from kernelviz.metrics.statistics import ratio_interval
from kernelviz.metrics.tuning import stopped_early

CellState = Literal["same", "measured", "stopped", "failed", "not_measured"]
"""The shape's own configuration, or the same one; measured beside it; the estimate of one block, because it was stopped early
there; no correct time there; nobody has measured it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The configuration of one shape at another one. `ratio`: its time over that of the shape's own configuration; `run_id`:
    the run that measured both; `failure`: why it has no time there."""

    state: CellState
    ratio: Span | None = None
    run_id: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Transfer:
    """The matrix: `cells[a][b]` is the configuration of tuning a at the shape of tuning b. `other_code`: tunings of the same
    variant that are left out, because they were measured with other code."""

    tunings: tuple[Tuning, ...]
    cells: tuple[tuple[Cell, ...], ...]
    other_code: int = 0

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """The pairs that nobody has measured."""
        return tuple(
            (a, b) for a, row in enumerate(self.cells) for b, cell in enumerate(row) if cell.state == "not_measured"
        )


def comparable(chosen: Tuning, stored: Sequence[Tuning]) -> tuple[tuple[Tuning, ...], int]:
    """The tunings whose configurations can be compared with those of `chosen`: same variant, op, number format, direction and
    device, and the same code; the smallest shape first. Also how many others there are that differ only in their code."""
    alike = [t for t in stored if _family(t) == _family(chosen)]
    if chosen.source_digest is None:  # nobody knows whether the code is the same
        return (chosen,), len([t for t in alike if t.key != chosen.key])
    same = [t for t in alike if t.source_digest == chosen.source_digest]
    ordered = sorted(same, key=lambda t: tuple(t.problem.sizes.values()))
    return tuple(ordered), len(alike) - len(same)


def _family(tuning: Tuning) -> tuple[object, ...]:
    p = tuning.problem
    return (tuning.device_uuid, tuning.variant, p.op, p.dtype, p.compute, p.direction, tuple(p.sizes))


def name_of(tuning: Tuning) -> str:
    """The name of the variant with the configuration of a tuning."""
    return configured_name(tuning.variant, tuning.configuration)


def transfer(tunings: Sequence[Tuning], runs: Callable[[Problem], Sequence[Run]], other_code: int = 0) -> Transfer:
    """The matrix of these tunings. `runs`: those that have measured configurations at a problem, the best source first."""
    by_shape = {tuning_key(t.problem): runs(t.problem) for t in tunings}
    cells = tuple(tuple(_cell(a, b, by_shape[tuning_key(b.problem)]) for b in tunings) for a in tunings)
    return Transfer(tuple(tunings), cells, other_code)


def _cell(of: Tuning, at: Tuning, runs: Sequence[Run]) -> Cell:
    if of.configuration == at.configuration:
        return Cell("same", Span(estimate=1.0), at.run_id)
    failed: Cell | None = None
    for run in runs:
        results = _results_at(run, at)
        one, best = results.get(name_of(of)), results.get(name_of(at))
        if one is None or best is None or _figure(best) is None:
            continue
        if isinstance(one.outcome, Failure):
            failed = failed or Cell("failed", None, run.id, one.outcome)
        elif (ratio := _ratio(one, best)) is not None:
            stopped = stopped_early(one) is not None or stopped_early(best) is not None
            return Cell("stopped" if stopped else "measured", ratio, run.id)
    return failed or Cell("not_measured")


def _results_at(run: Run, tuning: Tuning) -> Mapping[str, Result]:
    """The results of that code at the shape of the tuning, whatever its inputs hold. Cancelled cases are no results."""
    key = tuning_key(tuning.problem)
    return {
        r.variant: r
        for r in run.results
        if tuning_key(r.problem) == key and r.source_digest == tuning.source_digest and not r.given_up
    }


def _figure(result: Result) -> object:
    return result.timing.device_cold_s if result.timing is not None else None


def _ratio(one: Result, best: Result) -> Span | None:
    """The time of the one over the other: in shared rounds if there are any, else of both times, without an interval."""
    time = one.timing.device_cold_s if one.timing is not None else None
    other = best.timing.device_cold_s if best.timing is not None else None
    if time is None or other is None:
        return None
    interval, _ = ratio_interval(time, other)
    if interval is None:
        return Span(estimate=time.estimate / other.estimate)
    return Span(estimate=interval.estimate, low=interval.low, high=interval.high)
