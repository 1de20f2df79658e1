"""The kernel of normalisations for few rows of a known length, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from rows_on_processor import text_of

from kernelviz.ops import op_named
from kernelviz.ops.kernels.split_rows import RowSplit
from kernelviz.ops.normalisation.cuda_known_rows import SOURCE, known_tile
from kernelviz.ops.normalisation.reference import EPS
from kernelviz.ops.normalisation.variants import named_inputs

DTYPES = {"fp32": MODES[0], "bf16": MODES[1], "fp16": MODES[0]}
OPS = ("rmsnorm", "layernorm", "add_rmsnorm")
SHAPES = ((1, 1), (67, 3), (5, 11), (130, 40), (24, 840), (3, 261), (2, 1021), (2, 1546), (1, 2048), (3, 128))
"""Rows and their length: rows that share a warp and a block, the last block with fewer; a warp and several, up to 16; loads of
2 to 16 bytes; one and two loads a thread, the last of which some do not have."""


def right(
    name: str,
    sizes: tuple[int, int],
    dtype: str,
    emulator: Emulator,
    mode: Mode,
    change: Callable[[str], str] = lambda text: text,
) -> bool:
    op, (m, n) = op_named(name), sizes
    problem = op.problem({"m": m, "n": n}, dtype)
    tensors = inputs_of(op, problem)
    tensors[0].add_(3.0)  # so that the mean of a row is not about 0
    given = named_inputs(name, tensors)
    x_MN, adds, centred = given["x_MN"], "r_MN" in given, "b_N" in given
    tile = known_tile(m, n, x_MN.element_size())
    assert tile is not None
    element = RowSplit(1, lanes=64, vectors=1).defines(x_MN)["ELEMENT"]
    macros = {"ELEMENT": element, "CENTRED": str(int(centred)), "ADDS": str(int(adds))} | tile.defines(n)
    program = emulator.program(SOURCE, "normalise_known_rows", macros, text=change(text_of(SOURCE, EPS)))
    s, y = Output(m, n, x_MN.dtype), Output(m, n, x_MN.dtype)
    pointers = [x_MN, given.get("r_MN", 0), given["w_N"], given.get("b_N", 0), s.matrix, y.matrix]
    grid = Grid(blocks=-(-m // tile.rows), threads=tile.lanes * tile.rows)
    error = program.run([*pointers, m, 0], grid, mode)
    error = error or ("" if all(one.guard_is_unchanged() for one in (s, y)) else "the guard was written")
    outputs = (s.matrix.clone(), y.matrix.clone()) if adds else y.matrix.clone()
    return not error and compare(op, problem, tensors, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernel_agrees_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    for sizes in SHAPES:
        assert right(name, sizes, dtype, emulator, DTYPES[dtype]), sizes


MISTAKES = {
    "the last row is left out": ("rmsnorm", (67, 3), "row < m;", "row < m - 1;"),
    "a row too many": ("rmsnorm", (67, 3), "row < m;", "row < m + 1;"),
    "the last elements are left out": ("rmsnorm", (3, 261), "k * LANES < UNITS;", "k * LANES < UNITS - 1;"),
    "threads do not wait for the sums of warps": ("rmsnorm", (3, 261), "__syncthreads();", ""),
    "both sums share their slots": ("layernorm", (3, 261), "slots[reduction]", "slots[0]"),
    "the last warp of a few is left out": ("rmsnorm", (2, 250), "warp < WARPS;", "warp < WARPS - 1;"),
    "many warps are not added up": (
        "rmsnorm",
        (2, 1021),
        "return warp_reduce<LANES>(warp",
        "return warp_reduce<1>(warp",
    ),
    "elements outside the row have a distance": (
        "layernorm",
        (3, 261),
        "has_unit(k) ? a[k][e] - mean : 0.0f",
        "a[k][e] - mean",
    ),
    "the sum is not stored": (
        "add_rmsnorm",
        (5, 11),
        "store_unit<T, WIDTH>(s, row",
        "if (false) store_unit<T, WIDTH>(s, row",
    ),
    "the bias is left out": ("layernorm", (5, 11), "g[e], c[e])", "g[e], 0.0f)"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    name, sizes, before, after = MISTAKES[mistake]
    assert before in text_of(SOURCE, EPS)
    assert not all(
        right(name, sizes, "fp32", emulator, mode, lambda text: text.replace(before, after)) for mode in MODES
    )
