"""What all sections use: commands in this process, runs of files, errors as types with data."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from characterisation import adapter
from characterisation.facts import columns, fixtures, plain

SHIPPED = ("h200-add", "h200-copy", "h200-matmul", "h200-rmsnorm", "h200-scale", "h200-softmax")
RUNS = (
    "mixed", "cpu", "whole", "limits", "quality_burst", "quality_sustained", "quality_unknown", "before", "after",
    "after_wrong", "after_other_device", "after_sustained", "tuning-1",
)  # fmt: skip
NIGHTS = tuple(f"night-{night:02}" for night in range(14))
TEXT_COLUMNS = ("trust", "failure_message", "reason", "evidence", "configuration", "note", "message")
"""Columns that hold text for people, even where it happens to be one word."""


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or its error as a type with data. An error that is none of kernelviz's own is a fact as well."""
    try:
        return call()
    except Exception as error:
        return adapter.error_facts(error)


def command(*arguments: str) -> tuple[int, str]:
    """Exit code and standard output of a command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = adapter.main()(list(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.buffer.getvalue().decode()  # type: ignore[attr-defined]


def told(*arguments: str) -> dict[str, Any]:
    """Exit code of a command and the rows that it prints as JSON."""
    code, out = command(*arguments, "--json")
    try:
        value = json.loads(out)
    except ValueError:
        return {"exit": code, "json": None}
    if isinstance(value, list):
        return {"exit": code, "rows": columns(value, TEXT_COLUMNS)}
    return {"exit": code, "json": without_text(value)}


def without_text(node: Any, key: str = "") -> Any:
    """The value without the text of fields that hold text; rows become columns."""
    if isinstance(node, Mapping):
        return {k: without_text(v, k) for k, v in node.items()}
    if isinstance(node, list) and node and all(isinstance(v, Mapping) for v in node):
        return columns(node, TEXT_COLUMNS)
    return plain(None if node in (None, "") else "<text>") if key in TEXT_COLUMNS else plain(node)


def opened(name: str) -> Any:
    """A run of the fixtures, as the API reads it from a file."""
    import kernelviz as kv

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.json"
        path.write_text(fixtures()[name]["text"])
        return kv.load(path)


def source(name: str) -> Any:
    return adapter.shipped_run(name) if name in SHIPPED else opened(name)


@contextlib.contextmanager
def stored_runs(names: Sequence[str]) -> Iterator[Any]:
    """A bench with an H200 that has these runs, taken in from files as `kernelviz import` does."""
    device = opened("before").environment.device
    with tempfile.TemporaryDirectory() as folder, adapter.bench_with(Path(folder), (device,)) as bench:
        for name in names:
            path = Path(folder) / "document.json"
            path.write_text(fixtures()[name]["text"])
            code, _ = command("import", str(path))
            assert code == 0, f"the document {name} was not taken in"
        yield bench
