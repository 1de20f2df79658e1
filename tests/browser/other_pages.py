"""What Roofline, Compare and History say about a run that Bench shows as well: times, shares and verdicts are the same there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from checks_of_cases import CLOSE, verdict_of
from screen import Line, Screen, Size, Snapshot, number

_SCALES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "%": 0.01, "GB/s": 1e9, "TFLOP/s": 1e12, "GFLOP/s": 1e9, "×": 1.0}
Cells = dict[str, str | float | None]


def rows_of(snapshot: Snapshot, heading: str) -> list[Cells]:
    """The rows of the table that has this column: by the titles of the columns, numbers in SI base units."""
    table = next((t for t in snapshot["tables"] if len(t) > 1 and any(h.startswith(heading) for h in t[0])), None)
    return [] if table is None else [_cells(table[0], row) for row in table[1:]]


def _cells(heads: list[str], row: list[str]) -> Cells:
    cells: Cells = {}
    for head, text in zip(heads, row, strict=True):
        title, _, unit = head.rpartition(", ")
        if unit in _SCALES and title:
            value = number(text)
            cells[title] = None if value is None else value * _SCALES[unit]
        else:
            cells[head] = text
    return cells


def sizes_in(text: str) -> dict[str, int]:
    """The sizes of "m = n = 1,024, k = 8".

    >>> sizes_in("m = n = 1,024, k = 8")
    {'m': 1024, 'n': 1024, 'k': 8}
    """
    sizes: dict[str, int] = {}
    for names, value in re.findall(r"((?:\w+ = )+)([\d,]*\d)", text):
        sizes |= {name: int(value.replace(",", "")) for name in names.split(" = ") if name}
    return sizes


def _restricted(sizes: dict[str, int], like: Size) -> Size:
    return frozenset((axis, size) for axis, size in sizes.items() if axis in dict(like))


def _differ(first: float | None, second: object, close: float = CLOSE) -> bool:
    if first is None or second is None:
        return (first is None) != (second is None)
    assert isinstance(second, float)
    return abs(first - second) > close * max(abs(first), abs(second), 1e-12)


def roofline_contradicts(bench: Screen, roofline: Snapshot) -> Iterator[str]:
    """The page Roofline draws the same cases as Bench under the same roofs."""
    rows = rows_of(roofline, "Limiter")
    lines = [line for line in bench.lines if not line.failed]
    if len(rows) != len(lines):
        yield f"Roofline has {len(rows)} cases, Bench {len(lines)}"
    for row in rows:
        line = _line(lines, str(row["Variant"]), sizes_in(str(row["Sizes"])))
        if line is None:
            yield f"Roofline has {row['Variant']} at {row['Sizes']}, which Bench has not"
            continue
        for title, value in (("Time", line.time_s), ("Share of roof", line.share), ("±", line.width)):
            if title in row and _differ(value, row[title]):
                yield f"{title} of {line.variant} at {row['Sizes']}: {row[title]} on Roofline, {value} on Bench"
        for title, value in (("Bandwidth", line.bandwidth), ("Rate", line.rate)):
            if value is not None and _differ(value, row.get(title)):
                yield f"{title} of {line.variant} at {row['Sizes']}: {row.get(title)} on Roofline, {value} on Bench"
        if line.unstable and "not stable" not in str(
            row.get("Quality", "not stable")
        ):  # the column may be out of sight
            yield f"{line.variant} at {row['Sizes']} is not stable on Bench; Roofline says {row.get('Quality')!r}"


def _line(lines: list[Line], variant: str, sizes: dict[str, int]) -> Line | None:
    return next((n for n in lines if n.variant == variant and n.size == _restricted(sizes, n.size)), None)


def compare_contradicts(bench: Screen, compare: Snapshot, variant: str) -> Iterator[str]:
    """Compare, baseline against one variant of the same run: the same rounds, so the same times, ratios and verdicts."""
    axes = [axis for axis, _ in sorted(next(iter(bench.lines)).size)]
    rows = rows_of(compare, "Verdict")
    lines = {line.size: line for line in bench.lines if line.variant == variant and not line.failed}
    bases = {line.size: line for line in bench.lines if line.variant == bench.baseline and not line.failed}
    if not rows and lines.keys() & bases.keys():
        yield f"Compare has no case of {variant}"
    for row in rows:
        size = frozenset((axis, int(float(str(row[axis]).replace(",", "")))) for axis in axes if axis in row)
        line = next((n for n in lines.values() if size <= n.size), None)
        base = bases.get(line.size) if line is not None else None
        if line is None or base is None:
            continue
        verdict = verdict_of(line.versus)
        if verdict.kind and verdict.kind not in str(row["Verdict"]):
            yield f"{variant} at {dict(size)}: {row['Verdict']} on Compare, {line.versus} on Bench"
        for title, value in (("Time A", base.time_s), ("Time B", line.time_s)):
            if title in row and _differ(value, row[title]):
                yield f"{title} of {variant} at {dict(size)}: {row[title]} on Compare, {value} on Bench"
        ratio = number(str(row.get("Time B / time A") or ""))
        if verdict.ratio is not None and (
            ratio is None or abs(math.log(ratio / verdict.ratio)) > 0.006 / min(verdict.ratio, 1 / verdict.ratio)
        ):
            yield f"{variant} at {dict(size)}: ratio {ratio} on Compare, {line.versus} on Bench"


def history_contradicts(bench: Screen, history: Snapshot, run_id: str) -> Iterator[str]:
    """The list of runs counts the cases and the failures of the run."""
    said = next((c for c in history["captions"] if re.search(r"\d+ (?:of \d+ )?cases?", c)), None)
    if said is None:
        yield f"History does not say how many cases {run_id} has"
        return
    count = int(re.findall(r"(\d+) (?:of \d+ )?cases?", said)[0])
    if count != len(bench.lines):
        yield f"History: {said!r}, Bench has {len(bench.lines)} cases"
    failed = re.search(r"(\d+) failed", said)
    if (int(failed[1]) if failed else 0) != sum(line.failed for line in bench.lines):
        yield f"History: {said!r}, Bench has {sum(line.failed for line in bench.lines)} failed cases"
