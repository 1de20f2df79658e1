"""Parquet with one row per case. It contains the whole run, so that a conversion from JSON to Parquet and back loses nothing.

The run without its results is stored as JSON in the metadata of the file, under the key ``kernelviz``. The column ``result``
contains the JSON of each result without the samples. The samples of each time are lists in a column of their own
(``device_cold_s_samples``, …). All other columns are those of a data frame. They are for queries, and `decode` does not read
them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from kernelviz.core import DocumentError, Figure, Run, Timing
from kernelviz.formats import document
from kernelviz.formats.export_format import Export
from kernelviz.formats.import_format import MAX_BYTES, Import
from kernelviz.formats.validation import MAX_CASES
from kernelviz.metrics.rows import in_plan_order
from kernelviz.tables.column import Value
from kernelviz.tables.records import free, records, sizes_in

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = b"kernelviz"
_MAGIC = b"PAR1"
_RESULT = "result"
_SAMPLES = "_samples"
FIGURES = tuple(n for n, hint in get_type_hints(Timing).items() if hint in (Figure, Figure | None))
"""The fields of a timing whose samples have a column."""
_OWN = frozenset({_RESULT, *(figure + _SAMPLES for figure in FIGURES)})
"""The columns that `decode` reads. Any other column with one of these names (of an axis, for example) is renamed."""
_BATCH = 64
MOST_COLUMNS = 2_000
"""A run has about 60, and one for each axis."""
_FLOATS = ("_s", "_fraction", "_hz", "_w", "_c", "_joules", "speed_up")
_WHOLE = ("_bytes", "_flop", "samples", "_calls")
_TRUTHS = ("is_baseline", "correct", "host_bound")


def encode(run: Run) -> bytes:
    """The run as Parquet. Errors: DocumentError, in the same cases as for the native document."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    finite = document.finite_run(run)
    values = document.values_of(msgspec.structs.replace(finite, results=()))
    values["digest"] = _digest(values | {"results": finite.results})
    del values["results"]
    texts: list[str] = []
    samples: list[dict[str, list[float]]] = []
    for result in finite.results:  # one at a time: as plain values, a run of 100,000 cases takes gigabytes
        written = msgspec.to_builtins(result)
        samples.append(_without_samples(written))
        texts.append(msgspec.json.encode(written).decode())
    by_case = {(r.problem.key, r.variant): record for r, record in zip(in_plan_order(run), records(run), strict=True)}
    ordered = [by_case[r.problem.key, r.variant] for r in run.results]
    columns: dict[str, pa.Array] = {}
    if ordered:
        axes, used = sizes_in(ordered[0]), _OWN | ordered[0].keys()
        for name in ordered[0]:
            column = free(f"size_{name}", used | columns.keys()) if name in _OWN else name
            columns[column] = _array([f[name] for f in ordered], _type(name, axes))
    columns[_RESULT] = pa.array(texts, pa.string())
    for figure in FIGURES:
        columns[figure + _SAMPLES] = pa.array([s.get(figure) for s in samples], pa.list_(pa.float64()))
    table = pa.table(columns).replace_schema_metadata({_KEY: msgspec.json.encode(values)})
    out = pa.BufferOutputStream()
    pq.write_table(table, out, compression="zstd", row_group_size=256, write_page_checksum=True)
    return bytes(out.getvalue())


def decode(raw: bytes) -> Run:
    """The run of a Parquet file. Errors: DocumentError; its path ``$.results[3]`` means row 3, counted from 0."""
    import pyarrow as pa

    try:
        header, rows = _read(raw)
    except MemoryError:  # also pyarrow's; its text names an allocation
        raise DocumentError("reading it takes too much memory: its values are far larger than the file") from None
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        raise DocumentError(f"it cannot be read as Parquet ({' '.join(str(error).split())[:200]})") from None
    values = document.from_json(header, Any)
    if not isinstance(values, dict):
        raise DocumentError("the run in its metadata is not an object", path="$")
    values["results"] = [_whole(*row, f"$.results[{i}]") for i, row in enumerate(rows)]
    run = document.of_values(values)
    # The digest is that of the facts in the file. `of_values` upgrades facts of an older version in a copy.
    if values.get("digest") != _digest(values):
        raise DocumentError("it was changed since it was written: its digest does not match its facts")
    return run


def _digest(values: document.Values) -> str:
    """The digest of the facts in the file, including fields that this version does not know.

    It is needed although the pages of Parquet have checksums, because the list of columns has none. If a column of samples were
    lost, the run would read as one whose samples were not stored.
    """
    return document.digest_of([values.get(name) for name in ("plan", "environment", "method", "results")])


