"""A case as one flat record: the columns of a data frame, of CSV and of Parquet, in SI base units as their names say."""

import re
from collections.abc import Container, Iterable, Mapping
from itertools import count

from kernelviz.core import Result, Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.rows import Row, rows
from kernelviz.tables import cases
from kernelviz.tables.cases import Case
from kernelviz.tables.column import Value, View


def records(run: Run) -> list[dict[str, Value]]:
    """A record a case, in plan order; all of them have the same columns."""
    made = [(row.result, _record(Case(run, row))) for row in rows(run, run.environment.roofs)]
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


def _record(case: Case) -> dict[str, Value]:
    columns = [c for c in cases.COLUMNS if View.RECORD in c.view]
    values = {c.name: c.read(case) for c in columns}
    sizes = _sizes(case.row, values)
    # Sizes stand between op and dtype.
    return {n: v for name in values for n, v in (*(sizes.items() if name == "dtype" else ()), (name, values[name]))}
