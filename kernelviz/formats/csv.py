"""CSV: one row for each case, units in the names of the columns. An unknown value is an empty cell. Samples are left out."""

import csv
import io
from collections.abc import Sequence

from kernelviz.core import Roof, Run
from kernelviz.formats.export_format import Export
from kernelviz.tables.column import Value
from kernelviz.tables.records import records

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins with one of these for a formula, and the texts of a run may come from anybody."""


def encode(run: Run, roofs: Sequence[Roof] | None = None) -> bytes:
    """UTF-8, RFC 4180, with shares of these roofs or of the run's own.

    A run without a result has only the names of the columns.
    """
    rows = records(run, roofs)
    columns = list(rows[0]) if rows else ["run", "device", "op", "variant", "time_s"]
    out = io.StringIO(newline="")
    csv.writer(out).writerows([map(cell, columns), *([cell(record[name]) for name in columns] for record in rows)])
    return out.getvalue().encode("utf-8", "replace")


def cell(value: Value) -> str:
    """
    >>> cell(None), cell(True), cell(4.46e-05), cell("=1+1")
    ('', 'true', '4.46e-05', "'=1+1")
    """
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return "" if value is None else repr(value).lower()


EXPORT = Export(
    name="csv",
    suffix=".csv",
    media_type="text/csv",
    encode=encode,
    encode_with_roofs=encode,
    label="CSV, one row per case, without samples",
)
