"""Compile the kernels of this folder's cubins again: ``python tests/machine_code/compile_marked.py FOLDER``.

The committed cubins were compiled once by triton 3.7.1 and NVRTC 13.0.88. The ranges in marked.toml hold for exactly those
files, so a cubin that this command writes is for comparison only.
"""

from __future__ import annotations

import importlib
import lzma
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
HERE = Path(__file__).parent
OPS = HERE.parents[1] / "kernelviz" / "ops"
sys.path.insert(0, str(HERE / "sources"))
POINTERS_OF_MATMUL = {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16"}
TILE = {"BM": 128, "BN": 128, "BK": 64}
GROUPED = {**TILE, "GROUP": 8, "EVEN_M": True, "EVEN_N": True, "EVEN_K": True, "PRECISION": "ieee"}


def triton_cubin(
    kernel: Any, arch: int, types: dict[str, str], constants: dict[str, Any], warps: int, stages: int
) -> bytes:
    """One specialisation; every pointer and size that is not a constant is a multiple of 16."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {name: types.get(name, "constexpr" if name in constants else "i32") for name in kernel.arg_names}
    multiples = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names) if name not in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=multiples)
    options = {"num_warps": warps, "num_stages": stages}
    return bytes(triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options).asm["cubin"])


def grouped(arch: int) -> bytes:
    kernel = importlib.import_module("kernelviz.ops.matmul.triton").grouped_kernel
    return triton_cubin(kernel, arch, POINTERS_OF_MATMUL, GROUPED, warps=8, stages=3)


def persistent(specialised: bool, warps: int = 4) -> bytes:
    kernel = importlib.import_module("triton_kernels").persistent_matmul
    constants = {**TILE, "PROGRAMS": 132, "SPECIALISED": specialised}
    return triton_cubin(kernel, 90, POINTERS_OF_MATMUL, constants, warps=warps, stages=3)


def three_pass() -> bytes:
    kernel = importlib.import_module("kernelviz.ops.softmax.triton").three_pass_kernel
    return triton_cubin(kernel, 90, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"CHUNK": 1024}, warps=4, stages=3)


def cuda(source: Path, arch: str, defines: dict[str, str] | None = None) -> bytes:
    from kernelviz.ops.kernels.nvrtc import compile_cubin

    return compile_cubin(source, arch, defines)


def cubins() -> Iterator[tuple[str, bytes]]:
    loops = HERE / "sources" / "loops.cu"
    for arch in ("sm_80", "sm_90", "sm_100"):
        yield f"loops-{arch}", cuda(loops, arch)
    yield "roles-sm_90", cuda(HERE / "sources" / "roles.cu", "sm_90")
    yield "clustered-sm_90", cuda(HERE / "sources" / "clustered.cu", "sm_90")
    yield "arithmetic-sm_90", cuda(OPS / "arithmetic" / "cuda.cu", "sm_90", {"ELEMENT": "float", "COMBINE": "plus"})
    yield "copy_bulk-sm_90", cuda(OPS / "copy" / "cuda_bulk.cu", "sm_90")
    for arch in (80, 90, 100):
        yield f"matmul-sm_{arch}", grouped(arch)
    yield "matmul_persistent-sm_90", persistent(specialised=False)
    yield "matmul_warp_specialised-sm_90", persistent(specialised=True)
    # With eight warps Triton compiles the same source without specialising warps, and does not say so.
    yield "matmul_not_specialised-sm_90", persistent(specialised=True, warps=8)
    yield "softmax_three_pass-sm_90", three_pass()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, cubin in cubins():
        (folder / f"{name}.cubin.xz").write_bytes(lzma.compress(cubin, preset=9))
        sys.stdout.write(f"{name}: {len(cubin)} bytes\n")
