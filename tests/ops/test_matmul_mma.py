"""The tensor core kernels of `matmul` for sm_80 and later: their results by fibers of the processor, and their machine code."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from emulator import MODES, Emulator, Grid, Output, Program, needs_compiler

from kernelviz.core.errors import BadField
from kernelviz.core.machine_code import KernelFacts
from kernelviz.core.problem import Problem
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import LIMITS, occupancy
from kernelviz.ops import catalogue
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul import mma, variants_mma
from kernelviz.ops.matmul.mma import HALF, MMA_SOURCE, TF32, WMMA_SOURCE, Tile, access_bytes, tile_for

TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def name(tile: Tile) -> str:
    return f"{tile.rows}x{tile.columns}x{tile.depth}-{tile.stages}-stages-{tile.warps}-warps"


def program(emulator: Emulator, source: Path, defines: Mapping[str, str], text: str | None = None) -> Program:
    return emulator.program(source, f"matmul_{source.stem}", defines, text=text)


def check(
    compiled: Program,
    dtype: str,
    sizes: tuple[int, int, int],
    blocks: int,
    threads: int,
    shared_bytes: int,
    offset: int = 0,
) -> None:
    """Products of small integers are exact in every order of additions. In fp32 the inputs are rounded to them."""
    m, n, k = sizes
    a, b = (
        (torch.randint(-3, 4, (offset + rows * columns,)) * (1 + (dtype == "fp32") * 2.0**-13))
        .to(TORCH[dtype])[offset:]
        .view(rows, columns)
        for rows, columns in ((m, k), (k, n))
    )
    expected = (a.double().round() @ b.double().round()).to(TORCH[dtype])
    readable = (a, b) if "matmul_mma" in compiled.kernels else ()
    grid = Grid(blocks=blocks, threads=threads, shared_bytes=shared_bytes)
    for mode in MODES:
        c = Output(m, n, TORCH[dtype])
        error = compiled.run([a, b, c.matrix, m, n, k], grid, mode, readable=readable)
        assert error == "", (sizes, mode, error)
        assert torch.equal(c.matrix, expected), (sizes, mode)
        assert c.guard_is_unchanged()


def element(dtype: str) -> str:
    return nvrtc.element_type(TORCH[dtype])


def check_tile(
    emulator: Emulator, dtype: str, tile: Tile, sizes: tuple[tuple[int, int, int], ...], offset: int = 0
) -> None:
    """All `sizes` need the same width of accesses, because they are definitions."""
    size = TORCH[dtype].itemsize

    def accesses(m: int, n: int, k: int) -> tuple[int, int, int]:
        return (
            access_bytes(offset * size, k * size, size),
            access_bytes(offset * size, n * size, size),
            access_bytes(0, n * size, size),
        )

    (widths,) = {accesses(*one) for one in sizes}
    compiled = program(emulator, MMA_SOURCE, tile.defines(element(dtype), size, widths))
    for m, n, k in sizes:
        check(compiled, dtype, (m, n, k), tile.blocks(m, n), 32 * tile.warps, tile.shared_bytes(size), offset)


MISTAKES = {
    "a bank conflict": ("(CHUNKS >= 8 ? row % 8 : row / (8 / CHUNKS) % CHUNKS)", "(0 & row)"),
    "a tile is read before it arrived": ("wait_for_copies<STAGES - 2>();", "wait_for_copies<STAGES - 1>();"),
    "a tile is overwritten while it is read": ("STAGES - 2>();\n                __syncthreads();", "STAGES - 2>();"),
    "rows after the last one are read": ("row < rows && byte < bytes;", "byte < bytes;"),
    "C is read before it was written": ("        __syncthreads();\n        constexpr", "        constexpr"),
}


def check_with(emulator: Emulator, text: str) -> None:
    """The product by this text of the kernel."""
    tile = HALF[3]
    defines = tile.defines(element("bf16"), 2, (16, 16, 16))
    sizes = tile.rows + 8, tile.columns + 8, 5 * tile.depth
    compiled = program(emulator, MMA_SOURCE, defines, text)
    check(compiled, "bf16", sizes, tile.blocks(*sizes[:2]), 32 * tile.warps, tile.shared_bytes(2))


@needs_compiler
def test_without_a_mistake_the_processor_notices_nothing(emulator: Emulator) -> None:
    check_with(emulator, MMA_SOURCE.read_text())


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_a_kernel(mistake: str, emulator: Emulator) -> None:
    correct, wrong = MISTAKES[mistake]
    text = MMA_SOURCE.read_text()
    assert correct in text
    with pytest.raises(AssertionError):
        check_with(emulator, text.replace(correct, wrong))


ODD = {
    16: ((8, 8, 8), (72, 136, 96)),
    8: ((5, 12, 4), (33, 140, 68)),
    4: ((3, 6, 10), (65, 70, 90)),
    2: ((1, 1, 1), (7, 13, 5), (31, 67, 129), (129, 127, 31)),
}
"""Rows, columns and depth, by the bytes of an access to elements of 2 bytes."""


@needs_compiler
@pytest.mark.parametrize("width", ODD)
def test_the_product_is_right_with_accesses_of_each_width(width: int, emulator: Emulator) -> None:
    check_tile(emulator, "bf16" if width > 4 else "fp16", HALF[3], ODD[width])


@needs_compiler
@pytest.mark.parametrize("tile", HALF, ids=name)
def test_the_product_is_right_with_each_tile(tile: Tile, emulator: Emulator) -> None:
    check_tile(emulator, "bf16", tile, ((tile.rows + 8, tile.columns + 8, tile.depth + 8),))


@needs_compiler
@pytest.mark.parametrize("tile", TF32, ids=name)
def test_the_product_is_right_in_tf32(tile: Tile, emulator: Emulator) -> None:
    check_tile(emulator, "fp32", tile, ((tile.rows + 1, tile.columns + 4, tile.depth + 4),))


@needs_compiler
@pytest.mark.parametrize("width", [8, 4])
def test_the_product_is_right_in_tf32_with_accesses_of_each_width(width: int, emulator: Emulator) -> None:
    sizes = ((7, 6, 10), (70, 70, 34)) if width == 8 else ((1, 1, 1), (7, 13, 5), (67, 131, 37))
    check_tile(emulator, "fp32", TF32[3], sizes)


@needs_compiler
@pytest.mark.parametrize(
    ("dtype", "offset"), [("bf16", 4), ("bf16", 2), ("bf16", 1), ("fp32", 2), ("fp32", 1)], ids=lambda value: str(value)
)
def test_inputs_that_are_not_aligned_are_read_in_narrower_accesses(dtype: str, offset: int, emulator: Emulator) -> None:
    check_tile(emulator, dtype, (HALF if dtype == "bf16" else TF32)[3], ((40, 72, 136),), offset)


OTHERS = (
    Tile(rows=128, columns=256, depth=32, stages=2, warps=8, group=4),
    Tile(rows=256, columns=128, depth=32, stages=5, warps=8, group=16),
    Tile(rows=256, columns=64, depth=64, stages=2, warps=4, group=2),
    Tile(rows=64, columns=64, depth=32, stages=2, warps=8, group=16),
)


@needs_compiler
@pytest.mark.parametrize("tile", OTHERS, ids=name)
def test_tiles_of_the_space_that_are_never_the_default(tile: Tile, emulator: Emulator) -> None:
    check_tile(emulator, "fp16", tile, ((tile.rows + 3, tile.columns, 4 * tile.depth),))


@needs_compiler
def test_a_depth_of_one_stage_or_less_is_right(emulator: Emulator) -> None:
    """The pipeline has more stages than there are tiles along K."""
    check_tile(emulator, "bf16", HALF[2], ((64, 128, 8), (64, 128, 32), (64, 128, 40)))


@needs_compiler
@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("wide", [True, False], ids=["16 bytes", "one element"])
def test_the_product_through_wmma_is_right(dtype: str, wide: bool, emulator: Emulator) -> None:
    width = str(16 if wide else TORCH[dtype].itemsize)
    compiled = program(emulator, WMMA_SOURCE, {"ELEMENT": element(dtype), "COPY_A": width, "COPY_B": width})
    for m, n, k in ((8, 8, 8), (136, 144, 40)) if wide else ((1, 1, 1), (7, 133, 37), (131, 3, 65)):
        check(compiled, dtype, (m, n, k), -(-m // 128) * -(-n // 128), mma.WMMA_THREADS, 0)


WMMA_MISTAKES = {
    "a tile is read before it was written": ("n - column);\n        __syncthreads();", "n - column);"),
    "a tile is overwritten while it is read": ("        __syncthreads();\n    }\n\n", "    }\n\n"),
    "numbers are not rounded to tf32": ("element = rounded_to_tf32(element);", ""),
    "the threads of a warp load different fragments": (
        "&a_tile[row0 + 16 * i][step]",
        "&a_tile[row0 + 16 * i + lane % 2][step]",
    ),
    "a fragment of B begins at the wrong row": ("&b_tile[step][", "&b_tile[0]["),
    "a row after the last one is written": ("< rows_left &&", "<= rows_left &&"),
    "a column after the last one is written": ("min(n - to_column,", "min(n - to_column + 1,"),
}


def check_wmma_with(emulator: Emulator, text: str) -> None:
    """The product through wmma by this text of the kernel."""
    compiled = program(emulator, WMMA_SOURCE, {"ELEMENT": "float", "COPY_A": "4", "COPY_B": "4"}, text)
    check(compiled, "fp32", (131, 37, 67), 2, mma.WMMA_THREADS, 0)


@needs_compiler
def test_without_a_mistake_the_processor_notices_nothing_through_wmma(emulator: Emulator) -> None:
    check_wmma_with(emulator, WMMA_SOURCE.read_text())


@needs_compiler
@pytest.mark.parametrize("mistake", WMMA_MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel_through_wmma(mistake: str, emulator: Emulator) -> None:
    correct, wrong = WMMA_MISTAKES[mistake]
    text = WMMA_SOURCE.read_text()
    assert text.count(correct) == 1
    with pytest.raises(AssertionError):
        check_wmma_with(emulator, text.replace(correct, wrong))


ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", TORCH)
def test_the_kernel_through_wmma_only_multiplies_on_tensor_cores_and_spills_nothing(arch: str, dtype: str) -> None:
    """A tile of 32 along K: a warp multiplies 4 × 2 fragments twice (2-byte elements) or four times (tf32). An instruction
    multiplies 16×16 by 16×8, of tf32 16×4 by 4×8. Two blocks on a multiprocessor."""
    pytest.importorskip("triton")
    defines = {"ELEMENT": element(dtype), "COPY_A": "16", "COPY_B": "16"}
    (kernel,) = facts_of(nvrtc.compile_cubin(WMMA_SOURCE, arch, defines, "matmul_wmma"))
    assert not [access for access in kernel.whole.accesses if access.space == "local"], "spilled"
    (role,) = kernel.roles
    assert role.main_loop is not None
    assert sum(one.count for one in role.work.tensor) == (32 if dtype != "fp32" else 128)
    assert {a.space for a in role.work.accesses} == {"global", "shared"}, "no access through generic addresses"
    resident = occupancy(kernel, mma.WMMA_THREADS, 0)
    assert resident is not None
    assert resident.blocks == 2


@functools.cache
def facts(tile: Tile, arch: str, dtype: str = "bf16") -> KernelFacts:
    defines = tile.defines(element(dtype), TORCH[dtype].itemsize, (16, 16, 16))
    (kernel,) = facts_of(nvrtc.compile_cubin(MMA_SOURCE, arch, defines, "matmul_mma"))
    return kernel


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_the_loop_of_the_largest_tile_only_multiplies_and_copies(arch: str, dtype: str) -> None:
    """The counts of the source, nothing spilled, and as many blocks on a multiprocessor as the choice of the tile expects."""
    pytest.importorskip("triton")
    size = TORCH[dtype].itemsize
    limits = LIMITS[int(arch.removeprefix("sm_"))]
    tile = tile_for(8192, 8192, size, 132, limits.shared_bytes_per_block)
    kernel = facts(tile, arch, dtype)
    (role,) = kernel.roles
    assert role.main_loop is not None
    assert not [access for access in kernel.whole.accesses if access.space == "local"], "spilled"
    steps, copies = tile.depth * size // 32, (tile.rows + tile.columns) * tile.depth * size // 16 // (32 * tile.warps)
    assert sum(one.count for one in role.work.tensor) == steps * 4 * 8, "a warp has 64 × 64 elements, a product 16 × 8"
    assert {(one.kind, one.width_bytes, one.count) for one in role.work.copies} == {("cp_async", 16, copies)}
    from_shared = sum(a.count for a in role.work.accesses if (a.space, a.kind) == ("shared", "load"))
    assert from_shared == steps * (4 + 4), "four 16-byte reads of A, four of B"
    resident = occupancy(kernel, 32 * tile.warps, tile.shared_bytes(size))
    assert resident is not None
    assert resident.blocks == (1 if tile.warps > 4 else 2)


def test_the_space_holds_what_a_gpu_can_run() -> None:
    op = catalogue()["matmul"]
    variant = variants_mma.cuda_mma
    problem = op.problem({"m": 4096, "n": 4096, "k": 4096}, "bf16")
    good = {"rows": 128, "columns": 256, "depth": 64, "stages": 3, "warps": 8, "group": 8}

    def refusal(problem: Problem = problem, **changed: int) -> str | None:
        assert variant.admits is not None
        return variant.admits({**good, **changed}, problem)

    assert refusal() is None
    assert "shared memory" in (refusal(stages=5) or "")
    assert "registers" in (refusal(warps=4) or "")
    assert "even number" in (refusal(depth=16) or "")
    assert "in all parameters or in none" in (refusal(group=0) or "")
    small = op.problem({"m": 16, "n": 4096, "k": 4096}, "bf16")
    assert "outside of the matrix" in (refusal(small) or "")
    assert refusal(small, rows=16, columns=64, depth=128, warps=4, group=4) is None
    with pytest.raises(BadField, match="registers"):
        Tile(rows=128, columns=256, depth=64, stages=3, warps=4).defines("float", 2, (16, 16, 16))
