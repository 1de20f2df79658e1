"""The kernel that copies rows in slices, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

import itertools

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler, with_header
from test_column_vectors import CHECKED
from test_one_block import view_of
from torch import Tensor

from kernelviz.ops.embedding import slices
from kernelviz.ops.embedding.cuda import vector_bytes

DTYPES = (torch.float32, torch.bfloat16)
SIZES = ((1, 1, 1), (5, 17, 3), (3, 5, 8), (3, 4, 37), (4, 3, 1031), (2, 4, 4099), (3, 2, 8208))
"""Rows of the table, rows of the output, elements: rows within one vector, and several slices; all alignments of the rows."""


def copied(
    emulator: Emulator,
    x_VD: Tensor,
    ids_T: Tensor,
    vectors: int | None,
    most: int,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
) -> tuple[Tensor, str]:
    """What the kernel writes with at most `most` slices at once, and the emulator's error for reading outside of the table."""
    (t,), (v, d), size = ids_T.shape, x_VD.shape, x_VD.element_size()
    out = Output(t, d, x_VD.dtype)
    of_row = slices.slices_of_row(v, t, d * size, 1, vectors)
    text = with_header(slices.SOURCE, "two_vectors.cuh")
    assert change[0] in text
    # The ids are read as they are: only one tensor may be checked.
    text = text.replace(*change).replace("__ldg(ids + blockIdx.x)", "ids[blockIdx.x]").replace("__ldg(", "checked(")
    whole = vector_bytes(x_VD) == 16
    tile = {"VECTORS": of_row.vectors, "THREADS": of_row.threads, "WHOLE": int(whole)}
    defines = {"UNIT": slices.UNITS[size]} | {name: str(number) for name, number in tile.items()}
    program = emulator.program(slices.SOURCE, "gather_slices", defines, text=CHECKED + text)
    arguments: list[Tensor | int] = [x_VD, ids_T, out.matrix, d, x_VD.numel(), of_row.count]
    grid = Grid(blocks=(t, min(most, of_row.count)), threads=of_row.threads)
    error = program.run(arguments, grid, mode, readable=(x_VD, x_VD))
    assert out.guard_is_unchanged()
    return out.matrix.clone(), error


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_are_copied_whatever_their_alignment(emulator: Emulator, dtype: torch.dtype) -> None:
    for v, t, d in SIZES:
        ids_T = torch.randint(v, (t,))
        ids_T[0], ids_T[-1] = v - 1, 0
        for offset in (0, 1, 3):
            x_VD = view_of(torch.randn(v * d).to(dtype), offset).view(v, d)
            for vectors, mode in zip((1, 4), MODES, strict=True):
                out_TD, error = copied(emulator, x_VD, ids_T, vectors, 2, mode)
                assert error == "", (v, t, d, offset)
                assert torch.equal(out_TD, x_VD[ids_T]), (v, t, d, offset)


MISTAKES = {
    "the first row is read before the table": ("if (from + head - shift < x) {", "if (false) {"),
    "the last row is read beyond the table": ("if (shift && vectors &&", "if (false && vectors &&"),
    "rows are taken to start on 16 bytes": ("const int next = shift ? 1 : 0", "const int next = 0"),
    "the elements before the first vector are left out": ("threadIdx.x < head", "threadIdx.x + 1 < head"),
    "the elements behind the last vector are left out": ("behind < row_units", "behind + 1 < row_units"),
    "later slices are left out": ("slice += gridDim.y", "slice += slices"),
    "a vector of four bytes is not shifted": ("from & 4 ?", "false ?"),
    "half a number is not shifted": ("from % 4 * 8", "0"),
}


@needs_compiler
@pytest.mark.parametrize("d", [2056, 2057])
@pytest.mark.parametrize(("v", "t", "threads"), [(300, 301, 64), (2100, 2049, 32)])
def test_slices_of_many_rows_are_thin(v: int, t: int, threads: int, d: int, emulator: Emulator) -> None:
    x_VD, ids_T = torch.randn(v, d).bfloat16(), torch.randint(v, (t,))
    assert slices.slices_of_row(v, t, 2 * d, 1).threads == threads
    out_TD, error = copied(emulator, x_VD, ids_T, None, 2, MODES[0])
    assert error == ""
    assert torch.equal(out_TD, x_VD[ids_T])


@needs_compiler
@pytest.mark.parametrize("count", ["row_units / WIDTH - 1", "row_units / WIDTH + 1"])
def test_a_wrong_number_of_whole_vectors_is_found(count: str, emulator: Emulator) -> None:
    x_VD, ids_T = torch.randn(3, 1032).bfloat16(), torch.tensor([2, 0, 2])
    change = ("vectors = row_units / WIDTH;", f"vectors = {count};")
    out_TD, error = copied(emulator, x_VD, ids_T, 1, 1, MODES[0], change)
    assert error or not torch.equal(out_TD, x_VD[ids_T])


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    x_VD = view_of(torch.randn(3 * 4099).bfloat16(), 1).view(3, 4099)
    ids_T = torch.tensor([2, 0, 2, 0])
    right = []
    for mode in MODES:
        out_TD, error = copied(emulator, x_VD, ids_T, 1, 1, mode, MISTAKES[mistake])
        right.append(not error and torch.equal(out_TD, x_VD[ids_T]))
    assert not all(right)


def test_slices_cover_a_row_and_fill_the_gpu_where_they_can() -> None:
    for v, t, row_bytes in itertools.product((1, 1000, 5000), (1, 4, 300, 3000), (2, 4096, 65538, 10**9)):
        of_row = slices.slices_of_row(v, t, row_bytes, 132)
        slice_bytes = of_row.vectors * of_row.threads * 16
        assert (of_row.count - 1) * slice_bytes < row_bytes <= of_row.count * slice_bytes
        assert of_row.threads in range(32, slices.THREADS + 1, 32)
        assert of_row.vectors == 1 or t * of_row.count >= 2 * 132
