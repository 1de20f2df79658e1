"""Kernels of `row_sum` and `argmax` by a warp, a block or several blocks a row, run on the processor, and planted mistakes."""

from __future__ import annotations

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from test_one_block import ELEMENTS, view_of
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.row_reduction import cuda

pytestmark = needs_compiler
THREADS = 64
KERNELS = ("row_per_thread", "row_per_warp", "row_per_block", "row_split")
SHAPES = ((1, 1), (3, 7), (2, 1031), (9, 264), (3, 5003))
"""Rows below a vector and a block, of whole vectors and not, with several vectors a thread and fewer."""
INTRINSICS = """
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline unsigned atomicInc(unsigned* to, unsigned last) {
    const unsigned before = *to;
    *to = before >= last ? 0 : before + 1;
    return before;
}
inline unsigned __shfl_sync(unsigned, unsigned value, int lane) {
    return __float_as_uint(emulated::of_lane(__uint_as_float(value), lane));
}
"""


def text_of() -> str:
    """The text of the kernels, with the intrinsics that the emulator does not have."""
    header = '#include "vec16.cuh"\n'
    text = cuda.SOURCE.read_text()
    assert header in text
    return text.replace(header, header + INTRINSICS)


def result(
    emulator: Emulator, name: str, kernel: str, x_MN: Tensor, dtype: str, splits: int, mode: Mode, text: str
) -> tuple[Tensor, str]:
    """What two launches leave, and the emulator's error."""
    m, n = x_MN.shape
    argmax = name == "argmax"
    out = Output(1, m, torch.int64 if argmax else x_MN.dtype)
    defines = {"ELEMENT": ELEMENTS[dtype], "THREADS": str(THREADS)} | ({"ARGMAX": "1"} if argmax else {})
    program = emulator.program(cuda.SOURCE, KERNELS, defines, text=text)
    tickets = torch.zeros(m, dtype=torch.int32)
    arguments: list[Tensor | int] = [x_MN, out.matrix, m, n]
    blocks, threads = {
        "row_per_thread": (-(-m // 128), 128),
        "row_per_warp": (-(-m // 8), 256),
        "row_per_block": (m, THREADS),
        "row_split": (m * splits, THREADS),
    }[kernel]
    if kernel == "row_split":
        values, indices = torch.full((m * splits,), float("nan")), torch.zeros(m * splits, dtype=torch.int32)
        arguments = [x_MN, values, indices, tickets, out.matrix, n, splits]
    grid, error = Grid(blocks=blocks, threads=threads), ""
    for _ in range(2):  # the second launch finds the tickets as the first one left them
        error = program.run(arguments, grid, mode, kernel=kernel, readable=(x_MN, x_MN))
        assert error or not tickets.any()
    assert out.guard_is_unchanged()
    return out.matrix[0].clone(), error


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("name", "dtype"), [("row_sum", "fp32"), ("row_sum", "bf16"), ("argmax", "fp16")])
def test_kernels_agree_with_the_reference(name: str, dtype: str, kernel: str, emulator: Emulator) -> None:
    op, text = op_named(name), text_of()
    for number, (m, n) in enumerate(SHAPES):
        problem = op.problem({"m": m, "n": n}, dtype)
        (x_MN,) = inputs_of(op, problem)
        view_MN = view_of(x_MN.view(-1), number % 4).view(m, n)
        for splits in (1, 2, 5):
            for mode in MODES:
                y_M, error = result(emulator, name, kernel, view_MN, dtype, splits, mode, text)
                assert error == "", (m, n, splits)
                assert compare(op, problem, (x_MN,), y_M).passed, (m, n, splits)
            if kernel != "row_split":
                break


def test_the_first_of_equal_numbers_and_nan(emulator: Emulator) -> None:
    for numbers in ((700, 20, 3000), (3001, 5)):
        x_MN = torch.zeros(1, 3003)
        x_MN[0, list(numbers)] = 1.0
        for at, expected in ((None, min(numbers)), (2500, 2500)):
            if at is not None:
                x_MN[0, at:] = float("nan")
            for mode in MODES:
                view_MN = view_of(x_MN.view(-1), 1).view(1, -1)
                y_M, error = result(emulator, "argmax", "row_split", view_MN, "fp32", 4, mode, text_of())
                assert error == ""
                assert y_M.tolist() == [expected]


MISTAKES = {
    "the last elements are left out": ("if (lane < n - tail) {", "if (lane + 1 < n - tail) {"),
    "the first elements are left out": ("if (lane < head) {", "if (lane + 1 < head) {"),
    "all blocks of a row read the same": ("piece * THREADS + threadIdx.x", "threadIdx.x"),
    "a vector too many": ("(VECTORS - 1) * lanes < count", "(VECTORS - 1) * lanes < count + 1"),
    "the last part is left out": ("k < splits; k += 32", "k < splits - 1; k += 32"),
    "the results of the parts are in one place": ("values[blockIdx.x] = ", "values[row] = "),
    "threads do not wait for the results of warps": ("    __syncthreads();\n    if (warp == 0)", "    if (warp == 0)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_gives_wrong_sums(mistake: str, emulator: Emulator) -> None:
    op, (before, after) = op_named("row_sum"), MISTAKES[mistake]
    problem = op.problem({"m": 3, "n": 3003}, "fp32")
    (x_MN,) = inputs_of(op, problem)
    view_MN = view_of(x_MN.view(-1), 1).view(3, 3003)
    text = text_of()
    assert before in text
    wrong = []
    for mode in MODES:
        y_M, error = result(emulator, "row_sum", "row_split", view_MN, "fp32", 3, mode, text.replace(before, after))
        wrong.append(bool(error) or not compare(op, problem, (x_MN,), y_M).passed)
    assert any(wrong)


def flagged(
    emulator: Emulator, x_MN: Tensor, dtype: str, splits: int, change: tuple[str, str] = ("", "")
) -> tuple[Tensor, str]:
    """The sums by a kernel of which the last block of a row waits, launched twice, and the emulator's error. Blocks run in their
    order, because one that waits for a later one would wait for ever."""
    m, n = x_MN.shape
    out, slots = Output(1, m, x_MN.dtype), torch.zeros(m * splits, dtype=torch.int64)
    text = text_of()
    assert change[0] in text
    defines = {"ELEMENT": ELEMENTS[dtype], "THREADS": str(THREADS)}
    text = text.replace(*change) if change[0] else text
    program = emulator.program(cuda.SOURCE, "row_sum_flagged", defines, text=text)
    error = ""
    for _ in range(2):  # the second launch finds the slots as the first one left them
        error = error or program.run(
            [x_MN, slots, out.matrix, n, splits], Grid(blocks=m * splits, threads=THREADS), MODES[0]
        )
        error = error or ("slots are not 0" if slots.any() else "")
    assert out.guard_is_unchanged()
    return out.matrix[0].clone(), error


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_block_that_waits_adds_up_the_sums_of_its_row(dtype: str, emulator: Emulator) -> None:
    op = op_named("row_sum")
    for m, n in (*SHAPES, (2, 12001)):
        problem = op.problem({"m": m, "n": n}, dtype)
        (x_MN,) = inputs_of(op, problem)
        for splits, offset in ((1, 0), (2, 3), (5, 1), (131, 0)):
            y_M, error = flagged(emulator, view_of(x_MN.view(-1), offset).view(m, n), dtype, splits)
            assert error == ""
            assert compare(op, problem, (x_MN,), y_M).passed, (m, n, splits, offset)


FLAGGED_MISTAKES = {
    "the sum of the block that waits is left out": ("threadIdx.x == 0 ? partial.value : 0.0f", "0.0f"),
    "a block is left out": ("i = threadIdx.x; i < others;", "i = threadIdx.x + 1; i < others;"),
    "the last elements are left out": ("lane < edges", "lane + 1 < edges"),
    "slots are not cleared": ("of_row[i] = 0;", ""),
    "all blocks read the first part": ("piece * THREADS + threadIdx.x, splits", "threadIdx.x, splits"),
}


@pytest.mark.parametrize("mistake", FLAGGED_MISTAKES)
def test_a_mistake_in_the_kernel_that_waits_gives_wrong_sums(mistake: str, emulator: Emulator) -> None:
    op = op_named("row_sum")
    problem = op.problem({"m": 3, "n": 5003}, "fp32")
    (x_MN,) = inputs_of(op, problem)
    y_M, error = flagged(emulator, view_of(x_MN.view(-1), 1).view(3, 5003), "fp32", 5, FLAGGED_MISTAKES[mistake])
    assert error or not compare(op, problem, (x_MN,), y_M).passed
