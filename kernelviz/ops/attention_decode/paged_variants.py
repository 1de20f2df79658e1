"""The variants of `paged_attention_decode`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.attention_decode import mma, tiles
from kernelviz.ops.catalog.variant import TARGETS, Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def composite_eager(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
) -> Launch:
    """Pages copied into contiguous caches, then scores, torch.softmax and weighted sum with fp32 copies of them."""
    from kernelviz.ops.attention_decode.torch import composite, gathered
    from kernelviz.ops.kernels.torch_precision import in_precision

    def launch() -> Tensor:
        return composite(q_BHD, *gathered(k_pages_NPHD, v_pages_NPHD, table_BN, l))

    return in_precision(launch, q_BHD.float(), None)


@variant(backend="torch")
def torch_eager(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
) -> Launch:
    """Pages copied into contiguous caches, then scaled_dot_product_attention: the caches are read twice and written once."""
    from kernelviz.ops.attention_decode.torch import attention, gathered

    return lambda: attention(q_BHD, *gathered(k_pages_NPHD, v_pages_NPHD, table_BN, l))


@variant(backend="triton", needs=("triton", "cuda"))
def triton_heads(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
) -> Launch:
    """Triton, a program per query head, which looks up the page of each token in the block table."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import paged_cache

    return kernels.bind_heads(paged_cache(q_BHD, k_pages_NPHD, v_pages_NPHD, table_BN, l))


@variant(backend="triton", needs=("triton", "cuda"), techniques=("cp_async", "mma_sync"))
def triton_packed(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
) -> Launch:
    """Triton, a program per key/value head: its query heads are the rows of tl.dot, so each page is read once."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import paged_cache

    return kernels.bind_packed(paged_cache(q_BHD, k_pages_NPHD, v_pages_NPHD, table_BN, l), tiles.PACKED)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync"),
    space=tiles.PAGED_SPACE,
    admits=tiles.admits,
)
def triton_split(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
    *,
    keys_kib: int = 8,
    warps: int = 4,
    stages: int = 5,
    blocks: int = 3,
) -> Launch:
    """Triton, the pages are divided among programs until the GPU is full; a second kernel combines the parts."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import paged_cache

    tile = tiles.Tile(keys_kib=keys_kib, warps=warps, stages=stages, blocks=blocks)
    return kernels.bind_split(paged_cache(q_BHD, k_pages_NPHD, v_pages_NPHD, table_BN, l), tile)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync"),
    space=tiles.PAGED_SPACE,
    admits=tiles.admits,
)
def triton_scheduled(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
    *,
    keys_kib: int = 8,
    warps: int = 4,
    stages: int = 5,
    blocks: int = 3,
) -> Launch:
    """Triton, one wave of programs with equal shares of all pages; a second kernel combines what several share."""
    from kernelviz.ops.attention_decode import triton as kernels
    from kernelviz.ops.attention_decode.cache import paged_cache

    tile = tiles.Tile(keys_kib=keys_kib, warps=warps, stages=stages, blocks=blocks)
    return kernels.bind_scheduled(paged_cache(q_BHD, k_pages_NPHD, v_pages_NPHD, table_BN, l), tile)


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
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
    *,
    heads: int = 0,
    warps: int = 0,
    stages: int = 0,
    blocks: int = 0,
) -> Launch:
    """CUDA C++, equal shares of pages; each warp streams its own by cp.async to mma.sync, the last block of a row combines."""
    from kernelviz.ops.attention_decode.cache import paged_cache

    parameters = {"heads": heads, "warps": warps, "stages": stages, "blocks": blocks}
    return mma.bind(paged_cache(q_BHD, k_pages_NPHD, v_pages_NPHD, table_BN, l), parameters)


PAGED_VARIANTS = (
    composite_eager,
    torch_eager,
    triton_heads,
    triton_packed,
    triton_split,
    triton_scheduled,
    cuda_mma,
)
