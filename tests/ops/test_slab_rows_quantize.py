"""Quantisation of many short rows, alone and after a normalisation, by fibers of the processor, with planted mistakes."""

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
from kernelviz.ops import Op, op_named
from kernelviz.ops.kernels.row_lanes import row_lanes
from kernelviz.ops.kernels.row_slabs import SlabRing, row_slab, rows_in_registers
from kernelviz.ops.quantize.cuda_slab import (
    KNOWN_LENGTH_SOURCE,
    LONGEST_ROW_BYTES,
    SLABS,
    SOURCE,
    arrays,
    bind_slab,
    format_defines,
    known_length_defines,
)
from kernelviz.ops.quantize.reference import EPS, SMALLEST, largest

OPS = ("quantize_int8", "quantize_fp8", "rmsnorm_quantize_fp8")
OP = op_named("rmsnorm_quantize_fp8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SMALL = replace(SLABS, threads=32, stages=2, slab_bytes=2048)
"""Of which a stage is used again after one slab."""
LENGTHS = (1, 2, 3, 5, 6, 7, 8, 12, 16, 20, 21, 22, 30, 33, 63, 64, 100, 127, 128)
NUMBERS = "float eps,\n    float smallest"


def run(
    emulator: Emulator,
    inputs: tuple[Tensor, ...],
    mode: Mode,
    ring: SlabRing = SLABS,
    text: Callable[[str], str] = lambda text: text,
    op: Op = OP,
) -> tuple[tuple[Tensor, Tensor], str]:
    """The 8-bit numbers and the scales that a launch with two persistent blocks leaves, and the first error."""
    x_MN, weighted = inputs[0], len(inputs) > 1
    target = "int8" if op.name == "quantize_int8" else "fp8"
    registers = arrays(weighted=weighted)
    m, n = x_MN.shape
    itemsize = x_MN.element_size()
    slab = rows_in_registers(n, itemsize, ring=ring, arrays=registers)
    if slab is None:
        slab = row_slab(m, n, itemsize, 2, ring=ring, arrays=registers)
        assert slab is not None
        slab = slab.balanced(m, n * itemsize, 2)
    slabs = -(-m // slab.rows)
    code = text_of(SOURCE)
    assert NUMBERS in code
    macros = slab.defines(x_MN) | format_defines(target, weighted=weighted)
    # The emulator passes whole numbers as arguments.
    code = (
        code.replace(NUMBERS, "float, float").replace("+ eps)", f"+ {EPS}f)").replace(", smallest)", f", {SMALLEST}f)")
    )
    program = emulator.program(SOURCE, "quantize_slabs", macros, text=text(code))
    q, scales = Output(m, n, torch.float8_e4m3fn), Output(m, 1, torch.float32)
    grid = Grid(
        blocks=slabs if slab.in_registers else min(2, slabs), threads=ring.threads, shared_bytes=slab.shared_bytes
    )
    arguments = [x_MN, inputs[1] if weighted else 0, q.matrix, scales.matrix, m, n, 0, 0, slab.rows, slab.tensor_bytes]
    error = program.run(arguments, grid, mode, readable=inputs)
    assert q.guard_is_unchanged()
    assert scales.guard_is_unchanged()
    q_MN = q.matrix.view(torch.int8) if target == "int8" else q.matrix
    return (q_MN.clone(), scales.matrix.view(m).clone()), error


def run_few(
    emulator: Emulator, inputs: tuple[Tensor, ...], mode: Mode, op: Op, text: Callable[[str], str] = lambda text: text
) -> tuple[tuple[Tensor, Tensor], str]:
    """The same of the kernel that has lanes for each of few rows."""
    x_MN, weighted = inputs[0], len(inputs) > 1
    target = "int8" if op.name == "quantize_int8" else "fp8"
    m, n = x_MN.shape
    known = row_lanes(m, n, x_MN.element_size())
    assert known is not None
    code = text_of(KNOWN_LENGTH_SOURCE)
    numbers = "float eps,\n    float smallest, float factor_of_smallest) {"
    assert numbers in code
    constants = {"eps": EPS, "smallest": SMALLEST, "factor_of_smallest": largest(target) / SMALLEST}
    constants_of = "".join(f"\n    const float {name} = {value}f;" for name, value in constants.items())
    code = code.replace(numbers, f"float, float, float) {{{constants_of}")
    macros = known_length_defines(x_MN, known, target, weighted=weighted)
    program = emulator.program(KNOWN_LENGTH_SOURCE, "quantize_known_length", macros, text=text(code))
    q, scales = Output(m, n, torch.float8_e4m3fn), Output(m, 1, torch.float32)
    grid = Grid(blocks=known.blocks, threads=known.threads)
    arguments = [x_MN, inputs[1] if weighted else 0, q.matrix, scales.matrix, m - 1, 0, 0, 0]
    error = program.run(arguments, grid, mode, readable=inputs)
    assert q.guard_is_unchanged()
    assert scales.guard_is_unchanged()
    q_MN = q.matrix.view(torch.int8) if target == "int8" else q.matrix
    return (q_MN.clone(), scales.matrix.view(m).clone()), error


def problem_of(m: int, n: int, dtype: str, op: Op = OP) -> Problem:
    return op.problem({"m": m, "n": n}, dtype)


def right(problem: Problem, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, Tensor], op: Op = OP) -> bool:
    return compare(op, problem, inputs, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    op = op_named(name)
    for n in LENGTHS:
        if n * DTYPES[dtype].itemsize > LONGEST_ROW_BYTES:
            continue
        for m, ring, mode in (
            (1, SLABS, MODES[0]),
            (613, SLABS, MODES[0]),
            (211, SMALL, MODES[0]),
            (211, SMALL, MODES[1]),
        ):
            problem = problem_of(m, n, dtype, op)
            inputs = inputs_of(op, problem)
            outputs, error = run(emulator, inputs, mode, ring, op=op)
            assert error == "", (m, n)
            assert right(problem, inputs, outputs, op), (m, n)


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_few_rows_with_lanes_each_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    op = op_named(name)
    for n in (1, 2, 3, 4, 5, 8, 13, 26, 33, 64, 100, 128, 250, 512):
        for m in (1, 77) if n < 64 else (5,):
            if row_lanes(m, n, DTYPES[dtype].itemsize) is None:
                continue
            problem = problem_of(m, n, dtype, op)
            inputs = inputs_of(op, problem)
            outputs, error = run_few(emulator, inputs, MODES[0], op)
            assert error == "", (m, n)
            assert right(problem, inputs, outputs, op), (m, n)


@needs_compiler
@pytest.mark.parametrize(
    ("text", "mistaken"),
    [
        ("squares = fmaf(v[k][e], v[k][e], squares);", ""),
        ("fabsf(v[k][e])", "v[k][e]"),
        ("(w) + lane)", "(w))"),
        ("min((int)(thread / ROW_LANES), last_row)", "min((int)(thread / ROW_LANES), last_row + 1)"),
        ("squares += __shfl_xor", "squares = __shfl_xor"),
        ("most = larger(most, __shfl", "most = (__shfl"),
        ("apart = ROW_LANES / 2", "apart = ROW_LANES / 4"),
        ("UNITS_OF_ROW || k * ROW_LANES + lane < UNITS_OF_ROW", "UNITS_OF_ROW || true"),
        ("first)[k * ROW_LANES] = *", "first)[0] = *"),
    ],
)
def test_a_mistake_in_the_kernel_of_few_rows_gives_wrong_numbers(text: str, mistaken: str, emulator: Emulator) -> None:
    problem = problem_of(77, 22, "fp32")
    inputs = inputs_of(OP, problem)

    def changed(code: str) -> str:
        assert text in code
        return code.replace(text, mistaken)

    try:
        outputs, error = run_few(emulator, inputs, MODES[0], OP, changed)
    except AssertionError:
        return  # it wrote behind an output
    assert error or not right(problem, inputs, outputs)


@needs_compiler
@pytest.mark.parametrize("n", [3, 21, 64])
@pytest.mark.parametrize("name", OPS)
def test_a_row_with_nan_has_nan_as_its_scale_and_no_other_row_has(name: str, n: int, emulator: Emulator) -> None:
    op = op_named(name)
    inputs = inputs_of(op, problem_of(37, n, "fp32", op))
    inputs[0][5, n - 1] = torch.nan
    (_, scale_M), error = run(emulator, inputs, MODES[0], op=op)
    assert error == ""
    assert scale_M.isnan().nonzero().flatten().tolist() == [5]


@needs_compiler
@pytest.mark.parametrize("n", [3, 22, 64])
@pytest.mark.parametrize("name", OPS)
def test_few_rows_with_nan_infinity_and_zeros(name: str, n: int, emulator: Emulator) -> None:
    """As many rows have NaN, and zeros are numbers."""
    op = op_named(name)
    problem = problem_of(37, n, "fp32", op)
    inputs = inputs_of(op, problem)
    x_MN = inputs[0]
    x_MN[4] = 0.0
    x_MN[7] *= 2.0**-120
    outputs, error = run_few(emulator, inputs, MODES[0], op)
    assert error == ""
    assert right(problem, inputs, outputs, op)
    x_MN[5, n - 1] = torch.nan
    x_MN[9, 0] = -torch.inf
    (q_MN, scale_M), error = run_few(emulator, inputs, MODES[0], op)
    assert error == ""
    infinite = scale_M[9].isnan() if op is OP else scale_M[9].isinf()
    assert infinite
    assert scale_M.isnan().nonzero().flatten().tolist() == ([5, 9] if op is OP else [5])
    assert op.name == "quantize_int8" or q_MN[5].isnan().all()


@needs_compiler
@pytest.mark.parametrize("factor", [0.0, 2.0**-120, 2.0**124])
@pytest.mark.parametrize("name", OPS)
def test_rows_of_zeros_and_of_tiny_and_huge_numbers(name: str, factor: float, emulator: Emulator) -> None:
    op = op_named(name)
    problem = problem_of(37, 21, "fp32", op)
    inputs = inputs_of(op, problem)
    inputs = (*inputs[:-1], inputs[-1].clamp(-1, 1) * factor)
    outputs, error = run(emulator, inputs, MODES[0], op=op)
    assert error == ""
    assert right(problem, inputs, outputs, op)


@pytest.mark.parametrize("n", [3, 64])
def test_views_that_do_not_start_on_16_bytes_are_refused(n: int) -> None:
    x_MN = torch.ones(4 * n + 1, dtype=torch.bfloat16)[1:].view(4, n)
    with pytest.raises(BadField, match="16 bytes"):
        bind_slab(x_MN, torch.ones(n, dtype=torch.bfloat16), "fp8", eps=EPS)
    with pytest.raises(BadField, match="16 bytes"):
        bind_slab(x_MN, None, "int8")


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
