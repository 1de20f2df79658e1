"""Variants of `matmul` that were published as examples, and are slow or wrong. They run only if they are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

_TRITON: dict[str, Any] = {"backend": "triton", "needs": ("triton", "cuda"), "only_when_named": True}


@variant(backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",), only_when_named=True)
def cuda_published(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """Published as a custom GEMM (source 5). Right but slow: each multiply-add waits for two loads, because nothing is reused."""
    from kernelviz.ops.matmul import published as kernels

    return kernels.bind_published(a_MK, b_KN)


@variant(**_TRITON, dtypes=("fp16",))
def triton_published(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """Published as high-performance (source 3). Right but slow: no groups of tiles; tiles of 32² to 128² by size, 32 deep."""
    from kernelviz.ops.matmul import triton_published as kernels

    return kernels.bind_published(a_MK, b_KN, side=None)


@variant(**_TRITON, dtypes=("fp16",))
def triton_published_one_tile(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """The published kernel (source 3) with tiles of 128×128×32 at every size: what its rule of tiles by size gains or loses."""
    from kernelviz.ops.matmul import triton_published as kernels

    return kernels.bind_published(a_MK, b_KN, side=128)


@variant(**_TRITON, dtypes=("fp32",), computes=("ieee",))
def triton_published_fp32(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """The published kernel (source 3) on fp32. Wrong: it multiplies in tf32 and rounds every result to fp16."""
    from kernelviz.ops.matmul import triton_published as kernels

    return kernels.bind_published(a_MK, b_KN, side=None)


PUBLISHED_VARIANTS = (cuda_published, triton_published, triton_published_one_tile, triton_published_fp32)
