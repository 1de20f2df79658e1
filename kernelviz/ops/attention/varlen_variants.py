"""The variants of attention of sequences of different lengths, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.attention import wgmma_choice
from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor) -> Launch:
    """scaled_dot_product_attention once for each sequence, with the library that torch chooses."""
    from kernelviz.ops.attention.varlen_torch import bind_each

    return bind_each(q_THD, k_THD, v_THD, ends_B)


@variant(backend="torch", needs=("cuda",))
def torch_varlen(q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor) -> Launch:
    """torch.nn.attention.varlen: FlashAttention-2, one call for all sequences."""
    from kernelviz.ops.attention.varlen_torch import bind_varlen

    return bind_varlen(q_THD, k_THD, v_THD, ends_B)


@variant(backend="triton", needs=("triton", "cuda"), techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"))
def triton_flash(q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor) -> Launch:
    """Triton, online softmax as in `causal_attention`; programs find their sequence from the positions where sequences end."""
    from kernelviz.ops.attention import triton_varlen as kernels

    return kernels.bind_varlen_flash(q_THD, k_THD, v_THD, ends_B)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90a"), techniques=("tma", "wgmma", "warp_specialised"))
def cuda_wgmma(q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor) -> Launch:
    """CUDA C++, wgmma: the best rung of `causal_attention`; blocks find their sequence from the positions where sequences end."""
    from kernelviz.ops.attention import wgmma

    average = q_THD.shape[0] // ends_B.shape[0]
    options = wgmma_choice.choose(average, q_THD.shape[-1], causal=True)
    return wgmma.bind_variable(q_THD, k_THD, v_THD, ends_B, options, causal=True)


VARLEN_VARIANTS = (torch_eager, torch_varlen, triton_flash, cuda_wgmma)
