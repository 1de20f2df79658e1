"""The published variants of `add` and `scale` that need no GPU to be tested: what they compute, and how they are offered."""

from __future__ import annotations

import pytest
import torch
from checking import checked, inputs_of
from emulator import MODES, Emulator, Grid, Output, needs_compiler

from kernelviz.ops import op_named
from kernelviz.ops.arithmetic import graph
from kernelviz.ops.scale import published
from kernelviz.ops.scale.reference import FACTOR


@pytest.mark.parametrize(
    ("op", "variant"), [("add", "torch_graph"), ("add", "torch_combined"), ("scale", "cuda_published")]
)
def test_they_run_only_if_they_are_named(op: str, variant: str) -> None:
    assert op_named(op).variant_named(variant).only_when_named


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_without_a_gpu_the_graph_is_the_eager_call(dtype: str) -> None:
    op = op_named("add")
    problem = op.problem({"n": 4099}, dtype)
    assert checked(op, op.variant_named("torch_graph"), problem).passed
    x_N, y_N = inputs_of(op, problem)
    launch = graph.bind_sum(x_N, y_N)
    x_N.add_(1)
    assert torch.equal(torch.as_tensor(launch()), x_N + y_N)


def test_the_combined_variant_adds_overlapping_rows_in_fp16() -> None:
    x_N, y_N = torch.arange(10000.0), torch.full((10000,), 2.0**-12)
    z_N = torch.as_tensor(op_named("add").variant_named("torch_combined").bind(x_N, y_N)())
    # Row i of the 100 × 100 matrix begins at element 32 i. Beside such numbers 2^-12 is lost in fp16.
    assert z_N.view(100, 100)[:, 0].tolist() == [2.0**-12, *(32.0 * i for i in range(1, 100))]
    assert z_N.view(100, 100)[1, :3].tolist() == [32.0, 33.0, 34.0]


@needs_compiler
def test_the_published_extension_scales(emulator: Emulator) -> None:
    scale = torch.tensor(FACTOR, dtype=torch.float32)
    text = (
        published.SOURCE.read_text()
        .replace("float scale", "int bits")
        .replace("x[i] * scale", "x[i] * __uint_as_float(bits)")
    )  # the emulator's arguments are whole numbers
    program = emulator.program(published.SOURCE, "scale_published", {}, text=text)
    bits = int(scale.view(torch.int32))
    for n in (1, 257, 1031):
        x_N = torch.randn(n)
        for mode in MODES:
            out = Output(1, n, torch.float32)
            grid = Grid(blocks=-(-n // published.THREADS), threads=published.THREADS)
            assert program.run([x_N, out.matrix, bits, n], grid, mode) == ""
            assert torch.equal(out.matrix[0], x_N * scale)
            assert out.guard_is_unchanged()
