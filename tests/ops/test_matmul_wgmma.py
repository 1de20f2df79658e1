"""The wgmma ladder of `matmul`: the machine code of each variant shows its idea; Hilbert's curve passes each tile once."""

from __future__ import annotations

import functools
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from kernelviz.core.machine_code import KernelFacts
from kernelviz.machine_code.disassembly import disassembly
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import LIMITS
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul import variants_wgmma as ladder
from kernelviz.ops.matmul import wgmma_choice, wgmma_skinny
from kernelviz.ops.matmul.wgmma import SOURCE, Options, hilbert_order

pytestmark = pytest.mark.xdist_group("compile-1")

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


@functools.cache
def facts(name: str, element: str = "__nv_bfloat16") -> KernelFacts:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    arch = nvrtc.architecture("sm_90", specific=True)
    cubin = nvrtc.compile_cubin(SOURCE, arch, LADDER[name].defines(element), "matmul_wgmma")
    (kernel,) = facts_of(cubin)
    return kernel


def test_each_variant_adds_one_idea() -> None:
    options = list(LADDER.values())
    changed = [
        [f.name for f in fields(Options) if getattr(before, f.name) != getattr(after, f.name)]
        for before, after in pairwise(options)
    ]
    assert changed == [
        ["consumers", "stages"],
        ["specialised"],
        ["columns"],
        ["persistent"],
        ["cluster"],
        ["c_boxes"],
        ["hilbert"],
        ["split_k"],
    ]
    assert len(ladder.WGMMA_VARIANTS) == len(options)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 7), (5, 1), (16, 16), (7, 12), (3, 40)])
def test_hilberts_curve_passes_each_tile_once_and_goes_to_a_neighbour(rows: int, columns: int) -> None:
    places = [(place % 65536, place // 65536) for place in hilbert_order(rows, columns)]
    assert sorted(places) == [(r, c) for r in range(rows) for c in range(columns)]
    if rows == columns:
        assert all(abs(a - c) + abs(b - d) == 1 for (a, b), (c, d) in pairwise(places))


@pytest.mark.parametrize("name", LADDER)
def test_each_variant_multiplies_on_tensor_cores_without_spills(name: str) -> None:
    kernel, options = facts(name), LADDER[name]
    assert {"wgmma", "tma"} <= techniques_of(kernel)
    # With tiles divided along K, a few registers are stored and loaded again once for each tile, outside of the loop over K.
    assert kernel.spill_stores <= (11 if options.split_k else 0)
    assert kernel.spill_loads <= (24 if options.split_k else 0)
    assert {t.shape for t in kernel.whole.tensor} == {(64, options.columns, 16)}
    assert options.shared_bytes <= LIMITS[90].shared_bytes_per_block
    loop = kernel.roles[0].main_loop
    assert loop is not None
    assert loop.iteration.classes["tensor"] % 4 == 0


def test_the_ideas_show_in_the_machine_code() -> None:
    shown = {name: techniques_of(facts(name)) for name in LADDER}
    assert [name for name, techniques in shown.items() if "warp_specialised" in techniques] == list(LADDER)[2:]
    assert [name for name, techniques in shown.items() if "multicast" in techniques] == list(LADDER)[5:]
    stores = [name for name in LADDER if any(c.kind == "tma_store" for c in facts(name).whole.copies)]
    assert stores == ["TMA_STORE", "HILBERT", "SPLIT_K"]
    assert {role.registers for role in facts("HILBERT").roles} == {24, 240}


def test_fp16_compiles_to_the_same_instructions_of_its_own_type() -> None:
    bf16, fp16 = (facts("HILBERT", element).whole.tensor for element in ("__nv_bfloat16", "__half"))
    assert [t.opcode.replace(".BF16", "") for t in bf16] == [t.opcode.replace(".F16", "") for t in fp16]


STEPS = 4
"""Products of a stage, which begin together."""


def serialised(source: Path, macros: dict[str, str], name: str) -> bool:
    """Whether the compiler lets each product end before the next one begins, as it does where it cannot see their order."""
    text = disassembly(nvrtc.compile_cubin(source, "sm_90a", macros, name))
    assert text.count("HGMMA") >= STEPS
    return text.count("HGMMA") < STEPS * text.count("WARPGROUP.ARRIVE")


@pytest.mark.parametrize("split_k", [0, 1])
@pytest.mark.parametrize(
    "tile", [t for t in wgmma_choice.TILES if t.columns % 64], ids=lambda t: f"{t.rows}x{t.columns}"
)
def test_products_of_narrow_tiles_are_not_serialised(tile: wgmma_choice.Tile, split_k: int) -> None:
    options = wgmma_choice.options(tile.rows, tile.columns, 1, tile.stages, split_k=split_k)
    assert options.shared_bytes <= LIMITS[90].shared_bytes_per_block
    assert not serialised(SOURCE, options.defines("__nv_bfloat16"), "matmul_wgmma")


@pytest.mark.parametrize(("rows", "columns"), wgmma_skinny.TILES_US)
@pytest.mark.parametrize("parts", [1, 3])
def test_products_of_parts_are_not_serialised(rows: int, columns: int, parts: int) -> None:
    macros = wgmma_skinny.with_stages(rows, columns, parts).defines("__nv_bfloat16", rows, overlap=True)
    assert not serialised(wgmma_skinny.SOURCE, macros, "matmul_wgmma_skinny")


def test_without_an_order_of_the_registers_they_would_be_serialised(tmp_path: Path) -> None:
    source = tmp_path / wgmma_skinny.SOURCE.name
    source.write_text(wgmma_skinny.SOURCE.read_text().replace("order_registers(sums);", ""))
    macros = wgmma_skinny.with_stages(64, 64, 1).defines("__nv_bfloat16", 64, overlap=True)
    assert serialised(source, macros, "matmul_wgmma_skinny")
