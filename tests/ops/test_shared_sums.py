"""The kernels of `scatter_add` with sums in shared memory and for few rows, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, needs_compiler
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.scatter_add import few_rows, shared
from kernelviz.ops.scatter_add.cuda import vector_bytes

SIZES = ((1, 4, 1), (5, 301, 2), (3, 1031, 3), (7, 1000, 4), (2, 517, 7), (6, 67, 9), (4, 70, 131), (33, 5000, 2))
"""Sums, rows and their lengths: vectors of several rows and of parts of two, with a whole number of vectors and without."""


def result(
    emulator: Emulator, inputs: tuple[Tensor, ...], count: int, mode: Mode, change: tuple[str, str] = ("", "")
) -> tuple[Tensor, str]:
    """What `count` multiprocessors add to x, and the emulator's error."""
    x_VD, src_TD, ids_T = inputs
    (v, d), t, width = x_VD.shape, len(ids_T), 16 // x_VD.element_size()
    table = shared.shared_table(v, t, d, width, count, MOST_SHARED_BYTES)
    assert table is not None
    text = shared.SOURCE.read_text()
    assert change[0] in text
    text = text.replace(*change).replace("(memory)", "(emulated::dynamic_shared_pointer())")
    defines = table.defines(nvrtc.element_type(x_VD.dtype), d, width)
    program = emulator.program(shared.SOURCE, "scatter_shared", defines, text=text)
    sums = x_VD.float().clone()
    grid = Grid(blocks=table.blocks, threads=shared.THREADS, shared_bytes=table.shared_bytes(v * d))
    error = program.run([sums, src_TD, ids_T, t, d, v * d], grid, mode)
    return sums.to(x_VD.dtype), error


@needs_compiler
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_sums_agree_with_the_reference(emulator: Emulator, dtype: str) -> None:
    op = op_named("scatter_add")
    for v, t, d in SIZES:
        problem = op.problem({"v": v, "t": t, "d": d}, dtype)
        inputs = inputs_of(op, problem)
        for count, mode in zip((1, 3), MODES, strict=True):
            y_VD, error = result(emulator, inputs, count, mode)
            assert error == ""
            assert compare(op, problem, inputs, y_VD).passed, (v, t, d, count)


MISTAKES = {
    "a table is not zero at first": ("table[i] = 0.0f;", "table[i] = 1.0f;"),
    "the last id of a vector is left out": ("(WIDTH - 2) / ROW + 2", "(WIDTH - 2) / ROW + 1"),
    "a row goes on in the same sum": ("id[k][i] = id[k][i + 1];", ""),
    "elements behind the last vector are left out": ("if (behind < count) {", "if (false) {"),
    "one copy of each sum is left out": ("c < COPIES; ++c", "c < COPIES - 1; ++c"),
    "the first sums are left out": ("i + start - entries;", "0;"),
    "threads do not wait for the additions of others": ("    __syncthreads();\n    // Blocks", "    // Blocks"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    op = op_named("scatter_add")
    problem = op.problem({"v": 11, "t": 8003, "d": 3}, "fp32")
    inputs = inputs_of(op, problem)
    right = []
    for mode in MODES:
        y_VD, error = result(emulator, inputs, 3, mode, MISTAKES[mistake])
        right.append(not error and compare(op, problem, inputs, y_VD).passed)
    assert not all(right)


def test_a_table_fits_and_its_blocks_save_additions() -> None:
    for v in (1, 7, 512, 20000):
        for t in (100, 10**5, 10**8):
            for d in (1, 2, 9):
                table = shared.shared_table(v, t, d, 8, 132, MOST_SHARED_BYTES)
                if table is not None:
                    assert table.shared_bytes(v * d) <= MOST_SHARED_BYTES
                    assert 1 <= table.blocks <= 132
                    assert table.blocks * v * d * shared.ADDITIONS_SAVED <= t * d


FEW_ROWS_SIZES = (
    *((1, 1, 1), (1, 40, 3), (5, 4, 130), (3, 33, 8), (131, 7, 1032), (40, 67, 66)),
    *((300, 1024, 2), (2, 5, 4104)),
)
"""Sums, rows and their lengths: an id for each row and many rows of one, one word of bits and 32, accesses of 2 to 16 bytes."""


def few_rows_result(
    emulator: Emulator, inputs: tuple[Tensor, ...], mode: Mode, change: tuple[str, str] = ("", "")
) -> tuple[Tensor, str]:
    """What the kernel for few rows makes of x, and the emulator's error."""
    x_VD, src_TD, ids_T = inputs
    y_VD, (t, d) = x_VD.clone(), src_TD.shape
    width = vector_bytes(y_VD, src_TD)
    vectors = d * x_VD.element_size() // width
    threads = few_rows.threads_of(vectors)
    pieces = -(-vectors // threads)
    text = few_rows.SOURCE.read_text()
    assert change[0] in text
    defines = {
        "ELEMENT": nvrtc.element_type(x_VD.dtype),
        "VEC": str(width // x_VD.element_size()),
        "THREADS": str(threads),
    }
    program = emulator.program(few_rows.SOURCE, "scatter_few_rows", defines, text=text.replace(*change))
    error = program.run([y_VD, src_TD, ids_T, t, vectors, pieces], Grid(blocks=t * pieces, threads=threads), mode)
    return y_VD, error


@needs_compiler
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_few_rows_agree_with_the_reference(emulator: Emulator, dtype: str) -> None:
    op = op_named("scatter_add")
    for v, t, d in FEW_ROWS_SIZES:
        problem = op.problem({"v": v, "t": t, "d": d}, dtype)
        inputs = inputs_of(op, problem)
        for mode in MODES:
            y_VD, error = few_rows_result(emulator, inputs, mode)
            assert error == ""
            assert compare(op, problem, inputs, y_VD).passed, (v, t, d)


FEW_ROWS_MISTAKES = {
    "the block of each row adds": ("if (earlier != 0) {", "if (false) {"),
    "only rows of the same word are earlier": ("earlier |= same[word];", ""),
    "the own row counts twice": ("same[word] & ~(1u << row % 32)", "same[word]"),
    "only the first word has further rows": ("while (bits == 0 && word + 1 < words) {", "while (false) {"),
    "a group of rows is the last one": ("if (count < AT_ONCE) {", "if (true) {"),
    "ids behind the last one count": ("other < t && ids", "ids"),
    "what x had is lost": ("add_to(total, sum);", ""),
    "threads do not wait for the bits of others": ("    __syncthreads();\n", ""),
}


@needs_compiler
@pytest.mark.parametrize("mistake", FEW_ROWS_MISTAKES)
def test_a_mistake_in_few_rows_is_found(mistake: str, emulator: Emulator) -> None:
    op = op_named("scatter_add")
    problem = op.problem({"v": 9, "t": 131, "d": 330}, "fp32")
    x_VD, src_TD, ids_T = inputs_of(op, problem)
    memory = torch.zeros(160, dtype=torch.int64)  # ids behind the last one would belong to the first sum
    memory[:131] = ids_T
    inputs = x_VD, src_TD, memory[:131]
    right = []
    for mode in MODES:
        y_VD, error = few_rows_result(emulator, inputs, mode, FEW_ROWS_MISTAKES[mistake])
        right.append(not error and compare(op, problem, inputs, y_VD).passed)
    assert not all(right)
