"""Kernels of `argmax` that are compiled for the length of the rows, by fibers of the processor, and planted mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, needs_compiler, with_header
from test_one_block import ELEMENTS, view_of
from torch import Tensor

from kernelviz.ops.row_reduction import known_length

pytestmark = needs_compiler
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SHAPES = ((7, 2), (1, 1), (4, 16), (32, 13), (7, 6), (33, 4), (33, 16), (40, 100), (5, 256), (129, 7))
GUARD, AROUND = -7, 16
"""What is around the output, and how many numbers of it on either side."""


def rows_of(m: int, n: int, dtype: str) -> Tensor:
    """Rows with few different numbers, zeros of either sign among them; some also with infinities, NaN, or -inf alone."""
    x_MN = torch.randint(-3, 3, (m, n)).float()
    x_MN[torch.rand(m, n) < 0.2] = -0.0
    x_MN[1::4][torch.rand(m, n)[1::4] < 0.1] = float("nan")
    x_MN[1::8].neg_()  # also NaN of the other sign
    x_MN[2::4][torch.rand(m, n)[2::4] < 0.1] = float("inf")
    x_MN[3::4] = -float("inf")
    return x_MN.to(DTYPES[dtype])


def first_of_largest(x_MN: Tensor) -> Tensor:
    """The first NaN, or the first of the largest numbers of each row."""
    largest_M1 = x_MN.amax(-1, keepdim=True)
    found_MN = torch.where(x_MN.isnan().any(-1, keepdim=True), x_MN.isnan(), x_MN == largest_M1)
    return found_MN.int().argmax(-1)


def indices_of(
    emulator: Emulator, x_MN: Tensor, dtype: str, mode: Mode, change: tuple[str, str] = ("", ""), *, many: bool = False
) -> tuple[Tensor, str]:
    """What the kernel stores that the bind function would launch, and the emulator's error."""
    m, n = x_MN.shape
    of_few = known_length.argmax_defines(m, n, x_MN.element_size(), x_MN.data_ptr())
    shape = known_length.argmax_many_defines(n, x_MN.element_size()) if many else of_few
    assert shape is not None
    text = with_header(known_length.ARGMAX_SOURCE, "adjacent_sum.cuh")
    assert change[0] in text
    serial = not many and shape["LANES"] == "1" and m <= known_length.SERIAL_ROWS
    kernel = "argmax_known_many" if many else "argmax_known_serial" if serial else "argmax_known_length"
    defines = {"ELEMENT": ELEMENTS[dtype]} | shape
    program = emulator.program(
        known_length.ARGMAX_SOURCE, kernel, defines, text=text.replace(*change) if change[0] else text
    )
    whole = torch.full((m + 2 * AROUND,), GUARD)
    threads = m if serial else known_length.THREADS
    blocks = 1 if serial else -(-m * int(shape["LANES"]) // (threads * int(shape.get("SET_ROWS", 1))))
    arguments: list[Tensor | int] = [x_MN, whole[AROUND:-AROUND], *(() if serial else (m if many else m - 1,))]
    error = program.run(arguments, Grid(blocks=blocks, threads=threads), mode, readable=(x_MN, x_MN))
    if not (whole[:AROUND] == GUARD).all() or not (whole[-AROUND:] == GUARD).all():
        error = error or "something was written outside the output"
    return whole[AROUND:-AROUND].clone(), error


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_the_first_of_the_largest_is_found(m: int, n: int, dtype: str, offset: int, emulator: Emulator) -> None:
    torch.manual_seed(m * n)
    x_MN = view_of(rows_of(m, n, dtype).flatten(), offset).view(m, n)
    for mode in MODES:
        index_M, error = indices_of(emulator, x_MN, dtype, mode)
        assert error == ""
        assert torch.equal(index_M, first_of_largest(x_MN))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_the_largest_of_many_rows_is_found(dtype: str, emulator: Emulator) -> None:
    for n in range(1, known_length.LONGEST_OF_MANY + 1):
        for m in (1, 2, 257, 600 + n):
            torch.manual_seed(m * n)
            x_MN = view_of(rows_of(m, n, dtype).flatten(), 0).view(m, n)
            index_M, error = indices_of(emulator, x_MN, dtype, MODES[n % 2], many=True)
            assert error == "", (m, n)
            assert torch.equal(index_M, first_of_largest(x_MN)), (m, n)


MISTAKES_OF_MANY = {
    "the last of an odd number of rows is left out": ("} else if (first < m) {", "} else if (false) {"),
    "two rows are read where one is left": ("first + ROWS <= m", "first < m"),
    "both rows have the first one's index": ("first_of_largest(value[r], at)", "first_of_largest(value[0], at)"),
}


@pytest.mark.parametrize("mistake", MISTAKES_OF_MANY)
def test_a_mistake_with_many_rows_gives_other_indices(mistake: str, emulator: Emulator) -> None:
    torch.manual_seed(0)
    x_MN = view_of(rows_of(301, 3, "fp32").flatten(), 0).view(301, 3)
    index_M, error = indices_of(emulator, x_MN, "fp32", MODES[0], MISTAKES_OF_MANY[mistake], many=True)
    assert error or not torch.equal(index_M, first_of_largest(x_MN))


MISTAKES = {
    "the last of equal elements": ("!(value[k + apart] <= value[k])", "!(value[k + apart] < value[k])"),
    "a number replaces NaN": (" && value[k] == value[k];", ";"),
    "NaN does not replace a number": ("!(value[k + apart] <= value[k])", "value[k + apart] > value[k]"),
    "a lane's equal element replaces an earlier one": ("other_index < index", "other_index > index"),
    "zeros of different sign differ": ("v + 0.0f", "v"),
    "rows behind the last are written": ("min((int)(thread / LANES), last)", "(int)(thread / LANES)"),
    "a lane has an element of the next row": ("min(k * LANES + lane, LENGTH - 1)", "k * LANES + lane"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_other_indices(mistake: str, emulator: Emulator) -> None:
    torch.manual_seed(0)
    x_MN = view_of(rows_of(41, 101, "bf16").flatten(), 0).view(41, 101)
    x_MN[0] = -1.0
    x_MN[0, 5:9] = torch.tensor([-0.0, 0.0, -0.0, 0.0])
    index_M, error = indices_of(emulator, x_MN, "bf16", MODES[0], MISTAKES[mistake])
    assert error or not torch.equal(index_M, first_of_largest(x_MN))


INTERPRETED = """
import torch
from test_argmax_known_length import DTYPES, first_of_largest, rows_of
from kernelviz.ops.row_reduction import triton, triton_known_size
torch.manual_seed(0)
for module in (triton, triton_known_size):
    for m, n in ((7, 2), (1, 1), (32, 13), (5, 300)):
        for dtype in ("fp32", "fp16"):
            x_MN = rows_of(m, n, dtype)
            x_MN[0] = 0.0
            x_MN[0, 0] = -0.0
            assert torch.equal(module.bind_argmax(x_MN)(), first_of_largest(x_MN)), (module.__name__, m, n, dtype)
print("equal")
"""


def test_kernels_in_triton_return_the_first_of_equal_elements_too() -> None:
    pytest.importorskip("triton")
    here = Path(__file__).parent
    paths = os.pathsep.join((str(here.parents[1]), str(here.parent), str(here)))
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        env={**os.environ, "PYTHONPATH": paths, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "equal\n", done.stderr[-2000:]
