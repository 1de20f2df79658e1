"""The kernels that assemble 16-byte vectors of rows of any length, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler, with_header
from test_column_vectors import CHECKED
from test_one_block import view_of
from torch import Tensor

from kernelviz.ops.embedding import assembled
from kernelviz.ops.embedding.cuda import vector_bytes

pytestmark = needs_compiler
SIZES = (
    (5, 300, 3),
    (1, 400, 7),
    (11, 1001, 15),
    (3, 333, 35),
    (2, 77, 131),
    (9, 251, 6),
    (4, 131, 22),
    (1, 53, 77),
    (3, 3, 419),
    (5, 61, 17),
    (8, 3, 173),
    (4685, 200, 7),
    (3642, 150, 9),
    (2981, 150, 11),
    (2185, 150, 15),
)
"""Rows of the table, rows of the output, elements: vectors of several rows, of two and mostly of one; a table of one row, and
tables of rows of fewer than 16 elements that the L1 does not keep."""
LARGE = {"INDEX": "unsigned long long"}
"""As for an output whose units 32 bits don't count."""


def copied(
    emulator: Emulator,
    x_VD: Tensor,
    ids_T: Tensor,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
    defines: dict[str, str] | None = None,
) -> tuple[Tensor, str]:
    """What the kernel writes, and the error for reading outside of the table or writing outside of the output."""
    (v, d), (t,), width = x_VD.shape, ids_T.shape, vector_bytes(x_VD)
    aligned = x_VD.data_ptr() % 16 == 0
    rows = assembled.assembled_rows(v, t, d * x_VD.element_size() // width, width, 0, aligned=aligned)
    assert rows is not None
    out, (source, kernel) = Output(t, d, x_VD.dtype), rows.kernel
    text = with_header(source, "two_vectors.cuh") if rows.shifted else source.read_text()
    assert change[0] in text
    text = text.replace(*change).replace("__ldg(", "checked(")
    # The ids are read as they are: only one tensor may be checked.
    for read in ("ids + row)", "ids + (row < last ? row + 1 : last))", "ids + (row + r < last ? row + r : last))"):
        text = text.replace("checked(" + read, "*(" + read)
    program = emulator.program(source, kernel, rows.defines | (defines or {}), text=CHECKED + text)
    grid = Grid(blocks=rows.blocks, threads=assembled.THREADS)
    arguments = [x_VD, ids_T, out.matrix, *(argument.value for argument in rows.arguments)]
    error = program.run(arguments, grid, mode, readable=(x_VD, x_VD))
    outside = "" if out.guard_is_unchanged() else "it wrote outside of the output"
    return out.matrix.clone(), error or outside


@pytest.mark.parametrize("defines", [{}, LARGE], ids=("32_bits", "64_bits"))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_are_copied_whatever_their_alignment(
    emulator: Emulator, dtype: torch.dtype, defines: dict[str, str]
) -> None:
    for v, t, d in SIZES:
        ids_T = torch.randint(v, (t,))
        ids_T[0], ids_T[-1] = v - 1, 0
        for offset in (0, 1, 2):
            x_VD = view_of(torch.randn(v * d).to(dtype), offset).view(v, d)
            for mode in MODES:
                out_TD, error = copied(emulator, x_VD, ids_T, mode, defines=defines)
                assert error == "", (v, t, d, offset)
                assert torch.equal(out_TD, x_VD[ids_T]), (v, t, d, offset)


def test_a_table_of_one_row_needs_no_ids() -> None:
    for v, one_row in ((1, "1"), (2, "0")):
        rows = assembled.assembled_rows(v, 2**20, 15, 2, 132)
        assert rows is not None
        assert rows.defines["ONE_ROW"] == one_row


MISTAKES = {
    "all units of a vector are of its first row": ("from[r + 1 < ROWS ? r + 1 : r] :", "from[r] :"),
    "the next row begins a unit late": (">= (r + 1) * ROW ?", "> (r + 1) * ROW ?"),
    "all rows are the first": ("row + r < last ? row + r : last", "row"),
    "rows end behind the last": ("position - r * ROW", "position"),
    "all blocks write the first vectors": ("(INDEX)blockIdx.x * THREADS", "0"),
    "units behind the last are written": ("if (first + k < total)", "if (first + k <= total)"),
    "the last unit is left out": ("if (first + k < total)", "if (first + k + 1 < total)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    x_VD = view_of(torch.randn(9 * 15).bfloat16(), 0).view(9, 15)
    ids_T = torch.randint(9, (3001,))
    results = [copied(emulator, x_VD, ids_T, mode, MISTAKES[mistake]) for mode in MODES]
    assert not all(not error and torch.equal(out_TD, x_VD[ids_T]) for out_TD, error in results)


SHIFTED_MISTAKES = {
    "all units of a vector are of its first row": ("split >= 2 * pair + 2", "split >= 0"),
    "an odd unit is of the next row": ("? 0xffffu : 0u", "? 0u : 0u"),
    "vectors begin a unit late": (
        "bytes_of_two_vectors(low, high, shift)",
        "bytes_of_two_vectors(low, high, shift + 2)",
    ),
    "the next row begins a unit late": ("next_id * ROW - split", "next_id * ROW - split + 1"),
    "the second vector is not read": ("two = end > 16", "two = end > 32"),
    "a vector behind the table is read": ("at_edge = TAIL &&", "at_edge = false &&"),
    "the first vector of the next row is not read": ("shift_after + 2 * split < 16", "shift_after + 2 * split < 14"),
    "the second vector of the next row is not read": ("shift_after > 0", "shift_after > 2"),
    "the last units of the table are in other places": ("edge + (TAIL & 6)", "edge + (TAIL & 4)"),
    "all blocks write the first vectors": ("(INDEX)blockIdx.x * THREADS", "0"),
    "units behind the last are written": ("if (first + k < total)", "if (first + k <= total)"),
    "the last unit is left out": ("if (first + k < total)", "if (first + k + 1 < total)"),
}


@pytest.mark.parametrize("mistake", SHIFTED_MISTAKES)
def test_a_mistake_with_shifted_rows_is_found(mistake: str, emulator: Emulator) -> None:
    x_VD = view_of(torch.randn(9 * 35).bfloat16(), 0).view(9, 35)
    ids_T = torch.randint(9, (3001,))
    ids_T[1500] = 8
    results = [copied(emulator, x_VD, ids_T, mode, SHIFTED_MISTAKES[mistake]) for mode in MODES]
    assert not all(not error and torch.equal(out_TD, x_VD[ids_T]) for out_TD, error in results)


SHORT_MISTAKES = {
    "a vector behind the table is read for the next row": ("after_at_edge = SHORT && TAIL", "after_at_edge = false"),
    "the last units of the table are in the other vector": (
        "(shift_after > 0 ? high_after : low_after)",
        "(shift_after > 0 ? low_after : high_after)",
    ),
    "the next row begins a unit late": ("next_id * ROW - split", "next_id * ROW - split + 1"),
}


@pytest.mark.parametrize("mistake", SHORT_MISTAKES)
def test_a_mistake_with_short_shifted_rows_is_found(mistake: str, emulator: Emulator) -> None:
    x_VD = view_of(torch.randn(4685 * 7).bfloat16(), 0).view(4685, 7)
    ids_T = torch.randint(4685, (3001,))
    ids_T[::3] = 4684
    results = [copied(emulator, x_VD, ids_T, mode, SHORT_MISTAKES[mistake]) for mode in MODES]
    assert not all(not error and torch.equal(out_TD, x_VD[ids_T]) for out_TD, error in results)
