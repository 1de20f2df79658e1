"""The declaration of a format that runs can be read from, and what the readers of other tools' files share."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kernelviz.core import DocumentError, Run

MAX_BYTES = 160 * 2**20
"""Larger files are not read. A run of 1,000 cases with all their figures and samples has about 120 MB as JSON."""
MOST_FOREIGN_BYTES = 64 * 2**20
"""The limit for files of other tools. Only their times are read; an nvbench file of 126 cases has 0.5 MB."""
MAX_RUNS = 1000
"""The most runs of one file."""

_CONSTANT = re.compile(rb"[:,\[\s](?:-?Infinity|-?NaN)\b")


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What decides the format of a file: its bytes, and the keys of the outermost object if it is JSON."""

    raw: bytes
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Import:
    """A way to read runs. `recognises` uses only the content; `decode` gives every run of the file, or raises DocumentError.

    `label`: what people call the format. `packed`: a small file can hold many values, so it is always read in a process with
    limits.
    """

    name: str
    label: str
    most_bytes: int = MOST_FOREIGN_BYTES
    packed: bool = False
    recognises: Callable[[Opening], bool]
    decode: Callable[[bytes], tuple[Run, ...]]


def opening(raw: bytes) -> Opening:
    """
    >>> sorted(opening(b'{"context": {}, "benchmarks": []}').keys), opening(b"[1]").keys, opening(b"a,b").keys
    (['benchmarks', 'context'], frozenset(), frozenset())
    """
    try:
        return Opening(raw=raw, keys=frozenset(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Opening(raw=raw)


def without_constants(raw: bytes) -> bytes:
    """JSON with null in place of NaN and Infinity, which some tools write; the same bytes if it has none or is not JSON.

    >>> without_constants(b'{"a": NaN, "b": [-Infinity, 1.5]}')
    b'{"a":null,"b":[null,1.5]}'
    """
    if not _CONSTANT.search(raw):
        return raw
    try:
        return msgspec.json.encode(json.loads(raw, parse_constant=lambda _: None))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return raw


def check_count(count: int, most: int, what: str, path: str) -> None:
    """Errors: DocumentError if a file holds more of something than is read."""
    if count > most:
        raise DocumentError(f"it holds {count:,} {what}; at most {most:,} are read", path=path)
