"""Products of 8-bit floats by torch's libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.matmul.reference_fp8 import BLOCK, FAST, dequantised

if TYPE_CHECKING:
    from torch import Tensor

MULTIPLE = 16
"""Of K and N on a GPU: torch._scaled_mm refuses others."""


def bind_scaled_mm(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor, compute: str | None) -> Launch:
    """torch._scaled_mm with or without fast accumulation. Raises BadField for sizes that it refuses on a GPU."""
    import torch

    m, n = a_MK.shape[0], b_NK.shape[0]
    if a_MK.is_cuda:
        _require_multiple("k", a_MK.shape[1], MULTIPLE)
        _require_multiple("n", n, MULTIPLE)
    c_MN = torch.empty((m, n), dtype=torch.bfloat16, device=a_MK.device)
    fast = compute == FAST
    return lambda: torch._scaled_mm(
        a_MK, b_NK.T, a_scale, b_scale, out_dtype=torch.bfloat16, use_fast_accum=fast, out=c_MN
    )


def bind_dequantised(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Launch:
    """Both matrices converted to bf16, which holds every e4m3 number, multiplied, and scaled in fp32."""
    import torch

    if not a_MK.is_cuda:  # the processor's product of bf16 matrices has no result in fp32
        return lambda: (a_MK.float() @ b_NK.float().T * (a_scale * b_scale)).bfloat16()

    def launch() -> Tensor:
        product_MN = torch.mm(a_MK.bfloat16(), b_NK.bfloat16().T, out_dtype=torch.float32)
        return (product_MN * (a_scale * b_scale)).bfloat16()

    return launch


def bind_block_dequantised(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Launch:
    """Both matrices times their scales in fp32, multiplied in fp32, rounded to bf16."""

    def launch() -> Tensor:
        a_wide_MK, b_wide_NK = dequantised(a_MK, b_NK, a_scale, b_scale)
        return (a_wide_MK @ b_wide_NK.T).bfloat16()

    return launch


def bind_block_scaled_mm(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Launch:
    """torch._scaled_mm with scales of 1×128 of A and of 128×128 of B (CUDA 12.9, Hopper only).

    Raises BadField for tensors that are not contiguous, and where K is no multiple of 512 (torch wants rows of B's scales at
    multiples of four numbers), or N or M none of 16 (torch checks N; other M were not tried here).
    """
    import torch

    require_contiguous(a_MK=a_MK, b_NK=b_NK, a_scale=a_scale, b_scale=b_scale)
    _require_multiple("k", a_MK.shape[1], 4 * BLOCK)
    _require_multiple("n", b_NK.shape[0], MULTIPLE)
    _require_multiple("m", a_MK.shape[0], MULTIPLE)
    c_MN = torch.empty((a_MK.shape[0], b_NK.shape[0]), dtype=torch.bfloat16, device=a_MK.device)
    return lambda: torch._scaled_mm(
        a_MK, b_NK.T, a_scale.T, b_scale.T, out_dtype=torch.bfloat16, use_fast_accum=False, out=c_MN
    )


def _require_multiple(axis: str, size: int, of: int) -> None:
    if size % of:
        raise BadField(f"size {axis}", size, f"torch._scaled_mm is called here only with multiples of {of}")
