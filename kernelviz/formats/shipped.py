"""Runs and selftests that come with the package, as package data, so that a machine without a GPU has something to show."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files

import msgspec

from kernelviz.core.run import Run
from kernelviz.core.selftest import Selftest
from kernelviz.formats import document

_FOLDER = files("kernelviz") / "shipped"
_ENDING = ".json.gz"
_SELFTEST = "selftest-"
"""How the names of files with a selftest begin; all others are runs."""


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Ids of the shipped runs: the names of their files."""
    return tuple(n for n in _files() if not n.startswith(_SELFTEST))


def _files() -> list[str]:
    if not _FOLDER.is_dir():
        return []
    found = [f.name for f in _FOLDER.iterdir()]
    return sorted(n.removesuffix(_ENDING) for n in found if n.endswith(_ENDING))


@lru_cache(maxsize=16)
def load(name: str) -> Run:
    """The run of one of `names`; it carries that name as its id."""
    return document.decode(gzip.decompress((_FOLDER / f"{name}{_ENDING}").read_bytes()))


@lru_cache(maxsize=1)
def selftests() -> tuple[Selftest, ...]:
    """The selftests that came with the package, by name of file."""
    found = [n for n in _files() if n.startswith(_SELFTEST)]
    return tuple(
        msgspec.json.decode(gzip.decompress((_FOLDER / f"{n}{_ENDING}").read_bytes()), type=Selftest) for n in found
    )


def packed_selftest(made: Selftest) -> bytes:
    """The file of a selftest that is to be shipped as ``selftest-….json.gz``."""
    return gzip.compress(msgspec.json.encode(made), compresslevel=9, mtime=0)


def packed(run: Run) -> bytes:
    """The file of a run that is to be shipped. Equal runs give equal files."""
    return gzip.compress(document.encode(run), compresslevel=9, mtime=0)
