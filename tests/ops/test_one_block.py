"""Kernels of one block of `sum`, `mean` and `cumsum` by fibers of the processor: any size and offset, and planted mistakes."""

from __future__ import annotations

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from torch import Tensor

from kernelviz.ops import Op, op_named
from kernelviz.ops.cumsum import one_block as scan
from kernelviz.ops.reduction import one_block as reduction

pytestmark = needs_compiler
ELEMENTS = {"fp32": "float", "fp16": "__half", "bf16": "__nv_bfloat16"}
SIZES = (1, 2, 7, 8, 31, 33, 257, 949, 1024, 4099, 8193, 36610)
"""Below a vector and a warp, one warp and several, one vector a thread and several, more than the block has in flight."""


def view_of(x_N: Tensor, offset: int) -> Tensor:
    """The same numbers, `offset` elements behind an aligned address, with NaN before and after them."""
    whole = torch.full((x_N.numel() + 128,), float("nan"), dtype=x_N.dtype)
    start = -whole.data_ptr() // x_N.element_size() % (64 // x_N.element_size()) + 16 + offset
    view = whole[start : start + x_N.numel()]
    view.copy_(x_N)
    assert view.data_ptr() % 16 == offset * x_N.element_size() % 16
    return view


def output_of(
    emulator: Emulator, op: Op, x_N: Tensor, element: str, mode: Mode, change: tuple[str, str] = ("", "")
) -> tuple[Tensor, str]:
    """What the kernel of the op computes, and the emulator's error."""
    n = x_N.numel()
    kernel, source, module = ("cumsum_one_block", scan.SOURCE, scan)
    out = Output(1, n if op.name == "cumsum" else 1, x_N.dtype)
    arguments: list[Tensor | int] = [x_N, out.matrix, n, int(x_N.data_ptr() % 16 == 0)]
    text = source.read_text()
    if op.name != "cumsum":
        kernel, source, module = ("sum_one_block", reduction.SOURCE, reduction)
        # The emulator passes whole numbers.
        text = source.read_text().replace("float divisor", "long long divisor").replace("/ divisor", "/ (float)divisor")
        arguments[3] = n if op.name == "mean" else 1
    assert change[0] in text
    threads, vectors = module.threads_and_vectors(n, x_N.element_size())
    program = emulator.program(
        source, kernel, {"ELEMENT": element, "VECTORS": str(vectors)}, text=text.replace(*change) if change[0] else text
    )
    error = program.run(arguments, Grid(blocks=1, threads=threads), mode)
    assert out.guard_is_unchanged()
    return out.matrix[0].clone(), error


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["sum", "mean", "cumsum"])
def test_kernels_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    op = op_named(name)
    for n in SIZES:
        problem = op.problem({"n": n}, dtype)
        (x_N,) = inputs_of(op, problem)
        for offset in (0, 1, 3):
            results = [output_of(emulator, op, view_of(x_N, offset), ELEMENTS[dtype], mode) for mode in MODES]
            for y_N, error in results:
                assert error == ""
                assert compare(op, problem, (x_N,), y_N).passed, (n, offset)
            assert torch.equal(results[0][0], results[1][0])


MISTAKES = {
    "sum": {
        "the last element is left out": ("threadIdx.x < edges", "threadIdx.x + 1 < edges"),
        "the last vector is read twice": ("i < count", "i < count + 1"),
        "threads do not wait for the sums of warps": (
            "        __syncthreads();\n        if (warp == 0)",
            "        if (warp == 0)",
        ),
    },
    "cumsum": {
        "the last element is left out": ("i == partial", "i == partial + 1"),
        "threads do not wait for the sums of warps": (
            "__syncthreads();\n            const float upto",
            "const float upto",
        ),
        "the next tile overwrites the sums of warps": ("__syncthreads();  //", "//"),
        "the sum of earlier tiles is left out": ("float base = carry", "float base = 0.0f"),
    },
}


@pytest.mark.parametrize(("name", "mistake"), [(name, one) for name, some in MISTAKES.items() for one in some])
def test_a_mistake_in_the_kernel_gives_wrong_numbers(name: str, mistake: str, emulator: Emulator) -> None:
    op = op_named(name)
    problem = op.problem({"n": 20001}, "fp32")
    (x_N,) = inputs_of(op, problem)
    wrong = []
    for mode in MODES:
        y_N, error = output_of(emulator, op, view_of(x_N, 0), "float", mode, MISTAKES[name][mistake])
        wrong.append(bool(error) or not compare(op, problem, (x_N,), y_N).passed)
    assert any(wrong)
