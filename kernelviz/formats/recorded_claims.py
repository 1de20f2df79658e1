"""Runs that test claims, recorded on GPUs: ``kernelviz/shipped/claims/DEVICE/*.kvz``, a file for each run in the compact form."""

from functools import lru_cache
from importlib.resources.abc import Traversable

from kernelviz.core import Run
from kernelviz.formats import shipped_runs


def folder() -> Traversable:
    """Where the recorded runs of all devices are."""
    return shipped_runs.folder() / "claims"


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """The names of the devices with recorded runs; none where nothing was recorded."""
    top = folder()
    if not top.is_dir():
        return ()
    return tuple(sorted(one.name for one in top.iterdir() if one.is_dir() and shipped_runs.names_in(one)))


def load(name: str) -> tuple[Run, ...]:
    """The recorded runs of one of `names`. Errors: DocumentError."""
    of_device = folder() / name
    return tuple(shipped_runs.load_from(of_device, run) for run in shipped_runs.names_in(of_device))
