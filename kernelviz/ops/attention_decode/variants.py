"""The variants of `attention_decode`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.attention_decode.variants_kernels import kernel_variants
from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def composite_eager(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Launch:
    """Scores, torch.softmax, weighted sum: three steps, with fp32 copies of both caches and scores that are written and read."""
    from kernelviz.ops.attention_decode.torch import composite
    from kernelviz.ops.kernels.torch_precision import in_precision

    return in_precision(lambda: composite(q_BHD, k_BLHD, v_BLHD), q_BHD.float(), None)


@variant(backend="torch")
def torch_eager(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Launch:
    """torch.nn.functional.scaled_dot_product_attention with enable_gqa; torch chooses the kernel.

    On an H200 torch 2.11 chooses cuDNN, as `sdpa_cudnn` does; on a processor its own flash attention.
    """
    from kernelviz.ops.attention_decode.torch import attention

    return lambda: attention(q_BHD, k_BLHD, v_BLHD)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Launch:
    """torch.compile of composite_eager: inductor fuses the softmax, and keeps the two products and the fp32 copies."""
    from kernelviz.ops.attention_decode.torch import composite
    from kernelviz.ops.kernels.attention_heads import group_of
    from kernelviz.ops.kernels.inductor import compiled
    from kernelviz.ops.kernels.torch_precision import in_precision, precision

    group_of(q_BHD.shape[1], k_BLHD.shape[2])  # refuses sizes before anything is compiled
    wide = q_BHD.float()
    # torch.compile compiles again where a setting has changed.
    with precision(wide, None):
        run = compiled(composite, q_BHD, k_BLHD, v_BLHD)
    return in_precision(run, wide, None)


@variant(backend="library", needs=("cuda",))
def sdpa_flash(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Launch:
    """scaled_dot_product_attention by its backend FlashAttention-2, which packs the heads of a group and splits the cache."""
    from kernelviz.ops.attention_decode.torch import attention, forced
    from kernelviz.ops.kernels.layout import require_contiguous

    require_contiguous(q_BHD=q_BHD, k_BLHD=k_BLHD, v_BLHD=v_BLHD)
    return forced("FLASH_ATTENTION", lambda: attention(q_BHD, k_BLHD, v_BLHD))


@variant(backend="library", needs=("cuda",))
def sdpa_cudnn(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Launch:
    """scaled_dot_product_attention by its backend cuDNN."""
    from kernelviz.ops.attention_decode.torch import attention, forced
    from kernelviz.ops.kernels.layout import require_contiguous

    require_contiguous(q_BHD=q_BHD, k_BLHD=k_BLHD, v_BLHD=v_BLHD)
    return forced("CUDNN_ATTENTION", lambda: attention(q_BHD, k_BLHD, v_BLHD))


VARIANTS = (
    composite_eager,
    torch_eager,
    torch_compile,
    sdpa_flash,
    sdpa_cudnn,
    *kernel_variants(paged=False),
)
