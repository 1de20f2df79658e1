"""The backward pass of `softmax` for rows that divide a 16-byte vector, by fibers of the processor, and planted mistakes."""

from __future__ import annotations

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from rows_on_processor import is_softmax_gradient

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.vec16 import SMALL, UNROLLED, Layout
from kernelviz.ops.softmax import short_rows

pytestmark = needs_compiler
LAYOUTS = (short_rows.WITHIN, short_rows.BEYOND, SMALL, UNROLLED)
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def error_of(
    emulator: Emulator,
    m: int,
    n: int,
    dtype: torch.dtype,
    layout: Layout,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
) -> str:
    """What is wrong with the gradient; an empty text if nothing is."""
    torch.manual_seed(m * n)
    dy, y = torch.randn(m, n).to(dtype), torch.randn(m, n).softmax(-1).to(dtype)
    out = Output(m, n, dtype)
    text = short_rows.SOURCE.read_text()
    assert change[0] in text
    defines = {"ELEMENT": nvrtc.element_type(dtype), "LENGTH": str(n)} | layout.defines
    program = emulator.program(
        short_rows.SOURCE, "softmax_backward_short_rows", defines, text=text.replace(*change) if change[0] else text
    )
    grid = Grid(blocks=layout.blocks(m * n * dtype.itemsize // 16), threads=layout.threads)
    if error := program.run([y, dy, out.matrix, m * n], grid, mode, readable=(y, y, dy)):
        return error
    if not out.guard_is_unchanged():
        return "something was written outside the output"
    return "" if is_softmax_gradient(out.matrix, y, dy) else "a gradient differs"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_gradients_are_right(n: int, dtype: str, emulator: Emulator) -> None:
    if not short_rows.divides_vector(n, DTYPES[dtype].itemsize):
        return
    for m in (1, 3, 131, 2049):
        for layout in LAYOUTS:
            for mode in MODES:
                assert error_of(emulator, m, n, DTYPES[dtype], layout, mode) == "", (m, layout)


MISTAKES = {
    "a sum of two rows": ("row += LENGTH", "row += 2 * LENGTH"),
    "the sum is of y alone": ("fmaf(y[e], dy[e], sum)", "sum + y[e]"),
    "vectors of a thread are next to each other": ("first + k * THREADS, narrow", "first + k, narrow"),
    "rows behind the last vector are left out": ("blockIdx.x == 0 && behind < elements", "false"),
    "a row behind the last": ("behind < elements", "behind <= elements"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str, emulator: Emulator) -> None:
    assert any(error_of(emulator, 2049, 2, torch.bfloat16, UNROLLED, mode, MISTAKES[mistake]) for mode in MODES)
