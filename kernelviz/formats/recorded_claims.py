"""Runs that were recorded on GPUs to be shown without them: ``kernelviz/shipped/claims/DEVICE/*.kvz`` of claims and
``kernelviz/shipped/models/DEVICE/*.kvz`` of layers of models, a file for each run in the compact form."""

from functools import lru_cache
from importlib.resources.abc import Traversable
from typing import Literal

from kernelviz.core import Run
from kernelviz.formats import shipped_runs

Recorded = Literal["claims", "models"]
"""What the runs were recorded for."""


def folder(of: Recorded = "claims") -> Traversable:
    """Where the recorded runs of all devices are."""
    return shipped_runs.folder() / of


@lru_cache(maxsize=4)
def names(of: Recorded = "claims") -> tuple[str, ...]:
    """The names of the devices with recorded runs; none where nothing was recorded."""
    top = folder(of)
    if not top.is_dir():
        return ()
    return tuple(sorted(one.name for one in top.iterdir() if one.is_dir() and shipped_runs.names_in(one)))


def load(name: str, of: Recorded = "claims") -> tuple[Run, ...]:
    """The recorded runs of one of `names`. Errors: DocumentError."""
    of_device = folder(of) / name
    return tuple(shipped_runs.load_from(of_device, run) for run in shipped_runs.names_in(of_device))
