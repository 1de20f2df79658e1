"""Makes this folder importable: its tests share `cases`, `checking`, `gpu_report` and one emulator of kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator import Emulator


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    """Of all processes of this test session."""
    return Emulator(_of_this_session(tmp_path_factory) / "emulator")


@pytest.fixture(scope="session")
def compiler_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of compiled kernels of all processes of this test session: none compiles what another one has compiled."""
    return _of_this_session(tmp_path_factory) / "compiler-cache"


@pytest.fixture(scope="module", autouse=True)
def cubins_are_cached_for_this_session(compiler_cache: Path) -> Iterator[None]:
    """Let NVRTC's cubins be those of `compiler_cache`, not of earlier sessions."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KERNELVIZ_CACHE", str(compiler_cache))
        yield


def _of_this_session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of this test session share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
