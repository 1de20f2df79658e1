"""cuda_mma of `scaled_matmul` and `block_scaled_matmul`: the product on the processor, and the machine code."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kernelviz.core.errors import BadField
from kernelviz.machine_code.facts import facts_of
from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul.mma_fp8 import SOURCE, MmaFp8Options, admits
from kernelviz.ops.matmul.reference_fp8 import BLOCK, block_reference, reference

pytestmark = pytest.mark.xdist_group("compile-1")

CUDA = Path(__file__).parent / "cuda"
RUN = """
#include "{source}"
extern "C" const char* run(
    const char* a, const char* b, const float* a_scales, const float* b_scales, __nv_bfloat16* c, int m, int n, int k,
    unsigned blocks, unsigned threads, unsigned shared, bool reverse, bool now) {{
    readable_begin[0] = (const unsigned char*)a, readable_end[0] = readable_begin[0] + (long long)m * k;
    readable_begin[1] = (const unsigned char*)b, readable_end[1] = readable_begin[1] + (long long)n * k;
    first_error.clear();
    in_reverse = reverse;
    copies_at_once = now;
    launch(blocks, threads, shared, [=] {{ matmul_mma_fp8(a, b, a_scales, b_scales, c, m, n, k); }});
    return first_error.c_str();
}}
"""
ONE_LEVEL = MmaFp8Options()
OPTIONS = {
    "one-level": ONE_LEVEL,
    "64-rows": MmaFp8Options(rows=64, stages=2, group=4),
    "two-level": replace(ONE_LEVEL, two_level=True),
    "blocks": replace(ONE_LEVEL, two_level=True, blocks=True),
}
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def check(options: MmaFp8Options, sizes: tuple[int, int, int], folder: Path, source: Path = SOURCE) -> list[str]:
    """What is wrong with a product on the processor, in both modes. Products of small integers and powers of two are exact."""
    m, n, k = sizes
    file = folder / "kernel.cpp"
    file.write_text(RUN.format(source=source))
    command = ["g++", "-std=c++20", "-O1", "-march=native", "-w", "-shared", "-fPIC", "-I", str(CUDA)]
    command += [f"-D{name}={value}" for name, value in options.defines().items()]
    subprocess.run([*command, str(file), "-o", str(folder / "kernel.so")], check=True)
    library = ctypes.CDLL(str(folder / "kernel.so"))
    library.run.restype = ctypes.c_char_p
    a, b = (torch.randint(-3, 4, shape).float().to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    blocks_of_k = -(-k // BLOCK) if options.blocks else 1
    shapes = ((blocks_of_k, m), (-(-n // BLOCK), blocks_of_k)) if options.blocks else ((1,), (1,))
    scales = [2.0 ** torch.randint(-2, 3, shape) for shape in shapes]
    function = block_reference if options.blocks else reference
    (expected,) = function(*(t.double() for t in (a, b, *scales)))
    faults = []
    for mode in (False, True):
        c = torch.full((m + 1, n), float("nan"), dtype=torch.bfloat16)
        error = library.run(
            *(ctypes.c_void_p(t.data_ptr()) for t in (a, b, *scales, c)),
            *sizes,
            *map(ctypes.c_uint, (options.tiles(m, n), options.threads, options.shared_bytes)),
            *map(ctypes.c_bool, (mode, mode)),
        ).decode()
        right = torch.equal(c[:m], expected.bfloat16()) and bool(c[m].isnan().all())
        faults.append(error or ("" if right else "wrong"))
    return faults


@needs_compiler
@pytest.mark.parametrize("name", OPTIONS)
def test_the_product_is_right(name: str, tmp_path: Path) -> None:
    for sizes in ((200, 300, 400), (130, 137, 640), (1, 1, 16)):
        assert check(OPTIONS[name], sizes, tmp_path) == ["", ""], sizes


MISTAKES = {
    "a bank conflict": ("(byte ^ row % 8 * 16)", "byte"),
    "a stage is read before it arrived": ("wait_for_copies<STAGES - 2>();", "wait_for_copies<STAGES - 1>();"),
    "a stage is overwritten while it is read": ("STAGES - 2>();\n                __syncthreads();", "STAGES - 2>();"),
    "rows after the last one are read": ("row < rows && byte < bytes", "byte < bytes"),
    "the halves of a fragment are exchanged": ("lane / 8 % 2 * 16", "(1 - lane / 8 % 2) * 16"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, tmp_path: Path) -> None:
    right, wrong = MISTAKES[mistake]
    text = SOURCE.read_text()
    assert right in text
    source = tmp_path / SOURCE.name
    source.write_text(text.replace(right, wrong))
    assert any(check(ONE_LEVEL, (200, 300, 700), tmp_path, source))


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
