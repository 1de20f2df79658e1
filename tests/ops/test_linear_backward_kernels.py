"""Kernels of the backward pass of a linear layer before its products, and the published ones, by fibers of the processor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from emulator import Emulator, Grid, needs_compiler
from interpreter_process import interpreted_lines

from kernelviz.ops import op_named
from kernelviz.ops.matmul import linear_backward, published
from kernelviz.ops.matmul.linear_parts import PART_ROWS


@needs_compiler
@pytest.mark.parametrize("function", ["relu", "gelu", "silu"])
@pytest.mark.parametrize(
    ("element", "dtype", "rows"),
    [("__nv_bfloat16", torch.bfloat16, PART_ROWS[0]), ("__half", torch.float16, PART_ROWS[-1])],
)
def test_gradients_of_z_and_of_the_bias_are_those_of_torch(
    function: str, element: str, dtype: torch.dtype, rows: int, emulator: Emulator
) -> None:
    kernels = "linear_derivative", "linear_bias"
    program = emulator.program(linear_backward.SOURCE, kernels, linear_backward.defines(function, element, rows))
    backwards: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
        "relu": lambda z, g: torch.ops.aten.threshold_backward(g, z, 0),
        "gelu": lambda z, g: torch.ops.aten.gelu_backward(g, z),
        "silu": lambda z, g: torch.ops.aten.silu_backward(g, z),
    }
    unit = torch.finfo(dtype).eps / 2
    for m, n in ((1, 8), (65, 264), (130, 40)):
        torch.manual_seed(m)
        z, dy = torch.randn((m, n)).to(dtype), torch.randn((m, n)).to(dtype)
        parts = -(-m // rows)
        dz, db = torch.full((m, n), float("nan"), dtype=dtype), torch.full((n,), float("nan"), dtype=dtype)
        sums = torch.full((parts, n), float("nan"))
        grid = Grid(blocks=(parts, -(-n // 256)), threads=256)
        assert program.run([z, dy, dz, sums, m, n], grid) == ""
        assert program.run([sums, db, parts, n], Grid(blocks=-(-n // 32), threads=256), kernel="linear_bias") == ""
        exact = backwards[function](z.double(), dy.double())
        assert (
            (dz.double() - exact).abs() <= 1.01 * unit * exact.abs() + 2.0**-20 * dy.double().abs() + 2.0**-24
        ).all()
        allowed = 1.01 * unit * exact.sum(0).abs() + 2.0**-20 * dy.double().abs().sum(0) + 2.0**-24
        assert ((db.double() - exact.sum(0)).abs() <= allowed).all()


def test_parts_of_any_number_of_rows_give_the_same_gradients_in_triton() -> None:
    lines = interpreted_lines(Path(__file__).parent / "interpreted_linear.py")
    assert len(lines) == 2 * len(PART_ROWS)
    assert [line["case"] for line in lines if line["wrong"]] == []


@needs_compiler
def test_the_published_kernels_compute_a_product_and_a_layer(emulator: Emulator) -> None:
    program = emulator.program(published.SOURCE, ("matmul_published", "linear_relu_published"), {})
    for m, n, k in ((1, 1, 1), (17, 33, 5), (16, 48, 32)):
        torch.manual_seed(m)
        a, b, bias = (torch.randint(-3, 4, shape).float() for shape in ((m, k), (k, n), (n,)))
        c, y = torch.full((m, n), float("nan")), torch.full((m, n), float("nan"))
        grid = Grid(blocks=(-(-n // 16), -(-m // 16)), threads=(16, 16))
        assert program.run([a, b, c, m, n, k], grid) == ""
        assert program.run([a, b, bias, y, m, n, k], grid, kernel="linear_relu_published") == ""
        assert torch.equal(c, a @ b)
        assert torch.equal(y, (a @ b + bias).relu())


@pytest.mark.parametrize(
    ("op", "variant"),
    [
        ("matmul", "cuda_published"),
        ("matmul", "triton_published"),
        ("matmul", "triton_published_one_tile"),
        ("matmul", "triton_published_fp32"),
        ("linear_relu", "cuda_published"),
    ],
)
def test_published_variants_run_only_if_they_are_named(op: str, variant: str) -> None:
    assert op_named(op).variant_named(variant).only_when_named
