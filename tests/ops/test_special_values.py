"""Copies keep every bit, NaN and -0.0 included; softmax treats -inf, inf, NaN and huge logits as torch does."""

from pathlib import Path

import pytest
import special_values as special
from interpreter_process import interpreted_lines

from kernelviz.ops import op_named

HERE = Path(__file__).parent


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(
    "name", ["torch_eager", pytest.param("torch_compile", marks=pytest.mark.xdist_group("inductor"))]
)
def test_a_copy_keeps_every_bit(name: str, dtype: str) -> None:
    assert special.changed_bits(op_named("copy").variant_named(name), dtype) == 0


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("n", [7, 1031])
@pytest.mark.parametrize(
    "name",
    ["composite_eager", "torch_eager", pytest.param("torch_compile", marks=pytest.mark.xdist_group("inductor"))],
)
def test_softmax_of_special_rows(name: str, n: int, dtype: str) -> None:
    assert special.wrong_softmax(op_named("softmax").variant_named(name), n, dtype) == ""


@pytest.mark.xdist_group("interpreter")
def test_triton_kernels_on_special_values() -> None:
    pytest.importorskip("triton")
    found = {line["case"]: line["wrong"] for line in interpreted_lines(HERE / "special_values.py")}
    copies, softmaxes = (sum(v.backend == "triton" for v in op_named(name).variants) for name in ("copy", "softmax"))
    assert len(found) == 2 * (copies + softmaxes * len(special.LENGTHS))
    assert {case: wrong for case, wrong in found.items() if wrong} == {}
