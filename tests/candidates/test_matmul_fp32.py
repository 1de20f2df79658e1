"""The fp32 ladder of `matmul` before it has run on a GPU: its results by threads of the processor, and its machine code."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from candidates.matmul_fp32 import SOURCE, TILE_OF_BLOCK
from kernelviz.core.machine_code import KernelFacts
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import occupancy
from kernelviz.ops import with_plugins
from kernelviz.ops.kernels import nvrtc

SIZES = {1: ((4, 4, 4), (132, 136, 20)), 0: ((1, 1, 1), (77, 131, 33), (130, 3, 5))}
"""Rows, columns and depth, by whether rows begin at multiples of 16 bytes."""
CALL = """
extern "C" void run_{name}(const float* a, const float* b, float* c, long long m, long long n, long long k) {{
    const Index blocks = {{unsigned((m + {rows} - 1) / {rows}), unsigned((n + {columns} - 1) / {columns}), 1}};
    launch(blocks, Index{{{x}, {y}, 1}}, [=] {{ {name}(a, b, c, m, n, k); }});
}}
"""


@pytest.fixture(scope="module", params=SIZES)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, ctypes.CDLL]:
    """The kernels for the processor, with or without 16-byte accesses."""
    vectors: int = request.param
    folder = tmp_path_factory.mktemp("candidates")
    program = folder / "kernels.cpp"
    calls = "".join(
        CALL.format(name=name, rows=rows, columns=columns, x=x, y=y)
        for name, ((rows, columns), (x, y)) in TILE_OF_BLOCK.items()
    )
    program.write_text(f'#include "{Path(__file__).parent / "cuda_threads.h"}"\n#include "{SOURCE}"\n{calls}')
    file = folder / "kernels.so"
    command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread", f"-DVECTORS={vectors}"]
    subprocess.run([*command, str(program), "-o", str(file)], check=True)
    return vectors, ctypes.CDLL(str(file))


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.parametrize("name", TILE_OF_BLOCK)
def test_the_product_is_right_at_odd_sizes(library: tuple[int, ctypes.CDLL], name: str) -> None:
    vectors, kernels = library
    for m, n, k in SIZES[vectors]:
        # Small integers: every order of additions has the same result.
        a, b = (torch.randint(-8, 9, shape).float() for shape in ((m, k), (k, n)))
        c = torch.full((m, n), float("nan"))
        getattr(kernels, f"run_{name}")(
            *(ctypes.c_void_p(t.data_ptr()) for t in (a, b, c)), *map(ctypes.c_longlong, (m, n, k))
        )
        assert torch.equal(c, a @ b), (m, n, k)


@functools.cache
def facts(name: str, arch: str = "sm_90") -> KernelFacts:
    (kernel,) = facts_of(nvrtc.compile_cubin(SOURCE, arch, {"VECTORS": "1"}, name))
    return kernel


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_the_best_rung_spills_nothing_in_its_loop_and_two_blocks_fit(arch: str) -> None:
    pytest.importorskip("triton")
    best = facts("matmul_double_buffer", arch)
    resident = occupancy(best, 256)
    assert resident is not None
    assert resident.blocks == 2
    (role,) = best.roles
    assert role.main_loop is not None
    assert not [access for access in role.work.accesses if access.space == "local"]
    assert role.work.classes["fp32"] / role.work.executable > 0.8


def test_each_rung_shows_its_idea() -> None:
    pytest.importorskip("triton")

    def per_multiply_add(name: str, kind: str) -> float:
        classes = facts(name).roles[0].work.classes
        return classes.get(kind, 0) / classes["fp32"]  # type: ignore[call-overload]

    assert per_multiply_add("matmul_rows_across_threads", "shared_memory") == 0
    column, tile, vec16 = (
        per_multiply_add(f"matmul_{name}", "shared_memory") for name in ("register_column", "register_tile", "vec16")
    )
    assert column > tile > 0
    widths = {a.width_bytes for a in facts("matmul_vec16").roles[0].work.accesses if a.space == "global"}
    assert widths == {16}
    assert per_multiply_add("matmul_double_buffer", "barrier") < per_multiply_add("matmul_warp_tile", "barrier")
    assert vec16 > 0


def test_the_plug_in_declares_the_ladder() -> None:
    variants = with_plugins([str(SOURCE.with_suffix(".py"))])["matmul"].variants
    assert sum(v.name.startswith("cuda_") for v in variants) == len(TILE_OF_BLOCK) + 2
