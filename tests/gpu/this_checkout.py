"""Processes that a test starts import this checkout."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def import_this_checkout(patched: pytest.MonkeyPatch) -> None:
    """Processes that this one starts import kernelviz from here, and the rest from where this one has it."""
    patched.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
