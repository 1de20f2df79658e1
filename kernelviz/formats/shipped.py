"""Runs that come with the package: documents as package data, so that a machine without a GPU has something to show."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files

from kernelviz.core.run import Run
from kernelviz.formats import document

_FOLDER = files("kernelviz") / "shipped"
_ENDING = ".json.gz"


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Ids of the shipped runs: the names of their files."""
    if not _FOLDER.is_dir():
        return ()
    found = [f.name for f in _FOLDER.iterdir()]
    return tuple(sorted(n.removesuffix(_ENDING) for n in found if n.endswith(_ENDING)))


@lru_cache(maxsize=16)
def load(name: str) -> Run:
    """The run of one of `names`; it carries that name as its id."""
    return document.decode(gzip.decompress((_FOLDER / f"{name}{_ENDING}").read_bytes()))


def packed(run: Run) -> bytes:
    """The file of a run that is to be shipped. Equal runs give equal files."""
    return gzip.compress(document.encode(run), compresslevel=9, mtime=0)
