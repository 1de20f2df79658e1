"""Candidates for the catalogue: the CUDA C++ ladder of `matmul` on Hopper's tensor cores, which has not run on a GPU yet.

    kernelviz run matmul --with tests/candidates/matmul_wgmma.py --size m=4096 --size k=4096

Without a GPU, tests/candidates/test_matmul_wgmma.py compiles every rung for sm_90a and reads its machine code.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField, DeviceError
from kernelviz.ops import Launch, variant
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "matmul_wgmma.cu"
ARCH = "sm_90a"
DEPTH, BOX = 64, 64
NAMES = {"bf16": "__nv_bfloat16", "f16": "__half"}
FIRST = {
    "COLUMNS": 128,
    "CONSUMERS": 1,
    "STAGES": 2,
    "SPECIALISED": 0,
    "PERSISTENT": 0,
    "CLUSTER": 1,
    "TMA_STORE": 0,
    "GROUP": 8,
}
_TWO = {**FIRST, "CONSUMERS": 2, "STAGES": 4}
_SPECIALISED = {**_TWO, "SPECIALISED": 1}
_WIDE = {**_SPECIALISED, "COLUMNS": 256}
_PERSISTENT = {**_WIDE, "PERSISTENT": 1}
_CLUSTER = {**_PERSISTENT, "CLUSTER": 2}
RUNGS: dict[str, dict[str, int]] = {
    "first": FIRST,
    "two_warpgroups": _TWO,
    "specialised": _SPECIALISED,
    "wide": _WIDE,
    "persistent": _PERSISTENT,
    "cluster": _CLUSTER,
    "tma_store": {**_CLUSTER, "STAGES": 3, "TMA_STORE": 1},
}
"""The definitions of each rung; see matmul_wgmma.cu."""


def defines(rung: Mapping[str, int], element: str) -> dict[str, str]:
    """The macros of a rung for elements that PTX calls `element`: ``bf16`` or ``f16``."""
    return {
        **{name: str(value) for name, value in rung.items()},
        "ELEMENT": NAMES[element],
        "ELEMENT_PTX": f'"{element}"',
    }


def shared_bytes(rung: Mapping[str, int]) -> int:
    """Dynamic shared memory: the stages, C, the barriers, and what aligns them to 1024 bytes."""
    rows = 64 * rung["CONSUMERS"]
    stage = 2 * DEPTH * (rows + rung["COLUMNS"])
    c = 2 * rows * rung["COLUMNS"] if rung["TMA_STORE"] else 0
    return 1024 + rung["STAGES"] * (stage + 16) + c


def cubin(rung: Mapping[str, int], element: str) -> bytes:
    """The compiled kernel."""
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(
        name=str(SOURCE),
        arch=ARCH,
        std="c++17",
        lineinfo=True,
        include_path=[str(path) for path in (SOURCE.parent, nvrtc.HEADERS, *nvrtc.include_paths())],
        define_macro=list(defines(rung, element).items()),
    )
    return bytes(Program(SOURCE.read_text(), "c++", options).compile("cubin").code)


@functools.cache
def _kernel(name: str, element: str) -> Any:
    import torch
    from cuda.core import Device, ObjectCode

    Device(torch.cuda.current_device()).set_current()
    rung = RUNGS[name]
    kernel = ObjectCode.from_cubin(cubin(rung, element)).get_kernel("matmul_wgmma")
    nvrtc._set_attribute(kernel, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", shared_bytes(rung))
    return kernel


def tensor_map(matrix: Tensor, rows: int) -> list[int]:
    """The tensor map of boxes of 64 columns × `rows`, swizzled by 128 bytes: 128 bytes as 16 integers. Errors: DeviceError."""
    from cuda.bindings import driver

    (height, width), itemsize = matrix.shape, matrix.element_size()
    kind = "BFLOAT16" if "bfloat16" in str(matrix.dtype) else "FLOAT16"
    status, encoded = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
        2,
        matrix.data_ptr(),
        [driver.cuuint64_t(width), driver.cuuint64_t(height)],
        [driver.cuuint64_t(width * itemsize)],
        [driver.cuuint32_t(BOX), driver.cuuint32_t(rows)],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the driver does not accept a tensor map of {height} × {width}: {status.name}")
    return [int(part) for part in encoded.opaque]


def _bind(name: str, a_MK: Tensor, b_KN: Tensor) -> Launch:
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    rung = RUNGS[name]
    (m, k), n = a_MK.shape, b_KN.shape[1]
    for axis, size in (("k", k), ("n", n)):
        if size % 8:
            raise BadField(
                f"size {axis}", size, "TMA needs rows of a multiple of 16 bytes, so a multiple of 8 elements"
            )
    rows, columns, cluster = 64 * rung["CONSUMERS"], rung["COLUMNS"], rung["CLUSTER"]
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    values = [*tensor_map(a_MK, rows), *tensor_map(b_KN, BOX), *tensor_map(c_MN, BOX)]
    maps = torch.tensor(values, dtype=torch.uint64, device=a_MK.device)
    kernel = _kernel(name, "bf16" if a_MK.dtype == torch.bfloat16 else "f16")
    shared = shared_bytes(rung)
    threads = 128 * (rung["CONSUMERS"] + rung["SPECIALISED"])
    blocks = -(-m // (rows * cluster)) * -(-n // columns) * cluster
    if rung["PERSISTENT"]:
        blocks = min(blocks, nvrtc.resident(kernel, threads, cluster=cluster, shared_bytes=shared))
    sizes = tuple(map(ctypes.c_int, (m, n, k)))

    def launch() -> Tensor:
        nvrtc.launch(
            kernel, blocks, threads, maps.data_ptr(), c_MN.data_ptr(), *sizes, cluster=cluster, shared_bytes=shared
        )
        return c_MN

    return launch


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90"), dtypes=("bf16", "fp16"), targets=("sm_90",))
def cuda_wgmma(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma and TMA: a warpgroup multiplies tiles of 64×128 that TMA copied to shared memory."""
    return _bind("first", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90"), dtypes=("bf16", "fp16"), targets=("sm_90",))
def cuda_wgmma_two_warpgroups(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: two warpgroups share tiles of 128×128, of which four are in flight."""
    return _bind("two_warpgroups", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90"), dtypes=("bf16", "fp16"), targets=("sm_90",))
def cuda_wgmma_specialised(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: a warpgroup of its own copies, so that the others never wait for each other."""
    return _bind("specialised", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90"), dtypes=("bf16", "fp16"), targets=("sm_90",))
def cuda_wgmma_wide(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: tiles of 128×256, the largest that two warpgroups can hold in registers."""
    return _bind("wide", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90"), dtypes=("bf16", "fp16"), targets=("sm_90",))
def cuda_wgmma_persistent(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: each block computes several tiles, and copies for the next one while it stores the last one."""
    return _bind("persistent", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90"), dtypes=("bf16", "fp16"), targets=("sm_90",))
def cuda_wgmma_cluster(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: two blocks of a cluster each load half of their common tile of B, for both (multicast)."""
    return _bind("cluster", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda", "sm_90"), dtypes=("bf16", "fp16"), targets=("sm_90",))
def cuda_wgmma_tma_store(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, wgmma: TMA stores the product through shared memory while the next tile begins."""
    return _bind("tma_store", a_MK, b_KN)
