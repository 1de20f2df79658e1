"""Backward passes of normalisations by fibers of the processor, with planted mistakes: rows that several blocks share, and few
elements that one block processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Argument, Emulator, Grid, Mode, Output, needs_compiler, unwritten
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.kernels.split_rows import RowSplit
from kernelviz.ops.normalisation.cuda_backward import ONE_BLOCK_SOURCE, one_block_tile
from kernelviz.ops.normalisation.cuda_split_backward import COLUMN_LANES, ROW_BYTES, SOURCE, column_blocks
from kernelviz.ops.normalisation.reference import EPS
from kernelviz.ops.normalisation.variants import named_gradients, named_inputs

KERNELS = ("statistics_parts", "statistics_of_rows", "backward_parts", "backward_columns")
DTYPES = {"fp32": MODES[0], "bf16": MODES[1], "fp16": MODES[0]}
OPS = ("rmsnorm", "layernorm", "add_rmsnorm")
SHAPES = ((3, 4099, 3), (2, 4096, 4), (9, 2051, 2), (1, 1031, 5), (2, 9, 1))
"""Rows, their length, and blocks that share one: with starts on 16 bytes and without, more rows than warps of a block, fewer
chunks than blocks, a short row."""


def run(
    emulator: Emulator,
    op: str,
    tensors: tuple[Tensor, ...],
    parts: int,
    mode: Mode,
    text: Callable[[str], str] = lambda text: text,
) -> tuple[tuple[Tensor, ...], str]:
    """The gradients that the launches of the forward and the backward pass leave, and the first error."""
    given = named_inputs(op, tensors) | named_gradients(op, tensors)
    x_MN, w_N, dy_MN = given["x_MN"], given["w_N"], given["dy_MN"]
    r, ds, centred = given.get("r_MN", 0), given.get("ds_MN", 0), "b_N" in given
    m, n = x_MN.shape
    split = RowSplit(parts, lanes=64, vectors=1 + m % 2)  # both kinds of chunks
    macros = split.defines(x_MN) | {"CENTRED": str(int(centred)), "ADDS": str(int("r_MN" in given))}
    program = emulator.program(SOURCE, KERNELS, macros, text=text(text_of(SOURCE, EPS)))

    s = Output(m, n, x_MN.dtype) if "r_MN" in given else None
    row_MN = x_MN if s is None else s.matrix
    sums, squares = unwritten((m, parts), torch.float32), unwritten((m, parts), torch.float32)
    mean, scale = unwritten((m,), torch.float32), unwritten((m,), torch.float32)
    partials = unwritten((m, parts, 2 if centred else 1), torch.float32)
    dx, dw, db = Output(m, n, x_MN.dtype), Output(1, n, x_MN.dtype), Output(1, n, x_MN.dtype)

    errors: list[str] = []

    def launch(
        name: str, blocks: int, pointers: Sequence[Argument], threads: int = split.lanes, shared: int = 0
    ) -> None:
        grid = Grid(blocks=blocks, threads=threads, shared_bytes=shared)
        errors.append(program.run([*pointers, m, n, parts, 0], grid, mode, kernel=name))

    stored = 0 if s is None else s.matrix
    if centred:
        launch("statistics_parts", m * parts, [x_MN, r, stored, 0, sums])
    launch("statistics_parts", m * parts, [x_MN, r, stored, sums, squares])
    launch("statistics_of_rows", m, [sums, squares, mean, scale])
    launch("backward_parts", m * parts, [row_MN, w_N, dy_MN, mean, partials])
    pointers = [row_MN, w_N, dy_MN, ds, mean, scale, partials, dx.matrix, dw.matrix, db.matrix]
    blocks = column_blocks(n, x_MN.element_size(), parts)
    launch("backward_columns", blocks, pointers, COLUMN_LANES, m * ROW_BYTES)
    written = [one for one in (s, dx, dw, db) if one is not None]
    assert all(one.guard_is_unchanged() for one in written)
    assert centred or db.matrix.isnan().all()
    gradients = (dx.matrix, dw.matrix.view(n), db.matrix.view(n)) if centred else (dx.matrix, dw.matrix.view(n))
    return tuple(one.clone() for one in gradients), next((error for error in errors if error), "")


def right(
    name: str,
    sizes: tuple[int, int],
    dtype: str,
    emulator: Emulator,
    parts: int,
    mode: Mode,
    change: Callable[[str], str],
) -> bool:
    op, (m, n) = op_named(name), sizes
    problem = op.problem({"m": m, "n": n}, dtype, direction="backward")
    tensors = inputs_of(op, problem)
    tensors[0].add_(3.0)  # so that the mean of a row is not about 0
    outputs, error = run(emulator, name, tensors, parts, mode, change)
    return not error and compare(op, problem, tensors, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    for m, n, parts in SHAPES:
        assert right(name, (m, n), dtype, emulator, parts, DTYPES[dtype], lambda text: text), (m, n)


@needs_compiler
def test_infinite_elements_of_one_row_do_not_reach_the_gradients_of_its_neighbours(emulator: Emulator) -> None:
    op = op_named("rmsnorm")
    tensors = inputs_of(op, op.problem({"m": 3, "n": 1031}, "bf16", direction="backward"))
    tensors[2][1, [0, -1]] = torch.inf
    (dx_MN, _), error = run(emulator, "rmsnorm", tensors, 2, MODES[0])
    assert error == ""
    assert dx_MN.isfinite().all(dim=1).tolist() == [True, False, True]


MISTAKES = {
    "a block leaves its last chunk out": ("rmsnorm", "i < piece.count", "i < piece.count - 1"),
    "the mean is not subtracted": ("layernorm", "CENTRED ? a[e] - middle : a[e]", "a[e]"),
    "elements outside the row have a distance": ("layernorm", "!CENTRED || row.holds(k, e)", "true"),
    "the sum is not stored": ("add_rmsnorm", "row.store(s, k, stored);", ""),
    "the gradient of the sum is left out": ("add_rmsnorm", "fmaf(inner, about.scale, s[e])", "inner * about.scale"),
    "sums of the first row are used": ("rmsnorm", "partials[row * parts + i]", "partials[i]"),
    "only some rows are merged": ("rmsnorm", "row += COLUMN_LANES / 32", "row += COLUMN_LANES"),
    "the mean of the gradients is left out": ("layernorm", " - about.level", ""),
    "threads do not wait for the merged sums": (
        "rmsnorm",
        "__syncthreads();\n\n    float sum[EACH]",
        "float sum[EACH]",
    ),
    "the last row is left out": ("rmsnorm", "from + i < m", "from + i < m - 1"),
    "the last blocks of columns are left out": ("rmsnorm", "block >= blocks", "block >= blocks - 1"),
    "columns of a thread overlap": ("rmsnorm", "first + e * COLUMN_LANES", "first + e"),
    "a row is not shifted beside its weight": ("rmsnorm", "16 - row.head * (int)sizeof(T)", "16"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    name, before, after = MISTAKES[mistake]
    assert before in text_of(SOURCE)
    assert not all(
        right(name, (9, 4099), "bf16", emulator, 3, mode, lambda text: text.replace(before, after)) for mode in MODES
    )


@pytest.mark.parametrize("itemsize", [2, 4])
def test_blocks_of_columns_are_a_whole_number_for_each_part(itemsize: int) -> None:
    for n in (1, 1024, 4096, 300_001, 3_508_120):
        for parts in (1, 3, 66):
            blocks, each = column_blocks(n, itemsize, parts), 16 // itemsize if n * itemsize % 16 == 0 else 4
            needed = -(-n // (each * COLUMN_LANES))
            assert blocks % parts == 0
            assert needed <= blocks < needed + parts


ONE_BLOCK_SHAPES = (
    *((1, 1), (1, 11), (3, 2), (2, 261), (64, 3), (41, 14), (33, 64), (1, 4096)),
    *((2, 2048), (4, 2047), (9, 330), (200, 40), (8, 1024), (5, 1637), (1, 8191), (4001, 1)),
)
"""Rows and their length: one element; one warp without a barrier; rows of part of a warp, of a warp and of several; all rows
in each thread and groups of threads with some rows each; loads of 2 to 16 bytes; the last row, column or load of a thread
missing."""


def one_block_is_right(
    name: str, sizes: tuple[int, int], dtype: str, emulator: Emulator, mode: Mode, change: Callable[[str], str]
) -> bool:
    op, (m, n) = op_named(name), sizes
    problem = op.problem({"m": m, "n": n}, dtype, direction="backward")
    tensors = inputs_of(op, problem)
    tensors[0].add_(3.0)
    given = named_inputs(name, tensors) | named_gradients(name, tensors)
    centred, adds = "b_N" in given, "r_MN" in given
    row_MN = given["x_MN"] + given["r_MN"] if adds else given["x_MN"]
    wide_MN = row_MN.float()
    mean_M = wide_MN.mean(dim=1) if centred else torch.zeros(m)
    scale_M = ((wide_MN - mean_M[:, None]).square().mean(dim=1) + EPS).rsqrt()
    tile = one_block_tile(m, n, row_MN.element_size(), centred=centred)
    assert tile is not None
    element = RowSplit(1, lanes=64, vectors=1).defines(row_MN)
    macros = element | tile.defines(m, n) | {"CENTRED": str(int(centred)), "ADDS": str(int(adds))}
    program = emulator.program(
        ONE_BLOCK_SOURCE, ("backward_one_block",), macros, text=change(text_of(ONE_BLOCK_SOURCE))
    )
    dx, dw, db = Output(m, n, row_MN.dtype), Output(1, n, row_MN.dtype), Output(1, n, row_MN.dtype)
    mean: Argument = mean_M if centred else 0
    pointers = [
        row_MN,
        given["w_N"],
        given["dy_MN"],
        given.get("ds_MN", 0),
        mean,
        scale_M,
        dx.matrix,
        dw.matrix,
        db.matrix,
    ]
    error = program.run(pointers, Grid(blocks=1, threads=tile.threads), mode, kernel="backward_one_block")
    assert all(one.guard_is_unchanged() for one in (dx, dw, db))
    gradients = (dx.matrix, dw.matrix.view(n), db.matrix.view(n))[: 3 if centred else 2]
    return not error and compare(op, problem, tensors, gradients).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_one_block_agrees_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    for sizes in ONE_BLOCK_SHAPES:
        assert one_block_is_right(name, sizes, dtype, emulator, DTYPES[dtype], lambda text: text), sizes


ONE_BLOCK_MISTAKES = {
    "the last rows are left out": ("rmsnorm", (61, 60), "group + i * GROUPS < M;", "group + i * GROUPS < M - 1;"),
    "the last columns are left out": (
        "rmsnorm",
        (61, 60),
        "lane + k * LANES < UNITS;",
        "lane + k * LANES < UNITS - 1;",
    ),
    "threads do not wait for the sums of columns": ("rmsnorm", (61, 60), "__syncthreads();", ""),
    "threads do not wait for the sums of rows": ("rmsnorm", (2, 2048), "__syncthreads();", ""),
    "rows have the sums of the first one": (
        "rmsnorm",
        (9, 330),
        "sum_of_warps(slots[group * ROWS + i],",
        "sum_of_warps(slots[0],",
    ),
    "the sum of a warp is left out": ("rmsnorm", (2, 261), "of_warps[warp] : V", "of_warps[0] : V"),
    "the last warp of a few is left out": ("rmsnorm", (2, 250), "warp < WARPS;", "warp < WARPS - 1;"),
    "rows of a warp are not added up": ("rmsnorm", (61, 14), "apart < 32;", "apart < 16;"),
    "a part of a column is left out": ("layernorm", (61, 14), "part < PARTS;", "part < PARTS - 1;"),
    "the mean of the gradients is left out": ("layernorm", (61, 60), " - level;", ";"),
    "db is dw": ("layernorm", (2, 9), "narrow_unit<T, WIDTH>(out[KINDS - 1])", "narrow_unit<T, WIDTH>(out[0])"),
    "the gradient of the sum is left out": ("add_rmsnorm", (61, 60), "scales[i], more[e])", "scales[i], 0.0f)"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", ONE_BLOCK_MISTAKES)
def test_a_mistake_in_one_block_is_found(mistake: str, emulator: Emulator) -> None:
    name, sizes, before, after = ONE_BLOCK_MISTAKES[mistake]
    assert before in text_of(ONE_BLOCK_SOURCE)
    assert not all(
        one_block_is_right(name, sizes, "fp32", emulator, mode, lambda text: text.replace(before, after))
        for mode in MODES
    )
