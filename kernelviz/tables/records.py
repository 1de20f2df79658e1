"""A case as one flat record: the columns of a data frame, of CSV and of Parquet, in SI base units as their names say."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import count

from kernelviz.core import Result, Roof, Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.rows import rows
from kernelviz.tables import cases
from kernelviz.tables.cases import Case
from kernelviz.tables.column import Value, View


def records(run: Run, roofs: Sequence[Roof] | None = None) -> list[dict[str, Value]]:
    """A record for each case, in plan order; all of them have the same columns. `roofs`: others than those of the run."""
    all_cases = [Case(run, row) for row in rows(run, run.environment.roofs if roofs is None else roofs)]
    records = [_record(case) for case in all_cases]
    columns = _other_columns(foreign_times.names(run), records[0] if records else ())
    return [record | _other_times(case.result, columns) for record, case in zip(records, all_cases, strict=True)]


def sizes_in(record: Mapping[str, Value]) -> tuple[str, ...]:
    """The columns of a record that are sizes: those between op and dtype."""
    names = list(record)
    return tuple(names[names.index("op") + 1 : names.index("dtype")])


def _other_columns(names: Iterable[str], other_names: Iterable[str]) -> dict[str, str]:
    """A column for each time of another tool, by the name of the time; all columns have different names.

    >>> _other_columns(("GPU time, cold", "p50", "P50"), ("time_s",))
    {'GPU time, cold': 'other_gpu_time_cold_s', 'p50': 'other_p50_s', 'P50': 'other_p50_2_s'}
    """
    used, columns = set(other_names), dict[str, str]()
    for name in names:
        identifier = re.sub(r"\W+", "_", name).strip("_").lower() or "time"
        columns[name] = free(f"other_{identifier}", used.union(columns.values()), "_s")
    return columns


def _other_times(result: Result, columns: Mapping[str, str]) -> dict[str, Value]:
    """Another tool's times of a case, seconds, by column."""
    times = foreign_times.of_case(result)
    return {column: times[name].estimate if name in times else None for name, column in columns.items()}


def free(name: str, used: Container[str], unit: str = "") -> str:
    """The name of a column with its unit, and with a number if another column has this name.

    >>> free("n", ()), free("n", {"n", "n_2"}), free("wait", {"wait_s"}, "_s")
    ('n', 'n_3', 'wait_2_s')
    """
    return next(n for i in count(1) if (n := f"{name}{f'_{i}' if i > 1 else ''}{unit}") not in used)


def _record(case: Case) -> dict[str, Value]:
    values = {c.name: c.read(case) for c in cases.COLUMNS if View.RECORD in c.view}
    sizes: dict[str, Value] = {}
    for axis, size in case.result.problem.sizes.items():
        used = values.keys() | sizes.keys()
        sizes[free(f"size_{axis}", used) if axis in used else axis] = size
    fields = list(values.items())
    dtype = list(values).index("dtype")
    return dict([*fields[:dtype], *sizes.items(), *fields[dtype:]])  # The sizes are between op and dtype.
