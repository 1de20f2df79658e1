"""Few short rows with some lanes of a warp each: how they are shared, and layernorm + gelu of them by fibers of the processor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Argument, Emulator, Grid, Mode, Output, needs_compiler
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.kernels.row_lanes import MOST_ELEMENTS, MOST_THREADS, MOST_UNITS, row_lanes
from kernelviz.ops.norm_activation.cuda_known_length import SOURCE, known_length_defines
from kernelviz.ops.norm_activation.reference import EPS

OP = op_named("norm_activation")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LENGTHS = (1, 2, 3, 4, 5, 8, 13, 17, 26, 33, 64, 100, 128, 250, 512)
NUMBERS = "int last_row, float eps) {"


def run(
    emulator: Emulator, inputs: tuple[Tensor, ...], mode: Mode, text: Callable[[str], str] = lambda text: text
) -> tuple[Tensor, str]:
    """What a launch leaves, and the first error."""
    x_MN = inputs[0]
    m, n = x_MN.shape
    lanes = row_lanes(m, n, x_MN.element_size())
    assert lanes is not None
    code = text_of(SOURCE)
    assert NUMBERS in code
    # The emulator passes whole numbers as arguments.
    code = code.replace(NUMBERS, f"int last_row, float) {{\n    const float eps = {EPS}f;")
    program = emulator.program(
        SOURCE, "layernorm_gelu_known_length", known_length_defines(x_MN, lanes), text=text(code)
    )
    y = Output(m, n, x_MN.dtype)
    arguments: list[Argument] = [*inputs, y.matrix, m - 1, 0]
    error = program.run(arguments, Grid(blocks=lanes.blocks, threads=lanes.threads), mode, readable=inputs)
    assert y.guard_is_unchanged()
    return y.matrix.clone(), error


def is_right(inputs: tuple[Tensor, ...], y_MN: Tensor, dtype: str) -> bool:
    m, n = y_MN.shape
    return compare(OP, OP.problem({"m": m, "n": n}, dtype), inputs, (y_MN,)).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_agree_with_the_reference(dtype: str, emulator: Emulator) -> None:
    for n in LENGTHS:
        for m in (1, 77) if n < 64 else (5,):
            if row_lanes(m, n, DTYPES[dtype].itemsize) is None:
                continue
            inputs = inputs_of(OP, OP.problem({"m": m, "n": n}, dtype))
            for mode in MODES:
                y_MN, error = run(emulator, inputs, mode)
                assert error == "", (m, n)
                assert is_right(inputs, y_MN, dtype), (m, n)


@needs_compiler
@pytest.mark.parametrize("n", [3, 22, 64])
def test_only_a_row_with_nan_or_infinity_has_nan(n: int, emulator: Emulator) -> None:
    inputs = inputs_of(OP, OP.problem({"m": 37, "n": n}, "fp32"))
    inputs[0][5, n - 1], inputs[0][9, 0] = torch.nan, torch.inf
    y_MN, error = run(emulator, inputs, MODES[0])
    assert error == ""
    assert y_MN.isnan().any(-1).nonzero().flatten().tolist() == [5, 9]
    assert y_MN[5].isnan().all()


MISTAKES = {
    "lanes that have nothing add to the variance": ("is_inside(lane, k) ? v[k][e] - mean : 0.0f", "v[k][e] - mean"),
    "every lane has the first weights": ("(w) + lane)", "(w))"),
    "every row is the first": ("first = row * UNITS_OF_ROW + lane", "first = lane"),
    "a row behind the last one is stored": (
        "min((int)(thread / ROW_LANES), last_row)",
        "min((int)(thread / ROW_LANES), last_row + 1)",
    ),
    "lanes do not exchange sums": ("lanes_sum<ROW_LANES>(sum)", "(sum)"),
    "lanes do not exchange squares": ("lanes_sum<ROW_LANES>(squares)", "(squares)"),
    "a unit of another row is stored": ("k * ROW_LANES + lane < UNITS_OF_ROW", "true"),
    "the mean stays": ("v[k][e] - mean", "v[k][e]"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, emulator: Emulator) -> None:
    before, after = MISTAKES[mistake]
    inputs = inputs_of(OP, OP.problem({"m": 77, "n": 22}, "fp32"))
    # Numbers are behind the input: a row of NaN, as freed memory may hold, would be stored like an unchanged guard.
    inputs = (torch.cat([inputs[0] + 1, torch.rand(2, 22)])[:77], *inputs[1:])

    def changed(code: str) -> str:
        assert before in code
        return code.replace(before, after)

    try:
        y_MN, error = run(emulator, inputs, MODES[0], changed)
    except AssertionError:
        return  # it wrote behind the output
    assert error or not is_right(inputs, y_MN, "fp32")


@pytest.mark.parametrize("itemsize_bytes", [2, 4])
def test_lanes_cover_rows(itemsize_bytes: int) -> None:
    for n in range(1, 700):
        for m in (1, 19, 5000, 131072):
            lanes = row_lanes(m, n, itemsize_bytes)
            if lanes is not None:
                of_lane = -(-n // (lanes.unit * lanes.lanes))
                assert n % lanes.unit == 0
                assert lanes.unit * itemsize_bytes <= 16
                assert of_lane <= MOST_UNITS
                assert of_lane * lanes.unit <= MOST_ELEMENTS
                assert m * lanes.lanes <= min(MOST_THREADS, lanes.blocks * lanes.threads)
                assert lanes.threads % 32 == 0
