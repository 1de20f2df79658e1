"""Runs of workloads that come with the package, so that a machine without GPUs has something to show."""

import gzip
from functools import lru_cache

import msgspec

from kernelviz.core.workload import WorkloadRun
from kernelviz.formats import workload_document
from kernelviz.formats.shipped_runs import folder

_ENDING = ".json.gz"


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Ids of the runs (the names of their files), in alphabetical order."""
    place = folder() / "workloads"
    entries = place.iterdir() if place.is_dir() else ()
    return tuple(sorted(f.name.removesuffix(_ENDING) for f in entries if f.name.endswith(_ENDING)))


@lru_cache(maxsize=32)
def load(name: str) -> WorkloadRun:
    """The run of one of `names`; it carries that name as its id. Errors: DocumentError."""
    data = gzip.decompress((folder() / "workloads" / f"{name}{_ENDING}").read_bytes())
    return msgspec.structs.replace(workload_document.decode(data), id=name)


def packed(run: WorkloadRun) -> bytes:
    """The file of a run that is to be shipped as ``kernelviz/shipped/workloads/w-….json.gz``. Equal runs give equal files."""
    return gzip.compress(workload_document.encode(run), compresslevel=9, mtime=0)
