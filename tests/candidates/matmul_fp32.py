"""Candidates for the catalogue: the CUDA C++ ladder of `matmul` in fp32, which has not run on a GPU yet.

    kernelviz run matmul --with tests/candidates/matmul_fp32.py --dtype fp32 --compute ieee --size m=4096 --size k=4096

Without a GPU, tests/candidates/test_matmul_fp32.py runs the kernels with threads of the processor, and reads their machine code.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops import Launch, variant
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "matmul_fp32.cu"
LARGEST_GRID_Y = 65535
"""CUDA's limit on blocks in y, which here is a limit on the columns of B."""
TILE_OF_BLOCK: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "matmul_rows_across_threads": ((32, 8), (32, 8)),
    "matmul_register_column": ((64, 64), (512, 1)),
    "matmul_register_tile": ((128, 128), (256, 1)),
    "matmul_vec16": ((128, 128), (256, 1)),
    "matmul_warp_tile": ((128, 128), (256, 1)),
    "matmul_double_buffer": ((128, 128), (256, 1)),
}
"""Rows and columns of C that a block computes, and its threads in x and y."""


def _bind(name: str, a_MK: Tensor, b_KN: Tensor) -> Launch:
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    (rows, columns), threads = TILE_OF_BLOCK[name]
    blocks = (-(-m // rows), -(-n // columns))
    if blocks[1] > LARGEST_GRID_Y:
        raise BadField("size n", n, f"this kernel takes at most {LARGEST_GRID_Y * columns} columns")
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    aligned = k % 4 == 0 and n % 4 == 0 and all(t.data_ptr() % 16 == 0 for t in (a_MK, b_KN, c_MN))
    kernel = nvrtc.kernel(SOURCE, name, {"VECTORS": str(int(aligned))})
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())
    sizes = (ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_longlong(k))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *sizes)
        return c_MN

    return launch


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",))
def cuda_rows_across_threads(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, one thread per element; neighbouring threads take neighbouring rows, so each load of A is a line of its own."""
    return _bind("matmul_rows_across_threads", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",))
def cuda_register_column(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, eight rows of one column per thread: an element of B is used eight times from a register."""
    return _bind("matmul_register_column", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",))
def cuda_register_tile(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, 8×8 elements per thread: 16 loads from shared memory feed 64 multiply-adds."""
    return _bind("matmul_register_tile", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",))
def cuda_register_vec16(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, loads and stores of 16 bytes; the tile of A is transposed on its way to shared memory."""
    return _bind("matmul_vec16", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",))
def cuda_warp_tile(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, a tile per warp, whose threads read shared memory without bank conflicts."""
    return _bind("matmul_warp_tile", a_MK, b_KN)


@variant(op="matmul", backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",))
def cuda_double_buffer(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, two tiles of each factor: the next one is loaded while this one is multiplied."""
    return _bind("matmul_double_buffer", a_MK, b_KN)
