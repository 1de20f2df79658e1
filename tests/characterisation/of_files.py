"""Facts of files: what each format writes and reads, and the names on the wire."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from characterisation import adapter
from characterisation.common import (
    SHIPPED,
    TEXT_COLUMNS,
    source,
)
from characterisation.facts import LONGEST, columns, fixtures, flat, plain, series, shape
from characterisation.of_charts import chart, chart_of, names_in
from characterisation.sampling import taken


def _json_numbers(node: Any) -> Any:
    """Numbers and names of a file; text goes by the rule of `plain`, long lists of numbers as a digest."""
    if isinstance(node, Mapping):
        return {key: _json_numbers(value) for key, value in node.items()}
    if isinstance(node, list):
        if len(node) > LONGEST and all(isinstance(v, Mapping) for v in node):
            return {key: long_column(values) for key, values in columns(list(map(_one_level, node))).items()}
        if node and all(isinstance(v, int | float) for v in node):
            return series(node)
        return [_json_numbers(v) for v in node]
    return plain(node)


def _one_level(node: Mapping[str, Any]) -> dict[str, Any]:
    """Nested fields side by side: ``{"a": {"b": 1}}`` as ``{"a/b": 1}``; a list is one long column of its own."""
    return dict(flat(node))


def long_column(values: Sequence[Any]) -> Any:
    """A column of many rows: numbers as a digest, names as how often each occurs where there are few, else as their hash."""
    if all(v is None or isinstance(v, int | float) for v in values):
        return series([v for v in values if v is not None])
    told = [str(v) for v in values]
    counts = Counter(told)
    if len(counts) <= LONGEST:
        return dict(sorted(counts.items()))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    found: dict[str, Any] = {"metadata": sorted(k.decode() for k in table.schema.metadata or {})}
    for field in table.schema:
        values = table.column(field.name).to_pylist()
        if field.name == "result" or field.name in TEXT_COLUMNS:
            values = [v is not None for v in values]
        elif str(field.type).startswith("list"):
            values = [None if v is None else series(v) for v in values]
        found[f"column {field.name}"] = {"type": str(field.type), "values": plain(values)}
    return found


def _csv(path: Path) -> dict[str, Any]:
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    return columns(found, TEXT_COLUMNS)


def _cells(line: str) -> list[Any]:
    """The numbers of a Markdown table's row without its last cells (quality in text), and how many cells there are."""
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return [len(cells), *(re.findall(r"[-+]?\d[\d,.]*", cell) for cell in cells[:-2])]


def _markdown(path: Path) -> list[Any]:
    rows = [line for line in path.read_text().splitlines() if line.startswith("|")]
    return [_cells(line) for line in rows[2:]]


def _page(path: Path, run: Any, *, drawn: bool) -> dict[str, Any]:
    """The offline page: what its boxes offer, how large its tables are, and its charts where they are asked for."""
    text = path.read_text()
    packed = re.search(r'id="data"[^>]*>([^<]+)<', text)
    assert packed, "the page holds its charts as data"
    held = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    found = {name: held[name] for name in ("l2", "show", "usual", "axes", "keys")}
    charts = {key: chart_of(one, names_in(run)) if drawn else len(one["data"]) for key, one in held["charts"].items()}
    return plain(found) | {"charts": charts, "rows": text.count("<tr"), "cells": text.count("<td")}


def exported(run: Any, *, drawn: bool = False) -> dict[str, Any]:
    """What each format writes of a run, and whether what is read again is the same. `drawn`: with the offline page's charts."""
    import kernelviz as kv

    readers: dict[str, Callable[[Path], Any]] = {
        "csv": _csv,
        "parquet": _parquet,
        "md": _markdown,
        "gbench": lambda path: _json_numbers(json.loads(path.read_text())),
        "nvbench": lambda path: _json_numbers(json.loads(path.read_text())),
        "json": lambda path: {
            "shape": sorted(shape(json.loads(path.read_text()))),
            "seal": adapter.seal(path.read_bytes()),
        },
        "html": lambda path: _page(path, run, drawn=drawn),
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, read in readers.items():
            path = run.save(Path(folder) / f"run.{name}", to=name)
            found[name] = read(path)
        for name in ("json", "parquet"):
            again = kv.load(Path(folder) / f"run.{name}")
            found[name] = {"facts": found[name], "read_again": again.results == run.results and again.plan == run.plan}
    return found


def files() -> dict[str, Any]:
    """Files written of planted runs and of one shipped run; files of other tools read."""
    import kernelviz as kv

    names = taken("files", ("mixed", "whole", "limits", "tuning-1", "h200-matmul"))
    found: dict[str, Any] = {name: exported(source(name), drawn=name == "mixed") for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("nvbench", "gbench_1", "gbench_repetitions"):
            path = Path(folder) / "file.json"
            path.write_text(fixtures()[name]["text"])
            read = kv.load_all(path)
            found[f"read/{name}"] = [
                {
                    "op": run.plan.op,
                    "frame": columns(run.to_frame().to_dict("records"), TEXT_COLUMNS),
                    "chart": chart(kv.plots.other_times_by_size(run), run.plan.variants),
                }
                for run in read
            ]
    return found


def wire() -> dict[str, Any]:
    """The names on the wire: the schema, and whether the digests of documents of 8fa93f3 still verify."""
    import kernelviz as kv

    schema = adapter.schema()
    kept: dict[str, Any] = {}
    for name, one in schema.get("$defs", {}).items():
        kept[name] = {
            "required": sorted(one.get("required", [])),
            "properties": {k: _types(v) for k, v in sorted(one.get("properties", {}).items())},
            "enum": one.get("enum"),
        }
    top = {key: schema.get(key) for key in ("$ref", "required", "type") if key in schema}
    seals = {name: adapter.seal(one["text"].encode()) for name, one in fixtures().items() if one["kind"] == "run"}
    return {
        "schema": kept | {"top": top},
        "seals_of_saved_documents": seals,
        "report_attributes": sorted(n for n in dir(kv.Report) if not n.startswith("_")),
        "public_names": sorted(kv.__all__),
        "plots": sorted(kv.plots.__all__),
    }


def _types(node: Any) -> Any:
    """A schema's node without titles, descriptions and defaults' text."""
    if isinstance(node, Mapping):
        return {k: _types(v) for k, v in node.items() if k not in ("title", "description")}
    return [_types(v) for v in node] if isinstance(node, list) else plain(node)


def files_of_shipped() -> dict[str, Any]:
    return {name: exported(source(name)) for name in SHIPPED if name != "h200-matmul"}
