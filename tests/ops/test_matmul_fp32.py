"""The fp32 ladder of `matmul` without a GPU: results by fibers of the processor, machine code, and the choice of tiles."""

from __future__ import annotations

import functools
import random
import re
from itertools import product

import pytest
import torch
from emulator import MODES, Argument, Emulator, Grid, Mode, Output, needs_compiler

from kernelviz.core.machine_code import KernelFacts
from kernelviz.machine_code.cubin import read_cubin
from kernelviz.machine_code.disassembly import instructions_of
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import occupancy
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import catalogue
from kernelviz.ops.catalog.space import draw
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul import fp32, fp32_async
from kernelviz.ops.matmul.fp32_async import BY_SIZE, SHORTEST_PART, Tiling, choose, defines
from kernelviz.ops.matmul.variants_fp32 import SPACE, admits

SIZES = {1: ((4, 4, 4), (132, 136, 20)), 0: ((1, 1, 1), (77, 131, 33), (130, 3, 5))}
"""Rows, columns and depth, by whether rows begin at multiples of 16 bytes."""
TILINGS = (
    Tiling(),
    Tiling(bm=64, bn=64, bk=8, tm=8, stretch=4, stages=2),
    Tiling(bm=32, bn=64, tm=8, stages=4),
    Tiling(bm=64, bn=256, bk=32, tm=8, tn=16, stretch=1, stages=2),
)
ASYNC_SIZES = {1: ((4, 4, 4), (300, 140, 131)), 0: ((1, 1, 1), (77, 131, 33), (35, 3, 97))}
PARTS = 3
REGISTER = re.compile(r"\bR(\d+)")


