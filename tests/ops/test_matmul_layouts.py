"""The wgmma kernel for operands of either layout: results by fibers of the processor, planted faults, machine code."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from emulator import LATE, Emulator, Grid, Mode, Output, needs_compiler, tensor_maps, with_header

from kernelviz.core.errors import BadField
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul import wgmma_layouts
from kernelviz.ops.matmul.variants_wgmma import HILBERT
from kernelviz.ops.matmul.wgmma import Options, hilbert_order
from kernelviz.ops.matmul.wgmma_layouts import SOURCE, defines

TORCH = {"__nv_bfloat16": torch.bfloat16, "__half": torch.float16}
LAYOUTS = list(product((True, False), repeat=2))
"""Whether K is contiguous in A and in B."""
SMALL = replace(HILBERT, columns=128, stages=3, c_boxes=1)
CONFIGURATIONS = {
    "hilbert": HILBERT,
    "grouped": replace(HILBERT, hilbert=0, group=4, c_boxes=4, stages=3),
    "one-consumer": replace(SMALL, consumers=1, cluster=1, hilbert=0, group=2),
    "no-cluster": replace(SMALL, cluster=1, c_boxes=2),
    "smallest": replace(SMALL, consumers=1, columns=64, cluster=1, hilbert=0),
    "144-columns": replace(SMALL, columns=144, cluster=1, c_boxes=3),
    "80-columns": replace(SMALL, consumers=1, columns=80, cluster=1),
}
SIZES = ((136, 264, 129), (8, 8, 1), (264, 136, 200))


def faults(
    emulator: Emulator,
    options: Options,
    layout: tuple[bool, bool],
    sizes: tuple[int, int, int],
    element: str = "__nv_bfloat16",
    *,
    text: str | None = None,
    blocks: int = 2,
) -> list[str]:
    """What is wrong in either mode: products of small integers are exact in every order of additions."""
    macros = {name: value for name, value in macros_of(options, layout, element).items() if name != "ELEMENT_PTX"}
    program = emulator.program(SOURCE, "matmul_wgmma_layouts", macros, text=text)
    m, n, k = sizes
    torch.manual_seed(0)
    dtype = TORCH[element]
    a, b = (torch.randint(-3, 4, shape).to(dtype) for shape in ((m, k), (k, n)))
    stored_a = a if layout[0] else a.t().contiguous()
    stored_b = b.t().contiguous() if layout[1] else b
    expected = (a.float() @ b.float()).to(dtype)
    tiles = -(-m // (options.rows * options.cluster)), -(-n // options.columns)
    order = torch.tensor(hilbert_order(*tiles) if options.hilbert else [0], dtype=torch.uint32)
    grid = Grid(
        blocks=min(blocks, tiles[0] * tiles[1]) * options.cluster,
        threads=options.threads,
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
    )
    seen = []
    for mode in (Mode(at_once=True), LATE, Mode(reverse=True)):
        c = Output(m, n, dtype)
        maps = options.maps(stored_a, stored_b, c.matrix, a_k_contiguous=layout[0], b_k_contiguous=layout[1])
        error = program.run([tensor_maps(maps), order, *sizes], grid, mode)
        if error:
            seen.append(f"{mode}: {error}")
        elif not torch.equal(c.matrix, expected):
            seen.append(f"{mode}: {int((c.matrix != expected).sum())} of {m * n} elements are wrong")
        elif not c.guard_is_unchanged():
            seen.append(f"{mode}: it wrote outside of C")
    return seen


def macros_of(options: Options, layout: tuple[bool, bool], element: str = "__nv_bfloat16") -> dict[str, str]:
    return defines(options, element, a_k_contiguous=layout[0], b_k_contiguous=layout[1])


@needs_compiler
@pytest.mark.parametrize(
    ("name", "layout"),
    [
        *((name, (False, False)) for name in CONFIGURATIONS),
        *(("hilbert", layout) for layout in LAYOUTS if layout != (False, False)),
        ("144-columns", (True, True)),
    ],
)
def test_products_of_all_layouts_are_right(name: str, layout: tuple[bool, bool], emulator: Emulator) -> None:
    element = "__half" if name == "grouped" else "__nv_bfloat16"
    options = CONFIGURATIONS[name]
    for sizes in SIZES:
        assert faults(emulator, options, layout, sizes, element) == [], sizes


BY_SIZE = (0, 0, 0, 0)
LAST_RELEASE = "wgmma_wait<0>();\n            if ("
FAULTS = {
    "a box of A of the next warpgroup": ("tile.row + 64 * box, depth", "tile.row, depth"),
    "8 rows of K too few": ("tile + step * 2048", "tile + step * 1024"),
    "the next 8 rows of K in the wrong place": ("BOX_BYTES, 1024)", "BOX_BYTES, 512)"),
    "a stage that is released too early": (
        "shared.empty + 8 * before, threadIdx.x % WARPGROUP);\n                }",
        "shared.empty + 8 * stage.number, threadIdx.x % WARPGROUP);\n                }",
    ),
    "a stage that is never waited for": ("barrier_wait(shared.full + 8 * stage.number, stage.parity);", ""),
    "a warpgroup that never releases its last stage": (LAST_RELEASE, LAST_RELEASE + "false && "),
    "stores that are not waited for": ("store_wait_read<C_BOXES - 1>()", "store_wait_read<C_BOXES>()"),
    "an expectation of too many bytes": ("A_BYTES + B_BYTES);\n    if", "A_BYTES + B_BYTES + 16);\n    if"),
}


WITH_FAULTS = replace(SMALL, cluster=1)
SIZES_WITH_FAULTS = 264, 264, 520


@needs_compiler
def test_without_a_fault_nothing_is_seen(emulator: Emulator) -> None:
    assert faults(emulator, WITH_FAULTS, (False, False), SIZES_WITH_FAULTS, blocks=1) == []


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault: str, emulator: Emulator) -> None:
    old, new = FAULTS[fault]
    code = with_header(SOURCE, "boxes_by_tma.cuh")
    assert code.count(old) == 1
    text = code.replace(old, new)
    assert faults(emulator, WITH_FAULTS, (False, False), SIZES_WITH_FAULTS, text=text, blocks=1)


@functools.cache
def disassembly(layout: tuple[bool, bool], element: str) -> bytes:
    arch = nvrtc.architecture("sm_90", specific=True)
    return nvrtc.compile_cubin(SOURCE, arch, macros_of(HILBERT, layout, element), "matmul_wgmma_layouts")


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("layout", LAYOUTS, ids=["NT", "NN", "TT", "TN"])
@pytest.mark.parametrize("element", TORCH)
def test_wgmma_reads_both_operands_from_shared_memory_as_they_are_stored(
    element: str, layout: tuple[bool, bool], tmp_path: Path
) -> None:
    triton = pytest.importorskip("triton")  # its wheel has nvdisasm
    cubin = disassembly(layout, element)
    (kernel,) = facts_of(cubin)
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert {role.registers for role in kernel.roles} == {24, 240}
    assert {"wgmma", "tma", "multicast", "warp_specialised"} <= techniques_of(kernel)
    file = tmp_path / "kernel.cubin"
    file.write_bytes(cubin)
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    text = subprocess.run([tool, "-c", file], capture_output=True, text=True, check=True).stdout
    products = [line for line in text.splitlines() if "HGMMA" in line]
    assert products
    for line in products:
        assert ".tnspA" in line or layout[0]
        assert ".tnspB" in line or layout[1]
        assert not (".tnspA" in line and layout[0])
        assert not (".tnspB" in line and layout[1])
        assert "gdesc" in line


def test_rows_that_tma_cannot_address_are_refused_by_the_name_of_their_axis() -> None:
    a, b = torch.zeros((8, 12), dtype=torch.bfloat16), torch.zeros((8, 16), dtype=torch.bfloat16)
    with pytest.raises(BadField, match=r"size m: .*multiple of 16 bytes"):
        wgmma_layouts.bind_tn(a, b, BY_SIZE)
    with pytest.raises(BadField, match=r"size n: .*multiple of 16 bytes"):
        wgmma_layouts.bind_tn(b, a, BY_SIZE)
    with pytest.raises(BadField, match=r"size n: .*multiple of 16 bytes"):
        wgmma_layouts.bind_nt(torch.zeros((4, 12), dtype=torch.bfloat16), a, BY_SIZE, names=("n", "k"))
