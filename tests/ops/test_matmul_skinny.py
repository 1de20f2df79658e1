"""The kernels of `matmul` for few rows: their results by fibers of the processor, their machine code, and the choice by size."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch
from emulator import MODES, Emulator, Grid, Output, needs_compiler

from kernelviz.core.errors import BadField
from kernelviz.core.machine_code import KernelFacts
from kernelviz.core.problem import Problem
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import catalogue
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul import gemv, skinny, variants_skinny
from kernelviz.ops.matmul.mma import access_bytes

TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}
AnyTile = gemv.Tile | skinny.Tile


def definitions(dtype: str, tile: AnyTile, sizes: tuple[int, int, int], offset: int = 0) -> dict[str, str]:
    m, n, k = sizes
    of_a, of_b, of_c = access_bytes(2 * offset, 2 * k, 2), access_bytes(2 * offset, 2 * n, 2), access_bytes(0, 2 * n, 2)
    element = nvrtc.element_type(TORCH[dtype])
    if isinstance(tile, gemv.Tile):
        return tile.defines(element, m, (of_a, of_b))
    return tile.defines(element, skinny.padded_rows(m), (of_a, of_b, of_c))


def check(
    emulator: Emulator,
    dtype: str,
    tile: AnyTile,
    sizes: tuple[int, int, int],
    offset: int = 0,
    text: str | None = None,
) -> None:
    """Products of small integers are exact in every order of additions. `offset`: elements before A and B."""
    m, n, k = sizes
    without_m = isinstance(tile, gemv.Tile)
    source, kernel = (gemv.SOURCE, gemv.KERNEL) if without_m else (skinny.SOURCE, skinny.KERNEL)
    program = emulator.program(source, kernel, definitions(dtype, tile, sizes, offset), text=text)
    rows = m if isinstance(tile, gemv.Tile) else skinny.padded_rows(m)
    shared_bytes = 0 if isinstance(tile, gemv.Tile) else tile.shared_bytes(rows)
    tiles, parts, part_depth = tile.grid(n, k)
    a, b = (
        torch.randint(-3, 4, (offset + down * across,)).to(TORCH[dtype])[offset:].view(down, across)
        for down, across in ((m, k), (k, n))
    )
    expected = (a.double() @ b.double()).to(TORCH[dtype])
    arrived = torch.zeros(tiles, dtype=torch.int32)
    grid = Grid(blocks=tiles * parts, threads=32 * tile.warps, shared_bytes=shared_bytes)
    for mode in MODES:
        sums = torch.full((tiles * parts * rows * tile.columns,), float("nan"))
        c = Output(m, n, TORCH[dtype])
        numbers = (*sizes[1 if without_m else 0 :], part_depth, parts)
        error = program.run([a, b, c.matrix, sums, arrived, *numbers], grid, mode, readable=(a, b))
        assert error == "", (sizes, mode, error)
        assert torch.equal(c.matrix, expected), (sizes, mode)
        assert c.guard_is_unchanged()
        assert not arrived.any(), "the counters are not zero for the next launch"


GEMV = {
    "whole batches": (gemv.Tile(columns=64, warps=4, depth=8, parts=1), (1, 128, 512)),
    "a batch that is not whole": (gemv.Tile(columns=64, warps=4, depth=8, parts=1), (1, 72, 333)),
    "fewer rows than a batch": (gemv.Tile(columns=64, warps=8, depth=8, parts=1), (3, 8, 5)),
    "one number": (gemv.Tile(columns=64, warps=16, depth=8, parts=1), (1, 1, 1)),
    "rows at multiples of 2 bytes": (gemv.Tile(columns=64, warps=4, depth=8, parts=3), (7, 131, 217)),
    "rows at multiples of 4 bytes": (gemv.Tile(columns=32, warps=4, depth=4, parts=1), (5, 70, 90)),
    "rows at multiples of 8 bytes": (gemv.Tile(columns=128, warps=4, depth=16, parts=2), (2, 140, 300)),
    "narrow tiles, parts of K": (gemv.Tile(columns=32, warps=4, depth=8, parts=4), (8, 40, 1000)),
    "wide tiles, parts of K": (gemv.Tile(columns=256, warps=4, depth=8, parts=2), (1, 264, 136)),
    "32 warps": (gemv.Tile(columns=32, warps=32, depth=4, parts=1), (1, 72, 2100)),
}
SKINNY = {
    "whole tiles": (skinny.Tile(columns=64, depth=128, stages=4, across=4, deep=1, parts=1), (16, 128, 640)),
    "one row": (skinny.Tile(columns=64, depth=128, stages=6, across=4, deep=1, parts=1), (1, 72, 264)),
    "one number": (skinny.Tile(columns=64, depth=128, stages=3, across=4, deep=1, parts=1), (1, 1, 1)),
    "rows at multiples of 2 bytes": (
        skinny.Tile(columns=64, depth=64, stages=2, across=4, deep=1, parts=3),
        (31, 67, 229),
    ),
    "rows at multiples of 4 bytes": (
        skinny.Tile(columns=128, depth=32, stages=4, across=4, deep=2, parts=1),
        (9, 70, 90),
    ),
    "rows at multiples of 8 bytes": (
        skinny.Tile(columns=128, depth=64, stages=3, across=2, deep=2, parts=2),
        (33, 140, 68),
    ),
    "64 rows, parts of K": (skinny.Tile(columns=128, depth=64, stages=4, across=4, deep=2, parts=3), (64, 136, 456)),
    "48 rows, wide tiles": (skinny.Tile(columns=256, depth=64, stages=2, across=8, deep=1, parts=1), (47, 264, 136)),
    "8 rows, warps along the depth": (
        skinny.Tile(columns=64, depth=128, stages=4, across=2, deep=4, parts=2),
        (5, 64, 520),
    ),
    "more stages than tiles": (skinny.Tile(columns=128, depth=64, stages=8, across=4, deep=1, parts=1), (64, 128, 72)),
}


@needs_compiler
@pytest.mark.parametrize("case", [*GEMV])
def test_the_product_is_right_without_tensor_cores(case: str, emulator: Emulator) -> None:
    check(emulator, "bf16" if len(case) % 2 else "fp16", *GEMV[case])


@needs_compiler
@pytest.mark.parametrize("case", [*SKINNY])
def test_the_product_is_right_on_tensor_cores(case: str, emulator: Emulator) -> None:
    check(emulator, "bf16" if len(case) % 2 else "fp16", *SKINNY[case])


@needs_compiler
@pytest.mark.parametrize("offset", [4, 2, 1])
@pytest.mark.parametrize("kind", ["gemv", "skinny"])
def test_inputs_that_are_not_aligned_are_read_in_narrower_accesses(kind: str, offset: int, emulator: Emulator) -> None:
    tile = GEMV["whole batches"][0] if kind == "gemv" else SKINNY["whole tiles"][0]
    check(emulator, "bf16", tile, (3, 72, 136), offset)


MISTAKES = {
    "rows of B after the last one": (gemv.SOURCE, "/ STEP) + 1;", "/ STEP) + 2;", "wide tiles, parts of K"),
    "columns after the last one": (gemv.SOURCE, ", columns - COPY_B / SIZE)", ", 1 << 20)", "one number"),
    "sums of warps are overwritten": (gemv.SOURCE, "if (i > 0) {", "if (false) {", "narrow tiles, parts of K"),
    "a lane is left out": (gemv.SOURCE, "mask < 32;", "mask < 16;", "whole batches"),
    "a bank conflict": (
        skinny.SOURCE,
        "(CHUNKS >= 8 ? row % 8 : row / (8 / CHUNKS) % CHUNKS)",
        "(0 & row)",
        "whole tiles",
    ),
    "a bank conflict of the sums": (skinny.SOURCE, "(COLUMNS + 4) * 4,", "(COLUMNS + 8) * 4,", "whole tiles"),
    "a tile is read before it arrived": (skinny.SOURCE, "<STAGES - 2>();", "<STAGES - 1>();", "whole tiles"),
    "a stage is overwritten": (
        skinny.SOURCE,
        "<STAGES - 2>();\n        __syncthreads();",
        "<STAGES - 2>();",
        "whole tiles",
    ),
    "rows of A after the last one": (skinny.SOURCE, "a_pitch, int(m), inside", "a_pitch, ROWS, inside", "one row"),
    "the second half of the warps": (
        skinny.SOURCE,
        "i < WARPS_DEEP; ++i",
        "i < 1; ++i",
        "8 rows, warps along the depth",
    ),
}


@needs_compiler
@pytest.mark.parametrize("mistake", [*MISTAKES])
def test_the_processor_notices_mistakes_of_a_kernel(mistake: str, emulator: Emulator) -> None:
    source, correct, wrong, case = MISTAKES[mistake]
    text = source.read_text()
    assert correct in text
    tile, sizes = GEMV[case] if source == gemv.SOURCE else SKINNY[case]
    with pytest.raises(AssertionError):
        check(emulator, "bf16", tile, sizes, text=text.replace(correct, wrong))


ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")


def facts(tile: AnyTile, arch: str, m: int) -> KernelFacts:
    source, kernel = (gemv.SOURCE, gemv.KERNEL) if isinstance(tile, gemv.Tile) else (skinny.SOURCE, skinny.KERNEL)
    (found,) = facts_of(nvrtc.compile_cubin(source, arch, definitions("bf16", tile, (m, 4096, 4096)), kernel))
    return found


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("m", [1, 8])
def test_a_thread_has_as_many_loads_in_flight_as_the_tile_says(arch: str, m: int) -> None:
    """The loop of the kernel without tensor cores: 16-byte loads of B and of A, which are of the next batch."""
    pytest.importorskip("triton")
    tile = gemv.choose(m, 14336, 4096, 132)
    kernel = facts(tile, arch, m)
    (role,) = kernel.roles
    assert role.main_loop is not None
    assert not [access for access in kernel.whole.accesses if access.space == "local"], "spilled"
    loads = {a.width_bytes: a.count for a in role.work.accesses if (a.space, a.kind) == ("global", "load")}
    assert loads[16] >= tile.depth
    # For some architectures the compiler halves the loads of A.
    assert sum(width * count for width, count in loads.items()) == (8 + m) * tile.depth * 2
    assert "vec16" in techniques_of(kernel)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("m", [1, 16, 64])
def test_the_loop_on_tensor_cores_copies_by_16_bytes_and_wastes_no_products(arch: str, m: int) -> None:
    pytest.importorskip("triton")
    tile, rows = skinny.choose(m, 14336, 4096, 132, 101376 if arch == "sm_120" else 166912), skinny.padded_rows(m)
    kernel = facts(tile, arch, m)
    (role,) = kernel.roles
    assert role.main_loop is not None
    assert not [access for access in kernel.whole.accesses if access.space == "local"], "spilled"
    products = tile.depth // 16 // tile.deep * (tile.columns // tile.across // 16) * (rows // 8)
    assert sum(one.count for one in role.work.tensor) == products
    copies = [-(-tile.depth * width * 2 // 16 // (32 * tile.warps)) for width in (tile.columns, rows)]
    assert {(one.kind, one.width_bytes, one.count) for one in role.work.copies} == {("cp_async", 16, sum(copies))}


def test_each_kernel_names_the_rows_that_it_refuses() -> None:
    b = torch.zeros(64, 64, dtype=torch.bfloat16)
    with pytest.raises(BadField, match=r"size m: '9' cannot be used; .* at most 8 rows; choose cuda_skinny"):
        gemv.bind(b[:9].contiguous(), b, dict.fromkeys(gemv.SPACE, 0))
    with pytest.raises(BadField, match=r"size m: '65' cannot be used; .* at most 64 rows; choose cuda_mma"):
        skinny.bind(torch.zeros(65, 64, dtype=torch.bfloat16), b, dict.fromkeys(skinny.SPACE, 0))


@pytest.mark.parametrize("m", [1, 2, 4, 8, 16, 17, 64])
@pytest.mark.parametrize(("n", "k"), [(14336, 4096), (6144, 4096), (4096, 14336), (28672, 8192), (1, 1), (13, 5)])
@pytest.mark.parametrize(("processors", "shared_bytes"), [(132, 232448), (108, 166912), (170, 101376), (46, 101376)])
def test_the_choice_by_size_fits_each_gpu(m: int, n: int, k: int, processors: int, shared_bytes: int) -> None:
    if m <= 8:
        assert gemv.choose(m, n, k, processors).refusal(m) is None
    tile, rows = skinny.choose(m, n, k, processors, shared_bytes), skinny.padded_rows(m)
    assert tile.refusal(rows) is None
    assert tile.shared_bytes(rows) <= shared_bytes


def refusal(name: str, problem: Problem, configuration: dict[str, int]) -> str | None:
    variant = getattr(variants_skinny, name)
    assert variant.admits is not None
    return variant.admits(configuration, problem)


def test_the_spaces_hold_what_a_gpu_can_run() -> None:
    op = catalogue()["matmul"]
    one, most, large = (op.problem({"m": m, "n": 14336, "k": 4096}, "bf16") for m in (1, 64, 512))
    good = asdict(gemv.choose(1, 14336, 4096, 132))
    assert refusal("cuda_gemv", one, good) is None
    assert "more than 8 rows" in (refusal("cuda_gemv", most, good) or "")
    assert "in all parameters or in none" in (refusal("cuda_gemv", one, {**good, "parts": 0}) or "")
    assert "registers" in (refusal("cuda_gemv", one, {**good, "warps": 32, "depth": 16}) or "")
    assert "enough without" in (refusal("cuda_gemv", one, {**good, "parts": 8}) or "")
    good = asdict(skinny.choose(64, 14336, 4096, 132, 232448))
    assert refusal("cuda_skinny", most, good) is None
    assert "more than 64 rows" in (refusal("cuda_skinny", large, good) or "")
    assert "shared memory" in (refusal("cuda_skinny", most, {**good, "stages": 8}) or "")
    assert "half as often" in (refusal("cuda_skinny", most, {**good, "columns": 64}) or "")
    assert "enough without" in (refusal("cuda_skinny", most, {**good, "parts": 4}) or "")
    with pytest.raises(BadField, match="shared memory"):
        skinny.Tile(**{**good, "stages": 8}).defines("float", 64, (16, 16, 16))
