"""The wgmma kernels of `matmul` and of linear layers: results by fibers of the processor, and planted mistakes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from emulator import MODES, Argument, Emulator, Grid, Output, needs_compiler, tensor_maps, with_header

from kernelviz.core.problem import Problem
from kernelviz.ops.matmul import variants_wgmma as ladder
from kernelviz.ops.matmul import wgmma, wgmma_choice, wgmma_skinny
from kernelviz.ops.matmul.wgmma import BOX, DEPTH, Division, Function, Options, divided, hilbert_order

pytestmark = needs_compiler
TORCH = {"__nv_bfloat16": torch.bfloat16, "__half": torch.float16}
LADDER = {
    name: getattr(ladder, name)
    for name in (
        "FIRST",
        "TWO_WARPGROUPS",
        "SPECIALISED",
        "WIDE",
        "PERSISTENT",
        "CLUSTER",
        "TMA_STORE",
        "HILBERT",
        "SPLIT_K",
    )
}


def defined(macros: dict[str, str]) -> dict[str, str]:
    """Without the name of the elements in PTX."""
    return {name: value for name, value in macros.items() if name != "ELEMENT_PTX"}


def faults(
    emulator: Emulator,
    options: Options,
    sizes: tuple[int, int, int],
    *,
    element: str = "__nv_bfloat16",
    text: str | None = None,
    most_clusters: int = 2,
) -> list[str]:
    """What is wrong with a product, in either mode: products of small integers are exact in every order of additions."""
    m, n, k = sizes
    program = emulator.program(wgmma.SOURCE, "matmul_wgmma", defined(options.defines(element)), text=text)
    a, b = (torch.randint(-3, 4, shape).to(TORCH[element]) for shape in ((m, k), (k, n)))
    expected = (a.double() @ b.double()).to(TORCH[element])
    tiles = -(-m // (options.rows * options.cluster)), -(-n // options.columns)
    order = torch.tensor(hilbert_order(*tiles) if options.hilbert else [0], dtype=torch.uint32)
    count = tiles[0] * tiles[1]
    clusters = most_clusters if options.persistent else count
    division = divided(count, -(-k // DEPTH), clusters, options) if options.split_k else Division(whole=count, parts=1)
    seen = []
    for mode in MODES:
        c = Output(m, n, TORCH[element])
        maps = tensor_maps(options.maps(a, b, c.matrix, a_k_contiguous=True, b_k_contiguous=False))
        grid = Grid(
            blocks=min(clusters, division.amount(count)) * options.cluster,
            threads=options.threads,
            shared_bytes=options.shared_bytes,
            cluster=options.cluster,
        )
        shared_work: list[Argument] = []
        arrived = torch.zeros(1, dtype=torch.int32)
        if options.split_k:
            counters = (count - division.whole) * options.cluster * options.consumers
            sums = torch.full((max(4, counters * division.parts * BOX * options.columns),), float("nan"))
            arrived = torch.zeros(max(1, counters), dtype=torch.int32)
            shared_work = [sums, arrived, division.whole, division.parts]
        error = program.run([maps, order, 0, c.matrix, *sizes, *shared_work], grid, mode)
        right = torch.equal(c.matrix, expected) and c.guard_is_unchanged()
        right &= not arrived.any()
        if error or not right:
            seen.append(f"{mode}: {error or 'wrong'}")
    return seen


@pytest.mark.parametrize("name", LADDER)
def test_the_product_of_each_variant_is_right(name: str, emulator: Emulator) -> None:
    options = LADDER[name]
    rows = options.rows * options.cluster
    element = "__half" if name in ("WIDE", "CLUSTER") else "__nv_bfloat16"
    for sizes in ((rows + 24, 2 * options.columns + 8, 5 * DEPTH + 8), (rows, options.columns, DEPTH), (8, 8, 8)):
        assert faults(emulator, options, sizes, element=element) == [], sizes


DIVIDED = {
    "two parts": (wgmma_choice.options(128, 256, 2, 4), (256, 256, 50 * DEPTH), 2),
    "whole tiles, then two parts": (wgmma_choice.options(128, 128, 2, 3), (256, 520, 49 * DEPTH - 8), 4),
    "four parts of a tile, 192 columns": (wgmma_choice.options(128, 192, 2, 3), (200, 184, 36 * DEPTH), 5),
    "192 columns, four blocks of a cluster": (wgmma_choice.options(128, 192, 4, 3), (500, 200, 52 * DEPTH), 3),
    "192 columns, no cluster": (wgmma_choice.options(128, 192, 1, 4), (130, 200, 3 * DEPTH), 2),
    "small tiles, six parts": (wgmma_choice.options(64, 128, 1, 3), (72, 120, 30 * DEPTH), 13),
    "small tiles, clusters, five parts": (wgmma_choice.options(64, 128, 2, 3), (100, 120, 30 * DEPTH + 8), 5),
    "a narrow box, three parts": (wgmma_choice.options(64, 80, 1, 4), (136, 88, 42 * DEPTH), 13),
    "the smallest tiles, two parts": (wgmma_choice.options(64, 64, 1, 8), (136, 72, 42 * DEPTH), 13),
}


@pytest.mark.parametrize("case", DIVIDED)
def test_tiles_by_size_and_parts_of_k_are_right(case: str, emulator: Emulator) -> None:
    options, (m, n, k), clusters = DIVIDED[case]
    tiles = -(-m // (options.rows * options.cluster)) * -(-n // options.columns)
    assert (divided(tiles, -(-k // DEPTH), clusters, options).parts > 1) == ("part" in case)
    assert faults(emulator, options, (m, n, k), most_clusters=clusters) == []


WHOLE = {
    "two blocks of a cluster": (64, 128, 2, 3),
    "small": (64, 128, 1, 8),
    "smallest": (64, 64, 1, 3),
    "a narrow box of 16 columns": (64, 80, 1, 4),
    "a narrow box of 48 columns": (128, 240, 1, 3),
}


@pytest.mark.parametrize("case", WHOLE)
def test_small_tiles_without_parts_are_right(case: str, emulator: Emulator) -> None:
    options = wgmma_choice.options(*WHOLE[case], split_k=0)
    assert faults(emulator, options, (200, 136, 25 * DEPTH + 8), most_clusters=3) == []


def test_every_configuration_that_may_be_tuned_stores_whole_rounds_of_boxes() -> None:
    """Else a box would be filled again while TMA reads it."""
    problem = Problem(op="matmul", sizes={"m": 512, "n": 512, "k": 512}, dtype="bf16")
    names, values = wgmma_choice.SPACE.keys(), itertools.product(*wgmma_choice.SPACE.values())
    admitted = [
        one for one in (dict(zip(names, v, strict=True)) for v in values) if wgmma_choice.admits(one, problem) is None
    ]
    assert len(admitted) > 50
    for one in admitted:
        options = wgmma_choice.options(**one)
        assert options.boxes % options.c_boxes == 0, one


@pytest.mark.parametrize("tile", [ladder.HILBERT, wgmma_choice.options(128, 144, 1, 3, split_k=0)], ids=["256", "144"])
@pytest.mark.parametrize("function", ["relu", "gelu", "silu"])
def test_a_layer_with_its_bias_and_activation_is_right(function: Function, tile: Options, emulator: Emulator) -> None:
    options, (m, n, k) = tile, (280, 264, 136)
    macros = defined(options.defines("__nv_bfloat16", function=function, b_k_contiguous=True))
    program = emulator.program(wgmma.SOURCE, "matmul_wgmma", macros)
    x, w, bias = (torch.randint(-2, 3, shape).bfloat16() for shape in ((m, k), (n, k), (n,)))
    exact: torch.Tensor = getattr(torch.nn.functional, function)(x.double() @ w.double().t() + bias.double())
    tiles = -(-m // (options.rows * options.cluster)), -(-n // options.columns)
    order = torch.tensor(hilbert_order(*tiles), dtype=torch.uint32)
    grid = Grid(blocks=4, threads=options.threads, shared_bytes=options.shared_bytes, cluster=options.cluster)
    for mode in MODES:
        y = Output(m, n, torch.bfloat16)
        maps = tensor_maps(options.maps(x, w, y.matrix, a_k_contiguous=True, b_k_contiguous=True))
        assert program.run([maps, order, bias, y.matrix, m, n, k], grid, mode) == ""
        assert ((y.matrix.double() - exact).abs() <= 2.0**-8 * exact.abs() + 1e-5).all()
        assert y.guard_is_unchanged()


MISTAKES = {
    "a stage is released while it is multiplied": ("wgmma_wait<1>();", "wgmma_wait<7>();"),
    "a stage is multiplied before it is there": (
        "barrier_wait(shared.full + 8 * stage.number, stage.parity);",
        "",
    ),
    "a stage is filled before it was multiplied": (
        "barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);",
        "",
    ),
    "a block of the cluster is not told": ("% WARPGROUP < CLUSTER)", "% WARPGROUP < 1)"),
    "half of the tile of B is sent to one block": (
        "load_for_cluster(shared.b(stage) + box",
        "load_box(shared.b(stage) + box",
    ),
    "C is overwritten while it is stored": ("store_wait_read<C_BOXES - 1>()", "store_wait_read<C_BOXES>()"),
    "TMA does not see what was written": ("fence_for_tma();", ""),
    "the last stores are not waited for": ("            store_wait();\n", ""),
    "a product begins without a fence": ("wgmma_fence();", ""),
    "the next rows of K in the wrong place": ("step * 2048", "step * 1024"),
    "a part too few is added": ("part < parts;", "part < parts - 1;"),
    "all parts in one place": ("sums_of + work.part *", "sums_of + 0 *"),
    "a part begins at a sum that was there": ("i == work.first", "i == 0"),
    "the counters of the blocks of a cluster are one": ("* CLUSTER + rank) * CONSUMERS", "* CLUSTER) * CONSUMERS"),
    "banks": ("(eight + next_eight ^ lane % 8)", "(eight + next_eight)"),
}
WITH_MISTAKES = replace(ladder.SPLIT_K, stages=3, columns=128, c_boxes=1)
SIZES_WITH_MISTAKES = 280, 264, 50 * DEPTH + 8
CLUSTERS_WITH_MISTAKES = 4
"""Six tiles: four are whole, two have two parts."""


def test_without_a_mistake_nothing_is_noticed(emulator: Emulator) -> None:
    assert faults(emulator, WITH_MISTAKES, SIZES_WITH_MISTAKES, most_clusters=CLUSTERS_WITH_MISTAKES) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    correct, wrong = MISTAKES[mistake]
    text = with_header(wgmma.SOURCE, "boxes_by_tma.cuh")
    assert correct in text
    text = text.replace(correct, wrong)
    assert faults(emulator, WITH_MISTAKES, SIZES_WITH_MISTAKES, text=text, most_clusters=CLUSTERS_WITH_MISTAKES)


# --- few rows: the operands are exchanged ---------------------------------------------------------------------------------------
def skinny_faults(
    emulator: Emulator,
    tile: wgmma_skinny.Tile,
    sizes: tuple[int, int, int],
    element: str = "__nv_bfloat16",
    text: str | None = None,
    most_rows: int = 128,
    *,
    overlap: bool = False,
) -> list[str]:
    """What is wrong with a product, in either mode."""
    m, n, k = sizes
    rows = min(wgmma_skinny.padded_rows(m), most_rows)
    macros = defined(tile.defines(element, rows, overlap=overlap))
    program = emulator.program(wgmma_skinny.SOURCE, "matmul_wgmma_skinny", macros, text=text)
    a, b = (torch.randint(-3, 4, shape).to(TORCH[element]) for shape in ((m, k), (k, n)))
    expected = (a.double() @ b.double()).to(TORCH[element])
    grid = Grid(
        blocks=-(-m // rows) * -(-n // tile.columns) * tile.parts,
        threads=2 * tile.columns + 32,
        shared_bytes=tile.shared_bytes(rows),
        cluster=tile.parts,
    )
    seen = []
    for mode in MODES:
        c = Output(m, n, TORCH[element])
        maps = tensor_maps([(a, rows), (b, DEPTH), (c.matrix, rows)])
        error = program.run([maps, c.matrix, *sizes], grid, mode)
        right = torch.equal(c.matrix, expected) and c.guard_is_unchanged()
        if error or not right:
            seen.append(f"{mode}: {error or 'wrong'}")
    return seen


SKINNY = {
    "one row": (wgmma_skinny.Tile(columns=64, stages=3, parts=1), (1, 72, 200)),
    "8 rows, more stages than tiles": (wgmma_skinny.Tile(columns=64, stages=8, parts=1), (8, 64, 72)),
    "16 rows, parts of K": (wgmma_skinny.Tile(columns=64, stages=2, parts=3), (13, 136, 456)),
    "32 rows": (wgmma_skinny.Tile(columns=128, stages=3, parts=1), (32, 264, 520)),
    "64 rows, parts of K": (wgmma_skinny.Tile(columns=128, stages=2, parts=2), (64, 136, 648)),
    "128 rows, more parts than tiles of K": (wgmma_skinny.Tile(columns=64, stages=2, parts=4), (100, 72, 136)),
}


@pytest.mark.parametrize("case", SKINNY)
def test_the_product_of_few_rows_is_right(case: str, emulator: Emulator) -> None:
    assert skinny_faults(emulator, *SKINNY[case], "__half" if case == "32 rows" else "__nv_bfloat16") == []


@pytest.mark.parametrize("parts", [1, 3])
def test_tiles_of_rows_with_parts_of_k_are_right(parts: int, emulator: Emulator) -> None:
    tile = wgmma_skinny.Tile(columns=64 * min(parts, 2), stages=3, parts=parts)
    assert skinny_faults(emulator, tile, (150, 136, 456), most_rows=64, overlap=True) == []


SKINNY_MISTAKES = {
    "a stage is multiplied before it is there": ("barrier_wait(full + 8 * stage, parity);", ""),
    "a stage is filled before it was multiplied": ("barrier_wait(empty + 8 * stage, parity);", ""),
    "sums are written over what the other warpgroup multiplies": (
        'asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS * WARPGROUP) : "memory");',
        "",
    ),
    "sums of the other block are read before they are there": (
        "    wait_for_cluster();\n    constexpr",
        "    constexpr",
    ),
    "a block ends before the others have read its sums": ("    wait_for_cluster();  // the sums", "    // the sums"),
    "columns after the last one": ("if (column0 + column < n)", "if (column0 + column < n + 8)"),
    "a part of K is left out": ("part < PARTS", "part < PARTS - 1"),
    "a stage is released while it is multiplied": ("wgmma_wait<OVERLAP>();", "wgmma_wait<7>();"),
    "the last products are not waited for": ("        wgmma_wait<0>();\n", ""),
}


STORED_BY_TMA = {
    "TMA does not see what was written": ("fence_for_tma();", ""),
    "C is stored before all of it is there": (
        "    fence_for_tma();\n    warpgroup_barrier(warpgroup);",
        "    fence_for_tma();",
    ),
    "the matrices of a store are exchanged": ("lane / 16 * 8 + lane % 8", "lane / 8 % 2 * 8 + lane % 8"),
    "the store is not waited for": ("        store_wait();\n", ""),
}


ONLY_OVERLAPPING = {
    "the last products are not waited for",
    "sums are written over what the other warpgroup multiplies",
}
"""Without an overlap, each stage waits for its products, and both warpgroups end at the same time here."""


@pytest.mark.parametrize("case", ["64 rows, parts of K", "32 rows"])
def test_without_a_mistake_few_rows_are_right(case: str, emulator: Emulator) -> None:
    assert skinny_faults(emulator, *SKINNY[case], overlap=True) == []


@pytest.mark.parametrize("mistake", [*SKINNY_MISTAKES, *STORED_BY_TMA])
def test_the_processor_notices_mistakes_of_the_kernel_for_few_rows(mistake: str, emulator: Emulator) -> None:
    correct, wrong = (SKINNY_MISTAKES | STORED_BY_TMA)[mistake]
    text = wgmma_skinny.SOURCE.read_text()
    assert correct in text
    tile, sizes = SKINNY["64 rows, parts of K" if mistake in SKINNY_MISTAKES else "32 rows"]
    overlaps = (True,) if mistake in ONLY_OVERLAPPING else (False, True)
    for overlap in overlaps:
        assert skinny_faults(emulator, tile, sizes, text=text.replace(correct, wrong), overlap=overlap)
