"""Processes that a test starts import this checkout."""

import pytest

from kernelviz.worker.guarded_module import environment


def import_this_checkout(patched: pytest.MonkeyPatch) -> None:
    """Processes that this one starts import kernelviz from here, and the rest from where this one has it."""
    patched.setenv("PYTHONPATH", environment()["PYTHONPATH"])
