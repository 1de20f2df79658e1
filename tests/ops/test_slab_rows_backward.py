"""The backward passes of normalisations of many short rows, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler, unwritten
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.kernels.row_slabs import OPT_IN_BYTES, RowSlab, SlabRing, row_slab
from kernelviz.ops.normalisation.cuda_slab_backward import (
    LONGEST_ROW_BYTES,
    RING,
    SOURCE,
    SUM_THREADS,
    arrays,
    shape_defines,
    slab_shape,
    sum_defines,
)
from kernelviz.ops.normalisation.reference import EPS
from kernelviz.ops.normalisation.variants import named_gradients, named_inputs

OPS = ("rmsnorm", "layernorm", "add_rmsnorm")
DTYPES = {"fp32": MODES[0], "bf16": MODES[1], "fp16": MODES[0]}
RINGS = {"ring": RING, "small_ring": SlabRing(threads=64, stages=2, slab_bytes=2048, elements=16)}
SHAPES = ((1, 1), (613, 1), (5000, 1), (613, 3), (1501, 15), (211, 20), (40, 64), (9, 105), (13, 128))
"""Units of 2 to 16 bytes; a thread, some threads and a warp a row; the last slab with fewer rows; several slabs a block."""
BLOCKS = 3


def slab_of(
    m: int, n: int, itemsize_bytes: int, ring: SlabRing, *, tensors: int, centred: bool, blocks: int
) -> RowSlab:
    """The slab as `slab_kernel` has it, for so many resident blocks."""
    of_arrays = arrays(centred=centred, adds=tensors == 3)
    slab = row_slab(m, n, itemsize_bytes, 2, tensors=tensors, ring=ring, arrays=of_arrays)
    assert slab is not None
    return slab.balanced(m, n * itemsize_bytes, blocks)


def gradients(
    emulator: Emulator,
    name: str,
    tensors: tuple[Tensor, ...],
    ring: SlabRing,
    mode: Mode,
    change: Callable[[str], str] = lambda text: text,
) -> tuple[tuple[Tensor, ...], str]:
    """The gradients that both launches leave, and the first error."""
    given = named_inputs(name, tensors) | named_gradients(name, tensors)
    centred, adds = "b_N" in given, "r_MN" in given
    row_MN = given["x_MN"] + given["r_MN"] if adds else given["x_MN"]
    m, n = row_MN.shape
    tensor_count, pitch = 2 + adds, 4 * -(-n // 4)
    rows, columns = slab_shape(m, n, row_MN.element_size())
    slab = slab_of(rows, columns, row_MN.element_size(), ring, tensors=tensor_count, centred=centred, blocks=BLOCKS)
    blocks = min(BLOCKS, -(-rows // slab.rows))
    sums = sum_defines(pitch)
    macros = slab.defines(row_MN) | sums | shape_defines(m, n, row_MN.element_size())
    macros |= {"CENTRED": str(int(centred)), "ADDS": str(int(adds))}
    program = emulator.program(SOURCE, ("backward_slabs", "sum_slab_parts"), macros, text=change(text_of(SOURCE, EPS)))
    dx, dw, db = Output(m, n, row_MN.dtype), Output(1, n, row_MN.dtype), Output(1, n, row_MN.dtype)
    parts = unwritten((2 if centred else 1, blocks, pitch), torch.float32)
    read = [row_MN, given["w_N"], given["dy_MN"], given.get("ds_MN", 0)]
    readable = [one for one in read if isinstance(one, Tensor)]
    grid = Grid(blocks=blocks, threads=ring.threads, shared_bytes=slab.shared_bytes)
    arguments = [*read, dx.matrix, parts, rows, columns, pitch, 0, slab.rows, slab.tensor_bytes]
    error = program.run(arguments, grid, mode, kernel="backward_slabs", readable=readable)
    of_sums = Grid(blocks=(-(-pitch // (4 * int(sums["SUM_LANES"]))), parts.shape[0]), threads=SUM_THREADS)
    after = program.run([parts, dw.matrix, db.matrix, blocks, n, pitch], of_sums, mode, kernel="sum_slab_parts")
    assert all(one.guard_is_unchanged() for one in (dx, dw, db))
    outputs = (dx.matrix, dw.matrix.view(n), db.matrix.view(n))[: 3 if centred else 2]
    return tuple(one.clone() for one in outputs), error or after


def right(
    emulator: Emulator,
    name: str,
    sizes: tuple[int, int],
    dtype: str,
    ring: SlabRing,
    mode: Mode,
    change: Callable[[str], str] = lambda text: text,
) -> bool:
    op, (m, n) = op_named(name), sizes
    problem = op.problem({"m": m, "n": n}, dtype, direction="backward")
    tensors = inputs_of(op, problem)
    tensors[0].add_(3.0)  # so that the mean of a row is not about 0
    outputs, error = gradients(emulator, name, tensors, ring, mode, change)
    return not error and compare(op, problem, tensors, outputs).passed


@needs_compiler
@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_reference(name: str, dtype: str, ring: str, emulator: Emulator) -> None:
    for sizes in SHAPES:
        assert right(emulator, name, sizes, dtype, RINGS[ring], DTYPES[dtype]), sizes


@needs_compiler
def test_infinite_elements_of_one_row_do_not_reach_dx_of_its_neighbours(emulator: Emulator) -> None:
    op = op_named("rmsnorm")
    tensors = inputs_of(op, op.problem({"m": 613, "n": 3}, "bf16", direction="backward"))
    tensors[2][612, 1] = torch.inf  # of the last row, which threads without a row compute, too
    tensors[2][7, 0] = torch.nan
    (dx_MN, dw_N), error = gradients(emulator, "rmsnorm", tensors, RINGS["ring"], MODES[0])
    assert error == ""
    finite = dx_MN.isfinite().all(dim=1)
    assert (~finite).nonzero().flatten().tolist() == [7, 612]
    assert dw_N.isfinite().tolist() == [False, False, True]


MISTAKES = {
    "rows that are not there are added": ("rmsnorm", "if (row.inside) {\n                    sums", "{\n sums"),
    "rows of a warp are not added up": ("rmsnorm", "apart = SLAB_LANES; apart < 32", "apart = SLAB_LANES; apart < 16"),
    "a warp is left out": ("rmsnorm", "warp < WARPS;", "warp < WARPS - 1;"),
    "a block is left out": ("rmsnorm", "i * SUM_GROUPS < count", "i * SUM_GROUPS < count - 1"),
    "threads do not wait for the sums of warps": (
        "rmsnorm",
        "__syncthreads();\n#pragma unroll 1\n    for (int column",
        "for (int column",
    ),
    "threads do not wait for the sums of groups": ("rmsnorm", "__syncthreads();\n    const int mine", "const int mine"),
    "lanes do not exchange their sums": ("rmsnorm", "moments = warp_reduce<SLAB_LANES>", "moments = warp_reduce<1>"),
    "the mean is not subtracted": ("layernorm", "v[k][e] -= mean;", ""),
    "the mean of the gradients is left out": ("layernorm", " - level;", ";"),
    "db is dw": ("layernorm", "sums[KINDS - 1][k][e] += d[k][e];", "sums[KINDS - 1][k][e] += d[k][e] * hat;"),
    "all sums are of dw": ("layernorm", "kind * gridDim.x + blockIdx.x", "blockIdx.x"),
    "the gradient of the sum is left out": ("add_rmsnorm", "scale, added[e])", "scale, 0.0f)"),
    "the gradient of the sum is not copied": (
        "add_rmsnorm",
        "tensors.from[INPUTS - 1] = ds;",
        "tensors.from[INPUTS - 1] = dy;",
    ),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    name, before, after = MISTAKES[mistake]
    assert before in text_of(SOURCE, EPS)
    assert not all(
        right(emulator, name, (613, 35), "fp32", RINGS["small_ring"], mode, lambda text: text.replace(before, after))
        for mode in MODES
    )


COLUMN_MISTAKES = {
    "all rows have the first gradient": ("rmsnorm", "fmaf(d[e], hat, sums[0][0][e])", "fmaf(d[0], hat, sums[0][0][e])"),
    "the mean is left out": ("layernorm", "CENTRED ? v[e] - v[e] : v[e]", "v[e]"),
    "elements behind the first are not added up": ("rmsnorm", "sums[kind][0][0] += sums[kind][0][e];", ""),
    "rows that are not there are added": ("rmsnorm", "if (row.inside) {\n            sums", "{\n sums"),
    "the gradient of the sum is left out": ("add_rmsnorm", "scale, added[e]) : change", "scale, 0.0f) : change"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", COLUMN_MISTAKES)
def test_a_mistake_with_one_column_is_found(mistake: str, emulator: Emulator) -> None:
    name, before, after = COLUMN_MISTAKES[mistake]
    assert before in text_of(SOURCE, EPS)
    assert not all(
        right(emulator, name, (5000, 1), "bf16", RINGS["small_ring"], mode, lambda text: text.replace(before, after))
        for mode in MODES
    )


@pytest.mark.parametrize("tensors", [2, 3])
@pytest.mark.parametrize("itemsize_bytes", [2, 4])
def test_stages_and_sums_fit_without_opting_in(itemsize_bytes: int, tensors: int) -> None:
    for n in range(1, LONGEST_ROW_BYTES // itemsize_bytes + 1):
        for centred in (False, True)[: 4 - tensors]:
            of_arrays = arrays(centred=centred, adds=tensors == 3)
            slab = row_slab(2**24, n, itemsize_bytes, 132, tensors=tensors, ring=RING, arrays=of_arrays)
            assert slab is not None
            columns = slab.units * slab.lanes * slab.unit_bytes // itemsize_bytes
            sums_bytes = 4 * columns * (RING.threads // 32) * (2 if centred else 1)
            assert slab.opt_in_bytes == 0
            assert slab.shared_bytes + sums_bytes <= OPT_IN_BYTES, (n, centred)
