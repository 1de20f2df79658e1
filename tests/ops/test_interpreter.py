"""Every Triton kernel in Triton's interpreter, fp32 and fp16, odd sizes, within the bound of its op: never a wider one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import problems, variants

HERE = Path(__file__).parent
CASES = [f"{v.name} | {p.key}" for op, v in variants("triton") for p in problems(op, v, ("fp32", "fp16"))]

pytestmark = pytest.mark.xdist_group("interpreter")


@pytest.fixture(scope="module")
def interpreted() -> dict[str, dict[str, object]]:
    pytest.importorskip("triton")
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, HERE / "interpreted.py"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_reference(case: str, interpreted: dict[str, dict[str, object]]) -> None:
    found = interpreted[case]
    assert found["passed"], f"{found['message']} (largest error {found['worst_of_bound']} of the bound)"
