"""The Triton and CUDA C++ variants of decode attention with a contiguous or a paged cache, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.attention_decode import mma, tiles
from kernelviz.ops.attention_decode.cache import cache_of
from kernelviz.ops.catalog.variant import TARGETS, Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.core.machine_code import Technique


def kernel_variants(*, paged: bool) -> tuple[Variant, ...]:
    """Each adds one idea to the one before it. `inputs` of a bind function are those of the op, and `l` the axis."""
    shared_out = "pages" if paged else "tokens"

    def triton_heads(*inputs: Tensor, l: int) -> Launch:  # noqa: E741  the axis
        from kernelviz.ops.attention_decode import triton as kernels

        return kernels.bind_heads(cache_of(inputs, l, paged=paged))

    triton_heads.__doc__ = "Triton, a program per query head, " + (
        "which looks up the page of each token in the block table."
        if paged
        else "sums in fp32: the heads of a group read the same keys and values."
    )

    def triton_packed(*inputs: Tensor, l: int) -> Launch:  # noqa: E741
        from kernelviz.ops.attention_decode import triton as kernels

        return kernels.bind_packed(cache_of(inputs, l, paged=paged), tiles.PACKED)

    triton_packed.__doc__ = (
        "Triton, a program per key/value head: its query heads are the rows of tl.dot, "
        f"so {'each page' if paged else 'the cache'} is read once."
    )

    def triton_split(
        *inputs: Tensor,
        l: int,  # noqa: E741
        keys_kib: int,
        warps: int,
        stages: int,
        blocks: int,
    ) -> Launch:
        from kernelviz.ops.attention_decode import triton as kernels

        tile = tiles.Tile(keys_kib=keys_kib, warps=warps, stages=stages, blocks=blocks)
        return kernels.bind_split(cache_of(inputs, l, paged=paged), tile)

    triton_split.__doc__ = (
        f"Triton, the {shared_out} are divided among programs until the GPU is full; "
        "a second kernel combines the parts."
    )

    def triton_scheduled(
        *inputs: Tensor,
        l: int,  # noqa: E741
        keys_kib: int,
        warps: int,
        stages: int,
        blocks: int,
    ) -> Launch:
        from kernelviz.ops.attention_decode import triton as kernels

        tile = tiles.Tile(keys_kib=keys_kib, warps=warps, stages=stages, blocks=blocks)
        return kernels.bind_scheduled(cache_of(inputs, l, paged=paged), tile)

    triton_scheduled.__doc__ = (
        f"Triton, one wave of programs with equal shares of all {shared_out}; "
        "a second kernel combines what several share."
    )

    def cuda_mma(
        *inputs: Tensor,
        l: int,  # noqa: E741
        heads: int,
        warps: int,
        stages: int,
        blocks: int,
    ) -> Launch:
        parameters = {"heads": heads, "warps": warps, "stages": stages, "blocks": blocks}
        return mma.bind(cache_of(inputs, l, paged=paged), parameters)

    cuda_mma.__doc__ = (
        f"CUDA C++, equal shares of {shared_out}; "
        "each warp streams its own by cp.async to mma.sync, the last block of a row combines."
    )
    needs = ("triton", "cuda")
    techniques: tuple[Technique, ...] = ("cp_async", "mma_sync")
    spaces = (tiles.PAGED_SPACE, tiles.PAGED_SPACE) if paged else (tiles.SPLIT_SPACE, tiles.SCHEDULED_SPACE)
    return (
        variant(backend="triton", needs=needs)(triton_heads),
        variant(backend="triton", needs=needs, techniques=techniques)(triton_packed),
        *(
            variant(backend="triton", needs=needs, techniques=techniques, space=space, admits=tiles.admits)(bind)
            for bind, space in zip((triton_split, triton_scheduled), spaces, strict=True)
        ),
        variant(
            backend="cuda",
            needs=("nvrtc", "cuda"),
            targets=(*TARGETS, "sm_120"),
            techniques=techniques,
            space=mma.SPACE,
            admits=mma.admits,
        )(cuda_mma),
    )
