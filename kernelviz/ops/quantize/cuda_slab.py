"""CUDA C++ kernel of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_lanes import RowLanes, row_lanes
from kernelviz.ops.kernels.row_slabs import RING, RegisterArrays, VeryShort, slab_kernel
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.quantize.cuda import bind_rows
from kernelviz.ops.quantize.reference import SMALLEST, largest
from kernelviz.ops.quantize.slab_ring import NumberSlab, number_slab

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"
RING_SOURCE = Path(__file__).parent / "cuda_slab_ring.cu"
KNOWN_LENGTH_SOURCE = Path(__file__).parent / "cuda_known_length.cu"
LONGEST_ROW_BYTES = 256
"""Of longer rows a warp may have one, whose 8-bit numbers then do not begin on 4 bytes."""
SLABS = replace(RING, very_short=VeryShort(row_bytes=LONGEST_ROW_BYTES))
"""Rows of whole 16-byte vectors stay in registers: each lane then stores 4 or 8 bytes beside those of its neighbour."""


def arrays(*, weighted: bool) -> RegisterArrays:
    """The row as fp32 numbers, and the weight as stored."""
    return RegisterArrays(numbers=1, stored=int(weighted))


def format_defines(target: str, *, weighted: bool) -> dict[str, str]:
    """The macros of one of the three ops."""
    return {"INT8": str(int(target == "int8")), "NORM": str(int(weighted))}


def known_length_defines(x_MN: Tensor, known: RowLanes, target: str, *, weighted: bool) -> dict[str, str]:
    """The macros of the kernel for few rows, of a matrix that starts on 16 bytes."""
    macros = {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | known.defines(x_MN.shape[1], x_MN.element_size())
    return macros | format_defines(target, weighted=weighted)


def bind_slab(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """Several short rows of a contiguous matrix (M, N) a thread or warp, or some lanes each where they are few, or a warp each
    where many have up to 4 KiB; other rows of more than 256 bytes as `bind_rows`.

    Errors: BadField for tensors that are not contiguous or do not start on 16 bytes.
    """
    import torch

    weighted = w_N is not None
    require_vec16(**({"x_MN": x_MN} if w_N is None else {"x_MN": x_MN, "w_N": w_N}))
    m, n = x_MN.shape
    known = row_lanes(m, n, x_MN.element_size())
    if known is None and n * x_MN.element_size() > LONGEST_ROW_BYTES:
        large = number_slab(m, n, x_MN.element_size(), multiprocessors(x_MN.device), weighted=weighted)
        return bind_rows(x_MN, w_N, target, eps=eps) if large is None else _bind_ring(x_MN, w_N, target, eps, large)
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), 0 if w_N is None else w_N.data_ptr(), q_MN.data_ptr(), scale_M.data_ptr())
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST))
    if known is not None:
        macros = known_length_defines(x_MN, known, target, weighted=weighted)
        kernel = nvrtc.kernel(KNOWN_LENGTH_SOURCE, "quantize_known_length", macros)
        blocks, threads, last_row = known.blocks, known.threads, ctypes.c_int(m - 1)
        of_zeros = ctypes.c_float(largest(target) / SMALLEST)

        def launch_few(alive: object = (x_MN, w_N)) -> tuple[Tensor, ...]:
            nvrtc.launch(kernel, blocks, threads, *pointers, last_row, *numbers, of_zeros)
            return q_MN, scale_M

        return launch_few
    defines = format_defines(target, weighted=weighted)
    registers = arrays(weighted=weighted)
    compiled = slab_kernel(SOURCE, "quantize_slabs", x_MN, defines=defines, arrays=registers, ring=SLABS)
    assert compiled is not None
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), *numbers)

    def launch(alive: object = (x_MN, w_N)) -> tuple[Tensor, ...]:
        compiled.launch(*arguments)
        return q_MN, scale_M

    return launch


def _bind_ring(x_MN: Tensor, w_N: Tensor | None, target: str, eps: float, large: NumberSlab) -> Launch:
    """Rows of medium length by persistent blocks, whose slabs come and leave by bulk copies."""
    import torch

    (m, n), slab, shared = x_MN.shape, large.slab, large.shared_bytes
    defines = format_defines(target, weighted=w_N is not None) | slab.defines(x_MN)
    kernel = nvrtc.kernel(RING_SOURCE, "quantize_slab_ring", defines, shared_bytes=large.opt_in_bytes)
    threads = slab.ring.threads
    blocks = min(nvrtc.resident(kernel, threads, shared_bytes=shared), -(-m // slab.rows))
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), 0 if w_N is None else w_N.data_ptr(), q_MN.data_ptr(), scale_M.data_ptr())
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST), ctypes.c_float(largest(target) / SMALLEST))
    bytes_of = (ctypes.c_int(slab.rows), ctypes.c_int(slab.tensor_bytes), ctypes.c_int(large.number_bytes))
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), *numbers, *bytes_of)

    def launch(alive: object = (x_MN, w_N)) -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, threads, *arguments, shared_bytes=shared)
        return q_MN, scale_M

    return launch
