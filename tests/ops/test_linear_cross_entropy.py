"""The kernels of `linear_cross_entropy`: results by fibers of the processor, machine code, and what is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import pytest
import torch
from emulator import MODES, Emulator, Grid, Output, needs_compiler, tensor_maps, with_header

from kernelviz.core.errors import BadField
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.linear_cross_entropy import variants_wgmma as ladder
from kernelviz.ops.linear_cross_entropy import wgmma
from kernelviz.ops.linear_cross_entropy.wgmma import (
    BOX,
    COMBINE_SOURCE,
    COMBINED_ROWS,
    COMBINING_THREADS,
    SOURCE,
    Options,
)

OP = op_named("linear_cross_entropy")
LADDER = {name: getattr(ladder, name) for name in ("FIRST", "CLUSTER")}
SOURCES = {"linear_cross_entropy": SOURCE, "combine_parts": COMBINE_SOURCE}


def faults(
    emulator: Emulator,
    options: Options,
    sizes: tuple[int, int, int],
    *,
    changed: tuple[str, str] = ("", ""),
    most_clusters: int = 2,
) -> list[str]:
    """What is wrong with the losses, in either mode."""
    m, h, v = sizes
    macros = {name: value for name, value in options.defines("__half").items() if name != "ELEMENT_PTX"}
    tiled, combining = (
        emulator.program(source, name, macros, text=source.read_text().replace(*changed) if changed[0] else None)
        for name, source in SOURCES.items()
    )
    generator = torch.Generator().manual_seed(m + h + v)
    x, w = (torch.randint(-2, 3, shape, generator=generator).half() / 8 for shape in ((m, h), (v, h)))
    labels = torch.randint(0, v, (m,), generator=generator)
    labels[0], labels[-1] = v - 1, 0
    expected = OP.reference(x.double(), w.double(), labels)[0]
    tiles = -(-m // (options.rows * options.cluster)), -(-v // options.columns)
    maps = tensor_maps([(x, options.rows), (w, options.columns // options.cluster)])
    seen = []
    for mode in MODES:
        parts, chosen = Output(tiles[1] * m, 2, torch.float32), Output(1, m, torch.float32)
        loss = Output(1, m, torch.float16)
        grid = Grid(
            blocks=min(most_clusters, tiles[0] * tiles[1]) * options.cluster,
            threads=options.threads,
            shared_bytes=options.shared_bytes,
            cluster=options.cluster,
        )
        error = tiled.run([maps, labels, parts.matrix, chosen.matrix, m, v, h], grid, mode)
        grid = Grid(blocks=-(-m // COMBINED_ROWS), threads=COMBINING_THREADS)
        error = error or combining.run([parts.matrix, chosen.matrix, loss.matrix, 0, m, tiles[1]], grid, mode)
        right = bool(((loss.matrix[0].double() - expected).abs() <= 2.0**-10 * expected.abs() + 1e-4).all())
        right &= all(one.guard_is_unchanged() for one in (parts, chosen, loss))
        if error or not right:
            seen.append(f"{mode}: {error or 'wrong'}")
    return seen


EMULATED = {
    "first": (LADDER["FIRST"], (200, 136, 521)),
    "one of each": (LADDER["FIRST"], (1, 8, 1)),
    "cluster": (LADDER["CLUSTER"], (300, 200, 777)),
    "whole tiles": (LADDER["CLUSTER"], (256, 64, 512)),
    "narrow": (replace(LADDER["CLUSTER"], columns=128, stages=6), (270, 72, 400)),
    "four blocks of a cluster": (replace(LADDER["CLUSTER"], cluster=4, stages=3, group=1), (530, 72, 260)),
}


@needs_compiler
@pytest.mark.parametrize("case", EMULATED)
def test_losses_are_right_on_the_processor(case: str, emulator: Emulator) -> None:
    options, sizes = EMULATED[case]
    assert faults(emulator, options, sizes) == []


WITH_MISTAKES = replace(LADDER["CLUSTER"], columns=128, stages=3)
SIZES_WITH_MISTAKES = 506, 328, 521
MISTAKES = {
    "columns after the last one count": ("if (tile.column + COLUMNS > v) {", "if (false) {"),
    "the last column does not count": ("mask(sums, v - tile.column)", "mask(sums, v - tile.column - 1)"),
    "the label of the neighbour": ("__ldg(labels + row)) - column0", "__ldg(labels + row)) + 1 - column0"),
    "the label of the row below": ("label_in_tile(labels, row + 8, tile.column, m)", "label"),
    "two lanes of a row are forgotten": ("    sum += of_other_lane(sum, 2);\n", ""),
    "sums are not rescaled": ("a.y * exp2_fast((a.x - top) * LOG2_E)", "a.y"),
    "a tile of the vocabulary is dropped": (
        "for (int tile = warp; tile < tiles;",
        "for (int tile = warp; tile < tiles - 1;",
    ),
    "a warp is not added": ("other < WARPS; ++other", "other < WARPS - 4; ++other"),
    "a stage is released while it is multiplied": ("wgmma_wait<1>();", "wgmma_wait<7>();"),
    "a stage is multiplied before it is there": ("barrier_wait(shared.full + 8 * stage.number, stage.parity);", ""),
    "a stage is filled before it was multiplied": (
        "barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);",
        "",
    ),
    "rows after the last one are written": ("&& row + 8 < m) {", ") {"),
}


@needs_compiler
def test_without_a_mistake_nothing_is_noticed(emulator: Emulator) -> None:
    assert faults(emulator, WITH_MISTAKES, SIZES_WITH_MISTAKES) == []


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernels(mistake: str, emulator: Emulator) -> None:
    correct, _ = MISTAKES[mistake]
    assert sum(source.read_text().count(correct) for source in SOURCES.values()) == 1
    assert faults(emulator, WITH_MISTAKES, SIZES_WITH_MISTAKES, changed=MISTAKES[mistake])


GRADIENT = replace(LADDER["FIRST"], gradient=1)
OF_VOCABULARY = 700, 128
"""Entries of the vocabulary, and the first one of the chunk."""


def gradient_faults(
    emulator: Emulator, options: Options, sizes: tuple[int, int, int], changed: tuple[str, str] = ("", "")
) -> list[str]:
    """What is wrong with the gradients of a chunk of logits, in either mode."""
    m, h, columns = sizes
    v, first = OF_VOCABULARY
    macros = {name: value for name, value in options.defines("__half").items() if name != "ELEMENT_PTX"}
    text = with_header(SOURCE, "boxes_by_tma.cuh").replace(*changed) if changed[0] else None
    program = emulator.program(SOURCE, "linear_cross_entropy", macros, text=text)
    generator = torch.Generator().manual_seed(m + h + columns)
    x, w = (torch.randint(-2, 3, shape, generator=generator).half() / 8 for shape in ((m, h), (v, h)))
    dloss = torch.randint(1, 4, (m,), generator=generator).half()
    labels = torch.randint(0, v, (m,), generator=generator)
    labels[0], labels[-1] = first, first + columns - 1
    logits = x.double() @ w.double().t()
    expected = logits.softmax(1)
    expected[torch.arange(m), labels] -= 1
    expected = (expected * dloss[:, None])[:, first : first + columns]
    width = -(-columns // 8) * 8
    seen = []
    for mode in MODES:
        dz = Output(m, width, torch.float16)
        maps = tensor_maps([(x, options.rows), (w, options.columns), (dz.matrix, BOX)])
        grid = Grid(blocks=2, threads=options.threads, shared_bytes=options.shared_bytes)
        whole = logits.logsumexp(1).float()
        error = program.run([maps, labels, whole, dloss, first, m, columns, h], grid, mode)
        found = dz.matrix[:, :columns].double()
        right = bool(((found - expected).abs() <= 2.0**-10 * expected.abs() + 1e-5).all()) and dz.guard_is_unchanged()
        if error or not right:
            seen.append(f"{mode}: {error or 'wrong'}")
    return seen


@needs_compiler
@pytest.mark.parametrize("sizes", [(200, 136, 521), (1, 8, 1), (256, 64, 512)], ids=str)
def test_gradients_of_logits_are_right_on_the_processor(sizes: tuple[int, int, int], emulator: Emulator) -> None:
    assert gradient_faults(emulator, GRADIENT, sizes) == []


MISTAKES_OF_GRADIENTS = {
    "the label of the neighbour": ("- first_column();\n        minus", "- first_column() + 2;\n        minus"),
    "the label within the chunk": ("above(labels, whole, dloss, row, first +", "above(labels, whole, dloss, row, 0 +"),
    "the gradient of the loss is forgotten": ("sums[i + 1] *= row.slope;", ""),
    "the logits of another chunk": ("stage.number, tile, first + tile.column,", "stage.number, tile, tile.column,"),
    "a box is overwritten while TMA reads it": ("store_wait_read<C_BOXES - 1>();", "store_wait_read<C_BOXES>();"),
    "TMA does not see what was written": ("        fence_for_tma();\n", ""),
    "the last stores are not waited for": ("            store_wait();\n", ""),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES_OF_GRADIENTS)
def test_the_processor_notices_mistakes_of_the_gradients(mistake: str, emulator: Emulator) -> None:
    correct, _ = MISTAKES_OF_GRADIENTS[mistake]
    assert with_header(SOURCE, "boxes_by_tma.cuh").count(correct) == 1
    options = replace(GRADIENT, columns=128, stages=3, c_boxes=1)
    assert gradient_faults(emulator, options, (200, 72, 300)) == []
    assert gradient_faults(emulator, options, (200, 72, 300), MISTAKES_OF_GRADIENTS[mistake])


def test_each_variant_adds_one_idea() -> None:
    changed = [
        [f.name for f in fields(Options) if getattr(before, f.name) != getattr(after, f.name)]
        for before, after in pairwise(LADDER.values())
    ]
    assert changed == [["cluster"]]
    names = [variant.name for variant in ladder.WGMMA_VARIANTS]
    assert names[len(LADDER) :] == ["cuda_wgmma_padded"]  # which has the kernel of the last one


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("options", [*LADDER.values(), GRADIENT], ids=[*LADDER, "GRADIENT"])
def test_the_ideas_show_in_the_machine_code_without_spills(options: Options) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    arch = nvrtc.architecture("sm_90", specific=True)
    cubin = nvrtc.compile_cubin(SOURCE, arch, options.defines("__nv_bfloat16"), "linear_cross_entropy")
    (kernel,) = facts_of(cubin)
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert {role.registers for role in kernel.roles} == {24, 240}
    found = techniques_of(kernel)
    assert {"tma", "wgmma", "warp_specialised"} <= set(found)
    assert ("multicast" in found) == (options.cluster > 1)


def test_sizes_that_tma_cannot_address_are_refused_by_name() -> None:
    x_MH, w_VH, labels_M = torch.empty(4, 33).half(), torch.empty(9, 33).half(), torch.zeros(4, dtype=torch.int64)
    with pytest.raises(BadField, match=r"size h: '33' cannot be used; .*multiple of 8 elements"):
        wgmma.bind_loss(x_MH, w_VH, labels_M, ladder.FIRST)
