"""How facts are written down: numbers and names stay, text for people becomes the mark TEXT, long series become a digest."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TEXT = "<text>"
"""Stands for any text that people read. An empty text stays empty, so a sentence that is lost is a difference."""
LONGEST = 40
"""Numbers of a series that are stored one by one; a longer one is stored as a digest."""
CASE = re.compile(r"[\w-]+ \w+( \w+=\d+)*( \w+)*( \| \S+)?")
"""The key of a problem or a case, as ``add fp32 n=64 | torch_eager``: a name, although it has spaces."""
HERE = Path(__file__).parent
STORED = HERE / "stored"


def plain(value: Any) -> Any:
    """The value as JSON holds it. Words (no space in them) and keys of cases are names and stay; sentences become TEXT.

    >>> plain({"a": ("x y", "x_y", float("nan"))})
    {'a': ['<text>', 'x_y', 'nan']}
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return TEXT if re.search(r"\s", value) and not ("=" in value and CASE.fullmatch(value)) else value
        case Mapping():
            return {str(key): plain(inner) for key, inner in value.items()}
        case set() | frozenset():
            return sorted(map(plain, value))
        case list() | tuple():
            return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist())
    return str(value)


def series(values: Sequence[Any]) -> Any:
    """Numbers as they are, or of a long series its digest: count, sums of the values and of each times a weight of its own
    (so that an exchange shows), least and largest. Sums bear another rounding in the last digit; a hash, which is taken of
    anything else than numbers, does not.

    >>> series([1.0, 2.0])
    [1.0, 2.0]
    >>> sorted(series(range(100)))
    ['count', 'high', 'low', 'missing', 'sum', 'sum_of_sizes', 'weighted']
    """
    if len(values) <= LONGEST:
        return [plain(v) for v in values]
    if any(isinstance(v, str | list) for v in values):
        return {"count": len(values), "sha256": hashlib.sha256(json.dumps(plain(values)).encode()).hexdigest()[:16]}
    numbers = [float(v) for v in values if isinstance(v, int | float) and math.isfinite(v)]
    weighted = (n * (0.5 + (i * 0.6180339887498949) % 1) for i, n in enumerate(numbers))
    return {
        "count": len(values),
        "missing": len(values) - len(numbers),
        "sum": math.fsum(numbers),
        "sum_of_sizes": math.fsum(map(abs, numbers)),
        "weighted": math.fsum(weighted),
        "low": min(numbers, default=None),
        "high": max(numbers, default=None),
    }


def columns(records: Sequence[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> dict[str, list[Any]]:
    """A list for each column, all names kept in their order; of columns in `leave_out` only whether there is something."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return {
        name: [
            (None if record.get(name) in (None, "") else TEXT) if name in leave_out else plain(record.get(name))
            for record in records
        ]
        for name in names
    }


def shape(node: Any, path: str = "") -> set[str]:
    """The paths of all fields in a JSON value, places in lists as ``[]``."""
    found = {path} if path else set()
    if isinstance(node, Mapping):
        for key, inner in node.items():
            found |= shape(inner, f"{path}.{key}")
    elif isinstance(node, list):
        for inner in node:
            found |= shape(inner, f"{path}[]")
    return found


def flat(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of every leaf; an empty container is one."""
    if isinstance(node, Mapping) and node:
        for key, inner in node.items():
            yield from flat(inner, f"{path}/{key}" if path else str(key))
    elif isinstance(node, list) and node:
        for index, inner in enumerate(node):
            yield from flat(inner, f"{path}/{index}")
    else:
        yield path, node


def fixtures() -> dict[str, dict[str, str]]:
    """Files made by the tests' builders at 8fa93f3, by name: ``kind`` (run, inspection or file) and ``text``."""
    lines = gzip.decompress((HERE / "fixtures.jsonl.gz").read_bytes()).splitlines()
    return {line["name"]: line for line in map(json.loads, lines)}


def numbers_of(value: Any) -> list[Any] | None:
    """The values of a Plotly array, which may be packed; None for what is none."""
    if isinstance(value, Mapping) and "bdata" in value:
        import numpy as np

        return list(np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"]).tolist())
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, list | tuple) else None


def read_stored(section: str) -> Any:
    """The stored facts of a section."""
    return json.loads(gzip.decompress((STORED / f"{section}.json.gz").read_bytes()))


def write_stored(section: str, found: Any) -> None:
    """Store the facts of a section; equal facts give equal files."""
    STORED.mkdir(exist_ok=True)
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    (STORED / f"{section}.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))
