"""Kernels of a plug-in of `kernelviz compile` run in place of those that this Triton compiles, and nowhere else."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("triton")
    paths = os.pathsep.join(map(str, (TESTS.parent, TESTS, TESTS / "ops")))
    environment = os.environ | {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, TESTS / "measure" / "precompiled_kernels.py"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    answers: dict[str, Any] = json.loads(ended.stdout)
    return answers


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_kernels_of_the_file_are_loaded_and_only_by_its_variants(answers: dict[str, Any], direction: str) -> None:
    told = dict(answers[direction])
    assert "the file holds no machine code for this kernel" in told.pop("refused")
    assert told.pop("summary").endswith("with the machine code of Triton 0.0.0")
    assert all(told.values()), told
