"""The Triton kernels of `scaled_matmul` and `block_scaled_matmul` in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest
from interpreter_process import interpreted_lines

HERE = Path(__file__).parent

pytestmark = pytest.mark.xdist_group("interpreter")


def test_the_products_are_right() -> None:
    pytest.importorskip("triton")
    lines = interpreted_lines(HERE / "interpreted_fp8.py")
    assert [line["case"] for line in lines if not line["right"]] == []
    assert sum("grouped" in line["case"] for line in lines) == 16
    assert sum("descriptors" in line["case"] for line in lines) == 8
