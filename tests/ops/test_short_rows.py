"""The kernel that copies rows of a known length, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from test_column_vectors import CHECKED
from test_one_block import view_of
from torch import Tensor

from kernelviz.ops.embedding import short_rows
from kernelviz.ops.embedding.cuda import vector_bytes

pytestmark = needs_compiler
SIZES = (
    (1, 1, 1),
    (5, 17, 3),
    (3, 700, 8),
    (9, 6001, 24),
    (9, 401, 24),
    (4, 300, 37),
    (2, 40, 64),
    (7, 90, 56),
    (3, 7, 1024),
)
"""Rows of the table, rows of the output, elements: rows of one vector and of several, one block and several."""


def copied(
    emulator: Emulator,
    x_VD: Tensor,
    ids_T: Tensor,
    count: int,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
    *,
    wide: bool = False,
) -> tuple[Tensor, str]:
    """What the kernel writes on a GPU of `count` SMs, and the error for reading outside of the table or writing outside of the
    output. `wide`: in 64 bits, as it counts more vectors."""
    (v, d), (t,), width = x_VD.shape, ids_T.shape, vector_bytes(x_VD)
    tile = replace(short_rows.short_rows(v, t, d * x_VD.element_size() // width, count, width), wide=wide)
    out = Output(t, d, x_VD.dtype)
    text = short_rows.SOURCE.read_text()
    assert change[0] in text
    # The ids are read as they are: only one tensor may be checked.
    text = text.replace(*change).replace("__ldg(ids + at / VECTORS)", "ids[at / VECTORS]").replace("__ldg(", "checked(")
    program = emulator.program(short_rows.SOURCE, tile.kernel, tile.defines(width), text=CHECKED + text)
    grid = Grid(blocks=tile.blocks, threads=tile.threads)
    error = program.run([x_VD, ids_T, out.matrix, tile.argument.value], grid, mode, readable=(x_VD, x_VD))
    outside = "" if out.guard_is_unchanged() else "it wrote outside of the output"
    return out.matrix.clone(), error or outside


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_are_copied_whatever_their_alignment(emulator: Emulator, dtype: torch.dtype) -> None:
    for v, t, d in SIZES:
        ids_T = torch.randint(v, (t,))
        ids_T[0], ids_T[-1] = v - 1, 0
        for offset in (0, 1, 2):
            x_VD = view_of(torch.randn(v * d).to(dtype), offset).view(v, d)
            for count, mode in zip((1, 132), MODES, strict=True):
                out_TD, error = copied(emulator, x_VD, ids_T, count, mode)
                assert error == "", (v, t, d, offset)
                assert torch.equal(out_TD, x_VD[ids_T]), (v, t, d, offset)


def test_vectors_are_counted_in_64_bits(emulator: Emulator) -> None:
    ids_T = torch.randint(9, (6001,))
    x_VD = view_of(torch.randn(9 * 24).bfloat16(), 0).view(9, 24)
    for count, mode in zip((1, 132), MODES, strict=True):
        out_TD, error = copied(emulator, x_VD, ids_T, count, mode, wide=True)
        assert error == ""
        assert torch.equal(out_TD, x_VD[ids_T])


def copied_by_pairs(
    emulator: Emulator,
    x_VD: Tensor,
    ids_T: Tensor,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
    *,
    wide: bool = False,
) -> tuple[Tensor, str]:
    """The same for rows of one vector, whose ids are read in pairs."""
    (v, d), (t,), width = x_VD.shape, ids_T.shape, vector_bytes(x_VD)
    tile = short_rows.ShortRows(1, short_rows.UNROLL, t, wide=wide, pairs=True)
    assert v > 1
    out = Output(t, d, x_VD.dtype)
    text = short_rows.SOURCE.read_text()
    assert change[0] in text
    text = text.replace(*change).replace("__ldg(x + ", "checked(x + ")
    program = emulator.program(short_rows.SOURCE, tile.kernel, tile.defines(width), text=CHECKED + text)
    grid = Grid(blocks=tile.blocks, threads=tile.threads)
    error = program.run([x_VD, ids_T, out.matrix, tile.argument.value], grid, mode, readable=(x_VD, x_VD))
    return out.matrix.clone(), error or ("" if out.guard_is_unchanged() else "it wrote outside of the output")


@pytest.mark.parametrize(("dtype", "d"), [(torch.bfloat16, 1), (torch.bfloat16, 2), (torch.float32, 2)], ids=str)
def test_ids_are_read_in_pairs(emulator: Emulator, dtype: torch.dtype, d: int) -> None:
    for t in (1, 2, 511, 1024, 3077):
        ids_T = torch.randint(9, (t,))
        ids_T[-1] = 8
        x_VD = view_of(torch.randn(9 * d).to(dtype), 0).view(9, d)
        for mode, wide in zip(MODES, (False, True), strict=True):
            out_TD, error = copied_by_pairs(emulator, x_VD, ids_T, mode, wide=wide)
            assert error == ""
            assert torch.equal(out_TD, x_VD[ids_T]), t


PAIR_MISTAKES = {
    "the last id of an odd number is left out": ("total % 2 > 0", "false"),
    "both of a pair are the first one": ("id_of(both[k].z, both[k].w)", "id_of(both[k].x, both[k].y)"),
    "the second pairs are the first ones": ("uint4*>(ids) + at)", "uint4*>(ids) + first)"),
    "the last pair is left out": ("if (at < pairs) {", "if (at + 1 < pairs) {"),
    "a pair too many": ("if (at < pairs) {", "if (at <= pairs) {"),
}


@pytest.mark.parametrize("mistake", PAIR_MISTAKES)
def test_a_mistake_with_pairs_is_found(mistake: str, emulator: Emulator) -> None:
    x_VD = view_of(torch.randn(9 * 2).bfloat16(), 0).view(9, 2)
    ids_T = torch.randint(9, (3077,))
    ids_T[-1], ids_T[0], ids_T[512:514] = 8, 1, torch.tensor([2, 3])
    right = []
    for mode in MODES:
        out_TD, error = copied_by_pairs(emulator, x_VD, ids_T, mode, PAIR_MISTAKES[mistake])
        right.append(not error and torch.equal(out_TD, x_VD[ids_T]))
    assert not all(right)


MISTAKES = {
    "all vectors of a row are its first one": ("at % VECTORS)", "0)"),
    "the id of the next vector is taken": ("__ldg(ids + at / VECTORS)", "ids[(at + 1) / VECTORS % 6001]"),
    "the last vector is left out": ("first + k * THREADS < total", "first + k * THREADS + 1 < total"),
    "all blocks write the first piece": ("(Index)blockIdx.x * PIECE", "0"),
}


FEW_MISTAKES = {
    "all vectors of a row are its first one": ("at % VECTORS)", "0)"),
    "a vector behind the last is copied": ("i < last ? i : last", "i <= last ? i : last + 1"),
    "the last vector is left out": ("i < last ? i : last", "i < last ? i : last - 1"),
    "all blocks write the first piece": ("(Index)blockIdx.x * BLOCK_THREADS", "0"),
}


@pytest.mark.parametrize("mistake", FEW_MISTAKES)
def test_a_mistake_with_few_rows_is_found(mistake: str, emulator: Emulator) -> None:
    x_VD = view_of(torch.randn(9 * 24).bfloat16(), 0).view(9, 24)
    ids_T = torch.randint(9, (82,))[:81]  # there is an id behind the last, so that a mistake reads nothing else
    ids_T[-1] = 8
    right = []
    for mode in MODES:
        out_TD, error = copied(emulator, x_VD, ids_T, 132, mode, FEW_MISTAKES[mistake])
        right.append(not error and torch.equal(out_TD, x_VD[ids_T]))
    assert not all(right)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    x_VD = view_of(torch.randn(9 * 24).bfloat16(), 0).view(9, 24)
    ids_T = torch.randint(9, (6001,))
    right = []
    for mode in MODES:
        out_TD, error = copied(emulator, x_VD, ids_T, 1, mode, MISTAKES[mistake])
        right.append(not error and torch.equal(out_TD, x_VD[ids_T]))
    assert not all(right)
