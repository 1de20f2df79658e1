"""cuda_mma of `scaled_matmul` and `block_scaled_matmul`: the product on the processor, and the machine code."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from emulator import MODES, Emulator, Grid, needs_compiler

from kernelviz.core.errors import BadField
from kernelviz.machine_code.facts import facts_of
from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul.mma_fp8 import SOURCE, MmaFp8Options, admits
from kernelviz.ops.matmul.reference_fp8 import BLOCK, block_reference, reference

pytestmark = pytest.mark.xdist_group("compile-1")

ONE_LEVEL = MmaFp8Options()
OPTIONS = {
    "one-level": ONE_LEVEL,
    "64-rows": MmaFp8Options(rows=64, stages=2, group=4),
    "two-level": replace(ONE_LEVEL, two_level=True),
    "blocks": replace(ONE_LEVEL, two_level=True, blocks=True),
}


def check(
    emulator: Emulator, options: MmaFp8Options, sizes: tuple[int, int, int], text: str | None = None
) -> list[str]:
    """What is wrong with a product on the processor, in both modes. Products of small integers and powers of two are exact."""
    m, n, k = sizes
    program = emulator.program(SOURCE, "matmul_mma_fp8", options.defines(), text=text)
    a, b = (torch.randint(-3, 4, shape).float().to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    blocks_of_k = -(-k // BLOCK) if options.blocks else 1
    shapes = ((blocks_of_k, m), (-(-n // BLOCK), blocks_of_k)) if options.blocks else ((1,), (1,))
    scales = [2.0 ** torch.randint(-2, 3, shape) for shape in shapes]
    function = block_reference if options.blocks else reference
    (expected,) = function(*(t.double() for t in (a, b, *scales)))
    grid = Grid(blocks=options.tiles(m, n), threads=options.threads, shared_bytes=options.shared_bytes)
    faults = []
    for mode in MODES:
        c = torch.full((m + 1, n), float("nan"), dtype=torch.bfloat16)
        error = program.run([a, b, *scales, c, *sizes], grid, mode, readable=(a, b))
        right = torch.equal(c[:m], expected.bfloat16()) and bool(c[m].isnan().all())
        faults.append(error or ("" if right else "wrong"))
    return faults


@needs_compiler
@pytest.mark.parametrize("name", OPTIONS)
def test_the_product_is_right(name: str, emulator: Emulator) -> None:
    for sizes in ((200, 300, 400), (130, 137, 640), (1, 1, 16)):
        assert check(emulator, OPTIONS[name], sizes) == ["", ""], sizes


MISTAKES = {
    "a bank conflict": ("(byte ^ row % 8 * 16)", "byte"),
    "a stage is read before it arrived": ("wait_for_copies<STAGES - 2>();", "wait_for_copies<STAGES - 1>();"),
    "a stage is overwritten while it is read": ("STAGES - 2>();\n                __syncthreads();", "STAGES - 2>();"),
    "rows after the last one are read": ("row < rows && byte < bytes", "byte < bytes"),
    "the halves of a fragment are exchanged": ("lane / 8 % 2 * 16", "(1 - lane / 8 % 2) * 16"),
}


SIZES_WITH_MISTAKES = 200, 300, 704


@needs_compiler
def test_without_a_mistake_the_processor_notices_nothing(emulator: Emulator) -> None:
    assert check(emulator, ONE_LEVEL, SIZES_WITH_MISTAKES) == ["", ""]


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    right, wrong = MISTAKES[mistake]
    text = SOURCE.read_text()
    assert right in text
    assert any(check(emulator, ONE_LEVEL, SIZES_WITH_MISTAKES, text.replace(right, wrong)))


@pytest.mark.parametrize("arch", ["sm_89", "sm_120"])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_loop_multiplies_8_bit_floats_and_spills_nothing(name: str, arch: str) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    options = OPTIONS[name]
    (kernel,) = facts_of(nvrtc.compile_cubin(SOURCE, arch, options.defines(), "matmul_mma_fp8"))
    assert {t.opcode for t in kernel.whole.tensor} == {"QMMA.16832.F32.E4M3.E4M3"}
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert options.stages > 3 or options.shared_bytes <= 99 * 1024


def test_what_does_not_fit_is_refused_by_name() -> None:
    op = op_named("scaled_matmul")
    problem = op.problem(dict.fromkeys("mnk", 4096), "fp8")
    assert admits({"rows": 128, "stages": 6, "group": 8}, problem) is None
    assert "shared memory" in (admits({"rows": 128, "stages": 8, "group": 8}, problem) or "")
    tensors = (torch.zeros(8, 24).to(torch.float8_e4m3fn), torch.zeros(8, 24).to(torch.float8_e4m3fn))
    with pytest.raises(BadField, match=r"size k.*multiple of 16"):
        op.variant_named("cuda_mma").bind(*tensors, torch.ones(1), torch.ones(1))