def _read(raw: bytes) -> tuple[bytes, list[tuple[str, dict[str, list[float]]]]]:
    """The run without results as JSON, and for each row its result as JSON and its samples by field.

    Errors: DocumentError, and the errors of pyarrow.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = pq.read_metadata(pa.BufferReader(raw))
    if about.num_columns > MOST_COLUMNS:  # making a schema of 60,000 columns takes 9 s
        raise DocumentError(f"it has {about.num_columns} columns; at most {MOST_COLUMNS} are read")
    with pq.ParquetFile(pa.BufferReader(raw), metadata=about, page_checksum_verification=True) as file:
        header = (about.metadata or {}).get(_KEY)
        if header is None or _RESULT not in file.schema_arrow.names:
            raise DocumentError(
                "this Parquet file is not a run of kernelviz: it has no column 'result' or no run in its metadata"
            )
        if about.num_rows > MAX_CASES:
            raise DocumentError(f"it has more than {MAX_CASES} cases")
        _check_types(file.schema_arrow)
        rows: list[tuple[str, dict[str, list[float]]]] = []
        unpacked_bytes = 0
        own = [name for name in file.schema_arrow.names if name in _OWN]
        for batch in file.iter_batches(_BATCH, columns=own, use_threads=False):
            batch.validate(full=True)
            # The sizes in the metadata may be wrong, so the size is counted while the file is unpacked.
            unpacked_bytes += batch.nbytes
            if unpacked_bytes > 4 * MAX_BYTES:
                raise DocumentError(f"unpacked it has more than {4 * MAX_BYTES / 1e6:.0f} MB")
            for row in batch.to_pylist():
                text = row.pop(_RESULT)
                samples = {name.removesuffix(_SAMPLES): values for name, values in row.items() if values is not None}
                rows.append((text, samples))
    return header, rows


def _check_types(schema: pa.Schema) -> None:
    import pyarrow as pa

    expected = {_RESULT: pa.string()} | {f + _SAMPLES: pa.list_(pa.float64()) for f in FIGURES}
    for column in schema:
        if schema.names.count(column.name) > 1:
            raise DocumentError(f"it has two columns {column.name[:40]!r}")
        if not column.type.equals(expected.get(column.name, column.type)):
            raise DocumentError(
                f"column {column.name!r} holds {str(column.type)[:60]}, {expected[column.name]} was expected"
            )


def _whole(text: str | None, samples: dict[str, list[float]], path: str) -> document.Values:
    """The result with its samples restored. Errors: DocumentError."""
    try:
        result = document.from_json((text or "").encode(), document.Values)
    except DocumentError as error:
        raise DocumentError(error.reason, path=path) from None
    timing = _timing(result)
    for figure, values in samples.items():
        if timing is None or not isinstance(timing.get(figure), dict):
            raise DocumentError(
                "there are samples of a time that the result does not have", path=f"{path}.outcome.{figure}"
            )
        timing[figure]["samples"] = values
    return result


def _without_samples(result: document.Values) -> dict[str, list[float]]:
    """Remove the samples from a result and return them by field."""
    timing = _timing(result)
    figures = {name: timing[name] for name in FIGURES if timing and timing.get(name)}
    return {name: figure.pop("samples") for name, figure in figures.items() if figure.get("samples") is not None}


def _timing(result: document.Values) -> document.Values | None:
    outcome = result.get("outcome")
    timing = outcome.get("timing") if isinstance(outcome, dict) and outcome.get("kind") == "failure" else outcome
    return timing if isinstance(timing, dict) else None


def _type(name: str, axes: Collection[str]) -> str:
    """The Arrow type of a column, derived from its name."""
    if name in axes or name.endswith(_WHOLE):
        return "int64"
    if name in _TRUTHS:
        return "bool"
    return "double" if name.endswith(_FLOATS) else "string"


def _array(values: Sequence[Value], kind: str) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError):  # an integer that does not fit into 64 bits
        return pa.array([None if v is None else str(v) for v in values], pa.string())


EXPORT = Export(
    name="parquet",
    suffix=".parquet",
    media_type="application/vnd.apache.parquet",
    encode=encode,
    label="Parquet, the whole run, one row per case",
    holds_code=True,
)
IMPORT = Import(
    name="parquet",
    label="kernelviz Parquet",
    most_bytes=MAX_BYTES,
    packed=True,
    recognises=lambda seen: seen.raw.startswith(_MAGIC),
    decode=lambda raw: (decode(raw),),
)
