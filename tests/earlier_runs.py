"""The six runs that came with the package until 2026-11-23, with every sample of the device.

A test that states their figures uses these files, so that it still holds when the ops are recorded again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kernelviz.core import Run
from kernelviz.formats import shipped_runs

FOLDER = Path(__file__).with_name("characterisation") / "shipped"


def names() -> tuple[str, ...]:
    """Their ids."""
    return shipped_runs.names_in(FOLDER)


@cache
def load(name: str) -> Run:
    """One of them."""
    return shipped_runs.load_from(FOLDER, name)
