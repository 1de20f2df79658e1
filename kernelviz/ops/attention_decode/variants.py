"""The variants of `attention_decode`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.attention_decode import mma, tiles
from kernelviz.ops.catalog.variant import TARGETS, Launch, variant

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


@variant(backend="triton", needs=("triton", "cuda"))
def triton_heads(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Launch:
    """Triton, a program per query head, sums in fp32: the heads of a group read the same keys and values."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import contiguous_cache

    return kernels.bind_heads(contiguous_cache(q_BHD, k_BLHD, v_BLHD))


@variant(backend="triton", needs=("triton", "cuda"), techniques=("cp_async", "mma_sync"))
def triton_packed(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Launch:
    """Triton, a program per key/value head: its query heads are the rows of tl.dot, so the cache is read once."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import contiguous_cache

    return kernels.bind_packed(contiguous_cache(q_BHD, k_BLHD, v_BLHD), tiles.PACKED)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync"),
    space=tiles.SPLIT_SPACE,
    admits=tiles.admits,
)
def triton_split(
    q_BHD: Tensor,
    k_BLHD: Tensor,
    v_BLHD: Tensor,
    *,
    keys_kib: int = 16,
    warps: int = 4,
    stages: int = 3,
    blocks: int = 2,
) -> Launch:
    """Triton, the tokens are divided among programs until the GPU is full; a second kernel combines the parts."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import contiguous_cache

    tile = tiles.Tile(keys_kib=keys_kib, warps=warps, stages=stages, blocks=blocks)
    return kernels.bind_split(contiguous_cache(q_BHD, k_BLHD, v_BLHD), tile)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync"),
    space=tiles.SCHEDULED_SPACE,
    admits=tiles.admits,
)
def triton_scheduled(
    q_BHD: Tensor,
    k_BLHD: Tensor,
    v_BLHD: Tensor,
    *,
    keys_kib: int = 32,
    warps: int = 8,
    stages: int = 3,
    blocks: int = 1,
) -> Launch:
    """Triton, one wave of programs with equal shares of all tokens; a second kernel combines what several share."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import contiguous_cache

    tile = tiles.Tile(keys_kib=keys_kib, warps=warps, stages=stages, blocks=blocks)
    return kernels.bind_scheduled(contiguous_cache(q_BHD, k_BLHD, v_BLHD), tile)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    targets=(*TARGETS, "sm_120"),
    techniques=("cp_async", "mma_sync"),
    space=mma.SPACE,
    admits=mma.admits,
)
def cuda_mma(
    q_BHD: Tensor,
    k_BLHD: Tensor,
    v_BLHD: Tensor,
    *,
    heads: int = 0,
    warps: int = 0,
    stages: int = 0,
    blocks: int = 0,
) -> Launch:
    """CUDA C++, equal shares of tokens; each warp streams its own by cp.async to mma.sync, the last block of a row combines."""
    from kernelviz.ops.attention_decode.cache import contiguous_cache

    parameters = {"heads": heads, "warps": warps, "stages": stages, "blocks": blocks}
    return mma.bind(contiguous_cache(q_BHD, k_BLHD, v_BLHD), parameters)


VARIANTS = (
    composite_eager,
    torch_eager,
    torch_compile,
    sdpa_flash,
    sdpa_cudnn,
    triton_heads,
    triton_packed,
    triton_split,
    triton_scheduled,
    cuda_mma,
)
