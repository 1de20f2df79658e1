"""Makes this folder importable: its tests share `cases`, `checking`, `gpu_report` and one emulator of kernels."""

from __future__ import annotations

import os

import pytest
from emulator import Emulator


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    """Of all processes of this test session."""
    folder = tmp_path_factory.getbasetemp()
    return Emulator((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "emulator")
