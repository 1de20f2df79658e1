"""CUDA C++ kernel of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.row_slabs import RING, RegisterArrays, VeryShort, slab_kernel
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.kernels.vec16 import VEC16_BYTES
from kernelviz.ops.quantize.cuda import bind_rows
from kernelviz.ops.quantize.reference import SMALLEST

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"
KNOWN_LENGTH_SOURCE = Path(__file__).parent / "cuda_known_length.cu"
KNOWN_LENGTH_THREADS = 32
MOST_ROWS, LONGEST_KNOWN = 1024, 16
"""Of up to so many rows of up to so many elements, each has a thread. H200, rmsnorm_quantize_fp8 of one element: 1.31 us; the
slab kernel, with 4 KiB of code, took 1.53 on another host, where torch.compile took 1.23 (1.25 here)."""
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


def known_length_defines(x_MN: Tensor, target: str, *, weighted: bool) -> dict[str, str]:
    """The macros of the kernel for few rows, of a matrix that starts on 16 bytes."""
    n, row_bytes = x_MN.shape[1], x_MN.shape[1] * x_MN.element_size()
    unit, stored = math.gcd(VEC16_BYTES, row_bytes) // x_MN.element_size(), math.gcd(VEC16_BYTES, n)
    shape = {"LENGTH": n, "UNIT": unit, "STORED": stored}
    macros = {macro: str(value) for macro, value in shape.items()} | {"ELEMENT": nvrtc.element_type(x_MN.dtype)}
    return macros | format_defines(target, weighted=weighted)


def bind_slab(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """Several short rows of a contiguous matrix (M, N) a thread or warp, or one a thread where they are few; rows of more than
    256 bytes as `bind_rows`.

    Errors: BadField for tensors that are not contiguous or do not start on 16 bytes.
    """
    import torch

    weighted = w_N is not None
    require_vec16(**({"x_MN": x_MN} if w_N is None else {"x_MN": x_MN, "w_N": w_N}))
    m, n = x_MN.shape
    if n * x_MN.element_size() > LONGEST_ROW_BYTES:
        return bind_rows(x_MN, w_N, target, eps=eps)
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), 0 if w_N is None else w_N.data_ptr(), q_MN.data_ptr(), scale_M.data_ptr())
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST))
    if m <= MOST_ROWS and n <= LONGEST_KNOWN:
        macros = known_length_defines(x_MN, target, weighted=weighted)
        kernel = nvrtc.kernel(KNOWN_LENGTH_SOURCE, "quantize_known_length", macros)
        blocks, threads, rows = -(-m // KNOWN_LENGTH_THREADS), min(m, KNOWN_LENGTH_THREADS), ctypes.c_int(m)

        def launch_few(alive: object = (x_MN, w_N)) -> tuple[Tensor, ...]:
            nvrtc.launch(kernel, blocks, threads, *pointers, rows, *numbers)
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
