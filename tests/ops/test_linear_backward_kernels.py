"""Kernels of the backward pass of a linear layer before its products, and the published ones, by threads of the processor."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from kernelviz.ops import op_named
from kernelviz.ops.matmul import linear_backward, published

HERE = Path(__file__).parent
RUN = """
#include <cmath>
#include "cuda_threads.h"
#define __fdividef(a, b) ((a) / (b))
#define __expf expf
#include "{source}"
extern "C" void run({parameters}) {{
    {calls}
}}
"""
DERIVATIVE = (
    "const ELEMENT* z, const ELEMENT* dy, ELEMENT* dz, float* sums, ELEMENT* db, long long m, int n, unsigned parts",
    "launch({parts, (n + 255u) / 256}, {256, 1}, [=] { linear_derivative(z, dy, dz, sums, m, n); });"
    "launch({(n + 31u) / 32, 1}, {256, 1}, [=] { linear_bias(sums, db, parts, n); });",
)
PUBLISHED = (
    "const float* a, const float* b, const float* bias, float* c, float* y, int m, int n, int k",
    "const Index blocks = {(n + 15u) / 16, (m + 15u) / 16};"
    "launch(blocks, {16, 16}, [=] { matmul_published(a, b, c, m, n, k); });"
    "launch(blocks, {16, 16}, [=] { linear_relu_published(a, b, bias, y, m, n, k); });",
)


def program(source: Path, macros: Mapping[str, str], texts: tuple[str, str], folder: Path) -> ctypes.CDLL:
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    text = RUN.format(source=source, parameters=texts[0], calls=texts[1])
    (folder / "kernel.cpp").write_text(text)
    command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread"]
    command += ["-I", str(HERE / "cpu_threads"), "-I", str(HERE / "cuda")]
    command += [f"-D{name}={value}" for name, value in macros.items()]
    subprocess.run([*command, str(folder / "kernel.cpp"), "-o", str(folder / "kernel.so")], check=True)
    return ctypes.CDLL(str(folder / "kernel.so"))


def pointers(*tensors: torch.Tensor) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(t.data_ptr()) for t in tensors]


@pytest.mark.parametrize("function", ["relu", "gelu", "silu"])
@pytest.mark.parametrize(("element", "dtype"), [("__nv_bfloat16", torch.bfloat16), ("__half", torch.float16)])
def test_gradients_of_z_and_of_the_bias_are_those_of_torch(
    function: str, element: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    library = program(linear_backward.SOURCE, linear_backward.defines(function, element), DERIVATIVE, tmp_path)
    backwards: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
        "relu": lambda z, g: torch.ops.aten.threshold_backward(g, z, 0),
        "gelu": lambda z, g: torch.ops.aten.gelu_backward(g, z),
        "silu": lambda z, g: torch.ops.aten.silu_backward(g, z),
    }
    unit = torch.finfo(dtype).eps / 2
    for m, n in ((1, 8), (65, 264), (130, 40)):
        torch.manual_seed(m)
        z, dy = torch.randn((m, n)).to(dtype), torch.randn((m, n)).to(dtype)
        parts = -(-m // linear_backward.PART_ROWS)
        dz, db = torch.full((m, n), float("nan"), dtype=dtype), torch.full((n,), float("nan"), dtype=dtype)
        sums = torch.full((parts, n), float("nan"))
        library.run(*pointers(z, dy, dz, sums, db), ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_uint(parts))
        exact = backwards[function](z.double(), dy.double())
        assert (
            (dz.double() - exact).abs() <= 1.01 * unit * exact.abs() + 2.0**-20 * dy.double().abs() + 2.0**-24
        ).all()
        allowed = 1.01 * unit * exact.sum(0).abs() + 2.0**-20 * dy.double().abs().sum(0) + 2.0**-24
        assert ((db.double() - exact.sum(0)).abs() <= allowed).all()


def test_the_published_kernels_compute_a_product_and_a_layer(tmp_path: Path) -> None:
    library = program(published.SOURCE, {}, PUBLISHED, tmp_path)
    for m, n, k in ((1, 1, 1), (17, 33, 5), (16, 48, 32)):
        torch.manual_seed(m)
        a, b, bias = (torch.randint(-3, 4, shape).float() for shape in ((m, k), (k, n), (n,)))
        c, y = torch.full((m, n), float("nan")), torch.full((m, n), float("nan"))
        library.run(*pointers(a, b, bias, c, y), *map(ctypes.c_int, (m, n, k)))
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
