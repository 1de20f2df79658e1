"""CUDA C++ kernels of `scatter_add`, bound to tensors."""

from __future__ import annotations

import ctypes
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.scatter_add.finish import bind_finish

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
SOURCE_SM90 = Path(__file__).parent / "cuda_sm90.cu"
THREADS = 256
TOGETHER = 8
"""Groups of threads that share the rows of one sum, where there are too few sums to fill the GPU."""


MOST_TOGETHER = 4
"""Additions of an instruction."""


def vector_bytes(x_VD: Tensor, src_TD: Tensor) -> int:
    """The widest vector, at most 16 bytes, to which every row is aligned and of which it is a whole number."""
    return gcd(x_VD.shape[1] * x_VD.element_size(), x_VD.data_ptr(), src_TD.data_ptr(), 16)


def _defines(x_VD: Tensor, src_TD: Tensor, vec: int) -> dict[str, str]:
    return {"VEC": str(vec), "TOGETHER": "0", "BY_ROWS": "0", **_element_and_index(x_VD, src_TD)}


def _element_and_index(x_VD: Tensor, src_TD: Tensor) -> dict[str, str]:
    """ELEMENT, and the INDEX type that also counts the indices of the last block after the last element."""
    index = "unsigned" if src_TD.numel() + THREADS < 2**32 else "unsigned long long"
    return {"ELEMENT": nvrtc.element_type(x_VD.dtype), "INDEX": index}


def _index(defines: dict[str, str], number: int) -> Any:
    return ctypes.c_uint(number) if defines["INDEX"] == "unsigned" else ctypes.c_ulonglong(number)


def bind_atomics(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """One fp32 addition an element; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    defines = _defines(x_VD, src_TD, 1)
    kernel = nvrtc.kernel(SOURCE, "scatter_atomics", defines)
    return _in_fp32(kernel, defines, x_VD, src_TD, ids_T, src_TD.shape[1])


def bind_atomics_vec16(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """Four fp32 additions an instruction, two or one where rows are not whole groups of as many. Raises BadField for strided
    tensors."""
    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    group = min(MOST_TOGETHER, vector_bytes(x_VD, src_TD) // x_VD.element_size())
    if group == 1:
        return bind_atomics(x_VD, src_TD, ids_T)
    defines = _defines_sm90(x_VD, src_TD) | {"GROUP": str(group)}
    kernel = nvrtc.kernel(SOURCE_SM90, "scatter_atomics_vec16", defines)
    return _in_fp32(kernel, defines, x_VD, src_TD, ids_T, src_TD.shape[1] // group)


def _defines_sm90(x_VD: Tensor, src_TD: Tensor) -> dict[str, str]:
    defines = _element_and_index(x_VD, src_TD)
    packed = {"__half": '"f16x2"', "__nv_bfloat16": '"bf16x2"'}.get(defines["ELEMENT"], '""')
    return {**defines, "NARROW": str(int(defines["ELEMENT"] != "float")), "PACKED": packed}


def _in_fp32(
    kernel: Any, defines: dict[str, str], x_VD: Tensor, src_TD: Tensor, ids_T: Tensor, threads_a_row: int
) -> Launch:
    """The kernel on x itself in fp32; in other formats on fp32 sums, which are added to x afterwards."""
    t = src_TD.shape[0]
    sum_VD, finish = bind_finish(x_VD) if x_VD.element_size() < 4 else (x_VD, None)
    pointers = (sum_VD.data_ptr(), src_TD.data_ptr(), ids_T.data_ptr())
    sizes = (_index(defines, t), ctypes.c_int(threads_a_row))

    def launch() -> Tensor:
        nvrtc.launch(kernel, -(-t * threads_a_row // THREADS), THREADS, *pointers, *sizes)
        if finish is not None:
            finish()
        return x_VD

    return launch


def bind_atomics_16bit(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """Eight 16-bit additions an instruction, one if rows are not whole 16-byte vectors; raises BadField for strided tensors."""
    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    t, d = src_TD.shape
    whole = vector_bytes(x_VD, src_TD) == 16
    name = "scatter_atomics_16bit" if whole else "scatter_atomics_16bit_scalar"
    defines = _defines_sm90(x_VD, src_TD)
    kernel = nvrtc.kernel(SOURCE_SM90, name, defines)
    threads_a_row = d // 8 if whole else d
    arguments = (x_VD.data_ptr(), src_TD.data_ptr(), ids_T.data_ptr(), _index(defines, t), ctypes.c_int(threads_a_row))

    def launch() -> Tensor:
        nvrtc.launch(kernel, -(-t * threads_a_row // THREADS), THREADS, *arguments)
        return x_VD

    return launch


def block_of(v: int, t: int, vectors: int, processors: int) -> tuple[int, int, bool]:
    """Threads of a block along a row, groups of such threads, and whether the groups share the rows of one sum.

    >>> block_of(8192, 65536, 128, 132), block_of(64, 65536, 128, 132), block_of(8192, 65536, 8, 132)
    ((128, 1, False), (32, 8, True), (8, 16, False))
    """
    along = min(128, 1 << (vectors - 1).bit_length())
    if v * vectors < processors * 2048 and t >= 2 * TOGETHER * v:
        return min(along, THREADS // TOGETHER), TOGETHER, True
    return along, max(1, 128 // along), False


def bind_segments(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """A counting sort and sums of segments; raises BadField for strided tensors and 2^31 rows or more."""
    import torch

    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    (v, d), t = x_VD.shape, ids_T.shape[0]
    if t >= 2**31:
        raise BadField("size t", t, "this kernel counts rows in 32 bits; give fewer than 2^31")
    width = vector_bytes(x_VD, src_TD)
    vectors = d * x_VD.element_size() // width
    along, groups, together = block_of(v, t, vectors, multiprocessors(x_VD.device))
    defines = _defines(x_VD, src_TD, width // x_VD.element_size()) | {
        "TOGETHER": str(int(together)),
        "BY_ROWS": str(int(t < v)),
    }
    count, allocate, place, add = (
        nvrtc.kernel(SOURCE, f"segments_{step}", defines) for step in ("count", "allocate", "place", "sum")
    )
    counts = torch.empty(v + 1, dtype=torch.int32, device=x_VD.device)
    starts = torch.empty(v, dtype=torch.int32, device=x_VD.device)
    ranks, order = (torch.empty(t, dtype=torch.int32, device=x_VD.device) for _ in range(2))
    rows, sums = ctypes.c_longlong(t), ctypes.c_longlong(v)
    pieces = -(-vectors // along)
    most = min(t, v)  # sums that have a row
    blocks = (most if together else -(-most // groups)) * pieces
    sizes = (ctypes.c_longlong(most), ctypes.c_int(vectors), ctypes.c_int(pieces))

    def launch() -> Tensor:
        c, s, r, o = counts.data_ptr(), starts.data_ptr(), ranks.data_ptr(), order.data_ptr()
        counts.zero_()
        nvrtc.launch(count, -(-t // THREADS), THREADS, ids_T.data_ptr(), c, r, rows)
        nvrtc.launch(allocate, -(-v // THREADS), THREADS, c, s, sums)
        nvrtc.launch(place, -(-t // THREADS), THREADS, ids_T.data_ptr(), s, r, o, rows)
        pointers = (x_VD.data_ptr(), src_TD.data_ptr(), c, s, o, ids_T.data_ptr(), r)
        nvrtc.launch(add, blocks, (along, groups), *pointers, *sizes)
        return x_VD

    return launch
