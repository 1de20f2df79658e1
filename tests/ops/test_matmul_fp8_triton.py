"""The Triton kernels of `scaled_matmul` and `block_scaled_matmul` in Triton's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

pytestmark = pytest.mark.xdist_group("interpreter")


def test_the_products_are_right() -> None:
    pytest.importorskip("triton")
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    script = [sys.executable, HERE / "interpreted_fp8.py"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["case"] for line in lines if not line["right"]] == []
    assert sum("grouped" in line["case"] for line in lines) == 16
    assert sum("descriptors" in line["case"] for line in lines) == 8
