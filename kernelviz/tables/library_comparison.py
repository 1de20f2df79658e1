"""The columns of own variants against libraries: one row for each problem of each card."""

from collections.abc import Sequence

from kernelviz.core import units
from kernelviz.metrics.library_comparison import ComparisonRow, time_s
from kernelviz.tables.column import Column, View
from kernelviz.text import format_problem, format_variant
from kernelviz.text.library_comparison import format_auto_ratio, several_cards
from kernelviz.text.text import Text, join

SPEED = units.Unit(form=".2f", single=lambda value: f"{value:.2f}")
"""How many times as fast, with the digits of the table of docs/kernels.md."""
_FILES_AND_PAGE = View.WIDE | View.RECORD


def page_columns(rows: Sequence[ComparisonRow]) -> list[Column[ComparisonRow]]:
    """The columns; the card only if there are several. The ratio comes first, because the first column stays in place while a
    table is scrolled, and the problem would leave no room for the others on a phone."""
    columns = [column for column in COLUMNS if several_cards(rows) or column.name != "card"]
    return sorted(columns, key=lambda column: column.name != "own_over_library")


def _libraries(row: ComparisonRow) -> Text | None:
    own_s = time_s(row.own)
    if not row.libraries or own_s is None:
        return None
    return join(", ", (Text(f"{r.variant} {(time_s(r) or own_s) / own_s:.2f}") for r in row.libraries))


COLUMNS: tuple[Column[ComparisonRow], ...] = (
    Column("problem", "Problem", "Op, number format, sizes and direction.", units.TEXT,
           lambda r: format_problem(r.problem), _FILES_AND_PAGE, width="large"),
    Column("own_over_library", "Own / library", "Time of the fastest library divided by that of the fastest own variant, cold "
           "caches. Below 1, a library is faster.", SPEED, lambda r: r.ratio, _FILES_AND_PAGE),
    Column("card", "Card", "The GPU of the run.", units.TEXT, lambda r: r.card, _FILES_AND_PAGE),
    Column("auto_over_library", "Auto / library", "The same for the variant that the op's rule chooses.", SPEED,
           lambda r: r.auto_over_library, _FILES_AND_PAGE),
    Column("auto_over_own", "Auto / own", "Time of the fastest own variant divided by that of the chosen one: 1 if the rule "
           "chooses the fastest. Not measured: the run left the chosen variant out.", units.OWN_NUMBER,
           format_auto_ratio, _FILES_AND_PAGE),
    Column("auto", "Auto", "The own variant that a user gets: what the op's rule chooses by sizes, number format and card.",
           units.TEXT, lambda r: r.choice and format_variant(r.choice), _FILES_AND_PAGE),
    Column("own", "Best own", "The fastest correct variant written here (Triton, Gluon, CUDA C++).", units.TEXT,
           lambda r: format_variant(r.own.variant) if r.own else None, _FILES_AND_PAGE),
    Column("library", "Best library", "The fastest correct variant of a library.", units.TEXT,
           lambda r: format_variant(r.library.variant) if r.library else None, _FILES_AND_PAGE),
    Column("own_s", "Own time", "Device time of the best own variant with cold caches.", units.SECONDS, lambda r: time_s(r.own),
           _FILES_AND_PAGE),
    Column("auto_s", "Auto time", "Device time of the chosen variant with cold caches.", units.SECONDS, lambda r: time_s(r.auto),
           _FILES_AND_PAGE),
    Column("library_s", "Library time", "Device time of the best library with cold caches.", units.SECONDS,
           lambda r: time_s(r.library), _FILES_AND_PAGE),
    Column("libraries", "Every library", "Every library with a correct result, and its time divided by that of the best own one.",
           units.TEXT, _libraries, _FILES_AND_PAGE, width="large"),
    Column("roof_fraction", "Of the roof", "Share of the measured roof that the best own variant reaches.", units.SHARE,
           lambda r: r.share, _FILES_AND_PAGE),
    Column("run", "Run", "The run that measured the problem.", units.TEXT, lambda r: r.run_id, _FILES_AND_PAGE),
)  # fmt: skip
