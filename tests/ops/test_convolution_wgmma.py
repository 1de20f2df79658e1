"""The wgmma kernel of the convolutions: its results by fibers of the processor, its machine code, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from checking import bind, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, Program, needs_compiler, tensor_maps

from kernelviz.core.errors import BadField
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import LIMITS
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import op_named
from kernelviz.ops.convolution.geometry import Geometry
from kernelviz.ops.convolution.reference import convolved
from kernelviz.ops.convolution.wgmma import SOURCE
from kernelviz.ops.convolution.wgmma_choice import (
    BOX,
    CONSUMERS,
    THREADS,
    TILES,
    Options,
    choose,
    choose_parts,
    steps,
    tiles,
    with_most_stages,
    with_resident_filters,
)
from kernelviz.ops.kernels import nvrtc

TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}


def program(
    emulator: Emulator, options: Options, dtype: str, *, bias_relu: bool = False, text: str | None = None
) -> Program:
    macros = options.defines(nvrtc.element_type(TORCH[dtype]), bias_relu=bias_relu)
    return emulator.program(
        SOURCE, "conv_wgmma", {name: value for name, value in macros.items() if name != "ELEMENT_PTX"}, text=text
    )


def fault(
    compiled: Program, options: Options, dtype: str, g: Geometry, blocks: int, mode: Mode, *, bias_relu: bool = False
) -> str:
    """What is wrong with a convolution of small integers, whose sums are exact in every order."""
    x = torch.randint(-3, 4, (g.n, g.h, g.w, g.c)).to(TORCH[dtype])
    filters = torch.randint(-3, 4, (g.k, g.r, g.r, g.c)).to(TORCH[dtype])
    bias = torch.randint(-9, 10, (g.k,)).to(TORCH[dtype])
    exact = convolved(x.double(), filters.double(), g.s)
    expected = ((exact + bias.double()).relu() if bias_relu else exact).to(TORCH[dtype])
    y = Output(g.pixels, g.k, TORCH[dtype])
    maps = torch.zeros((3, 16), dtype=torch.int64)
    maps[0, :8] = torch.tensor([x.data_ptr(), g.n, g.h, g.w, g.c, options.pixels, g.r, g.s])
    maps[1, :5] = torch.tensor([filters.data_ptr(), g.k, g.r * g.r, g.c, options.filters])
    maps[2:] = tensor_maps([(y.matrix, BOX)])
    grid = Grid(blocks=blocks, threads=THREADS, shared_bytes=options.shared_bytes)
    count = tiles(g, options)
    sums = torch.full((options.parts * count * options.filters * options.pixels,), float("nan"))
    arrived = torch.zeros(count * CONSUMERS, dtype=torch.int32)
    error = compiled.run([maps, bias, sums, arrived, g.pixels, g.p, g.q, g.c, g.k, g.r, g.s], grid, mode)
    if error:
        return error
    right = torch.equal(y.matrix, expected.view(g.pixels, g.k)) and y.guard_is_unchanged()
    right &= bool((arrived == 0).all())
    return "" if right else "wrong"


def geometry(n: int, h: int, w: int, c: int, k: int, r: int, s: int) -> Geometry:
    return Geometry(n=n, h=h, w=w, c=c, k=k, r=r, s=s)


PROBLEMS = (
    geometry(3, 9, 13, 72, 136, 3, 1),  # channels and filters that fill no box, tiles across images
    geometry(2, 15, 17, 136, 72, 3, 2),
    geometry(1, 25, 11, 64, 264, 1, 2),
    geometry(5, 8, 8, 128, 128, 1, 1),
    geometry(1, 6, 9, 8, 8, 2, 3),
)
EMULATED = {
    "first": (Options(), "bf16", False),
    "192-pixels": (Options(pixels=192, boxes=2), "fp16", True),
    "128-pixels": (Options(pixels=128, stages=6), "bf16", True),
    "64-filters": (Options(filters=64, boxes=1), "bf16", False),
    "parts": (Options(pixels=128, parts=3), "bf16", True),
}


@needs_compiler
@pytest.mark.parametrize("name", EMULATED)
def test_results_are_exact_on_the_processor(name: str, emulator: Emulator) -> None:
    options, dtype, bias_relu = EMULATED[name]
    compiled = program(emulator, options, dtype, bias_relu=bias_relu)
    for g in PROBLEMS:
        if steps(g) < options.parts:
            continue
        for blocks, mode in zip((1, 3), MODES, strict=True):
            assert fault(compiled, options, dtype, g, blocks, mode, bias_relu=bias_relu) == "", (g, blocks, mode)


@needs_compiler
@pytest.mark.parametrize(
    "g", [geometry(3, 13, 12, 64, 64, 3, 1), geometry(2, 21, 12, 136, 40, 1, 1)], ids=["3x3", "1x1"]
)
def test_resident_filters_give_the_same(g: Geometry, emulator: Emulator) -> None:
    options = with_resident_filters(g, Options(filters=64))
    assert options.resident == steps(g)
    compiled = program(emulator, options, "bf16")
    for mode in MODES:
        assert fault(compiled, options, "bf16", g, 1, mode) == ""


MISTAKES = {
    "rows and columns of the filter are exchanged": ("column, row, image, j, i, full", "column, row, image, i, j, full"),
    "the padding is forgotten": ("% p * s - r / 2, column", "% p * s, column"),
    "the stride is forgotten": ("work.pixel % q * s -", "work.pixel % q -"),
    "the filters of another tap": ("channel, tap, work.filter", "channel, j * r + i, work.filter"),
    "a stage is multiplied before it is there": ("barrier_wait(shared.full + 8 * stage.number, stage.parity);", ""),
    "a stage is filled before it was multiplied": ("barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);", ""),
    "a stage is released before it was read": ("wgmma_wait<1>();", ""),
    "the last step is left out": ("for (int i = work.first; i < work.end; ++i", "for (int i = work.first; i < work.end - 1; ++i"),
    "a box is overwritten while TMA reads it": ("store_wait_read<BOXES - 1>();", "store_wait_read<BOXES>();"),
    "TMA does not see what was written": ("fence_for_tma();", ""),
    "the last stores are not waited for": ("store_wait();\n", "\n"),
    "both warpgroups have the same filters": ("FILTERS == 128 ? 64 * warpgroup : 0, of_pixels", "0, of_pixels"),
    "a part too few is added": ("part < PARTS; ++part", "part < PARTS - 1; ++part"),
    "all parts are in one place": ("of_tile + work.part *", "of_tile + 0 *"),
    "a part begins at a sum that was there": ("i > work.first || step", "i > 0 || step"),
    "the counters of both warpgroups are one": ("work.tile * CONSUMERS + warpgroup", "work.tile * CONSUMERS"),
    "banks": ("((part ^ lane % 8) << 4)", "(part << 4)"),
}  # fmt: skip
WITH_MISTAKES = Options(pixels=128, stages=3, boxes=1, parts=2)
PROBLEM_WITH_MISTAKES = geometry(2, 15, 17, 136, 136, 3, 2)


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    correct, wrong = MISTAKES[mistake]
    text = SOURCE.read_text()
    assert text.count(correct) == 1
    compiled = program(emulator, WITH_MISTAKES, "bf16", text=text.replace(correct, wrong))
    assert any(fault(compiled, WITH_MISTAKES, "bf16", PROBLEM_WITH_MISTAKES, 1, mode) for mode in MODES)


@needs_compiler
def test_without_a_mistake_the_processor_notices_nothing(emulator: Emulator) -> None:
    compiled = program(emulator, WITH_MISTAKES, "bf16")
    assert [fault(compiled, WITH_MISTAKES, "bf16", PROBLEM_WITH_MISTAKES, 1, mode) for mode in MODES] == ["", ""]


TILES_AND_RESIDENT = [
    *(with_most_stages(Options(filters=filters, pixels=pixels)) for filters, pixels in TILES),
    with_most_stages(Options(filters=64, resident=9)),
    with_most_stages(Options(parts=3)),
]


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("options", TILES_AND_RESIDENT, ids=lambda o: f"{o.filters}x{o.pixels}-{o.resident}-{o.parts}")
@pytest.mark.parametrize("bias_relu", [False, True])
def test_the_ideas_show_in_the_machine_code_without_spills(options: Options, bias_relu: bool) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    arch = nvrtc.architecture("sm_90", specific=True)
    defines = options.defines("__nv_bfloat16", bias_relu=bias_relu)
    (kernel,) = facts_of(nvrtc.compile_cubin(SOURCE, arch, defines, "conv_wgmma"))
    assert {"wgmma", "tma", "warp_specialised"} <= techniques_of(kernel)
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    width = options.pixels if options.filters == 128 else options.pixels // 2
    assert {t.shape for t in kernel.whole.tensor} == {(64, width, 16)}
    assert any(c.kind == "tma_store" for c in kernel.whole.copies)
    roles = {role.registers: role for role in kernel.roles if role.registers is not None}
    assert set(roles) == {40, 232}
    assert options.shared_bytes <= LIMITS[90].shared_bytes_per_block


def test_the_choice_fills_the_last_round_and_keeps_filters_where_they_fit() -> None:
    small = choose(geometry(256, 7, 7, 512, 512, 3, 1), 132)
    assert (small.filters, small.pixels) == (128, 192)  # 264 tiles: two full rounds
    g = geometry(256, 56, 56, 64, 64, 3, 1)
    assert with_resident_filters(g, choose(g, 132)).resident == 9
    wide = replace(g, k=128)
    assert with_resident_filters(wide, choose(wide, 132)).resident in (0, 9)
    few = geometry(2, 16, 16, 1280, 1280, 3, 1)
    assert choose_parts(few, 132).parts > 1
    assert tiles(few, choose_parts(few, 132)) * choose_parts(few, 132).parts <= 132
    assert choose_parts(geometry(256, 14, 14, 256, 256, 3, 1), 132).parts == 1
    deep = replace(g, c=512)
    assert with_resident_filters(deep, choose(deep, 132)).resident == 0


@pytest.mark.parametrize("name", ["cuda_wgmma", "cuda_wgmma_by_size", "cuda_wgmma_resident", "cuda_wgmma_parts"])
@pytest.mark.parametrize(("c", "k", "s", "message"), [
    (60, 64, 1, "size c: .*multiple of 16 bytes"),
    (64, 60, 1, "size k: .*multiple of 16 bytes"),
    (64, 64, 9, "size s: .*stride of at most 8"),
])  # fmt: skip
def test_what_tma_cannot_address_is_refused_by_name(name: str, c: int, k: int, s: int, message: str) -> None:
    op = op_named("conv2d")
    problem = op.problem({"n": 1, "h": 9, "w": 9, "c": c, "k": k, "r": 3, "s": s}, "bf16")
    with pytest.raises(BadField, match=message):
        bind(op.variant_named(name), problem, inputs_of(op, problem))


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ("filters=128", "0 is the choice by size"),
        ("filters=64,pixels=128,stages=4,boxes=2,parts=1", "fewer than 128 pixels"),
        ("filters=128,pixels=256,stages=5,boxes=2,parts=1", "bytes of shared memory"),
        ("filters=128,pixels=256,stages=4,boxes=2,parts=8", "a tile has 4 steps"),
    ],
)
def test_what_cannot_run_is_refused_before_it_is_compiled(configuration: str, message: str) -> None:
    op = op_named("conv2d")
    problem = op.problem({"n": 2, "h": 9, "w": 9, "c": 256, "k": 64, "r": 1, "s": 1}, "bf16")
    refusal = op.variant_named(f"cuda_wgmma_parts[{configuration}]").refuses(problem)
    assert refusal is not None
    assert message in refusal.text  # type: ignore[union-attr]


def test_a_configuration_binds_the_tile_that_it_names() -> None:
    op = op_named("conv2d")
    variant = op.variant_named("cuda_wgmma_parts[filters=128,pixels=192,stages=4,boxes=2,parts=2]")
    problem = op.problem({"n": 2, "h": 9, "w": 9, "c": 256, "k": 128, "r": 3, "s": 1}, "bf16")
    assert variant.refuses(problem) is None
    assert Options(**(variant.configuration or {})) == Options(pixels=192, parts=2)
