"""The Triton kernels that quantise rows do not lose a NaN, which tl.max and tl.maximum leave out unless told otherwise."""

from pathlib import Path

import pytest
from interpreter_process import interpreted_lines

HERE = Path(__file__).parent


@pytest.mark.xdist_group("interpreter")
def test_a_row_with_nan_has_nan_as_its_scale_in_triton() -> None:
    pytest.importorskip("triton")
    lines = interpreted_lines(HERE / "nan_rows.py")
    assert len(lines) >= 28
    assert [line for line in lines if line["wrong"]] == []
