"""Quantisation of many rows of medium length through a ring of slabs, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Argument, Emulator, Grid, Mode, Output, needs_compiler
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.ops import Op, op_named
from kernelviz.ops.kernels.row_slabs import SHARED_BYTES
from kernelviz.ops.quantize.cuda_slab import RING_SOURCE, format_defines
from kernelviz.ops.quantize.reference import EPS, SMALLEST, largest
from kernelviz.ops.quantize.slab_ring import LONGEST_ROW_BYTES, SHORTEST_ROW_BYTES, number_slab

OPS = ("quantize_int8", "quantize_fp8", "rmsnorm_quantize_fp8")
OP = op_named("rmsnorm_quantize_fp8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LENGTHS = {"fp32": (65, 66, 256, 337, 674), "bf16": (129, 130, 200, 301, 1083), "fp16": (516, 705)}
NUMBERS = "float eps,\n    float smallest, float factor_of_smallest, int rows_a_slab"
BLOCKS = 2


def run(
    emulator: Emulator, inputs: tuple[Tensor, ...], op: Op, mode: Mode, text: Callable[[str], str] = lambda text: text
) -> tuple[tuple[Tensor, Tensor], str]:
    """The 8-bit numbers and the scales that a launch with two persistent blocks leaves, and the first error."""
    x_MN, weighted = inputs[0], len(inputs) > 1
    target = "int8" if op.name == "quantize_int8" else "fp8"
    m, n = x_MN.shape
    large = number_slab(10**9, n, x_MN.element_size(), 1, weighted=weighted)
    assert large is not None
    slab = large.slab
    code = text_of(RING_SOURCE)
    assert NUMBERS in code
    # The emulator passes whole numbers as arguments.
    constants = {"eps": EPS, "smallest": SMALLEST, "factor_of_smallest": largest(target) / SMALLEST}
    lines = "".join(f"\n    const float {name} = {value}f;" for name, value in constants.items())
    code = code.replace(NUMBERS, "float, float, float, int rows_a_slab")
    code = code.replace("int number_bytes) {", f"int number_bytes) {{{lines}")
    macros = slab.defines(x_MN) | format_defines(target, weighted=weighted)
    program = emulator.program(RING_SOURCE, "quantize_slab_ring", macros, text=text(code))
    q, scales = Output(m, n, torch.float8_e4m3fn), Output(m, 1, torch.float32)
    grid = Grid(blocks=min(BLOCKS, -(-m // slab.rows)), threads=slab.ring.threads, shared_bytes=large.shared_bytes)
    pointers: list[Argument] = [x_MN, inputs[1] if weighted else 0, q.matrix, scales.matrix]
    arguments = [*pointers, m, n, 0, 0, 0, slab.rows, slab.tensor_bytes, large.number_bytes]
    error = program.run(arguments, grid, mode, readable=inputs)
    assert q.guard_is_unchanged()
    assert scales.guard_is_unchanged()
    q_MN = q.matrix.view(torch.int8) if target == "int8" else q.matrix
    return (q_MN.clone(), scales.matrix.view(m).clone()), error


def is_right(inputs: tuple[Tensor, ...], outputs: tuple[Tensor, Tensor], dtype: str, op: Op) -> bool:
    m, n = outputs[0].shape
    return compare(op, op.problem({"m": m, "n": n}, dtype), inputs, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    """Slabs of which some are the last and not whole, and so many that each stage is used again."""
    op = op_named(name)
    for n in LENGTHS[dtype]:
        for m, mode in ((1, MODES[0]), (133, MODES[0]), (133, MODES[1])):
            inputs = inputs_of(op, op.problem({"m": m, "n": n}, dtype))
            outputs, error = run(emulator, inputs, op, mode)
            assert error == "", (m, n)
            assert is_right(inputs, outputs, dtype, op), (m, n)


@needs_compiler
@pytest.mark.parametrize("name", OPS)
def test_rows_with_nan_and_zeros(name: str, emulator: Emulator) -> None:
    op = op_named(name)
    inputs = inputs_of(op, op.problem({"m": 37, "n": 66}, "fp32"))
    inputs[0][4] = 0.0
    inputs[0][7] *= 2.0**-120
    outputs, error = run(emulator, inputs, op, MODES[0])
    assert error == ""
    assert is_right(inputs, outputs, "fp32", op)
    inputs[0][5, 65] = torch.nan
    (_, scale_M), error = run(emulator, inputs, op, MODES[0])
    assert error == ""
    assert scale_M.isnan().nonzero().flatten().tolist() == [5]


MISTAKES = {
    "numbers leave before all are written": (
        "        __syncthreads();\n        const int whole",
        "        const int whole",
    ),
    "a buffer is written before it has left": ("            store_wait_read<0>();\n", ""),
    "one buffer": ("buffer ^= 1;", ""),
    "the last bytes do not leave": ("copy_elements(numbers, to, whole, slab.elements());", ""),
    "the last elements do not come": ("copy_elements(x + slab.start(), elements, in_vectors, slab.elements());", ""),
    "lanes do not exchange what they have": ("int apart = 16;", "int apart = 8;"),
    "parity stays": ("parity ^= 1;", ""),
    "the weight is left out": ("v[k][e] *= weights[e];", ""),
    "scales of a neighbour": ("scales[row.number] =", "scales[row.number ^ 1] ="),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, emulator: Emulator) -> None:
    before, after = MISTAKES[mistake]
    inputs = inputs_of(OP, OP.problem({"m": 133, "n": 301}, "bf16"))

    def changed(code: str) -> str:
        assert before in code
        return code.replace(before, after)

    def is_found(mode: Mode) -> bool:
        try:
            outputs, error = run(emulator, inputs, OP, mode, changed)
        except AssertionError:
            return True
        return bool(error) or not is_right(inputs, outputs, "bf16", OP)

    assert any(is_found(mode) for mode in MODES)


@pytest.mark.parametrize("itemsize_bytes", [2, 4])
def test_slabs_are_whole_vectors_and_fit(itemsize_bytes: int) -> None:
    for n in range(1, LONGEST_ROW_BYTES // itemsize_bytes + 1):
        large = number_slab(10**9, n, itemsize_bytes, 132, weighted=True)
        if n * itemsize_bytes > SHORTEST_ROW_BYTES:
            assert large is not None, n
            assert large.number_bytes % 16 == 0
            assert large.slab.tensor_bytes % 16 == 0
            assert large.shared_bytes <= large.opt_in_bytes <= SHARED_BYTES
            assert large.slab.units * large.slab.unit_bytes * 32 >= n * itemsize_bytes
