"""The kernels of `w4a16_matmul`: results by fibers of the processor, machine code, choices by size, what the bound refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Argument, Emulator, Grid, Output, needs_compiler
from torch import Tensor

from kernelviz.core.errors import BadField
from kernelviz.core.machine_code import KernelFacts
from kernelviz.core.problem import Problem
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.w4a16_matmul import bulk, gemv, mma
from kernelviz.ops.w4a16_matmul.layout import dequantised, groups, shuffled

OP = op_named("w4a16_matmul")
TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}
MULTIPROCESSORS = 3
AnyTile = gemv.Tile | mma.Tile | bulk.Tile
MODULES = {gemv.Tile: gemv, mma.Tile: mma, bulk.Tile: bulk}


def whole_numbers(sizes: tuple[int, int, int], dtype: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs with which every product and sum is a whole number that fp32 holds, in any order: x and scales -1 to 2."""
    m, n, k = sizes
    generator = torch.Generator().manual_seed(m + n + k)
    x, s = (torch.randint(-1, 3, shape, generator=generator).to(TORCH[dtype]) for shape in ((m, k), (groups(k), n)))
    w, z = (
        torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        for shape in ((n, groups(k), 64), (groups(k), -(-n // 2)))
    )
    return x, w, s, z


def definitions(dtype: str, tile: AnyTile, sizes: tuple[int, int, int], *, shuffle: bool = False) -> dict[str, str]:
    m, n, k = sizes
    element = nvrtc.element_type(TORCH[dtype])
    if isinstance(tile, gemv.Tile):
        return tile.defines(element, m, n)
    if isinstance(tile, bulk.Tile):
        return tile.defines(element, m, n, k)
    return tile.defines(element, m, n, shuffle=shuffle, copy_x=16 if k % 8 == 0 else 2)


def check(
    emulator: Emulator,
    dtype: str,
    tile: AnyTile,
    sizes: tuple[int, int, int],
    *,
    shuffle: bool = False,
    text: str | None = None,
) -> None:
    m, n, k = sizes
    module = MODULES[type(tile)]
    defines = definitions(dtype, tile, sizes, shuffle=shuffle)
    program = emulator.program(module.SOURCE, module.KERNEL, defines, text=text)
    x, w, s, z = whole_numbers(sizes, dtype)
    weights = shuffled(w).contiguous() if shuffle else w
    room = -(-s.numel() * 2 // 16) * 16  # zero points follow the scales in one piece of memory
    meta = torch.zeros(room + z.numel(), dtype=torch.uint8)
    meta[: s.numel() * 2] = s.view(torch.uint8).flatten()
    meta[room:] = z.flatten()
    exact = x.double() @ dequantised(w, s.double(), z, k).t()
    assert exact.abs().max() < 2**15, "not exact in fp32"
    expected = exact.to(TORCH[dtype])
    if isinstance(tile, gemv.Tile):
        blocks, tiles, parts, part, features = tile.blocks(n, MULTIPROCESSORS), 1, 1, -(-k // gemv.PASS), 1
    elif isinstance(tile, bulk.Tile):
        blocks, tiles, parts, part, features = min(MULTIPROCESSORS, -(-n // 16)), 1, 1, 0, 1
    else:
        (blocks, parts, tiles), part, features = tile.grid(n, k, MULTIPROCESSORS), tile.part_groups(k), tile.features
    arrived = torch.zeros(tiles, dtype=torch.int32)
    threads = 32 * (tile.warps + bulk.COPIERS * isinstance(tile, bulk.Tile))
    grid = Grid(blocks=blocks, threads=threads, shared_bytes=tile.shared_bytes(m, k))
    for mode in MODES:
        sums = torch.full((tiles * parts * m * features,), float("nan"))
        y = Output(m, n, TORCH[dtype])
        arguments: list[Argument] = [x, weights, meta, meta.data_ptr() + room, y.matrix]
        match tile:
            case bulk.Tile():
                arguments += [n, k]
            case gemv.Tile():
                arguments += [n, k, part]
            case mma.Tile():
                arguments += [sums, arrived, n, k, part, parts]
        error = program.run(arguments, grid, mode, readable=(meta, weights))
        assert error == "", (sizes, mode, error)
        assert torch.equal(y.matrix, expected), (sizes, mode)
        assert y.guard_is_unchanged()
        assert not arrived.any(), "the counters are not zero for the next launch"


def mma_tile(
    *, tiles: int = 1, deep: int, across: int = 1, stages: int = 4, blocks: int = 1, parts: int = 1
) -> mma.Tile:
    return mma.Tile(tiles=tiles, deep=deep, across=across, stages=stages, blocks=blocks, parts=parts)


GEMV = {
    "one number": (gemv.Tile(features=4, warps=4), (1, 1, 1)),
    "several passes and sets": (gemv.Tile(features=4, warps=2), (1, 72, 2304)),
    "two features at a time": (gemv.Tile(features=2, warps=4), (3, 24, 1160)),
    "an odd number of features": (gemv.Tile(features=4, warps=4), (2, 31, 1030)),
    "8 rows": (gemv.Tile(features=4, warps=2), (8, 16, 130)),
    "two of an odd number": (gemv.Tile(features=2, warps=3), (1, 13, 263)),
}
MMA = {
    "one number": (mma_tile(deep=8), (1, 1, 1)),
    "several tiles of a block": (mma_tile(deep=4, stages=3), (1, 136, 1024)),
    "16 warps along K, fewer groups": (mma_tile(deep=16), (3, 40, 1160)),
    "two tiles of a warp": (mma_tile(tiles=2, deep=4, stages=6), (8, 72, 1032)),
    "two blocks, features of their own": (mma_tile(deep=2, across=2, blocks=2), (7, 104, 520)),
    "parts of K": (mma_tile(deep=4, stages=2, parts=3), (1, 88, 2000)),
    "16 rows": (mma_tile(tiles=2, deep=2, across=2), (16, 72, 648)),
    "an odd number of features": (mma_tile(deep=4), (5, 37, 513)),
    "17 rows, scaled weights": (mma_tile(deep=2, across=2, parts=2), (17, 40, 520)),
    "33 rows, no sums of warps": (mma_tile(tiles=2, deep=1, across=4, parts=2), (33, 104, 392)),
    "64 rows": (mma_tile(tiles=4, deep=1, across=2, stages=3), (64, 136, 256)),
}
BULK = {
    "one number": (bulk.Tile(warps=8, depth=1, stages=2), (1, 1, 1)),
    "several tiles of a block": (bulk.Tile(warps=8, depth=1, stages=3), (1, 136, 1024)),
    "more tiles than buffers of sums": (bulk.Tile(warps=4, depth=2, stages=2), (1, 416, 1024)),
    "8 rows, pieces of K": (bulk.Tile(warps=4, depth=1, stages=4), (8, 72, 1160)),
    "x in shared memory": (bulk.Tile(warps=2, depth=2, stages=3), (1, 136, 2304)),
    "16 rows": (bulk.Tile(warps=4, depth=1, stages=3), (16, 200, 648)),
    "16 rows, x in shared memory": (bulk.Tile(warps=2, depth=2, stages=5), (16, 72, 2000)),
    "an odd number of features": (bulk.Tile(warps=4, depth=2, stages=2), (5, 37, 513)),
    "11 rows, two features in bytes": (bulk.Tile(warps=8, depth=2, stages=2), (11, 90, 2305)),
}

INTEGERS = {
    "one number": (bulk.Tile(warps=8, depth=1, stages=2, integers=True), (1, 1, 1)),
    "several tiles of a block": (bulk.Tile(warps=8, depth=1, stages=3, integers=True), (1, 136, 1024)),
    "2 rows, two groups of a warp": (bulk.Tile(warps=4, depth=2, stages=2, integers=True), (2, 232, 1024)),
    "x in shared memory": (bulk.Tile(warps=2, depth=2, stages=3, integers=True), (3, 136, 4224)),
    "4 rows": (bulk.Tile(warps=4, depth=1, stages=4, integers=True), (4, 72, 1160)),
    "an odd number of features": (bulk.Tile(warps=4, depth=2, stages=2, integers=True), (3, 37, 513)),
}

CASES: dict[Path, Mapping[str, tuple[AnyTile, tuple[int, int, int]]]] = {
    gemv.SOURCE: {**GEMV},
    mma.SOURCE: {**MMA},
    bulk.SOURCE: {**BULK, **{f"integers, {name}": case for name, case in INTEGERS.items()}},
}


@needs_compiler
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("case", [*BULK])
def test_the_product_is_right_with_bulk_copies(case: str, dtype: str, emulator: Emulator) -> None:
    check(emulator, dtype, *BULK[case])


@needs_compiler
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("case", [*INTEGERS])
def test_the_product_is_right_with_integers(case: str, dtype: str, emulator: Emulator) -> None:
    check(emulator, dtype, *INTEGERS[case])


@needs_compiler
@pytest.mark.parametrize("case", [*GEMV])
def test_the_product_is_right_without_tensor_cores(case: str, emulator: Emulator) -> None:
    check(emulator, "bf16" if len(case) % 2 else "fp16", *GEMV[case])


@needs_compiler
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("case", [*MMA])
def test_the_product_is_right_on_tensor_cores(case: str, dtype: str, emulator: Emulator) -> None:
    check(emulator, dtype, *MMA[case], shuffle=(len(case) % 2 == 0) == (dtype == "bf16"))


MISTAKES = {
    "the other half of a byte first": (
        gemv.SOURCE,
        "bits >> 12, 0x000f0000, FAR",
        "bits >> 8, 0x000f0000, FAR",
        "8 rows",
    ),
    "the sums of x of another row": (
        gemv.SOURCE,
        "((row * passes + pass) * 32 + lane) * 8",
        "(pass * 32 + lane) * 8",
        "8 rows",
    ),
    "a scale of the neighbour": (gemv.SOURCE, "scale[i % 2] *", "scale[0] *", "several passes and sets"),
    "weights after the last group": (gemv.SOURCE, "if (group < groups) {", "if (true) {", "one number"),
    "a stage is read before it arrived": (mma.SOURCE, "<STAGES - 2>();", "<STAGES - 1>();", "several tiles of a block"),
    "a stage is overwritten before it is used": (
        mma.SOURCE,
        "feed.copy(last_slot)",
        "feed.copy(slot)",
        "several tiles of a block",
    ),
    "sums of warps in one buffer": (
        mma.SOURCE,
        "buffer == all_sums ? all_sums + WARPS * SUMS",
        "false ? 0",
        "several tiles of a block",
    ),
    "the zero point of the neighbouring feature": (
        mma.SOURCE,
        ">> (lane & 28) & 15",
        ">> (lane & 28 ^ 4) & 15",
        "two tiles of a warp",
    ),
    "the zero point of the neighbouring feature, scaled": (
        mma.SOURCE,
        ">> (lane & 28) & 15",
        ">> (lane & 28 ^ 4) & 15",
        "64 rows",
    ),
    "features after the last one": (mma.SOURCE, "} else if (number < n) {", "} else {", "an odd number of features"),
    "weights of features after the last one": (
        mma.SOURCE,
        "+ 8 * i, n - 1) - row",
        "+ 8 * i, 1 << 20) - row",
        "an odd number of features",
    ),
    "a bank conflict": (
        mma.SOURCE,
        "16 * lane);\n                unsigned short",
        "64 * lane % 512);\n                unsigned short",
        "16 rows",
    ),
    "a piece is overwritten before it is used": (
        bulk.SOURCE,
        "barrier_wait(empty + 8 * slot, parity);",
        "",
        "several tiles of a block",
    ),
    "a piece is read before it arrived": (
        bulk.SOURCE,
        "barrier_wait(full + 8 * slot, parity);",
        "",
        "several tiles of a block",
    ),
    "too few buffers for sums": (
        bulk.SOURCE,
        "SUM_BUFFERS = 1 + STAGES / PIECES",
        "SUM_BUFFERS = 1",
        "more tiles than buffers of sums",
    ),
    "rows without a distance between their banks": (
        bulk.SOURCE,
        "PITCH = PIECE_GROUPS * 64 + 32",
        "PITCH = PIECE_GROUPS * 64",
        "8 rows, pieces of K",
    ),
    "the sums of x of another row, in bulk": (bulk.SOURCE, "4 * (lane % 4 * 2 + j)", "4 * (lane % 4 * 2)", "16 rows"),
    "a part of K is left out": (mma.SOURCE, "ROWS * FEATURES, parts));", "ROWS * FEATURES, parts - 1));", "parts of K"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", [*MISTAKES])
def test_the_processor_notices_mistakes_of_a_kernel(mistake: str, emulator: Emulator) -> None:
    source, correct, wrong, case = MISTAKES[mistake]
    text = source.read_text()
    assert correct in text
    tile, sizes = CASES[source][case]
    with pytest.raises(AssertionError):
        check(emulator, "fp16", tile, sizes, text=text.replace(correct, wrong))


ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")


def facts(tile: AnyTile, arch: str, dtype: str, sizes: tuple[int, int, int], *, shuffle: bool = False) -> KernelFacts:
    source, kernel = MODULES[type(tile)].SOURCE, MODULES[type(tile)].KERNEL
    defines = definitions(dtype, tile, sizes, shuffle=shuffle)
    (found,) = facts_of(nvrtc.compile_cubin(source, arch, defines, kernel))
    return found


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("m", [1, 8])
def test_a_warp_loads_each_feature_by_16_bytes_and_spills_nothing(arch: str, m: int) -> None:
    """8 rows on sm_80: three registers are spilled in a loop of thousands of instructions."""
    pytest.importorskip("triton")
    tile = gemv.choose(m, 8192, 132)
    kernel = facts(tile, arch, "bf16", (m, 8192, 4096))
    spills = sum(access.count for access in kernel.whole.accesses if access.space == "local")
    assert spills <= (6 if (arch, m) == ("sm_80", 8) else 0)
    loads = {a.width_bytes: a.count for a in kernel.whole.accesses if (a.space, a.kind) == ("global", "load")}
    assert loads[16] == 2 * tile.features  # before the loop and in it
    assert "vec16" in techniques_of(kernel)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("m", [1, 16, 64])
def test_the_loop_on_tensor_cores_copies_by_16_bytes_and_wastes_no_products(arch: str, dtype: str, m: int) -> None:
    pytest.importorskip("triton")
    tile = mma.choose(m, 28672, 4096, 132, 101376 if arch == "sm_120" else 166912)
    kernel = facts(tile, arch, dtype, (m, 28672, 4096))
    assert not [access for access in kernel.whole.accesses if access.space == "local"], "spilled"
    assert sum(one.count for one in kernel.whole.tensor) == 8 * tile.tiles * -(-m // 8)
    copies = {one.width_bytes: one.count for one in kernel.whole.copies}
    metas = -(-10 * tile.tiles // 32)
    assert copies == {16: 2 * 2 * tile.tiles, 4: 2 * metas}  # before the loop and in it


@pytest.mark.parametrize("arch", ARCHITECTURES[1:])
@pytest.mark.parametrize("m", [1, 8, 16])
def test_the_warp_that_copies_leaves_nothing_to_the_others(arch: str, m: int) -> None:
    pytest.importorskip("triton")
    tile = bulk.choose(m, 4096, 101376 if arch == "sm_120" and m < 8 else MOST_SHARED_BYTES)
    kernel = facts(tile, arch, "bf16", (m, 28672, 4096))
    spills = sum(access.count for access in kernel.whole.accesses if access.space == "local")
    assert spills <= 4, "more than one or two registers, each once a tile"
    assert sum(one.count for one in kernel.whole.tensor) == 8 * 2 * -(-m // 8)  # two groups of each warp
    assert techniques_of(kernel) >= {"bulk_copy", "mma_sync", "warp_specialised"}
    assert "cp_async" not in techniques_of(kernel)


@pytest.mark.parametrize("m", [1, 4, 8, 16])
@pytest.mark.parametrize("k", [1, 4096, 8192, 14336])
def test_what_is_kept_of_x_fits(m: int, k: int) -> None:
    if (m, k) in ((16, 8192), (8, 14336), (16, 14336)):
        with pytest.raises(BadField, match=r"bytes of shared memory; a block has at most 232,448; choose cuda_mma"):
            bulk.choose(m, k)
        return
    tile = bulk.choose(m, k)
    assert tile.keeps_x(m, k) == ((m <= 8 and k <= 4096) or k == 1)
    assert tile.refusal(m, k) is None


def test_shuffled_weights_are_whole_groups_and_the_caption_says_that_this_is_not_timed() -> None:
    _, w, _, _ = whole_numbers((1, 40, 300), "bf16")
    tiles = shuffled(w)
    assert tiles.shape == (3, 3, 1024)
    for feature, group in ((0, 0), (7, 2), (8, 1), (39, 2)):
        at = tiles[feature // 16, group].view(16, 64)[feature % 16]
        assert torch.equal(at, w[feature, group])
    assert not tiles[2, :, 8 * 64 :].any()
    assert "untimed" in OP.variant_named("cuda_mma_shuffled").summary


@pytest.mark.parametrize("m", [1, 2, 4, 8, 16, 17, 64])
@pytest.mark.parametrize(("n", "k"), [(28672, 4096), (8192, 8192), (4096, 14336), (28672, 8192), (1, 1), (13, 5)])
@pytest.mark.parametrize(("processors", "shared_bytes"), [(132, 232448), (108, 166912), (170, 101376), (46, 101376)])
def test_the_choice_by_size_fits_each_gpu(m: int, n: int, k: int, processors: int, shared_bytes: int) -> None:
    tile = mma.choose(m, n, k, processors, shared_bytes)
    assert tile.refusal(m, k, shared_bytes) is None
    blocks, parts, tiles = tile.grid(n, k, processors)
    assert blocks % parts == 0
    assert blocks <= tiles * parts
    assert parts * tile.part_groups(k) >= groups(k) > (parts - 1) * tile.part_groups(k)
    if m <= 8:
        assert gemv.choose(m, n, processors).refusal(m, 1) is None


def test_each_kernel_names_the_sizes_that_it_refuses() -> None:
    zeros = {"bf16": torch.zeros(65, 256, dtype=torch.bfloat16)}
    _, w, s, z = whole_numbers((1, 16, 256), "bf16")
    with pytest.raises(
        BadField, match=r"size m: '9' cannot be used; .* at most 8 rows; choose cuda_mma or triton_fused"
    ):
        gemv.bind(zeros["bf16"][:9], w, s, z, dict.fromkeys(gemv.SPACE, 0))
    with pytest.raises(BadField, match=r"size m: '65' cannot be used; .* at most 64 rows; choose triton_fused"):
        mma.bind((zeros["bf16"], w, s, z), dict.fromkeys(mma.SPACE, 0), shuffle=False)
    _, w, s, z = whole_numbers((1, 8, 2**16), "bf16")
    with pytest.raises(BadField, match=r"8 rows of x as fp32 are 2,228,224 bytes of shared memory"):
        gemv.bind(torch.zeros(8, 2**16, dtype=torch.bfloat16), w, s, z, dict.fromkeys(gemv.SPACE, 0))


def refusal(name: str, problem: Problem, configuration: dict[str, int]) -> str:
    variant = OP.variant_named(name)
    assert variant.admits is not None
    return variant.admits(configuration, problem) or ""


def test_the_spaces_hold_what_a_gpu_can_run() -> None:
    one, eight, most, large = (OP.problem({"m": m, "n": 28672, "k": 4096}, "bf16") for m in (1, 8, 64, 65))
    good = asdict(gemv.choose(1, 28672, 132))
    assert refusal("cuda_gemv", one, good) == ""
    assert "more than 8 rows" in refusal("cuda_gemv", most, good)
    assert "in both parameters or in none" in refusal("cuda_gemv", one, {**good, "warps": 0})
    assert "registers" in refusal("cuda_gemv", eight, good)
    assert "of the warps have work" in refusal("cuda_gemv", OP.problem({"m": 1, "n": 4096, "k": 4096}, "bf16"), good)
    good = asdict(mma.choose(1, 28672, 4096, 132, 232448))
    for name in ("cuda_mma", "cuda_mma_shuffled"):
        assert refusal(name, one, good) == ""
        assert "more than 64 rows" in refusal(name, large, good)
        assert "shared memory" in refusal(name, most, good)
        assert "registers" in refusal(name, one, {**good, "tiles": 1, "blocks": 2})
        assert "copy only" in refusal(name, one, {**good, "deep": 2, "stages": 3})
        assert "share" in refusal(name, one, {**good, "parts": 6})
    good = {name: size for name, size in asdict(bulk.choose(1, 4096)).items() if name in bulk.SPACE}
    assert refusal("cuda_bulk", one, good) == ""
    assert "more than 16 rows" in refusal("cuda_bulk", most, good)
    assert "shared memory" in refusal("cuda_bulk", one, {**good, "depth": 4, "stages": 8})
    assert "after the end of K" in refusal("cuda_bulk", one, {**good, "depth": 4, "stages": 2})
    assert "copy only" in refusal("cuda_bulk", one, {"warps": 8, "depth": 1, "stages": 2})
    good = {"rows": 16, "features": 64, "parts": 1, "warps": 4, "stages": 4, "order": 2}
    assert refusal("triton_fused", one, good) == ""
    assert "half of 64 rows" in refusal("triton_fused", one, {**good, "rows": 64})
    good = {"features": 8, "groups": 8, "parts": 1, "warps": 4, "stages": 2}
    assert refusal("triton_gemv", one, good) == ""
    assert "more than 16 rows" in refusal("triton_gemv", most, good)
    assert "too many registers" in refusal("triton_gemv", one, {**good, "features": 32, "warps": 1})


def result(weights: Callable[[Tensor, Tensor, Tensor, int], Tensor], inputs: tuple[Tensor, ...]) -> Tensor:
    """The product in fp32, rounded once, with weights that a function computes in fp32 or less."""
    x, w, s, z = inputs
    return (x.float() @ weights(w, s, z, x.shape[1]).float().t()).to(x.dtype)


def exact(w: Tensor, s: Tensor, z: Tensor, k: int) -> Tensor:
    return dequantised(w, s.float(), z, k)


def zero_of_the_next_group(w: Tensor, s: Tensor, z: Tensor, k: int) -> Tensor:
    return dequantised(w, s.float(), z.roll(1, 0), k)


def scale_of_the_next_group(w: Tensor, s: Tensor, z: Tensor, k: int) -> Tensor:
    return dequantised(w, s.float().roll(1, 0), z, k)


def high_half_first(w: Tensor, s: Tensor, z: Tensor, k: int) -> Tensor:
    return dequantised(w << 4 | w >> 4, s.float(), z, k)


def zero_of_the_other_feature(w: Tensor, s: Tensor, z: Tensor, k: int) -> Tensor:
    return dequantised(w, s.float(), z << 4 | z >> 4, k)


def one_zero_point_for_all(w: Tensor, s: Tensor, z: Tensor, k: int) -> Tensor:
    return dequantised(w, s.float(), torch.full_like(z, 0x88), k)


def scale_of_8_bits(w: Tensor, s: Tensor, z: Tensor, k: int) -> Tensor:
    return dequantised(w, s.to(torch.float8_e4m3fn).float(), z, k)


@pytest.mark.parametrize("dtype", [*TORCH])
@pytest.mark.parametrize("data", ["normal", "uniform", "zeros", "small_integers", "one_value"])
@pytest.mark.parametrize("sizes", [(1, 256, 4096), (16, 67, 129), (5, 64, 1)])
def test_weights_may_be_rounded_once_or_not_at_all(data: str, dtype: str, sizes: tuple[int, int, int]) -> None:
    problem = OP.problem(dict(zip("mnk", sizes, strict=True)), dtype, data=data)
    for seed in range(3):
        inputs = inputs_of(OP, problem, seed)
        for weights in (exact, dequantised):
            accuracy = compare(OP, problem, inputs, result(weights, inputs))
            assert accuracy.passed, accuracy.reasons


@pytest.mark.parametrize("dtype", [*TORCH])
@pytest.mark.parametrize(
    "wrong",
    [
        zero_of_the_next_group,
        scale_of_the_next_group,
        high_half_first,
        zero_of_the_other_feature,
        one_zero_point_for_all,
        scale_of_8_bits,
    ],
)
def test_other_weights_are_refused(wrong: Callable[[Tensor, Tensor, Tensor, int], Tensor], dtype: str) -> None:
    problem = OP.problem({"m": 4, "n": 256, "k": 4096}, dtype)
    inputs = inputs_of(OP, problem)
    assert compare(OP, problem, inputs, result(exact, inputs)).passed
    assert not compare(OP, problem, inputs, result(wrong, inputs)).passed


@pytest.mark.parametrize("dtype", [*TORCH])
def test_sums_of_16_bits_are_refused(dtype: str) -> None:
    """Additions of a long sum in the format of the activations, which a packed multiply-add would make."""
    problem = OP.problem({"m": 1, "n": 64, "k": 4096}, dtype)
    x, w, s, z = inputs = inputs_of(OP, problem)
    products = (x.float() * exact(w, s, z, 4096)).view(64, 64, 64)
    total = torch.zeros(64, 64, dtype=TORCH[dtype])
    for i in range(64):
        total = (total.float() + products[:, :, i]).to(TORCH[dtype])
    assert not compare(OP, problem, inputs, total.float().sum(1)[None].to(TORCH[dtype])).passed


def test_the_bytes_of_inputs_give_every_weight_and_zero_point_equally_often() -> None:
    problem = OP.problem({"m": 1, "n": 512, "k": 4096}, "bf16", data="zeros")
    _, w, _, z = inputs_of(OP, problem)
    for packed in (w, z):
        counts = torch.stack(
            ((packed & 15).flatten().bincount(minlength=16), (packed >> 4).flatten().bincount(minlength=16))
        )
        assert (counts.double() / counts.sum(1, keepdim=True) - 1 / 16).abs().max() < 0.01
