"""The Triton kernels that quantise rows do not lose a NaN, which tl.max and tl.maximum leave out unless told otherwise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.xdist_group("interpreter")
def test_a_row_with_nan_has_nan_as_its_scale_in_triton() -> None:
    pytest.importorskip("triton")
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, HERE / "nan_rows.py"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) >= 28
    assert [line for line in lines if line["wrong"]] == []
