"""The CUDA C++ variants of attention on Hopper's tensor cores, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.ops.attention import wgmma_choice
from kernelviz.ops.catalog.variant import Launch, PublishedGain, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor

_HOPPER: dict[str, Any] = {
    "backend": "cuda",
    "needs": ("nvrtc", "cuda", "sm_90a"),
    "techniques": ("tma", "wgmma", "warp_specialised"),
}
# Table 2: 582 TFLOP/s without the overlap, 661 with it; fp16, 4 sequences of 8,448, 16 heads of 128, all keys.
_OVERLAP = PublishedGain(factor=661 / 582, over="cuda_wgmma_ping_pong", gpu="H100", source="arxiv.org/abs/2407.08608")


def wgmma_variants(*, causal: bool) -> tuple[Variant, ...]:
    """Each adds one idea to the one before it."""

    @variant(**_HOPPER)
    def cuda_wgmma(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """CUDA C++, wgmma: one warpgroup copies keys and values by TMA, two others compute 64 queries each."""
        from kernelviz.ops.attention import wgmma

        return wgmma.bind(q_BSHD, k_BSHD, v_BSHD, wgmma_choice.first(q_BSHD.shape[-1]), causal=causal)

    @variant(**_HOPPER)
    def cuda_wgmma_ping_pong(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """CUDA C++, wgmma: the two warpgroups take turns: the products of one run during the exponentials of the other."""
        from kernelviz.ops.attention import wgmma

        return wgmma.bind(q_BSHD, k_BSHD, v_BSHD, wgmma_choice.ping_pong(q_BSHD.shape[-1]), causal=causal)

    @variant(**_HOPPER, published=_OVERLAP)
    def cuda_wgmma_overlap(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """CUDA C++, wgmma: also within a warpgroup, exponentials run beside the product of the last weights and values."""
        from kernelviz.ops.attention import wgmma

        return wgmma.bind(q_BSHD, k_BSHD, v_BSHD, wgmma_choice.overlap(q_BSHD.shape[-1]), causal=causal)

    @variant(**_HOPPER)
    def cuda_wgmma_persistent(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """CUDA C++, wgmma: blocks take tiles from a counter, those with most keys first, and load ahead of the next one."""
        from kernelviz.ops.attention import wgmma

        return wgmma.bind(q_BSHD, k_BSHD, v_BSHD, wgmma_choice.persistent(q_BSHD.shape[-1]), causal=causal)

    @variant(**_HOPPER)
    def cuda_wgmma_three_stages(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """CUDA C++, wgmma, persistent: exponentials beside both products; two sets of scores leave registers for fewer keys."""
        from kernelviz.ops.attention import wgmma

        return wgmma.bind(q_BSHD, k_BSHD, v_BSHD, wgmma_choice.three_stages(q_BSHD.shape[-1]), causal=causal)

    def backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        """One pass over the queries for each block of keys. dQ is added up by TMA, so its last bits differ between calls."""
        from kernelviz.ops.attention import wgmma_backward

        options = wgmma_choice.choose(q_BSHD.shape[1], q_BSHD.shape[-1], causal=causal)
        return wgmma_backward.bind(q_BSHD, k_BSHD, v_BSHD, do_BSHD, options, causal=causal)

    @variant(**_HOPPER, backward=backward)
    def cuda_wgmma_by_size(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """CUDA C++, wgmma: the tile and the number of warpgroups by length and head dimension."""
        from kernelviz.ops.attention import wgmma

        options = wgmma_choice.choose(q_BSHD.shape[1], q_BSHD.shape[-1], causal=causal)
        return wgmma.bind(q_BSHD, k_BSHD, v_BSHD, options, causal=causal)

    return (
        cuda_wgmma,
        cuda_wgmma_ping_pong,
        cuda_wgmma_overlap,
        cuda_wgmma_persistent,
        cuda_wgmma_three_stages,
        cuda_wgmma_by_size,
    )
