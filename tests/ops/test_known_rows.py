"""The kernels of normalisations for rows of a known length, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from rows_on_processor import text_of

from kernelviz.ops import op_named
from kernelviz.ops.kernels.known_lengths import MOST_BLOCK_THREADS, MOST_INDEX, WARP, KnownTile, block_tile, known_tile
from kernelviz.ops.kernels.split_rows import RowSplit
from kernelviz.ops.norm_activation import cuda_known_length as with_gelu
from kernelviz.ops.norm_activation.reference import EPS as GELU_EPS
from kernelviz.ops.normalisation.cuda_known_rows import SOURCE
from kernelviz.ops.normalisation.reference import EPS
from kernelviz.ops.normalisation.variants import named_inputs
from kernelviz.ops.quantize import cuda_known_rows as quantize
from kernelviz.ops.quantize.reference import SMALLEST, largest

DTYPES = {"fp32": MODES[0], "bf16": MODES[1], "fp16": MODES[0]}
OPS = ("rmsnorm", "layernorm", "add_rmsnorm")
SHAPES = (
    *((1, 1), (67, 3), (5, 11), (130, 40), (24, 840), (3, 261), (2, 1021), (2, 1546), (1, 2048), (3, 128)),
    *((1030, 7), (2, 2427), (1, 4096), (1401, 65), (5, 26), (3, 64), (2, 3603)),
)
"""Rows and their length: rows that share a warp and a block, the last block with fewer; a warp and several, up to 16; loads of
2 to 16 bytes; one to eight loads a thread, the last of which some do not have."""


def right(
    name: str,
    sizes: tuple[int, int],
    dtype: str,
    emulator: Emulator,
    mode: Mode,
    change: Callable[[str], str] = lambda text: text,
    tile: KnownTile | None = None,
) -> bool:
    op, (m, n) = op_named(name), sizes
    problem = op.problem({"m": m, "n": n}, dtype)
    tensors = inputs_of(op, problem)
    tensors[0].add_(3.0)  # so that the mean of a row is not about 0
    given = named_inputs(name, tensors)
    x_MN, adds, centred = given["x_MN"], "r_MN" in given, "b_N" in given
    tile = tile or known_tile(m, n, x_MN.element_size())
    assert tile is not None
    element = RowSplit(1, lanes=64, vectors=1).defines(x_MN)["ELEMENT"]
    macros = {"ELEMENT": element, "CENTRED": str(int(centred)), "ADDS": str(int(adds))} | tile.defines(n)
    program = emulator.program(SOURCE, "normalise_known_rows", macros, text=change(text_of(SOURCE, EPS)))
    s, y = Output(m, n, x_MN.dtype), Output(m, n, x_MN.dtype)
    pointers = [x_MN, *[given[name] for name in ("r_MN", "w_N", "b_N") if name in given]]
    pointers += [s.matrix, y.matrix] if adds else [y.matrix]
    grid = Grid(blocks=tile.blocks(m), threads=tile.threads)
    error = program.run([*pointers, m - 1, 0], grid, mode)
    error = error or ("" if all(one.guard_is_unchanged() for one in (s, y)) else "the guard was written")
    outputs = (s.matrix.clone(), y.matrix.clone()) if adds else y.matrix.clone()
    return not error and compare(op, problem, tensors, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_kernel_agrees_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    for sizes in SHAPES:
        assert right(name, sizes, dtype, emulator, DTYPES[dtype]), sizes
    # As of many rows: a warp a row, with several vectors a lane.
    width = 4 if dtype == "fp32" else 8
    tile = known_tile(60_000, 100 * width, 16 // width)
    assert tile == KnownTile(lanes=32, rows=4, width=width)
    assert right(name, (5, 100 * width), dtype, emulator, DTYPES[dtype], tile=tile)


MISTAKES = {
    "the last row is left out": ("rmsnorm", (67, 3), "LANES), last_row)", "LANES), last_row - 1)"),
    "a row too many": ("rmsnorm", (67, 3), "LANES), last_row)", "LANES), last_row + 1)"),
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
        "store_unit<T, WIDTH>(sum_to",
        "if (false) store_unit<T, WIDTH>(sum_to",
    ),
    "the bias is left out": ("layernorm", (5, 11), "g[e], c[e])", "g[e], 0.0f)"),
}


def right_with_gelu(
    sizes: tuple[int, int], dtype: str, emulator: Emulator, mode: Mode, change: Callable[[str], str] = lambda text: text
) -> bool:
    op, (m, n), source = op_named("norm_activation"), sizes, with_gelu.ROWS_SOURCE
    problem = op.problem({"m": m, "n": n}, dtype)
    tensors = inputs_of(op, problem)
    tensors[0].add_(3.0)
    tile = block_tile(m, n, tensors[0].element_size())
    assert tile is not None
    macros, text = with_gelu.known_rows_defines(tensors[0], tile), change(text_of(source, GELU_EPS))
    program = emulator.program(source, "layernorm_gelu_known_rows", macros, text=text)
    y = Output(m, n, tensors[0].dtype)
    error = program.run([*tensors, y.matrix, m - 1, 0], Grid(blocks=tile.blocks(m), threads=tile.threads), mode)
    return not error and y.guard_is_unchanged() and compare(op, problem, tensors, y.matrix.clone()).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_of_a_layernorm_agrees_with_the_reference(dtype: str, emulator: Emulator) -> None:
    for sizes in ((3, 261), (2, 935), (1, 2048), (2, 143), (2, 3603)):
        assert right_with_gelu(sizes, dtype, emulator, DTYPES[dtype]), sizes


@needs_compiler
@pytest.mark.parametrize(
    ("before", "after"),
    [("return gelu_polynomial<sizeof(T) == 4 ? 8 : 6>(v);", "return v;"), ("a[k][e] - mean", "a[k][e]")],
)
def test_a_mistake_with_gelu_is_found(before: str, after: str, emulator: Emulator) -> None:
    assert before in text_of(with_gelu.ROWS_SOURCE, GELU_EPS)
    assert not right_with_gelu((3, 261), "fp32", emulator, MODES[0], lambda text: text.replace(before, after))


QUANTIZE = ("rmsnorm_quantize_fp8", "quantize_fp8", "quantize_int8")
NUMBERS = "float eps, float smallest,\n    float factor_of_smallest) {"


def quantised_right(
    sizes: tuple[int, int],
    dtype: str,
    emulator: Emulator,
    mode: Mode,
    change: Callable[[str], str] = lambda text: text,
    special: float | None = None,
    name: str = "rmsnorm_quantize_fp8",
) -> bool:
    (m, n), source, op = sizes, quantize.SOURCE, op_named(name)
    target, weighted = name.rsplit("_", 1)[1], name.startswith("rmsnorm")
    problem = op.problem({"m": m, "n": n}, dtype)
    tensors = inputs_of(op, problem)
    if special is not None:
        tensors[0][m - 1, n - 1] = special
        tensors[0][0] = 0.0
    tile = block_tile(m, n, tensors[0].element_size())
    assert tile is not None
    code = text_of(source)
    assert NUMBERS in code
    # The emulator passes whole numbers as arguments.
    constants = {"eps": GELU_EPS, "smallest": SMALLEST, "factor_of_smallest": largest(target) / SMALLEST}
    floats = "".join(f"\n    const float {name} = {value}f;" for name, value in constants.items())
    code = change(code.replace(NUMBERS, f"float, float, float) {{{floats}"))
    macros = quantize.defines(tensors[0], tile, target, weighted=weighted)
    program = emulator.program(source, "quantize_known_rows", macros, text=code)
    q = Output(m, n, torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scales = Output(m, 1, torch.float32)
    weight = tensors[1] if weighted else 0
    error = program.run(
        [tensors[0], weight, q.matrix, scales.matrix, 0, 0, 0], Grid(blocks=m, threads=tile.threads), mode
    )
    error = error or ("" if q.guard_is_unchanged() and scales.guard_is_unchanged() else "the guard was written")
    outputs = q.matrix.clone(), scales.matrix.view(m).clone()
    if special is not None:  # the row of zeros has zeros, and no other row has NaN
        return not error and not outputs[0][0].float().any() and not outputs[1][:-1].isnan().any()
    return not error and compare(op, problem, tensors, outputs).passed


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", QUANTIZE)
def test_quantised_rows_agree_with_the_reference(name: str, dtype: str, emulator: Emulator) -> None:
    for sizes in ((3, 261), (2, 1062), (1, 4096), (2, 645), (2, 3603)):
        assert quantised_right(sizes, dtype, emulator, DTYPES[dtype], name=name), sizes
    for special in (torch.nan, torch.inf, 0.0):
        assert quantised_right((3, 261), dtype, emulator, DTYPES[dtype], special=special, name=name)


QUANTIZE_MISTAKES = {
    "threads do not wait for the totals of warps": ("__syncthreads();", ""),
    "the last elements are left out": ("k * LANES < UNITS;", "k * LANES < UNITS - 1;"),
    "only the sums are combined": ("larger(a.most, b.most)", "a.most"),
    "every row is the first": ("first = blockIdx.x * UNITS + lane", "first = lane"),
    "every row has the first scale": ("scales[blockIdx.x]", "scales[0]"),
    "the weight is left out": ("v[k][e] *= g[e];", ""),
}


@needs_compiler
@pytest.mark.parametrize("mistake", QUANTIZE_MISTAKES)
def test_a_mistake_in_quantised_rows_is_found(mistake: str, emulator: Emulator) -> None:
    before, after = QUANTIZE_MISTAKES[mistake]
    assert before in text_of(quantize.SOURCE)
    assert not all(
        quantised_right((3, 261), "fp32", emulator, mode, lambda text: text.replace(before, after)) for mode in MODES
    )


@needs_compiler
@pytest.mark.parametrize(
    ("before", "after"),
    [("return {larger(a.most, b.most)};", "return {a.most};"), ("top = larger(most, smallest),", "top = most,")],
)
def test_a_mistake_without_a_weight_is_found(before: str, after: str, emulator: Emulator) -> None:
    assert before in text_of(quantize.SOURCE)

    def agrees(mode: Mode, special: float | None = None) -> bool:
        return quantised_right(
            (3, 261), "fp32", emulator, mode, lambda text: text.replace(before, after), special, "quantize_fp8"
        )

    assert not all(agrees(mode) for mode in MODES) or not agrees(MODES[0], special=1.0)


@pytest.mark.parametrize("itemsize_bytes", [2, 4])
def test_tiles_cover_rows(itemsize_bytes: int) -> None:
    for n in range(1, 4200):
        for m in (1, 19, 300, 5000, 2**17, 2**25):
            tile = known_tile(m, n, itemsize_bytes)
            if tile is None:
                continue
            assert n % tile.width == 0
            assert tile.threads % WARP == 0
            assert tile.threads <= 512
            assert tile.blocks(m) * tile.rows >= m
            assert m * tile.lanes <= MOST_BLOCK_THREADS or tile.lanes <= WARP
            assert m * max(tile.lanes, n // tile.width) < MOST_INDEX


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    name, sizes, before, after = MISTAKES[mistake]
    assert before in text_of(SOURCE, EPS)
    assert not all(
        right(name, sizes, "fp32", emulator, mode, lambda text: text.replace(before, after)) for mode in MODES
    )
