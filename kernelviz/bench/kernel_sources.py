"""The kernel files of this package by their digests. A run that was measured with one of them names its digest, so its source
can be shown where the run was stored without code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from kernelviz.core.code import digest_of

_ENDINGS = (".cu", ".cuh", ".cpp", ".h")


@lru_cache(maxsize=1)
def _by_digest() -> dict[str, Traversable]:
    return {digest_of(file.read_bytes()): file for file in _files(files("kernelviz.ops"))}


def _files(folder: Traversable) -> Iterator[Traversable]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry)
        elif entry.name.endswith(_ENDINGS):
            yield entry


def has(digest: str) -> bool:
    """Whether a kernel file of this package has that SHA-256."""
    return digest in _by_digest()


def content(digest: str) -> bytes | None:
    """The kernel file with that SHA-256; None if there is none, or if it was changed since it was read first."""
    file = _by_digest().get(digest)
    raw = None if file is None else file.read_bytes()
    return raw if raw is not None and digest_of(raw) == digest else None
