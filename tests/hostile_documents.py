"""Documents whose every free text holds something that a page, a terminal or a spreadsheet might interpret."""

from __future__ import annotations

import json
import pathlib
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import mutations
import sample_runs as samples

from kernelviz.bench import backup
from kernelviz.core import KernelvizError
from kernelviz.core.run import Device
from kernelviz.formats import decode, encode

Path = tuple[str, ...]
"""The fields from the root to a text; all elements of a list count as one field ``[]``."""


@cache
def hostile(text: str) -> bytes:
    """A run in which every text field that accepts it is `text`: title, note, device, host, versions, reasons, events and so on.

    Names that several fields share have it too: op, variants, dtype. Which fields accept it is found by trying, so that a new
    field is attacked as soon as it exists.
    """
    tree = json.loads(encode(samples.mixed()))
    tree.pop("digest", None)
    for field in sorted(set(_texts(tree))):
        before = json.dumps(tree)
        _replace(tree, field, text)
        try:
            decode(json.dumps(tree).encode())
        except KernelvizError:
            tree = json.loads(before)
    # Names stand in several fields, which must agree: op, variants, dtype. Variants must differ.
    for number, name in enumerate(sorted({value for _, value in _leaves(tree) if value != text})):
        before = json.dumps(tree)
        changed = before.replace(json.dumps(name), json.dumps(f"{text}{number}"))
        try:
            decode(changed.encode())
        except KernelvizError:
            continue
        tree = json.loads(changed)
    return json.dumps(tree).encode()


def hostile_backup(text: str, device: Device) -> bytes:
    """A backup of that device in which every text field that accepts it is `text`: of runs, roofs, selftest, inspection, tunings.

    What the fields are is found by trying, as in `hostile`. Ids and uuids stay, so that the pages find the records.
    """
    head, *lines, _ = mutations.backups()[0].splitlines()
    changed = []
    for line in lines:
        tree = json.loads(line.replace(samples.CPU.uuid.encode(), device.uuid.encode()))
        for field in sorted(set(_texts(tree))):
            if field[-1] in ("kind", "digest", "uuid", "device_uuid", "id", "run_id"):
                continue
            before = json.dumps(tree)
            _replace(tree, field, text)
            tree.get("run", {}).pop("digest", None)
            if not _readable(head, json.dumps(tree).encode()):
                tree = json.loads(before)
        changed.append(json.dumps(tree).encode())
    return mutations.sealed_backup([head, *changed])


def _readable(head: bytes, line: bytes) -> bool:
    """Whether a backup of this line alone can be read."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(mutations.sealed_backup([head, line]))
        file.flush()
        try:
            list(backup.runs(pathlib.Path(file.name)))
        except KernelvizError:
            return False
        return True


def fields_with(text: str, content: bytes) -> set[Path]:
    """The fields of a document that begin with that text."""
    return {field for field, value in _leaves(json.loads(content)) if value.startswith(text)}


def _texts(tree: Any) -> Iterator[Path]:
    yield from (field for field, _ in _leaves(tree))


def _leaves(node: Any, field: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(node, dict):
        for name, inner in node.items():
            yield from _leaves(inner, (*field, name))
    elif isinstance(node, list):
        for inner in node:
            yield from _leaves(inner, (*field, "[]"))
    elif isinstance(node, str):
        yield field, node


def _replace(node: Any, field: Path, text: str) -> None:
    name, *rest = field
    if name == "[]":
        for number, inner in enumerate(node):
            if rest:
                _replace(inner, tuple(rest), text)
            elif isinstance(inner, str):
                node[number] = text
    elif isinstance(node, dict) and name in node:
        if rest:
            _replace(node[name], tuple(rest), text)
        elif isinstance(node[name], str):
            node[name] = text
