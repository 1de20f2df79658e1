"""A case as one flat record: the columns of a data frame, of CSV and of Parquet, in SI base units as their names say."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from itertools import count

from kernelviz.core.configuration import configuration_text
from kernelviz.core.result import Result
from kernelviz.core.run import Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.figures import host_bound, times_s
from kernelviz.metrics.statistics import Verdict
from kernelviz.metrics.summary import Row, rows
from kernelviz.text.failures import describe_failure
from kernelviz.text.quality import describe_quality_of

Value = str | float | int | bool | None


def records(run: Run) -> list[dict[str, Value]]:
    """A record a case, in plan order; all of them have the same columns."""
    made = [(row.result, _record(run, row)) for row in rows(run, run.environment.roofs)]
    columns = _other_columns(foreign_times.names(run), made[0][1] if made else ())
    return [record | _other_times(result, columns) for result, record in made]


def sizes_in(record: Mapping[str, Value]) -> tuple[str, ...]:
    """The columns of a record that are sizes: those between op and dtype."""
    names = list(record)
    return tuple(names[names.index("op") + 1 : names.index("dtype")])


def _other_columns(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """The columns of another tool's times by their names, each another one.

    >>> _other_columns(("GPU time, cold", "p50", "P50"), ("time_s",))
    {'GPU time, cold': 'other_gpu_time_cold_s', 'p50': 'other_p50_s', 'P50': 'other_p50_2_s'}
    """
    used, columns = set(taken), {}
    for name in names:
        columns[name] = free(f"other_{_word(name)}", used, "_s")
        used.add(columns[name])
    return columns


def _other_times(result: Result, columns: Mapping[str, str]) -> dict[str, Value]:
    """Another tool's times of a case, seconds, by column."""
    times = foreign_times.of_case(result)
    return {column: times[name].estimate if name in times else None for name, column in columns.items()}


def free(name: str, taken: Container[str], unit: str = "") -> str:
    """The name of a column with its unit, numbered where it is taken.

    >>> free("n", ()), free("n", {"n", "n_2"}), free("wait", {"wait_s"}, "_s")
    ('n', 'n_3', 'wait_2_s')
    """
    return next(n for i in count(1) if (n := f"{name}{f'_{i}' if i > 1 else ''}{unit}") not in taken)


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() or "time"


def _sizes(row: Row, taken: Iterable[str]) -> dict[str, Value]:
    """The sizes by their axes; an axis that is called as another column is gets a name of its own."""
    used, sizes = set(taken), dict[str, Value]()
    for axis, size in row.result.problem.sizes.items():
        name = free(f"size_{axis}", used | sizes.keys()) if axis in used or axis in sizes else axis
        sizes[name] = size
    return sizes


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
        "failure_message": str(describe_failure(failure)) if failure else None,
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
        "trust": str(describe_quality_of(result, "cold", run.method.clock)),
        "source_digest": result.source_digest,
        "configuration": configuration_text(result.configuration) if result.configuration else None,
        "tuned_by": result.tuned_by,
    }
    return what | _sizes(row, (*what, *facts)) | facts