def factors(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Small integers: every order of additions has the same result."""
    return torch.randint(-8, 9, (m, k)).float(), torch.randint(-8, 9, (k, n)).float()


@needs_compiler
@pytest.mark.parametrize("name", fp32.TILE_AND_THREADS)
@pytest.mark.parametrize("vectors", SIZES)
def test_the_product_is_right_at_odd_sizes(vectors: int, name: str, emulator: Emulator) -> None:
    program = emulator.program(fp32.SOURCE, tuple(fp32.TILE_AND_THREADS), {"VECTORS": str(vectors)})
    (rows, columns), threads = fp32.TILE_AND_THREADS[name]
    for m, n, k in SIZES[vectors]:
        a, b = factors(m, n, k)
        grid = Grid(blocks=(-(-m // rows), -(-n // columns)), threads=threads)
        for mode in MODES:
            c = Output(m, n, torch.float32)
            assert program.run([a, b, c.matrix, m, n, k], grid, mode, kernel=name) == ""
            assert torch.equal(c.matrix, a @ b), (m, n, k, mode)
            assert c.guard_is_unchanged()


@needs_compiler
@pytest.mark.parametrize("mode", MODES, ids=["copied where waited for", "copied where issued"])
@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_the_product_by_asynchronous_copies_is_right(tiling: Tiling, mode: Mode, emulator: Emulator) -> None:
    """In each tiling, with and without 16-byte copies and parts of K."""
    for vectors, split in product((0, 1), (0, 1)):
        macros = defines(tiling, vectors=bool(vectors), split=bool(split), wide_offsets=bool(split))
        program = emulator.program(fp32_async.SOURCE, fp32_async.KERNEL, macros)
        for m, n, k in ASYNC_SIZES[vectors]:
            a, b = factors(m, n, k)
            depth = fp32_async.part_depth(tiling, k, PARTS if split else 1)
            tiles, parts = tiling.tiles(m, n), -(-k // depth)
            c = Output(m, n, torch.float32)
            sums = torch.full((tiles * parts * tiling.bm * tiling.bn,), float("nan"))
            arrived = torch.zeros(tiles, dtype=torch.int32)
            grid = Grid(blocks=(tiles, parts), threads=tiling.threads, shared_bytes=tiling.shared_bytes)
            arguments: list[Argument] = [a, b, c.matrix, sums, arrived, m, n, k, depth]
            assert program.run(arguments, grid, mode, readable=(a, b)) == "", (m, n, k, parts)
            assert torch.equal(c.matrix, a @ b), (m, n, k, parts)
            assert c.guard_is_unchanged()
            assert not arrived.any(), "the counters are ready for the next launch"


@functools.cache
def facts(name: str, arch: str = "sm_90") -> KernelFacts:
    (kernel,) = facts_of(nvrtc.compile_cubin(fp32.SOURCE, arch, {"VECTORS": "1"}, name))
    return kernel


def async_cubin(tiling: Tiling, arch: str = "sm_90", *, split: bool = False) -> bytes:
    macros = defines(tiling, vectors=True, split=split, wide_offsets=False)
    return nvrtc.compile_cubin(fp32_async.SOURCE, arch, macros, fp32_async.KERNEL)


@functools.cache
def async_facts(tiling: Tiling, arch: str = "sm_90") -> KernelFacts:
    (kernel,) = facts_of(async_cubin(tiling, arch))
    return kernel


def share_of_multiply_adds(kernel: KernelFacts) -> float:
    """Of the instructions of the main loop."""
    loop = kernel.roles[0].main_loop
    assert loop is not None
    return loop.iteration.classes["fp32"] / loop.iteration.executable


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_the_default_of_asynchronous_copies_multiplies_in_nine_of_ten_instructions_and_spills_nothing(
    arch: str,
) -> None:
    pytest.importorskip("triton")
    kernel = async_facts(Tiling(), arch)
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert share_of_multiply_adds(kernel) > 0.9
    assert {"cp_async", "vec16"} <= techniques_of(kernel)
    resident = occupancy(kernel, Tiling().threads, Tiling().shared_bytes)
    assert resident is not None
    assert resident.blocks >= (1 if arch == "sm_120" else Tiling().resident_blocks)


@pytest.mark.parametrize("tiling", BY_SIZE, ids=str)
def test_what_the_choice_by_size_assumes_of_the_machine_code_is_so(tiling: Tiling) -> None:
    pytest.importorskip("triton")
    kernel = async_facts(tiling)
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert share_of_multiply_adds(kernel) == pytest.approx(BY_SIZE[tiling], abs=0.01)
    resident = occupancy(kernel, tiling.threads, tiling.shared_bytes)
    assert resident is not None
    assert resident.limits["registers"] >= tiling.resident_blocks


@pytest.mark.parametrize("split", [False, True], ids=["whole K", "parts of K"])
@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])
def test_no_multiply_add_reads_three_registers_of_one_bank(arch: str, split: bool) -> None:
    """Registers with even numbers are in one bank, those with odd numbers in the other."""
    pytest.importorskip("triton")
    cubin = async_cubin(Tiling(), arch, split=split)
    (instructions,) = instructions_of(cubin, read_cubin(cubin)).values()
    sources = [REGISTER.findall(" ".join(i.operands[1:])) for i in instructions if i.mnemonic == "FFMA"]
    assert len(sources) >= Tiling().bk * Tiling().tm * Tiling().tn
    assert not [numbers for numbers in sources if len(numbers) == 3 and len({int(n) % 2 for n in numbers}) == 1]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_the_double_buffer_spills_nothing_in_its_loop_and_two_blocks_fit(arch: str) -> None:
    pytest.importorskip("triton")
    kernel = facts("matmul_double_buffer", arch)
    resident = occupancy(kernel, 256)
    assert resident is not None
    assert resident.blocks == 2
    assert not [access for access in kernel.roles[0].work.accesses if access.space == "local"]
    assert 0.8 < share_of_multiply_adds(kernel) < share_of_multiply_adds(async_facts(Tiling(), arch))


def test_each_rung_shows_its_idea() -> None:
    pytest.importorskip("triton")

    def per_multiply_add(kernel: KernelFacts, kind: str) -> float:
        classes = kernel.roles[0].work.classes
        return classes.get(kind, 0) / classes["fp32"]  # type: ignore[call-overload]

    shared = {name: per_multiply_add(facts(name), "shared_memory") for name in fp32.TILE_AND_THREADS}
    assert shared["matmul_rows_across_threads"] == 0
    assert shared["matmul_register_column"] > shared["matmul_register_tile"] > shared["matmul_vec16"] > 0
    by_async_copies, by_larger_tile = (
        per_multiply_add(async_facts(tiling), "shared_memory") for tiling in (Tiling(tm=8), Tiling())
    )
    assert shared["matmul_double_buffer"] > by_async_copies > by_larger_tile > 0
    widths = {a.width_bytes for a in facts("matmul_vec16").roles[0].work.accesses if a.space == "global"}
    assert widths == {16}
    barriers = [per_multiply_add(facts(f"matmul_{name}"), "barrier") for name in ("warp_tile", "double_buffer")]
    assert barriers[0] > barriers[1]


@pytest.mark.parametrize("size", [16, 512, 4096])
def test_the_admitted_configurations_run_on_every_gpu_with_asynchronous_copies(size: int) -> None:
    op = catalogue()["matmul"]
    problem = op.problem({"m": size, "n": 4096, "k": 4096}, "fp32", compute="ieee")
    drawn = draw(op, "cuda_larger_thread_tile", problem)
    assert 20 < len(drawn.configurations) < drawn.space / 5
    for configuration in drawn.configurations:
        tiling = Tiling(**{key: value for key, value in configuration.items() if key != "parts"})
        assert tiling.defect() is None
        assert tiling.shared_bytes <= 99 * 1024
        assert tiling.bm * tiling.bn == tiling.threads * tiling.tm * tiling.tn


def test_a_large_product_is_tuned_without_parts_and_without_small_tiles() -> None:
    op = catalogue()["matmul"]
    problem = op.problem(dict.fromkeys("mnk", 4096), "fp32", compute="ieee")
    default = {key: values[0] for key, values in SPACE.items()}
    assert admits(default, problem) is None
    assert all(admits({**default, "parts": parts}, problem) for parts in SPACE["parts"][1:])
    assert all(admits({**default, key: 64}, problem) for key in ("bm", "bn"))
    small = op.problem(dict.fromkeys("mnk", 512), "fp32", compute="ieee")
    assert admits({**default, "parts": 4}, small) is None
    assert admits({**default, "parts": 8}, small) is not None


def test_a_product_is_divided_among_the_multiprocessors() -> None:
    """Whatever the size: not all of them if parts of K would be too short, but at least a quarter of those that could work."""
    numbers = random.Random(22)
    for _ in range(300):
        m, n, k = (int(2 ** numbers.uniform(0, 14)) for _ in range(3))
        tiling, parts = choose(m, n, k, 132)
        parts = -(-k // fp32_async.part_depth(tiling, k, parts))
        possible = Tiling(bm=32, bn=64, tm=8).tiles(m, n) * max(1, k // SHORTEST_PART)
        assert tiling.tiles(m, n) * parts >= min(132, possible) / 4
    assert choose(4096, 4096, 4096, 132) == (Tiling(tm=8), 1)
