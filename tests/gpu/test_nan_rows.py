"""A row that holds a NaN, by every variant that quantises rows, on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from parts import part

from kernelviz.ops import op_named

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

import nan_rows

pytestmark = [part("smoke"), pytest.mark.gpu, pytest.mark.timeout(300)]

VARIANTS = [
    (name, variant.name)
    for name in nan_rows.OPS
    for variant in op_named(name).variants
    if "cuda" in variant.needs and variant.backend in ("triton", "cuda")
]


@pytest.mark.parametrize(("op", "variant"), VARIANTS)
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_a_row_with_nan_has_nan_as_its_scale(op: str, variant: str, dtype: str) -> None:
    of_op = op_named(op)
    wrong = {
        size: said
        for size in nan_rows.SIZES
        if (said := nan_rows.wrong_scales(of_op, of_op.variant_named(variant), size, dtype, "cuda"))
    }
    assert wrong == {}
