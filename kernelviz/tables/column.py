"""A column of a table, and what every renderer needs of a list of columns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from itertools import count
from typing import Any, Generic, Literal, Protocol, TypeVar

from kernelviz.core import Problem, Result, units
from kernelviz.core.units import Unit
from kernelviz.metrics.sweep import varying_axes
from kernelviz.text import Text, format_variant

Value = str | float | int | bool | None
Row = TypeVar("Row")
RowOfColumn = TypeVar("RowOfColumn", contravariant=True)


class OfResult(Protocol):
    """A row of a result."""

    @property
    def result(self) -> Result: ...


ISSUE_HELP = (
    "Rate at equal clock: FLOP/s divided by SMs × FLOP per SM and clock × the SM clock that was measured in the calls. Burst and "
    "sustained load, or two cards, differ in their clock, which this share does not contain."
)
MEMORY_HELP = (
    "Most memory that torch had allocated at once during {}, beside the inputs: outputs, buffers and workspace."
)
ResultRow = TypeVar("ResultRow", bound=OfResult)


class View(Flag):
    """Who shows a column."""

    RECORD = auto()
    """Data frame, CSV and Parquet."""
    WIDE = auto()
    """The page and the offline page."""
    TERMINAL = auto()
    MARKDOWN = auto()
    TIMES_WIDE = auto()
    """The second table of a run, with every figure of every case: on the page and on the offline page."""
    TIMES_NARROW = auto()
    """The same in the terminal."""
    NARROW = TERMINAL | MARKDOWN | TIMES_NARROW
    TIMES = TIMES_WIDE | TIMES_NARROW
    EVERYWHERE = RECORD | WIDE | TERMINAL | MARKDOWN


@dataclass(frozen=True, slots=True)
class Column(Generic[RowOfColumn]):
    """One column: its title, its meaning, and its value in a row, in SI base units; None is unknown.

    `name`: of the column in files and data frames, empty if no file has it. `subject`: follows the title and may come from a
    document (an axis, a variant). `short`: a short form of a long text; narrow tables show only this. `order`: the sort key of
    a text. `width`: of a text on a page. `optional`: the column is left out if no row has a value.
    `half_width`: of a rate, half its interval as a fraction, which says how many digits of a single value are shown.
    """

    name: str
    title: str
    help: str
    unit: Unit
    value: Callable[[RowOfColumn], Value | Text]
    view: View = View.EVERYWHERE
    subject: str = ""
    short: Callable[[RowOfColumn], Text | None] | None = None
    order: Callable[[RowOfColumn], float | None] | None = None
    width: Literal["medium", "large"] | None = None
    optional: bool = False
    half_width: Callable[[RowOfColumn], float | None] | None = None

    @property
    def heading(self) -> str:
        """The title with its subject, without a unit."""
        return " ".join(filter(None, (self.title, self.subject)))

    def read(self, row: RowOfColumn) -> Value:
        """The value in a row, a text as plain characters."""
        value = self.value(row)
        return str(value) if isinstance(value, Text) else value

    def single(self, row: RowOfColumn, missing: str = "–") -> str:
        """One value with a unit of its own, for the narrow tables of the terminal and of Markdown."""
        value = (self.short or self.value)(row)
        if value is None:
            return missing
        if self.half_width is not None:
            return self.unit.single(value, units.digits_of(self.half_width(row)))
        return self.unit.single(value)


@dataclass(frozen=True, slots=True)
class ColumnValues(Generic[Row]):
    """A column over all rows: its heading with the unit, and its values in this unit."""

    column: Column[Row]
    heading: str
    values: list[Value]


def select(columns: Iterable[Column[Row]], rows: Sequence[Row], view: View) -> list[Column[Row]]:
    """The columns that a view shows of these rows."""
    return [c for c in columns if view & c.view and not (c.optional and all(c.value(row) is None for row in rows))]


def evaluate(columns: Iterable[Column[Row]], rows: Sequence[Row]) -> list[ColumnValues[Row]]:
    """The columns with their values: numbers of a column share a unit, and all times of the table share one.

    All headings are different, also if an axis has the name of another column.
    """
    values = [(column, [column.read(row) for row in rows]) for column in columns]
    times = [float(v) for column, of in values if column.unit.scale is None for v in of if v is not None]
    scale_s, time_name = units.common_time_unit(times)
    evaluated: dict[str, ColumnValues[Row]] = {}
    for column, of in values:
        unit = column.unit if column.unit.scale is not None else replace(column.unit, name=time_name, scale=scale_s)
        parts = (", ".join(filter(None, (f"{column.heading}{f' {i}' if i > 1 else ''}", unit.name))) for i in count(1))
        heading = next(h for h in parts if h not in evaluated)
        scaled = [_scaled(value, unit) for value in of]
        if column.unit.rate:
            column = replace(column, unit=column.unit.of_values([v for v in scaled if isinstance(v, float)]))
        evaluated[heading] = ColumnValues(column, heading, scaled)
    return list(evaluated.values())


def _scaled(value: Value, unit: Unit) -> Value:
    return value if unit.scale in (None, 1.0) or value is None else float(value) / float(unit.scale or 1)


VARIANT: Column[OfResult] = Column(
    "variant", "Variant", "Which implementation of the op.", units.TEXT, lambda row: row.result.variant,
    View.RECORD | View.NARROW,
)  # fmt: skip
VARIANT_TEXT: Column[OfResult] = replace(
    VARIANT, name="", value=lambda row: format_variant(row.result.variant), view=View.WIDE | View.TIMES_WIDE
)


def size_columns(
    axes: Iterable[str],
    problem_of: Callable[[Any], Problem] = lambda row: row.result.problem,
    view: View = View.EVERYWHERE,
) -> list[Column[Any]]:
    """A column for the size of each axis."""
    size = units.SIZE
    return [
        Column("", "", "Size of this axis.", size, lambda row, a=axis: problem_of(row).sizes.get(a), view, subject=axis)  # type: ignore[misc]
        for axis in axes
    ]


def axes_of(problems: Sequence[Problem]) -> tuple[str, ...]:
    """The axes that a wide table shows: those with more than one size, else all."""
    return varying_axes(problems) or (tuple(problems[0].sizes) if problems else ())


def leading_axes_of(problems: Sequence[Problem]) -> tuple[str, ...]:
    """The axes that follow the variant: those with more than one size, also where they vary together, and none if all rows have
    one size. Others follow the times.

    >>> p = [Problem(op="attention", sizes={"b": 2**14 // s, "s": s, "d": 64}, dtype="bf16") for s in (512, 1024)]
    >>> axes_of(p), leading_axes_of(p), axes_of(p[:1]), leading_axes_of(p[:1])
    (('b', 's'), ('b', 's'), ('b', 's', 'd'), ())
    """
    return varying_axes(problems)


def merged_size_columns(problems: Sequence[Problem], axes: Iterable[str]) -> list[Column[Any]]:
    """The size columns of a wide table. Axes that have the same size in every row share one: ``h = w``."""
    alike: dict[tuple[int | None, ...], list[str]] = {}
    for axis in axes:
        alike.setdefault(tuple(p.sizes.get(axis) for p in problems), []).append(axis)
    return [replace(size_columns(some[:1])[0], subject=" = ".join(some)) for some in alike.values()]


def select_with_sizes(
    columns: Sequence[Column[ResultRow]], rows: Sequence[ResultRow], view: View, problems: Sequence[Problem] = ()
) -> list[Column[ResultRow]]:
    """The columns that a view shows, with sizes.

    In narrow tables they are before the variant; the heading has the sizes that all `problems` of the plan share. In wide ones
    those that tell rows apart follow the variant, and the others are last, so that a phone shows a time beside the variant.
    """
    selected = select(columns, rows, view)
    if view & View.NARROW:
        return [*size_columns(varying_axes(problems)), *selected]
    present = [row.result.problem for row in rows]
    leading = leading_axes_of(present)
    rest = size_columns(axis for axis in axes_of(present) if axis not in leading)
    return [*selected[:1], *merged_size_columns(present, leading), *selected[1:], *rest]
