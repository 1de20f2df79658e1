"""Read what `ncu --csv` writes, in both of its layouts.

`--page raw` has one row for each launch and one column for each metric, with a second row of units ("wide"). The details page has
one row for each metric of each launch ("long"): its columns end with Metric Name, Metric Unit and Metric Value. Lines before the
header are output of the program and messages of ncu; they are skipped. The text may come from anybody, so everything is bounded.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from kernelviz.core import DocumentError, KernelCounters
from kernelviz.hardware.nsight_compute.metric_names import BY_NAME, STALLS_OF_FIELDS, Metric
from kernelviz.hardware.nsight_compute.units import quantity

MOST_LINES = 400_000
"""Lines of the table. A raw page of 1,000 launches has 1,002; a details page with all sections has about 200 for each launch."""
MOST_LAUNCHES = 20_000
MOST_COLUMNS = 20_000
"""A raw page of the set ``full`` has about 1,500 columns."""
MOST_NAME = 2_000
"""Characters of a kernel's name. Names of C++ templates are long; a longer one is cut."""
_ID, _KERNEL = "ID", "Kernel Name"
_LONG = ("Metric Name", "Metric Unit", "Metric Value")
_DIMENSIONS = re.compile(r"\(\s*(\d[\d,]{0,14}),\s*(\d[\d,]{0,14}),\s*(\d[\d,]{0,14})\)")
_WHOLE = ("_bytes", "_requests", "_sectors", "_per_thread")
"""Fields that are whole numbers end with these."""
_LARGEST_GRID = 2**31 - 1
_HEADER_WITHIN = 4 * 2**20
"""A program may print this many characters before the table."""


@dataclass(slots=True)
class Launch:
    """One launch of a kernel in the order of the file. `device`: its number, `process`: the name of the program; empty if the
    file does not say so."""

    kernel: str
    line: int
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    process: str = ""
    host: str = ""
    capability: str = ""
    values: dict[str, float] = field(default_factory=dict)
    other_metrics: int = 0

    def counters(self) -> KernelCounters:
        """What the metrics of the launch say."""
        stalls = {reason: self.values[name] for name, reason in STALLS_OF_FIELDS.items() if name in self.values}
        numbers = {
            name: round(value) if name.endswith(_WHOLE) else value
            for name, value in self.values.items()
            if name not in STALLS_OF_FIELDS
        }
        facts = {"kernel": self.kernel, "grid": self.grid, "block": self.block, "stalls": stalls, **numbers}
        return msgspec.convert(facts, KernelCounters)


def is_ncu_csv(raw: bytes) -> bool:
    """Whether the bytes hold a table of `ncu --csv`."""
    start = _header_at(raw)
    if start is None:
        return False
    line = raw[start : start + 200_000].partition(b"\n")[0]
    return b'"Kernel Name"' in line


def launches(raw: bytes) -> tuple[Launch, ...]:
    """The launches of the table. Errors: DocumentError with the line and the column."""
    start = _header_at(raw)
    if start is None:
        raise DocumentError('no line begins with "ID"; write the file with `ncu --csv`', path="line 1")
    before = raw[:start].count(b"\n")
    rows = _rows(raw[start:].decode("utf-8", "replace"), before)
    try:
        line, names = next(rows)
        _check_header(names, line)
        listed = _long(names, rows) if _LONG[0] in names else _wide(names, rows)
    except csv.Error as error:
        raise DocumentError(f"it is not valid CSV ({error})", path=f"after line {before + 1}") from None
    if not listed:
        raise DocumentError("the table has no launch; the profiler saw no kernel", path=f"line {before + 1}")
    return tuple(listed)


def _header_at(raw: bytes) -> int | None:
    """Where the header begins."""
    head = raw[:_HEADER_WITHIN]
    if head.startswith(b'"ID",'):
        return 0
    at = head.find(b'\n"ID",')
    return None if at < 0 else at + 1


