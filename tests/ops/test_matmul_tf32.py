"""cuda_wgmma_tf32 of `matmul`: its product on the processor, and its machine code."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from emulator import MODES, Emulator, Grid, needs_compiler, tensor_maps, unwritten

from kernelviz.core.errors import BadField
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import LIMITS
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul.wgmma import hilbert_order
from kernelviz.ops.matmul.wgmma_tf32 import DEPTH, SOURCE, Tf32Options, admits

pytestmark = pytest.mark.xdist_group("compile-1")

DEFAULT = Tf32Options()
OPTIONS = {
    "default": DEFAULT,
    "128-rows": replace(DEFAULT, rows=128, stages=5, c_boxes=1),
    "no-cluster": replace(DEFAULT, cluster=1, stages=3, group=4),
    "three-warpgroups": replace(DEFAULT, rows=128, consumers=3, stages=4),
    "stores-from-registers": replace(DEFAULT, c_boxes=0),
}


def check(emulator: Emulator, options: Tf32Options, sizes: tuple[int, int, int], text: str | None = None) -> list[str]:
    """What is wrong with a product on the processor, in both modes.

    Products of small integers are exact, and what is added to them is beyond the 10 fraction bits of tf32.
    """
    m, n, k = sizes
    program = emulator.program(SOURCE, "matmul_tf32", options.defines(), text=text)
    a, b = (torch.randint(-4, 5, shape) * (1 + 2.0**-13) for shape in ((m, k), (k, n)))
    expected = a.round() @ b.round()
    tiles = -(-m // options.rows), -(-n // (options.columns * options.cluster))
    order = torch.tensor(hilbert_order(*tiles) if options.group == 0 else [0], dtype=torch.uint32)
    grid = Grid(
        blocks=2 * options.cluster,
        threads=options.threads,
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
    )
    faults = []
    for mode in MODES:
        c = unwritten((m, n), torch.float32)
        maps = tensor_maps([(a, options.rows // options.cluster), (b, DEPTH), (c, DEPTH)])
        error = program.run([maps, order, c, *sizes], grid, mode)
        faults.append(error or ("" if torch.equal(c, expected) else "wrong"))
    return faults


@needs_compiler
@pytest.mark.parametrize("name", OPTIONS)
def test_the_product_is_right(name: str, emulator: Emulator) -> None:
    options = OPTIONS[name]
    columns = options.columns * options.cluster
    assert check(emulator, options, (2 * options.rows + 37, columns + 36, 196)) == ["", ""]
    assert check(emulator, options, (1, 4, 4)) == ["", ""]
    assert check(emulator, options, (3, columns, 32)) == ["", ""]


MISTAKES = {
    "fragments are loaded while they are multiplied": ("wgmma_wait<1>();", "wgmma_wait<2>();"),
    "a stage is read before it is there": ("barrier_wait(shared.full + 8 * stage.number, stage.parity);", ""),
    "a stage is filled before it was read": ("barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);", ""),
    "C is overwritten while it is stored": ("store_wait_read<C_BOXES - 1>()", "store_wait_read<C_BOXES>()"),
    "a bank conflict of stores": ("second_first = t & 2", "second_first = false"),
    "a bank conflict": ("t / 32 % 2 * 2 + r / 4 + r / 2 % 2 * 4", "t / 32 % 2 * 4 + r / 2"),
    "a block of the cluster is not told": ("% WARPGROUP < CLUSTER)", "% WARPGROUP < 1)"),
    "the second box is stored over the first one": ("column0 + 32, row0", "column0, row0"),
}


SIZES_WITH_MISTAKES = 300, 300, 400


@needs_compiler
def test_without_a_mistake_the_processor_notices_nothing(emulator: Emulator) -> None:
    assert check(emulator, DEFAULT, SIZES_WITH_MISTAKES) == ["", ""]


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    right, wrong = MISTAKES[mistake]
    text = SOURCE.read_text()
    assert right in text
    assert any(check(emulator, DEFAULT, SIZES_WITH_MISTAKES, text.replace(right, wrong)))


@pytest.mark.parametrize("name", OPTIONS)
def test_fragments_are_loaded_while_the_tensor_core_multiplies(name: str) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    options = OPTIONS[name]
    arch = nvrtc.architecture("sm_90", specific=True)
    (kernel,) = facts_of(nvrtc.compile_cubin(SOURCE, arch, options.defines(), "matmul_tf32"))
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert {"wgmma", "tma", "warp_specialised"} <= techniques_of(kernel)
    assert ("multicast" in techniques_of(kernel)) == (options.cluster > 1)
    assert {t.shape for t in kernel.whole.tensor} == {(64, options.rows, 8)}
    assert {role.registers for role in kernel.roles} == ({24, 240} if options.consumers == 2 else {32, 160})
    assert options.shared_bytes <= LIMITS[90].shared_bytes_per_block
    loop = kernel.roles[0].main_loop
    assert loop is not None
    # Two stages an iteration, each of four steps: a product, and two loads of 8 bytes. Nothing waits for single products.
    assert loop.iteration.classes["tensor"] == 8
    assert loop.iteration.classes["shared_memory"] == 16
    assert loop.iteration.classes["barrier"] <= 8


def test_what_does_not_fit_is_refused_by_name() -> None:
    problem = op_named("matmul").problem(dict.fromkeys("mnk", 4096), "fp32", compute="tf32")
    default = {"rows": 256, "consumers": 2, "stages": 4, "cluster": 2, "c_boxes": 2, "group": 0}
    assert admits(default, problem) is None
    assert "shared memory" in (admits(default | {"stages": 5}, problem) or "")
    assert "at most 64 fit" in (admits(default | {"consumers": 3, "stages": 2}, problem) or "")
    variant = op_named("matmul").variant_named("cuda_wgmma_tf32")
    for sizes, axis in (((64, 64, 63), "k"), ((64, 65, 64), "n")):
        m, n, k = sizes
        with pytest.raises(BadField, match=re.compile(f"size {axis}.*multiple of 16 bytes")):
            variant.bind(torch.zeros(m, k), torch.zeros(k, n))
