"""A case as one flat record: the columns of a data frame, of CSV and of Parquet, in SI base units as their names say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelviz.core.configured import configuration_text
from kernelviz.core.result import Result, Timing
from kernelviz.core.run import Run
from kernelviz.metrics.figures import host_bound, times_s
from kernelviz.metrics.statistics import Verdict
from kernelviz.metrics.summary import Row, rows
from kernelviz.metrics.trust import trust_words

Value = str | float | int | bool | None


def records(run: Run) -> list[dict[str, Value]]:
    """A record a case, in plan order; all of them have the same columns."""
    others = dict.fromkeys(name for r in run.results for name in _other_times(r))
    return [
        _record(run, row) | {name: _other_times(row.result).get(name) for name in others}
        for row in rows(run, run.environment.roofs)
    ]


def _other_times(result: Result) -> dict[str, float]:
    """Another tool's times of a case, seconds, by column.

    >>> from kernelviz.core.problem import Problem
    >>> from kernelviz.core.result import Figure
    >>> timing = Timing(other_times={"GPU time, cold": Figure(estimate=2e-6)})
    >>> _other_times(Result(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), variant="v", outcome=timing))
    {'other_gpu_time_cold_s': 2e-06}
    """
    timing = result.timing or Timing()
    return {f"other_{_word(name)}_s": figure.estimate for name, figure in timing.other_times.items()}


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() or "time"


def _sizes(row: Row, taken: Iterable[str]) -> dict[str, Value]:
    """The sizes by their axes; an axis that is called as another column is gets a name of its own."""
    names = set(taken)
    return {f"size_{axis}" if axis in names else axis: size for axis, size in row.result.problem.sizes.items()}


def _record(run: Run, row: Row) -> dict[str, Value]:
    result, figure, failure = row.result, row.figure, row.failure
    problem, cost, seen, prepared = result.problem, result.cost, result.conditions, result.preparation
    judged: Verdict | None = row.verdict
    what: dict[str, Value] = {"run": run.id, "device": run.environment.device.name, "op": problem.op}
    facts: dict[str, Value] = {
        "dtype": problem.dtype,
        "compute": problem.compute,
        "direction": problem.direction,
        "data": problem.data,
        "variant": result.variant,
        "backend": result.backend,
        "is_baseline": row.is_baseline,
        "time_s": figure.estimate if figure else None,
        "time_low_s": figure.low if figure else None,
        "time_high_s": figure.high if figure else None,
        "samples": len(figure.samples) if figure and figure.samples is not None else None,
        "bandwidth_bytes_per_s": row.bandwidth_bytes_per_s,
        "rate_flop_per_s": row.rate_flop_per_s,
        "efficiency_fraction": row.efficiency,
        "speed_up": row.speed_up,
        "verdict": judged.word if judged else None,
        "correct": None if result.accuracy is None else result.accuracy.passed,
        "error_of_bound_fraction": None if result.accuracy is None else result.accuracy.worst_of_bound,
        "failure": failure.stage if failure else None,
        "failure_message": failure.message if failure else None,
        "wrong_time_s": row.wrong_figure.estimate if row.wrong_figure else None,
        "work_flop": cost.work_flop if cost else None,
        "read_bytes": cost.read_bytes if cost else None,
        "written_bytes": cost.written_bytes if cost else None,
        "bind_s": prepared.bind_s if prepared else None,
        "first_call_s": prepared.first_call_s if prepared else None,
        "sm_clock_hz": seen.sm_clock_hz if seen else None,
        "power_w": seen.power_w if seen else None,
        "temperature_c": seen.temperature_c if seen else None,
        **{name: time_s for name, time_s in times_s(result).items() if name != "cold_s"},  # that is time_s
        "host_bound": host_bound(result.timing),
        "energy_joules": result.timing.energy.joules if result.timing and result.timing.energy else None,
        "trust": trust_words(result, "cold", run.method.clock),
        "source_digest": result.source_digest,
        "configuration": configuration_text(result.configuration) if result.configuration else None,
        "tuned_by": result.tuned_by,
    }
    return what | _sizes(row, (*what, *facts)) | facts