def _rows(text: str, before: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of the table with their lines in the file. Lines that do not begin with a quotation mark are messages."""
    lines = ((n, line) for n, line in enumerate(text.split("\n"), before + 1) if line.startswith('"'))
    for count, (number, line) in enumerate(lines):
        if count > MOST_LINES:
            raise DocumentError(f"it has more than {MOST_LINES:,} lines; profile fewer launches", path=f"line {number}")
        yield number, next(csv.reader([line.rstrip("\r")], strict=True))


def _check_header(names: Sequence[str], line: int) -> None:
    if len(names) > MOST_COLUMNS:
        raise DocumentError(f"{len(names):,} columns; at most {MOST_COLUMNS:,} are read", path=f"line {line}")
    if _KERNEL not in names:
        raise DocumentError('the column "Kernel Name" is missing; write the file with `ncu --csv`', path=f"line {line}")
    twice = next((name for name in _LONG if names.count(name) > 1), None)
    if twice is not None:
        raise DocumentError(f"the column {twice!r} is there twice", path=f"line {line}")
    missing = [name for name in _LONG if name not in names]
    if 0 < len(missing) < len(_LONG):
        raise DocumentError(
            f"the column {missing[0]!r} is missing; write the file with `ncu --csv`", path=f"line {line}"
        )


def _wide(names: Sequence[str], rows: Iterator[tuple[int, list[str]]]) -> list[Launch]:
    line, units = next(rows, (0, []))
    if len(units) != len(names) or units[names.index(_ID)] != "":
        raise DocumentError(
            "the row of units below the header is missing; write it with `--page raw --csv`", path="units"
        )
    metrics = {name: (i, BY_NAME[name]) for i, name in enumerate(names) if name in BY_NAME}
    other_count = sum("__" in name and name not in BY_NAME for name in names)
    _check_known(len(metrics), names)
    listed: list[Launch] = []
    for line, row in rows:
        _check_row(names, row, line)
        launch = _launch(names, row, line)
        launch.other_metrics = other_count
        for name, (i, metric) in metrics.items():
            _take(launch, metric, row[i], units[i], f'line {line}, "{name}"')
        listed.append(launch)
        _check_launches(listed, line)
    return listed


def _long(names: Sequence[str], rows: Iterator[tuple[int, list[str]]]) -> list[Launch]:
    by_id: dict[str, Launch] = {}
    at = {name: names.index(name) for name in (_ID, *_LONG)}
    seen: dict[str, None] = {}
    for line, row in rows:
        _check_row(names, row, line)
        key, name = row[at[_ID]], row[at["Metric Name"]]
        if not name:  # a rule's message
            continue
        launch = by_id.get(key)
        if launch is None:
            launch = by_id[key] = _launch(names, row, line)
            _check_launches(by_id, line)
        metric = BY_NAME.get(name)
        if metric is None:
            launch.other_metrics += 1
            if len(seen) < MOST_COLUMNS:
                seen[name] = None
            continue
        _take(launch, metric, row[at["Metric Value"]], row[at["Metric Unit"]], f'line {line}, "{name}"')
    _check_known(sum(len(launch.values) for launch in by_id.values()) or not by_id, list(seen))
    return list(by_id.values())


def _check_known(known: int, names: Sequence[str]) -> None:
    if not known:
        listed = ", ".join(name[:60] for name in names if "__" in name) or ", ".join(name[:60] for name in names)
        raise DocumentError(
            f"none of its metrics is one that kernelviz reads ({listed[:300]}); profile with `--set full --page raw --csv`, or "
            "with `--metrics dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum`",
            path="metrics",
        )


def _check_row(names: Sequence[str], row: Sequence[str], line: int) -> None:
    if len(row) != len(names):
        raise DocumentError(
            f"it has {len(row):,} fields, and the header has {len(names):,}; is the file cut off, or are two outputs in it?",
            path=f"line {line}",
        )
    if row[0] == _ID:
        raise DocumentError("a second table begins here; write each output to a file of its own", path=f"line {line}")


def _check_launches(listed: Sequence[Launch] | dict[str, Launch], line: int) -> None:
    if len(listed) > MOST_LAUNCHES:
        raise DocumentError(f"it has more than {MOST_LAUNCHES:,} launches; profile fewer", path=f"line {line}")


def _launch(names: Sequence[str], row: Sequence[str], line: int) -> Launch:
    texts = dict(zip(names, row, strict=True))
    return Launch(
        kernel=texts[_KERNEL][:MOST_NAME],
        line=line,
        grid=_dimensions(texts.get("Grid Size", ""), f'line {line}, "Grid Size"'),
        block=_dimensions(texts.get("Block Size", ""), f'line {line}, "Block Size"'),
        process=texts.get("Process Name", "")[:MOST_NAME],
        host=texts.get("Host Name", "")[:MOST_NAME],
        capability=texts.get("CC", "")[:20],
    )


def _dimensions(text: str, path: str) -> tuple[int, int, int] | None:
    """
    >>> _dimensions("(1,024, 2, 1)", ""), _dimensions("", "")
    ((1024, 2, 1), None)
    """
    if not text:
        return None
    match = _DIMENSIONS.fullmatch(text) if len(text) <= MOST_NAME else None
    sizes = [int(part.replace(",", "")) for part in match.groups()] if match is not None else []
    if len(sizes) != 3 or not all(1 <= size <= _LARGEST_GRID for size in sizes):
        raise DocumentError(f"{text[:40]!r} is not three sizes such as (1024, 1, 1)", path=path)
    return sizes[0], sizes[1], sizes[2]


def _take(launch: Launch, metric: Metric, value: str, unit: str, path: str) -> None:
    number = quantity(value, unit, metric.quantity, path)
    if number is not None:
        launch.values[metric.field] = max(number, launch.values.get(metric.field, 0.0))
