"""Quantisation of rows that several blocks share, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler, unwritten
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.core.problem import Problem
from kernelviz.ops import Op, op_named
from kernelviz.ops.kernels.split_rows import RowSplit
from kernelviz.ops.quantize.cuda_split import SOURCE
from kernelviz.ops.quantize.reference import EPS, SMALLEST, largest

KERNELS = ("quantize_parts", "quantize_from_parts")
DTYPES = {"fp32": MODES[0], "bf16": MODES[1], "fp16": MODES[0]}
OPS = ("quantize_int8", "quantize_fp8", "rmsnorm_quantize_fp8")
SHAPES = ((3, 4099, 3), (2, 4096, 4), (5, 2051, 2), (1, 1031, 5), (2, 9, 1))
"""Rows, their length, and blocks that share one: with starts on 16 bytes and without, fewer chunks than blocks, a short row."""
NUMBERS = "float eps, float smallest, float largest) {"


def run(
    emulator: Emulator, op: Op, inputs: tuple[Tensor, ...], parts: int, mode: Mode, text: Callable[[str], str]
) -> tuple[tuple[Tensor, Tensor], str]:
    """The 8-bit numbers and the scales that the two launches leave, and the first error."""
    x_MN, w = inputs[0], inputs[1] if len(inputs) > 1 else 0
    m, n = x_MN.shape
    split = RowSplit(parts, lanes=64)
    target = "int8" if op.name == "quantize_int8" else "fp8"
    macros = split.defines(x_MN) | {
        "INT8": str(int(target == "int8")),
        "NORM": str(len(inputs) - 1),
        "SPLIT_BLOCKS": "1",
    }
    code = text_of(SOURCE)
    assert NUMBERS in code
    # The emulator passes whole numbers as arguments.
    code = code.replace(NUMBERS, f"float, float, float largest) {{ const float eps = {EPS}f, smallest = {SMALLEST}f;")
    program = emulator.program(SOURCE, KERNELS, macros, text=text(code))
    partials = unwritten((m, parts, 2), torch.float32)
    q, scales = Output(m, n, torch.float8_e4m3fn), Output(m, 1, torch.float32)
    grid = Grid(blocks=m * parts, threads=split.lanes)
    error = program.run([x_MN, w, partials, m, n, parts], grid, mode)
    arguments = [x_MN, w, partials, q.matrix, scales.matrix, m, n, parts, 0, 0, int(largest(target))]
    error = error or program.run(arguments, grid, mode, kernel=KERNELS[1])
    assert q.guard_is_unchanged()
    assert scales.guard_is_unchanged()
    q_MN = q.matrix.view(torch.int8) if target == "int8" else q.matrix
    return (q_MN.clone(), scales.matrix.view(m).clone()), error


def right(op: Op, problem: Problem, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, Tensor]) -> bool:
    return compare(op, problem, inputs, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    op = op_named(name)
    for m, n, parts in SHAPES:
        problem = op.problem({"m": m, "n": n}, dtype)
        inputs = inputs_of(op, problem)
        outputs, error = run(emulator, op, inputs, parts, DTYPES[dtype], lambda text: text)
        assert error == "", (m, n)
        assert right(op, problem, inputs, outputs), (m, n)


@needs_compiler
def test_a_row_with_nan_has_nan_as_its_scale_and_no_other_row_has(emulator: Emulator) -> None:
    op = op_named("quantize_int8")
    (x_MN,) = inputs_of(op, op.problem({"m": 3, "n": 4099}, "fp32"))
    x_MN[1, 4098] = torch.nan
    (_, scale_M), error = run(emulator, op, (x_MN,), 3, MODES[0], lambda text: text)
    assert error == ""
    assert scale_M.isnan().tolist() == [False, True, False]


MISTAKES = {
    "a block leaves its last chunk out": ("i < piece.count", "i < piece.count - 1"),
    "every other chunk of a block is not stored": ("row.rank -= piece.step", "row.rank -= 2 * piece.step"),
    "the weight is not shifted": ("16 - row.head * (int)sizeof(T)", "16"),
    "words of the weight are not shifted": ("if (from & 8) {", "if (false) {"),
    "bits of the weight are not shifted": ("from % 4 * 8", "0"),
    "the vector before is not read": ("j ? from[-1]", "false ? from[-1]"),
    "the weight is read beyond its end": (" || (long long)(j + 1) * WIDTH > row.n", ""),
    "partial results of another row are merged": ("partials[row.row * parts + i]", "partials[i]"),
    "squares of one part are used": ("a.squares + b.squares", "a.squares"),
    "the largest element is taken without the weight": ("weighted(row, w, k, a);", ""),
    "the last elements of a row are not stored": ("if (row.holds(k, e)) {", "if (e == 0) {"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    before, after = MISTAKES[mistake]
    assert before in text_of(SOURCE)
    op, found = op_named("rmsnorm_quantize_fp8"), []
    # Behind the weight is NaN.
    for m, n in ((5, 4099), (8, 2053)):
        problem = op.problem({"m": m, "n": n}, "bf16")
        x_MN, w_N = inputs_of(op, problem)
        w_N = torch.cat((w_N, w_N.new_full((8,), torch.nan)))[:n]
        outputs, error = run(emulator, op, (x_MN, w_N), 3, MODES[0], lambda text: text.replace(before, after))
        found.append(bool(error) or not right(op, problem, (x_MN, w_N), outputs))
    assert any(found)
