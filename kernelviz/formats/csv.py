"""CSV: a row a case, the unit in the name of each column, unknown is an empty cell. Samples are left out."""

import csv
import io

from kernelviz.core import Run
from kernelviz.formats.export_format import Export
from kernelviz.tables.column import Value
from kernelviz.tables.records import records

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so is a formula to a spreadsheet, and texts of a run may come from anybody."""


def encode(run: Run) -> bytes:
    """UTF-8, RFC 4180. Without a result: nothing but the names of the columns of a case."""
    rows = records(run)
    columns = list(rows[0]) if rows else ["run", "device", "op", "variant", "time_s"]
    out = io.StringIO(newline="")
    csv.writer(out).writerows([map(_cell, columns), *([_cell(record[name]) for name in columns] for record in rows)])
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: Value) -> str:
    """
    >>> _cell(None), _cell(True), _cell(4.46e-05), _cell("=1+1")
    ('', 'true', '4.46e-05', "'=1+1")
    """
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return "" if value is None else repr(value).lower()


EXPORT = Export(
    name="csv", suffix=".csv", media_type="text/csv", encode=encode, label="CSV, one row per case, without samples"
)
