"""Kernels of 16-byte vectors for rows that start anywhere in a vector: results by fibers of the processor, and machine code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from emulator import MODES, Argument, Emulator, Grid, Output, needs_compiler, with_header

from kernelviz.machine_code.disassembly import disassembly
from kernelviz.ops.kernels import interleave, nvrtc
from kernelviz.ops.kernels.flat_rows import flat_stride
from kernelviz.ops.norm_activation import cuda as batchnorm
from kernelviz.ops.pointwise_chain import cuda as chain
from kernelviz.ops.transpose import cuda as transpose

DTYPES = (torch.float32, torch.bfloat16)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
NARROW = ((1, 1031), (2, 1500), (3, 1001), (7, 2050), (16, 264), (37, 401), (64, 130), (5, 4096))


def check(
    emulator: Emulator,
    file: tuple[Path, str],
    defines: dict[str, str],
    arguments: Sequence[Argument],
    grid: Grid,
    y: torch.Tensor,
    header: str | None = None,
) -> None:
    """`arguments`: those of the kernel; its first tensor is x, and None in place of the output. `header`: of ours, if it has no
    replacement for the processor."""
    header = "two_vectors.cuh" if file[0] == chain.FLAT_SOURCE else header
    text = None if header is None else with_header(file[0], header)
    program = emulator.program(*file, defines, text=text)
    inputs = [one for one in arguments if isinstance(one, torch.Tensor)]
    for mode in MODES:
        out = Output(*y.shape, y.dtype)
        values = [out.matrix if one is OUTPUT else one for one in arguments]
        assert program.run(values, grid, mode, readable=(inputs[0], *inputs)) == ""
        assert torch.equal(out.matrix, y), mode
        assert out.guard_is_unchanged()


OUTPUT = -1
"""Where the output is among the arguments of a kernel."""


@needs_compiler
@dtypes
@pytest.mark.parametrize("processors", [1, 132])
@pytest.mark.parametrize("few_rows", [True, False], ids=["rows", "columns"])
@pytest.mark.parametrize("sizes", NARROW, ids=str)
def test_streams_are_interleaved(
    emulator: Emulator, sizes: tuple[int, int], few_rows: bool, processors: int, dtype: torch.dtype
) -> None:
    m, n = sizes if few_rows else sizes[::-1]
    tile = interleave.tile_of(m, n, dtype.itemsize, processors)
    assert tile is not None
    x = torch.randn(m, n).to(dtype)
    file = interleave.SOURCE, "interleave" if tile.few_rows else "deinterleave"
    defines = tile.defines(nvrtc.element_type(dtype), relu=few_rows)
    grid = Grid(blocks=tile.blocks, threads=tile.threads)
    check(emulator, file, defines, [x, OUTPUT, tile.length], grid, x.t().relu() if few_rows else x.t())


@needs_compiler
@dtypes
@pytest.mark.parametrize("few_rows", [True, False], ids=["rows", "columns"])
@pytest.mark.parametrize(
    "sizes",
    [(1, 1), (2, 3), (7, 7), (1, 1031), (2, 1500), (3, 1001), (7, 2050), (10, 12330), (16, 264), (2, 65536)],
    ids=str,
)
@pytest.mark.parametrize("processors", [1, 132])
def test_streams_are_interleaved_in_registers(
    emulator: Emulator, sizes: tuple[int, int], few_rows: bool, processors: int, dtype: torch.dtype
) -> None:
    m, n = sizes if few_rows else sizes[::-1]
    shape = interleave.in_registers(m, n, dtype.itemsize, processors)
    assert shape is not None
    for each in {1, shape.each}:
        one = replace(shape, each=each)
        x = torch.randn(m, n).to(dtype)
        defines = one.defines(nvrtc.element_type(dtype), relu=few_rows)
        grid = Grid(blocks=one.blocks, threads=one.threads)
        file = interleave.REGISTERS_SOURCE, "interleave_registers"
        check(emulator, file, defines, [x, OUTPUT, one.length], grid, x.t().relu() if few_rows else x.t())


@needs_compiler
@dtypes
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    "sizes", [(40, 264), (131, 257), (259, 128), (64, 139), (77, 30), (310, 140), (310, 141)], ids=str
)
@pytest.mark.parametrize("tall", [False, True])
def test_vectors_are_transposed(
    emulator: Emulator, sizes: tuple[int, int], tall: bool, relu: bool, dtype: torch.dtype
) -> None:
    assert transposed(emulator, sizes, tall, relu, dtype) == []


MISTAKES_OF_VECTORS = {
    "the ends of rows are left out": ("row + i >= 0 && row + i < m", "false"),
    "a row of y ends early": ("row + i < m", "row + i < m - STEP"),
    "a row of y is written before its begin": ("row + i >= 0", "row + i >= -STEP"),
    "blocks follow the columns first": ("DOWN_FIRST ? faster : slower", "slower"),
    "the vector before is not used": ("tile[swizzled(column, vec - 1)]", "column_vec"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES_OF_VECTORS)
def test_a_mistake_in_the_transposition_is_noticed(emulator: Emulator, mistake: str) -> None:
    assert transposed(emulator, (310, 141), True, False, torch.bfloat16, MISTAKES_OF_VECTORS[mistake])


def transposed(
    emulator: Emulator,
    sizes: tuple[int, int],
    tall: bool,
    relu: bool,
    dtype: torch.dtype,
    change: tuple[str, str] = ("", ""),
) -> list[str]:
    """What is wrong in each mode with a transposition by 16-byte vectors, as tiles of few vectors or as tall ones."""
    (m, n), width = sizes, 16 // dtype.itemsize
    x = torch.randn(m, n).to(dtype)
    vectors_m, vectors_n = transpose.tall_tile(m, width) if tall else transpose.tile_of(m, n, dtype.itemsize, 1)
    one_tile = transpose.rows_in_one_tile(m, width, vectors_m)
    defines = {"ELEMENT": nvrtc.element_type(dtype), "VECTORS_M": str(vectors_m), "VECTORS_N": str(vectors_n)}
    defines |= {"M_REST": str(m % width), "N_REST": str(n % width), "RELU": str(int(relu))}
    across, down = -(-n // (vectors_n * width)), -(-(m + (width - 1 if m % width else 0)) // (vectors_m * width))
    defines |= {"ONE_TILE": str(int(one_tile)), "DOWN_FIRST": str(int(down < across))}
    grid = Grid(blocks=down * across, threads=vectors_m * vectors_n + (32 if m % width and not one_tile else 0))
    text = with_header(transpose.SOURCE, "access_bits.cuh")
    assert change[0] in text
    text = text.replace(*change) if change[0] else text
    program = emulator.program(transpose.SOURCE, "transpose_vec16", defines, text=text)
    wrong, y = [], x.t().relu() if relu else x.t()
    for mode in MODES:
        out = Output(*y.shape, y.dtype)
        error = program.run([x, out.matrix, m, n, min(down, across)], grid, mode, readable=(x, x))
        if not error and not (torch.equal(out.matrix, y) and out.guard_is_unchanged()):
            error = "an element differs"
        wrong += [error] if error else []
    return wrong


@needs_compiler
@pytest.mark.parametrize(("dtype", "packed"), [(torch.float32, 0), (torch.bfloat16, 0), (torch.bfloat16, 1)], ids=str)
@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("sizes", [(1, 3, 1), (301, 3, 2), (21, 1031, 1), (37, 262, 3), (2, 4099, 2)], ids=str)
def test_a_chain_walks_rows_as_one_vector(
    emulator: Emulator, sizes: tuple[int, int, int], most: int, dtype: torch.dtype, packed: int
) -> None:
    """Numbers are small integers, so every order and format of the operations gives the same."""
    (m, n, k), width = sizes, 16 // dtype.itemsize
    x, s, b = (torch.randint(low, 3, shape).to(dtype) for low, shape in ((-3, (m, n)), (-1, (k, n)), (-2, (k, n))))
    expected = x
    for scale, shift in zip(s, b, strict=True):
        expected = (expected * scale + shift).relu()
    whole, after = divmod(m * n, width)
    stride, rows = flat_stride(whole, n, width, most)
    defines = {"ELEMENT": nvrtc.element_type(dtype), "PACKED": str(packed), "ROWS": str(rows)}
    grid = Grid(blocks=-(-(stride + after) // chain.THREADS), threads=chain.THREADS)
    defines |= {"ONE_STEP": str(int(k == 1)), "INDEX": "int" if most == 1 else "long long"}
    arguments = [x, s, b, OUTPUT, m * n, stride, n, 0, k, *chain.reciprocal_of(n)]
    check(emulator, (chain.FLAT_SOURCE, "chain_flat"), defines, arguments, grid, expected)


def batch_of_integers(
    m: int, n: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, ...]]:
    """x, its normalised batch through relu for an eps of 1, and the numbers of each channel: mean, variance, factor, summand."""
    x = torch.randint(-3, 3, (m, n)).to(dtype)
    mean, w, b = (torch.randint(-2, 3, (n,)).float() for _ in range(3))
    variance = torch.tensor([0.0, 3.0, -3.0])[torch.randint(3, (n,))]
    expected = ((x.float() - mean) * w / (variance.abs() + 1).sqrt() + b).relu().to(dtype)
    return x, expected, (mean, variance, w, b)


@needs_compiler
@dtypes
@pytest.mark.parametrize("most", [1, 3, 16])
@pytest.mark.parametrize("sizes", [(1, 3), (301, 3), (21, 1031), (37, 262), (2, 4099), (1000, 13)], ids=str)
def test_a_batch_normalisation_walks_rows_as_one_vector(
    emulator: Emulator, sizes: tuple[int, int], most: int, dtype: torch.dtype
) -> None:
    """Numbers are small integers, and variances plus 1 are 1, 4 or 1/4, so every order of the operations gives the same."""
    (m, n), width = sizes, 16 // dtype.itemsize
    x, expected, (mean, variance, w, b) = batch_of_integers(m, n, dtype)
    stride, rows = batchnorm.flat_batchnorm(m, n, width, 0, most)
    defines = {"ELEMENT": nvrtc.element_type(dtype), "ROWS": str(rows)}
    grid = Grid(blocks=-(-(stride + m * n % width) // batchnorm.FLAT_THREADS), threads=batchnorm.FLAT_THREADS)
    arguments: list[Argument] = [x, mean, variance, w, b, OUTPUT, m * n, stride, n, 1]
    check(emulator, (batchnorm.FLAT_SOURCE, "batchnorm_relu_flat"), defines, [*arguments, 0, 1], grid, expected)
    groups = batchnorm.flat_groups(m, n, dtype.itemsize, least_bytes=0, least=100)
    if most == 1 and groups is not None:
        grid = Grid(blocks=groups.blocks * groups.groups, threads=batchnorm.FLAT_THREADS)
        sizes_of_groups: list[Argument] = [m * n, groups.stride, n, 1, groups.reach, groups.blocks]
        file = batchnorm.FLAT_SOURCE, "batchnorm_relu_flat"
        check(emulator, file, groups.defines(x), [*arguments[:6], *sizes_of_groups], grid, expected)


@needs_compiler
@dtypes
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1003, 1), (2061, 2), (517, 2), (515, 4)])
def test_a_batch_normalisation_of_few_channels(emulator: Emulator, m: int, n: int, dtype: torch.dtype) -> None:
    width = 16 // dtype.itemsize
    if n == width:
        return
    x, expected, channels = batch_of_integers(m, n, dtype)
    defines = {"ELEMENT": nvrtc.element_type(dtype), "COLUMNS": str(n), "EPS": "1.0f"}
    grid = Grid(blocks=-(-(m * n // width + m * n % width) // batchnorm.FLAT_THREADS), threads=batchnorm.FLAT_THREADS)
    source, header = batchnorm.FEW_COLUMNS_SOURCE, "adjacent_sum.cuh"
    check(
        emulator, (source, "batchnorm_relu_few_columns"), defines, [x, *channels, OUTPUT, m * n], grid, expected, header
    )


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_global_memory_is_accessed_16_bytes_at_a_time(arch: str) -> None:
    """NVRTC made four stores of each vector where a branch beside it stores single elements, unless that store is streaming."""
    pytest.importorskip("cuda.core")
    tile = interleave.tile_of(3, 2829527, 2, 132)
    assert tile is not None
    whole = {"VECTORS_M": "16", "VECTORS_N": "16", "M_REST": "0", "N_REST": "0", "RELU": "0"}
    flat = {"PACKED": "0", "ROWS": "4", "ONE_STEP": "0", "INDEX": "long long"}
    cases = (
        (interleave.SOURCE, "interleave", tile.defines("__nv_bfloat16", relu=True), 5, 4),
        (transpose.SOURCE, "transpose_vec16", {"ELEMENT": "__nv_bfloat16", **whole}, 8, 8),
        (chain.FLAT_SOURCE, "chain_flat", {"ELEMENT": "__nv_bfloat16", **flat}, 4, 4),
        (batchnorm.FLAT_SOURCE, "batchnorm_relu_flat", {"ELEMENT": "__nv_bfloat16", "ROWS": "4"}, 4, 4),
    )
    for source, name, defines, loads, stores in cases:
        code = disassembly(nvrtc.compile_cubin(source, arch, defines, name))
        lines = [line for line in code.splitlines() if ".128" in line]
        assert sum("LDG" in line for line in lines) >= loads
        assert sum("STG" in line for line in lines) == stores
