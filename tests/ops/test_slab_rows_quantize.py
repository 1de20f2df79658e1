"""Quantisation of many short rows after a normalisation, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops import op_named
from kernelviz.ops.kernels.row_slabs import SlabRing, row_slab, rows_in_registers
from kernelviz.ops.quantize.cuda_slab import ARRAYS, LONGEST_ROW_BYTES, SLABS, SOURCE, bind_slab
from kernelviz.ops.quantize.reference import EPS, SMALLEST

OP = op_named("rmsnorm_quantize_fp8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SMALL = replace(SLABS, threads=32, stages=2, slab_bytes=2048)
"""Of which a stage is used again after one slab."""
LENGTHS = (1, 2, 3, 5, 6, 7, 8, 12, 16, 20, 21, 33, 63, 64, 100, 127, 128)
NUMBERS = "float eps,\n    float smallest, "


def run(
    emulator: Emulator,
    inputs: tuple[Tensor, Tensor],
    mode: Mode,
    ring: SlabRing = SLABS,
    text: Callable[[str], str] = lambda text: text,
) -> tuple[tuple[Tensor, Tensor], str]:
    """The 8-bit numbers and the scales that a launch with two persistent blocks leaves, and the first error."""
    x_MN, w_N = inputs
    m, n = x_MN.shape
    itemsize = x_MN.element_size()
    slab = rows_in_registers(n, itemsize, ring=ring, arrays=ARRAYS)
    if slab is None:
        slab = row_slab(m, n, itemsize, 2, ring=ring, arrays=ARRAYS)
        assert slab is not None
        slab = slab.balanced(m, n * itemsize, 2)
    slabs = -(-m // slab.rows)
    code = text_of(SOURCE)
    assert NUMBERS in code
    # The emulator passes whole numbers as arguments.
    code = (
        code.replace(NUMBERS, "float, float, ")
        .replace("+ eps)", f"+ {EPS}f)")
        .replace(", smallest)", f", {SMALLEST}f)")
    )
    program = emulator.program(SOURCE, "rmsnorm_quantize_slabs", slab.defines(x_MN), text=text(code))
    q, scales = Output(m, n, torch.float8_e4m3fn), Output(m, 1, torch.float32)
    grid = Grid(
        blocks=slabs if slab.in_registers else min(2, slabs), threads=ring.threads, shared_bytes=slab.shared_bytes
    )
    arguments = [x_MN, w_N, q.matrix, scales.matrix, m, n, 0, 0, slab.rows, slab.tensor_bytes]
    error = program.run(arguments, grid, mode, readable=inputs)
    assert q.guard_is_unchanged()
    assert scales.guard_is_unchanged()
    return (q.matrix.clone(), scales.matrix.view(m).clone()), error


def problem_of(m: int, n: int, dtype: str) -> Problem:
    return OP.problem({"m": m, "n": n}, dtype)


def right(problem: Problem, inputs: tuple[Tensor, Tensor], outputs: tuple[Tensor, Tensor]) -> bool:
    return compare(OP, problem, inputs, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_agree_with_the_reference(dtype: str, emulator: Emulator) -> None:
    for n in LENGTHS:
        if n * DTYPES[dtype].itemsize > LONGEST_ROW_BYTES:
            continue
        for m, ring, mode in (
            (1, SLABS, MODES[0]),
            (613, SLABS, MODES[0]),
            (211, SMALL, MODES[0]),
            (211, SMALL, MODES[1]),
        ):
            problem = problem_of(m, n, dtype)
            inputs = inputs_of(OP, problem)
            outputs, error = run(emulator, inputs, mode, ring)
            assert error == "", (m, n)
            assert right(problem, inputs, outputs), (m, n)


@needs_compiler
@pytest.mark.parametrize("n", [3, 21, 64])
def test_a_row_with_nan_has_nan_as_its_scale_and_no_other_row_has(n: int, emulator: Emulator) -> None:
    x_MN, w_N = inputs_of(OP, problem_of(37, n, "fp32"))
    x_MN[5, n - 1] = torch.nan
    (_, scale_M), error = run(emulator, (x_MN, w_N), MODES[0])
    assert error == ""
    assert scale_M.isnan().nonzero().flatten().tolist() == [5]


@needs_compiler
@pytest.mark.parametrize("factor", [0.0, 2.0**-120, 2.0**124])
def test_rows_of_zeros_and_of_tiny_and_huge_numbers(factor: float, emulator: Emulator) -> None:
    problem = problem_of(37, 21, "fp32")
    x_MN, w_N = inputs_of(OP, problem)
    inputs = x_MN, w_N.clamp(-1, 1) * factor
    outputs, error = run(emulator, inputs, MODES[0])
    assert error == ""
    assert right(problem, inputs, outputs)


@pytest.mark.parametrize("n", [3, 64])
def test_views_that_do_not_start_on_16_bytes_are_refused(n: int) -> None:
    x_MN = torch.ones(4 * n + 1, dtype=torch.bfloat16)[1:].view(4, n)
    with pytest.raises(BadField, match="16 bytes"):
        bind_slab(x_MN, torch.ones(n, dtype=torch.bfloat16), eps=EPS)


MISTAKES = {
    "rows of a thread that do not exist are stored": (3, "if (rows.all_inside()) {", "if (rows.is_inside(0)) {"),
    "a thread's last rows are not stored": (3, "if (rows.is_inside(i / ", "if (false && rows.is_inside(i / "),
    "the weight is left out": (21, "v[k][e] *= weights[e];", ""),
    "the scale of a row is that of its neighbour": (21, "scales[row.number] =", "scales[row.number ^ 1] ="),
    "numbers leave before they have been written": (33, "    }\n    __syncwarp();", "    }\n"),
    "the last bytes of a warp are not stored": (21, "if (whole * ALIGNED + lane < count) {", "if (false) {"),
    "a byte too many is stored": (21, "count = last - first + n;", "count = last - first + n + 1;"),
    "rows of other warps are stored": (21, "row.number * n - (mine - first)", "row.number * n - mine"),
    "lanes do not exchange what they have found": (64, "warp_reduce<SLAB_LANES>", "warp_reduce<1>"),
    "a row that does not exist is stored": (
        64,
        "} else if (row.inside) {",
        "} else if (row.inside || row.number == m) {",
    ),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    n, before, after = MISTAKES[mistake]
    assert before in text_of(SOURCE)
    problem = problem_of(213, n, "bf16")
    inputs = inputs_of(OP, problem)

    def is_found(mode: Mode, ring: SlabRing) -> bool:
        try:
            outputs, error = run(emulator, inputs, mode, ring, lambda text: text.replace(before, after))
        except AssertionError:
            return True
        return bool(error) or not right(problem, inputs, outputs)

    assert any(is_found(mode, ring) for mode in MODES for ring in (SMALL, SLABS))
