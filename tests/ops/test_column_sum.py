"""Kernels of `column_sum` by fibers of the processor, planted mistakes, and what its bound accepts and rejects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, Program, needs_compiler
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.column_reduction import cuda

ELEMENTS = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}
NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
KERNELS = ("column_per_thread", "column_atomics", "column_finish", "column_split")
SHAPES = ((1, 1), (300, 136), (67, 33), (1031, 3), (70, 520))
"""Rows of whole vectors and not, one strip and several, one part of the rows and several."""


def strips_of(x_MN: Tensor, count: int) -> cuda.Strips:
    (m, n), width = x_MN.shape, 16 // x_MN.element_size()
    return cuda.strips_of(m, n, width if n % width == 0 else 1, count)


def sums(program: Program, x_MN: Tensor, tile: cuda.Strips, kernel: str, mode: Mode = MODES[0]) -> tuple[Tensor, str]:
    """The sums that a launch leaves, and the emulator's error."""
    (m, n), out = x_MN.shape, Output(1, x_MN.shape[1], x_MN.dtype)
    grid = Grid(blocks=tile.strips * tile.parts, threads=cuda.THREADS)
    if kernel == "column_per_thread":
        error = program.run([x_MN, out.matrix, m, n], Grid(blocks=-(-n // 128), threads=128), mode, kernel=kernel)
    elif kernel == "column_atomics":
        totals_N = torch.zeros(n)
        error = program.run([x_MN, totals_N, m, n, tile.strips, tile.part_rows], grid, mode, kernel=kernel)
        finish = Grid(blocks=-(-n // cuda.THREADS), threads=cuda.THREADS)
        error = error or program.run([totals_N, out.matrix, n], finish, mode, kernel="column_finish")
    else:
        parts, arrived = torch.full((tile.parts * n,), float("nan")), torch.zeros(tile.strips, dtype=torch.int32)
        sizes = m, n, tile.strips, tile.parts, tile.part_rows
        for _ in range(2):  # the second launch finds the counters as the first one left them
            error = program.run([x_MN, parts, arrived, out.matrix, *sizes], grid, mode, kernel=kernel)
            assert error or not arrived.any()
    assert out.guard_is_unchanged()
    return out.matrix[0], error


@needs_compiler
@pytest.mark.parametrize("mode", MODES, ids=("in_order", "in_reverse"))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=NAMES.get)
def test_kernels_agree_with_the_reference(dtype: torch.dtype, mode: Mode, emulator: Emulator) -> None:
    op = op_named("column_sum")
    for m, n in SHAPES:
        problem = op.problem({"m": m, "n": n}, NAMES[dtype])
        (x_MN,) = inputs_of(op, problem)
        for count in (1, 2):
            tile = strips_of(x_MN, count)
            program = emulator.program(cuda.SOURCE, KERNELS, {"ELEMENT": ELEMENTS[dtype], **tile.defines})
            for kernel in ("column_per_thread", "column_atomics", "column_split"):
                y_N, error = sums(program, x_MN, tile, kernel, mode)
                assert error == ""
                assert compare(op, problem, (x_MN,), y_N.clone()).passed, (kernel, m, n, count)


MISTAKES = {
    "the last row of a part is added twice": ("row < last", "row < last + 1"),
    "threads do not wait for the sums of others": ("    __syncthreads();\n    const int t", "    const int t"),
    "a part begins at the wrong row": ("piece * part;", "piece * (part - 1);"),
    "the sums of the parts are stored in one place": ("(long long)piece * n + column", "column"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_gives_wrong_sums(mistake: str, emulator: Emulator) -> None:
    op, (before, after) = op_named("column_sum"), MISTAKES[mistake]
    problem = op.problem({"m": 299, "n": 130}, "fp32")
    (x_MN,) = inputs_of(op, problem)
    tile = strips_of(x_MN, 2)
    assert tile.parts > 1
    text = cuda.SOURCE.read_text()
    assert before in text
    program = emulator.program(
        cuda.SOURCE, KERNELS, {"ELEMENT": "float", **tile.defines}, text=text.replace(before, after)
    )
    wrong = []
    for mode in MODES:
        y_N, error = sums(program, x_MN, tile, "column_split", mode)
        wrong.append(bool(error) or not compare(op, problem, (x_MN,), y_N.clone()).passed)
    assert any(wrong)


def one_by_one(x_MN: Tensor) -> Tensor:
    """One accumulator in fp32, row after row."""
    return x_MN.float().cumsum(0)[-1].to(x_MN.dtype)


@pytest.mark.parametrize("dtype", NAMES.values())
@pytest.mark.parametrize("m", [1, 131, 20011])
def test_honest_sums_are_accepted(m: int, dtype: str) -> None:
    op = op_named("column_sum")
    problem = op.problem({"m": m, "n": 16}, dtype)
    for seed in range(5):
        (x_MN,) = inputs_of(op, problem, seed)
        for y_N in (one_by_one(x_MN), x_MN.double().sum(0).to(x_MN.dtype), x_MN.sum(0)):
            assert compare(op, problem, (x_MN,), y_N).passed, seed


def in_half_precision(x_MN: Tensor) -> Tensor:
    total_N = x_MN[0].bfloat16()
    for row_N in x_MN[1:]:
        total_N = total_N + row_N.bfloat16()
    return total_N.to(x_MN.dtype)


def without_the_last_row(x_MN: Tensor) -> Tensor:
    return one_by_one(x_MN[:-1])


def one_row_twice(x_MN: Tensor) -> Tensor:
    return one_by_one(torch.cat([x_MN, x_MN[-1:]]))


def the_next_column(x_MN: Tensor) -> Tensor:
    return one_by_one(x_MN).roll(1)


def rows_instead_of_columns(x_MN: Tensor) -> Tensor:
    return one_by_one(x_MN.t())


@pytest.mark.parametrize("dtype", NAMES.values())
@pytest.mark.parametrize(
    "wrong", [in_half_precision, without_the_last_row, one_row_twice, the_next_column, rows_instead_of_columns]
)
def test_another_function_is_rejected(wrong: Callable[[Tensor], Tensor], dtype: str) -> None:
    op = op_named("column_sum")
    problem = op.problem({"m": 1031, "n": 1031}, dtype)
    (x_MN,) = inputs_of(op, problem)
    assert compare(op, problem, (x_MN,), one_by_one(x_MN)).passed
    assert not compare(op, problem, (x_MN,), wrong(x_MN)).passed
